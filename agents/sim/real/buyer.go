package real

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// What buyers do.
const (
	patience   = 40 * time.Second // a buyer then leaves, and buys the next; the purchase goes on
	mostPause  = 1500 * time.Millisecond
	refusedFor = time.Second // before a buyer whose daemon is down tries again
	mostUnits  = 3
	maxStream  = 16 << 20 // bytes of what is told of one purchase
	farthest   = 30 * 24  // hours ahead
)

// notes are what buyers were told, by user and purchase: the state in which it
// was over.
type notes struct {
	mu      sync.Mutex
	told    map[string]map[string]string
	ordered int
	settled int
}

func newNotes(cfg Config) *notes {
	n := &notes{told: map[string]map[string]string{}}
	for _, name := range names(cfg.Resources, cfg.Users)[1+cfg.Resources:] {
		n.told[name] = map[string]string{}
	}
	return n
}

func (n *notes) order() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ordered++
	return n.ordered
}

func (n *notes) over(user string, p message.Purchase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.told[user][p.ID] = p.State
	if p.Settled {
		n.settled++
	}
}

func (n *notes) counts() (ordered, settled int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ordered, n.settled
}

// shop buys one thing after the other until ctx is done.
func (m *market) shop(ctx context.Context, i int, u *agent) {
	r := rand.New(rand.NewPCG(m.cfg.Seed, uint64(1000+i)))
	for ctx.Err() == nil {
		pause := time.Duration(r.Int64N(int64(mostPause)))
		doc, err := request(r, 1+r.IntN(mostUnits))
		if err != nil {
			m.wrong("a request to buy is wrong: %v", err)
			return
		}
		if _, err := m.buy(ctx, u, doc, patience); err != nil {
			pause = refusedFor
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// request asks for so many units, each some cores for an hour.
func request(r *rand.Rand, units int) (rfql.Document, error) {
	now := time.Now().UTC().Truncate(time.Second)
	from := now.Add(time.Duration(1+r.IntN(farthest)) * time.Hour)
	var d rfql.Draft
	for range units {
		d.Requests = append(d.Requests, rfql.DraftRequest{
			Name: "soak", Price: 60 * protocol.Credit, TotalCores: 1 + r.IntN(cores*3/4),
			NotBefore: from, End: from.Add(24 * time.Hour), Wall: time.Hour,
		})
	}
	return rfql.Check(d, now)
}

// buy orders a purchase and follows it for a while; what it came to is noted.
func (m *market) buy(ctx context.Context, u *agent, doc rfql.Document, limit time.Duration) (message.Purchase, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id := fmt.Sprintf("soak-%d-%s-%d", m.cfg.Seed, u.name, m.notes.order())
	resp, err := post(ctx, u.disk.dir, "/v1/buy", map[string]any{"id": id, "name": "soak", "document": string(doc.XML())})
	if err != nil {
		return message.Purchase{}, err
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, maxStream))
	for {
		var line struct {
			Done     bool
			Purchase message.Purchase
		}
		if err := d.Decode(&line); err != nil {
			return line.Purchase, err // the daemon or our patience has ended
		}
		if line.Done {
			m.notes.over(u.name, line.Purchase)
			return line.Purchase, nil
		}
	}
}
