package command

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of showing papers to a bank that recovers.
const (
	papersAtOnce = 256 // read from the journal at a time
	papersWait   = 30 * time.Second
	papersBanks  = 64 // that recover at a time; others are heard later
)

// errShown ends a reading of the journal that has found enough.
var errShown = errors.New("enough papers")

// papers shows banks that were restored from a backup what they decided since, once per
// recovery, in the background. A bank that does not answer is asked again when it tells
// the market the next time that it recovers.
type papers struct {
	node *node
	each func(t protocol.Tables, f func(reserve.Papers) error) error
	own  bool // the user's: the bank's new receipt takes the place of the old one

	mu    sync.Mutex
	over  bool // the node stops
	going bool // one bank is being shown: whoever says that it recovers costs a reading of the journal
	banks map[protocol.AgentID]*recovery
}

// showsPapers lets a node show its contracts to banks that recover.
func (n *node) showsPapers(own bool, each func(protocol.Tables, func(reserve.Papers) error) error) {
	n.papers = &papers{node: n, each: each, own: own, banks: map[protocol.AgentID]*recovery{}}
}

// end lets no more showing begin.
func (p *papers) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

// recovery is one bank's recovery.
type recovery struct {
	since   time.Time
	shown   map[string]bool   // keys of records
	refused map[string]string // of those, with the reason; they are shown again
	lacked  int               // what the bank had lost
}

func newRecovery(since time.Time) *recovery {
	return &recovery{since: since, shown: map[string]bool{}, refused: map[string]string{}}
}

// hear takes what a bank tells the market of itself.
func (p *papers) hear(bank protocol.AgentID, told message.Presence) {
	if p == nil || told.Agent != protocol.KindBank {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.banks[bank]
	switch {
	case told.Recovering.IsZero():
		delete(p.banks, bank)
		return
	case p.going || p.over:
		return
	case s == nil && len(p.banks) >= papersBanks:
		return
	case s == nil || !s.since.Equal(told.Recovering):
		s = newRecovery(told.Recovering)
		p.banks[bank] = s
	}
	p.going = true
	p.node.wg.Go(func() {
		if err := p.show(p.node.life, bank, s); err != nil && p.node.life.Err() == nil {
			p.node.log.Warn("the bank recovers, and was not shown all receipts; it is shown them again", "bank", bank, "err", err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.going = false
	})
}

// show shows a bank all papers that it has not been shown, or has refused: its operator
// may have opened an account that it lacked.
func (p *papers) show(ctx context.Context, bank protocol.AgentID, s *recovery) error {
	for key := range s.refused {
		delete(s.shown, key)
	}
	before := len(s.shown)
	for {
		list, err := p.next(bank, s)
		if err != nil {
			return err
		}
		if len(list) == 0 {
			break
		}
		for _, one := range list {
			if err := p.showOne(ctx, bank, s, one); err != nil {
				return err
			}
			s.shown[one.Key] = true
		}
	}
	if n := len(s.shown) - before - len(s.refused); n > 0 {
		p.node.log.Info("the bank recovers, and was shown what it decided", "bank", bank, "receipts", n, "lacked", s.lacked)
	}
	return nil
}

// next are some papers of a bank that it has not been shown.
func (p *papers) next(bank protocol.AgentID, s *recovery) (list []reserve.Papers, err error) {
	err = p.each(p.node.journal, func(one reserve.Papers) error {
		if one.Decided.Bank != bank || s.shown[one.Key] || !one.Since(s.since) {
			return nil
		}
		if list = append(list, one); len(list) == papersAtOnce {
			return errShown
		}
		return nil
	})
	if errors.Is(err, errShown) {
		err = nil
	}
	return list, err
}

func (p *papers) showOne(ctx context.Context, bank protocol.AgentID, s *recovery, one reserve.Papers) error {
	bundle, err := contract.OpenBundle(one.Bundle, p.node.trust, one.SignedAt)
	if err != nil {
		return fmt.Errorf("bundle of %s: %w", one.Key, err)
	}
	receipt, err := contract.OpenReceipt(one.Receipt, p.node.trust, one.Decided.Time)
	if err != nil {
		return fmt.Errorf("receipt of %s: %w", one.Key, err)
	}
	ctx, cancel := context.WithTimeout(ctx, papersWait)
	defer cancel()
	answer, err := p.node.asks.ask(ctx, p.node.runner, protocol.Message{
		Performative: protocol.Request, Sender: p.node.cred.ID, Receivers: []protocol.AgentID{bank},
		Protocol: protocol.ProtocolRequest, Body: message.Readmission{Bundle: bundle, Receipt: receipt},
	})
	if err != nil {
		return err
	}
	switch body := answer.Body.(type) {
	case message.Decision:
		delete(s.refused, one.Key)
		return p.readmitted(ctx, s, one, body.Receipt)
	case message.Refusal:
		why := refusalNote(body)
		if len(body.Reasons) > 0 && body.Reasons[0].Code == protocol.CodeForbidden {
			return errors.New(why) // it has ended its recovery
		}
		if s.refused[one.Key] != why {
			p.node.log.Warn("the bank recovers, and refuses a receipt of its own; it is shown it again", "bank", bank, "contract", bundle.ID, "why", why)
		}
		s.refused[one.Key] = why
	}
	return nil
}

// readmitted takes what a bank answers that was shown a receipt.
func (p *papers) readmitted(ctx context.Context, s *recovery, one reserve.Papers, given *contract.VerifiedReceipt) error {
	switch {
	case given == nil:
	case given.Signer.ID != one.Decided.Bank || !reserve.Confirms(given.Receipt, one.Decided):
		p.node.log.Warn("the bank recovers, and does not say all that its receipt says, which is kept", "bank", one.Decided.Bank, "contract", one.Decided.Contract)
	case reserve.Renumbered(given.Receipt, one.Decided):
		s.lacked++
		return p.keep(ctx, one, given.DER)
	}
	return nil
}

// keep puts the bank's new receipt into the user's journal: it names the entry that
// stands for the contract now.
func (p *papers) keep(ctx context.Context, one reserve.Papers, receipt []byte) error {
	if !p.own {
		return nil
	}
	value, err := userRecords{journal: p.node.journal}.row(reserve.TableBundles, one.Key)
	if err != nil {
		return err
	}
	if value, err = reserve.WithReceipt(value, receipt); err != nil {
		return err
	}
	err = p.node.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output {
		return protocol.Output{Save: []protocol.Record{{Table: reserve.TableBundles, Key: one.Key, Value: value}}}
	})
	if err == nil {
		p.node.proofs.again()
	}
	return err
}
