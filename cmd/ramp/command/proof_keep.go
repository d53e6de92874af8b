package command

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of keeping proofs.
const (
	proofsAtOnce = 256 // asked of a bank in a round
	proofWait    = 30 * time.Second
	proofPart    = 20              // a pause between rounds is at least as many times what reading the journal took
	proofRetry   = 5 * time.Second // after a bank did not answer; doubled up to proofLook
	proofLook    = 10 * time.Minute
	proofsEnd    = 2 * time.Second // that a command waits for the proof of what it has bought
)

// proofs keeps beside each receipt its proof: that the bank's log has what the receipt
// says. The bank is asked in the background, and late enough for its next head, so that
// what it decides takes no longer, and it signs no head for one who asks.
type proofs struct {
	node  *node
	each  func(t protocol.Tables, f func(reserve.Papers) error) error
	heard chan struct{} // a bank has decided something
	soon  chan struct{} // the owner waits
	ended chan struct{} // a round has

	mu    sync.Mutex
	noted uint64 // decisions that were heard
	done  uint64 // of those: looked after

	kept    map[protocol.ContractID]digest // that are in the journal; nil: not read yet
	refused map[protocol.ContractID]digest // that the bank does not prove; the next process asks again
	last    map[protocol.AgentID]contract.Head
	silent  map[protocol.AgentID]silence
	ask     func(context.Context, reserve.Papers) error // fetch, but in tests
}

// silence is that of a bank which did not answer. The other banks are asked meanwhile.
type silence struct {
	until time.Time // when it is asked again
	retry time.Duration
}

// keepsProofs lets a node keep the proofs of its receipts.
func (n *node) keepsProofs(each func(protocol.Tables, func(reserve.Papers) error) error) {
	n.proofs = &proofs{
		node: n, each: each, heard: make(chan struct{}, 1), soon: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		refused: map[protocol.ContractID]digest{}, silent: map[protocol.AgentID]silence{},
	}
	n.proofs.ask = n.proofs.fetch
}

// hear takes note of a decision, which the role is about to save.
func (p *proofs) hear(d message.Decision) {
	if p == nil || d.Receipt == nil {
		return
	}
	p.mu.Lock()
	p.noted++
	p.mu.Unlock()
	nudge(p.heard)
}

// again looks for receipts that have changed.
func (p *proofs) again() {
	if p != nil {
		nudge(p.heard)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is nudged already
	}
}

// run asks for what has no proof yet, at first for what was decided before.
func (p *proofs) run(ctx context.Context) {
	if p == nil || p.node.mesh == nil || p.node.mesh.Joined(ctx) != nil {
		return
	}
	for ctx.Err() == nil {
		pause, next, err := p.round(ctx)
		if err != nil {
			p.node.log.Debug("proofs are missing, and are asked for again", "err", err)
		}
		if next > 0 {
			await(ctx, p.heard, next)
		}
		await(ctx, p.soon, pause)
	}
}

// await waits for a nudge, or for a time.
func await(ctx context.Context, c <-chan struct{}, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
	case <-t.C:
	case <-ctx.Done():
	}
}

// finish waits until what was decided for this process has been looked after once, for a
// moment at most.
func (p *proofs) finish() {
	want, _ := p.state()
	if want == 0 {
		return
	}
	nudge(p.soon)
	ctx, cancel := context.WithTimeout(p.node.life, proofsEnd)
	defer cancel()
	for {
		if _, done := p.state(); done >= want || ctx.Err() != nil {
			return
		}
		await(ctx, p.ended, proofsEnd)
	}
}

func (p *proofs) state() (noted, done uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.noted, p.done
}

// round asks for proofs that are missing. It says how long to pause then at least, and
// in what time there is more to ask for if nothing is heard.
func (p *proofs) round(ctx context.Context) (pause, next time.Duration, err error) {
	noted, _ := p.state()
	defer func() {
		p.mu.Lock()
		p.done = noted
		p.mu.Unlock()
		nudge(p.ended)
	}()
	begun := time.Now()
	if err := p.load(); err != nil {
		return proofRetry, proofLook, err
	}
	lists, next, err := p.missing(ctx, begun)
	if err != nil {
		return proofRetry, proofLook, err
	}
	pause, begun = max(sealPeriod, proofPart*time.Since(begun)), time.Now()
	for _, bank := range slices.Sorted(maps.Keys(lists)) {
		all, why := p.askFor(ctx, lists[bank])
		if why != nil {
			next = min(next, p.isSilent(bank))
			err = errors.Join(err, why)
			continue
		}
		delete(p.silent, bank)
		if !all {
			next = 0
		}
	}
	return max(pause, time.Since(begun)), next, err
}

// askFor asks a bank, for a while; all: there is no more to ask for.
func (p *proofs) askFor(ctx context.Context, list []reserve.Papers) (all bool, err error) {
	begun := time.Now()
	for _, one := range list {
		if time.Since(begun) > proofWait { // a slow one: it is the next one's turn
			return false, nil
		}
		if err := p.ask(ctx, one); err != nil {
			return false, err
		}
	}
	return len(list) < proofsAtOnce, nil
}

// isSilent notes that a bank did not answer, and says when it is asked again.
func (p *proofs) isSilent(bank protocol.AgentID) time.Duration {
	retry := max(proofRetry, p.silent[bank].retry)
	p.silent[bank] = silence{time.Now().Add(retry), min(2*retry, proofLook)}
	return retry
}
