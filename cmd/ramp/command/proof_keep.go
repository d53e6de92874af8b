package command

import (
	"context"
	"errors"
	"sync"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of keeping proofs.
const (
	proofsAtOnce = 256 // asked for in a round
	proofWait    = 30 * time.Second
	proofPart    = 20              // a pause between rounds is at least as many times what the round took
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
}

// keepsProofs lets a node keep the proofs of its receipts.
func (n *node) keepsProofs(each func(protocol.Tables, func(reserve.Papers) error) error) {
	n.proofs = &proofs{
		node: n, each: each, heard: make(chan struct{}, 1), soon: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		refused: map[protocol.ContractID]digest{},
	}
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
	for retry := proofRetry; ctx.Err() == nil; {
		begun := time.Now()
		more, err := p.round(ctx)
		pause := max(sealPeriod, proofPart*time.Since(begun))
		switch {
		case err != nil:
			p.node.log.Debug("proofs are missing, and are asked for again", "err", err)
			pause, retry = max(pause, retry), min(2*retry, proofLook)
		case !more:
			retry = proofRetry
			await(ctx, p.heard, proofLook)
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

// round asks for proofs that are missing; more: there may be others.
func (p *proofs) round(ctx context.Context) (more bool, err error) {
	noted, _ := p.state()
	defer func() {
		p.mu.Lock()
		p.done = noted
		p.mu.Unlock()
		nudge(p.ended)
	}()
	if err := p.load(); err != nil {
		return false, err
	}
	list, err := p.missing(ctx)
	if err != nil {
		return false, err
	}
	away := map[protocol.AgentID]error{} // banks that do not answer
	for _, one := range list {
		if bank := one.Decided.Bank; away[bank] == nil {
			away[bank] = p.fetch(ctx, one)
		}
	}
	for _, why := range away {
		err = errors.Join(err, why)
	}
	return len(list) == proofsAtOnce, err
}
