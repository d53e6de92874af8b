package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/node"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// Bounds of a crowd.
const (
	MaxCrowd    = 10_000
	crowdAtOnce = 8 // of one process that start
	buysAtOnce  = 8 // of all: two processors, busy with idle agents, hold no more in time
)

// CrowdUp is what a Crowd answers once its agents have joined the market.
type CrowdUp struct {
	Agents []protocol.AgentID `json:"agents"`
	Error  string             `json:"error,omitempty"`
}

// CrowdReport is what the purchases of a Crowd came to.
type CrowdReport struct {
	Purchases int            `json:"purchases"`
	Settled   int            `json:"settled"`
	Elapsed   time.Duration  `json:"elapsed"`
	Asked     int            `json:"asked"`         // sites, by all
	Why       map[string]int `json:"why,omitempty"` // of those that did not settle
}

// Add sums the reports of crowds that bought at the same time.
func (r *CrowdReport) Add(o CrowdReport) {
	r.Purchases += o.Purchases
	r.Settled += o.Settled
	r.Asked += o.Asked
	r.Elapsed = max(r.Elapsed, o.Elapsed)
	if r.Why == nil {
		r.Why = map[string]int{}
	}
	for why, n := range o.Why {
		r.Why[why] += n
	}
}

// Crowd runs user agents in this process, one for each directory that in lists in its first line,
// and has each of them buy one slot of a core and a minute whenever in has a further line, which is
// how many buy at once. It answers the first line with CrowdUp, the others with a CrowdReport.
func Crowd(ctx context.Context, in io.Reader, out, logTo io.Writer) (err error) {
	d, answer := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	var dirs []string
	if err := d.Decode(&dirs); err != nil {
		return err
	}
	crowd := make([]*node.Node, len(dirs))
	defer func() {
		err = errors.Join(err, each(crowd, crowdAtOnce, func(n *node.Node) error { return n.Stop() }))
	}()
	up := CrowdUp{}
	if err := startCrowd(ctx, dirs, crowd, logTo); err != nil {
		up.Error = err.Error()
	}
	for _, n := range crowd {
		if n != nil {
			up.Agents = append(up.Agents, n.Cred.ID)
		}
	}
	if err := answer.Encode(up); err != nil {
		return err
	}
	for {
		var atOnce int
		if err := d.Decode(&atOnce); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answer.Encode(buyAll(ctx, crowd, atOnce)); err != nil {
			return err
		}
	}
}

// each does something with all agents of a crowd, some at once.
func each(crowd []*node.Node, atOnce int, do func(*node.Node) error) error {
	var group sync.WaitGroup
	errs := make([]error, len(crowd))
	places := make(chan struct{}, max(1, atOnce))
	for i, n := range crowd {
		if n == nil {
			continue
		}
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			errs[i] = do(n)
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func startCrowd(ctx context.Context, dirs []string, crowd []*node.Node, logTo io.Writer) error {
	for i, dir := range dirs {
		n, err := node.NewUser(dir, node.CommandLog(logTo))
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(dir), err)
		}
		crowd[i] = n
		n.Run(context.WithoutCancel(ctx))
	}
	return each(crowd, crowdAtOnce, func(n *node.Node) error { return n.Mesh.Acquainted(ctx) })
}

// buyAll has each agent buy once, some at once.
func buyAll(ctx context.Context, crowd []*node.Node, atOnce int) CrowdReport {
	r := CrowdReport{Purchases: len(crowd), Why: map[string]int{}}
	begun := time.Now()
	var mu sync.Mutex
	_ = each(crowd, atOnce, func(n *node.Node) error { // what fails is in the report
		asked, why := buyOne(ctx, n)
		mu.Lock()
		defer mu.Unlock()
		r.Asked += asked
		if why == "" {
			r.Settled++
		} else {
			r.Why[why]++
		}
		return nil
	})
	r.Elapsed = time.Since(begun)
	return r
}

// buyOne buys a slot, as a command does, and returns how many sites were asked, and why it did
// not buy.
func buyOne(ctx context.Context, n *node.Node) (asked int, why string) {
	now := time.Now().Truncate(time.Second)
	doc, err := rfql.Check(rfql.Draft{Requests: []rfql.DraftRequest{{
		Name: "crowd", Price: 70 * protocol.Credit, TotalCores: 1, NotBefore: now.Add(time.Hour), End: now.Add(12 * time.Hour), Wall: time.Minute,
	}}}, now)
	if err != nil {
		return 0, err.Error()
	}
	id := control.NewPurchaseID(false)
	f, stop := n.News.Purchases.Follow(id)
	defer stop()
	order := message.Buy{ID: id, Name: "crowd", Document: doc.XML()}
	err = n.Runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Body: order})
	})
	for err == nil {
		var p message.Progress
		if p, err = f.Next(ctx); err != nil || !p.Done {
			continue
		}
		if !p.Purchase.Settled {
			why = fmt.Sprintf("%s: %s", p.Purchase.State, p.Purchase.Why)
		}
		return p.Purchase.Found, why
	}
	return 0, err.Error()
}
