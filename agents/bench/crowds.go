package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/demo"
	"ramp/agents/exit"
)

// crowdProcess is how many user agents share a process, which may not have as many files
// open as all of them have connections.
const crowdProcess = 250

// CrowdFigures are what many users in one market come to; the names are fixed.
type CrowdFigures struct {
	Users     int            `json:"users"`
	Sellers   int            `json:"sellers"`
	Joined    float64        `json:"joined_s"` // until all users had joined
	Purchases int            `json:"purchases"`
	Settled   int            `json:"settled"`
	Share     float64        `json:"settled_share"`
	Asked     float64        `json:"sites_asked"` // for a purchase
	Seconds   float64        `json:"seconds"`     // for all purchases
	Most      int            `json:"connections"` // most that the bank had at once
	Memory    float64        `json:"memory_kb"`   // of the bank, for each of them
	Why       map[string]int `json:"why,omitempty"`
}

// crowds is a market with many users.
type crowds struct {
	market  demo.Market
	users   int
	note    func(string)
	figures CrowdFigures
	crowds  []*Child // each with some of the users
}

// MeasureCrowd starts a market with many users, and has each of them buy once; note gets a
// line of progress now and then.
func MeasureCrowd(ctx context.Context, users, sellers int, note func(string)) (f CrowdFigures, err error) {
	b := &crowds{users: users, note: note, market: demo.Market{Out: demo.Silent{}, Count: sellers}}
	made, err := b.market.Open(ctx)
	defer func() {
		for _, x := range b.crowds {
			err = errors.Join(err, x.End())
		}
		if ctx.Err() != nil {
			err = ctx.Err() // the users were killed
		}
		err = b.market.Close(ctx, made, err)
	}()
	if err == nil {
		err = b.measure(ctx)
	}
	return b.figures, err
}

func (b *crowds) measure(ctx context.Context) error {
	b.figures = CrowdFigures{Users: b.users, Sellers: b.market.Count}
	before, err := b.memory()
	if err != nil {
		return err
	}
	begun := time.Now()
	if err := b.start(ctx); err != nil {
		return err
	}
	b.figures.Joined = time.Since(begun).Seconds()
	b.note(fmt.Sprintf("%d users have joined after %.0f s; each buys once", b.users, b.figures.Joined))
	watching, cancel := context.WithCancel(ctx)
	watched := make(chan error, 1)
	go func() { watched <- b.watch(watching, before) }()
	sum, err := b.buy()
	cancel()
	if err := errors.Join(err, <-watched); err != nil {
		return err
	}
	b.figures.Purchases, b.figures.Settled, b.figures.Seconds, b.figures.Why = sum.Purchases, sum.Settled, sum.Elapsed.Seconds(), sum.Why
	b.figures.Share, b.figures.Asked = float64(sum.Settled)/float64(max(1, sum.Purchases)), float64(sum.Asked)/float64(max(1, sum.Purchases))
	return nil
}

// start starts the users, some in each process, and gives each an account.
func (b *crowds) start(ctx context.Context) error {
	for from := 0; from < b.users; from += crowdProcess {
		x, err := b.child(ctx, from, min(b.users, from+crowdProcess))
		if x != nil {
			b.crowds = append(b.crowds, x)
		}
		if err != nil {
			return err
		}
		b.note(fmt.Sprintf("%d of %d users have joined", min(b.users, from+crowdProcess), b.users))
	}
	return nil
}

// child starts the users from..to in a process of their own, and waits until they have joined.
func (b *crowds) child(ctx context.Context, from, to int) (*Child, error) {
	var dirs []string
	for i := from; i < to; i++ {
		dir, err := b.market.AgentDir(fmt.Sprintf("user%d", i+1), config.Config{User: &config.User{Pay: b.market.Pay(), Daemon: new(bool)}})
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	x, err := StartChild(ctx, filepath.Join(b.market.Dir, fmt.Sprintf("users-%d.log", from+1)), []string{"GOGC=200"}, "bench", "crowd")
	if err != nil {
		return nil, err
	}
	var up CrowdUp
	if err := errors.Join(x.Give(dirs), x.Report(&up)); err != nil {
		return x, exit.Fail(exit.Failed, "their log is "+x.Log, "users %d to %d did not start: %w", from+1, to, err)
	}
	if up.Error != "" {
		return x, exit.Fail(exit.Failed, "their log is "+x.Log, "%s", up.Error)
	}
	for _, id := range up.Agents {
		if err := b.market.Fund(ctx, id, id.Name()); err != nil {
			return x, err
		}
	}
	return x, nil
}

// buy has all users buy once, buysAtOnce at the same time in all processes together.
func (b *crowds) buy() (sum CrowdReport, err error) {
	for _, x := range b.crowds {
		if err := x.Give(buysAtOnce / len(b.crowds)); err != nil {
			return sum, err
		}
	}
	for _, x := range b.crowds {
		var r CrowdReport
		if err := x.Report(&r); err != nil {
			return sum, err
		}
		sum.Add(r)
	}
	return sum, nil
}

// watch notes the most connections that the bank has, and what memory it has then.
func (b *crowds) watch(ctx context.Context, before float64) error {
	for {
		var live control.LiveStatus
		switch err := demo.Ask(ctx, b.market.Bank, control.Agent, control.None{}, &live); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		now, err := b.memory()
		if err != nil {
			return err
		}
		if n := live.Reach.TCP + live.Reach.QUIC + live.Reach.Relayed; n > b.figures.Most {
			b.figures.Most, b.figures.Memory = n, (now-before)/float64(n)
		}
		if !agents.Pause(ctx, time.Second) {
			return nil
		}
	}
}

// memory is what the bank's process has, in kB; 0 where that cannot be read.
func (b *crowds) memory() (float64, error) {
	if runtime.GOOS != "linux" {
		return 0, nil
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", b.market.Bank.PID()))
	if err != nil {
		return 0, err
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0, fmt.Errorf("/proc/%d/statm: %w", b.market.Bank.PID(), err)
	}
	return float64(resident*os.Getpagesize()) / 1000, nil
}
