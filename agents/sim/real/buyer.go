package real

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

// The behaviour of buyers.
const (
	patience   = 40 * time.Second // then a buyer begins the next purchase; this one continues
	mostPause  = 1500 * time.Millisecond
	refusedFor = time.Second // before the next attempt while the daemon is down
	mostUnits  = 3
	farthest   = 30 * 24 // hours ahead
)

// notes are the final states that buyers learnt, by user and purchase.
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

// shop makes one purchase after another until ctx is cancelled.
func (m *market) shop(ctx context.Context, i int, u *agent) {
	r := rand.New(rand.NewPCG(m.cfg.Seed, uint64(1000+i)))
	for ctx.Err() == nil {
		pause := time.Duration(r.Int64N(int64(mostPause)))
		doc, err := request(r, 1+r.IntN(mostUnits))
		if err != nil {
			m.fleet.wrong("cannot make a request: %v", err)
			return
		}
		if _, err := m.buy(ctx, u, doc, patience); err != nil {
			pause = refusedFor
		}
		agents.Pause(ctx, pause)
	}
}

// request asks for a number of units, each some cores for an hour.
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

// buy orders a purchase, follows it for a while and notes its outcome.
func (m *market) buy(ctx context.Context, u *agent, doc rfql.Document, limit time.Duration) (message.Purchase, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	id := fmt.Sprintf("soak-%d-%s-%d", m.cfg.Seed, u.name, m.notes.order())
	p, err := u.buy(ctx, control.BuyCall{ID: id, Name: "soak", Document: string(doc.XML())})
	if err == nil {
		m.notes.over(u.name, p)
	}
	return p, err
}
