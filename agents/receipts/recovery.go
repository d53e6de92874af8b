package receipts

import (
	"fmt"
	"maps"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// recoveries shows banks that recover the receipts that they may have lost, one bank and
// one receipt at a time.
type recoveries struct {
	party
	banks   map[protocol.AgentID]*recovery
	current protocol.AgentID // to which receipts are being shown; empty: none
	list    []reserve.DecidedContract
	asked   string // the tag of the question about the first of list
	until   time.Time
}

type recovery struct {
	since   time.Time
	shown   map[string]bool   // keys of records
	refused map[string]string // of those, with the reason; they are shown again
	lacked  int               // what the bank had lost
	before  int               // shown and not refused when its presence came
}

// hear takes what a bank announces about itself.
func (r *recoveries) hear(now time.Time, bank protocol.AgentID, p message.Presence) protocol.Output {
	if p.Agent != protocol.KindBank {
		return protocol.Output{}
	}
	s := r.banks[bank]
	switch {
	case p.Recovering.IsZero():
		delete(r.banks, bank)
		if r.current == bank {
			r.end()
		}
		return protocol.Output{}
	case r.current != "" || s == nil && len(r.banks) >= maxBanks:
		return protocol.Output{} // it announces itself again
	case s == nil || !s.since.Equal(p.Recovering):
		s = &recovery{since: p.Recovering, shown: map[string]bool{}, refused: map[string]string{}}
		r.banks[bank] = s
	}
	for key := range s.refused { // the operator may have opened an account that was missing
		delete(s.shown, key)
	}
	r.current, s.before = bank, len(s.shown)
	return r.look(now, s)
}

// end shows no more until a bank announces itself.
func (r *recoveries) end() { r.current, r.list, r.asked = "", nil, "" }

// look asks the journal for receipts that the bank has not been shown. Void contracts
// count while their settle-by may be to come: afterwards nobody can settle them.
func (r *recoveries) look(now time.Time, s *recovery) protocol.Output {
	voids := now.Add(-protocol.MaxSettleAhead - protocol.ClockSkew)
	return r.tell(Lookup{Sold: r.sells, Bank: r.current, Since: s.since, Voids: voids, Skip: maps.Clone(s.shown)})
}

// found takes the journal's answer.
func (r *recoveries) found(now time.Time, f Found) protocol.Output {
	s := r.banks[r.current]
	switch {
	case s == nil || f.Bank != r.current || !f.Since.Equal(s.since) || r.asked != "":
		return protocol.Output{} // of a recovery that is over
	case f.Err != nil:
		return r.fail(f.Err)
	case len(f.List) > 0:
		r.list = f.List
		return r.show(now)
	}
	n, bank := len(s.shown)-s.before-len(s.refused), r.current
	r.end()
	if n <= 0 {
		return protocol.Output{}
	}
	return r.tell(Note{Text: "the bank recovers, and was shown its receipts", About: []any{"bank", bank, "receipts", n, "lacked", s.lacked}})
}

// fail ends a showing; the bank's next presence begins it again.
func (r *recoveries) fail(err error) protocol.Output {
	bank := r.current
	r.end()
	return r.tell(Note{true, "the bank recovers, and was not shown all its receipts; they are shown at its next presence", []any{"bank", bank, "err", err}})
}

// show shows the first of the list, or looks for more.
func (r *recoveries) show(now time.Time) protocol.Output {
	if len(r.list) == 0 {
		r.asked = ""
		return r.look(now, r.banks[r.current])
	}
	c := r.list[0]
	var bundle contract.Verified
	var err error
	if c.Bundle != nil {
		bundle, err = contract.OpenBundle(c.Bundle, r.trust, c.SignedAt)
	}
	if err != nil {
		return r.fail(fmt.Errorf("bundle of %s: %w", c.Key, err))
	}
	receipt, err := contract.OpenReceipt(c.Receipt, r.trust, c.Decided.Time)
	if err != nil {
		return r.fail(fmt.Errorf("receipt of %s: %w", c.Key, err))
	}
	r.asked, r.until = shownTag+string(c.Decided.Contract), now.Add(AnswerTime)
	out := r.ask(r.current, protocol.Request, r.asked, message.Readmission{Bundle: bundle, Receipt: receipt})
	out.WakeAt = r.until
	return out
}

// wake ends a showing that the bank does not answer.
func (r *recoveries) wake(now time.Time) protocol.Output {
	switch {
	case r.asked == "":
		return protocol.Output{}
	case now.Before(r.until):
		return protocol.Output{WakeAt: r.until}
	}
	return r.fail(fmt.Errorf("no answer within %s", AnswerTime))
}

// answered takes the bank's answer about the receipt that it was shown.
func (r *recoveries) answered(now time.Time, bank protocol.AgentID, tag string, body protocol.Body) (out protocol.Output) {
	s := r.banks[bank]
	if s == nil || bank != r.current || tag != r.asked {
		return protocol.Output{} // late
	}
	c := r.list[0]
	switch body := body.(type) {
	case message.Undeliverable:
		return r.fail(fmt.Errorf("%s cannot be reached", bank.Name()))
	case message.Decision:
		delete(s.refused, c.Key)
		out = r.readmitted(s, c, body.Receipt)
	case message.Refusal:
		if codeOf(body) == protocol.CodeForbidden {
			return r.fail(fmt.Errorf("%s", why(body))) // it has ended its recovery
		}
		if s.refused[c.Key] != why(body) {
			out = r.tell(Note{
				true, "the bank recovers, and refuses a receipt of its own; it is shown again",
				[]any{"bank", bank, "contract", c.Decided.Contract, "why", why(body)},
			})
		}
		s.refused[c.Key] = why(body)
	}
	s.shown[c.Key] = true
	r.list = r.list[1:]
	return out.Join(r.show(now))
}

// readmitted takes the receipt that a bank gives for the one that it was shown. A user's
// journal keeps one that names other entries: those stand for the contract now.
func (r *recoveries) readmitted(s *recovery, c reserve.DecidedContract, given *contract.VerifiedReceipt) protocol.Output {
	switch {
	case given == nil:
	case given.Signer.ID != c.Decided.Bank || !reserve.Confirms(given.Receipt, c.Decided):
		return r.tell(Note{
			true, "the bank recovers, and does not confirm all that its receipt says; the agent keeps its receipt",
			[]any{"bank", c.Decided.Bank, "contract", c.Decided.Contract},
		})
	case reserve.Renumbered(given.Receipt, c.Decided):
		s.lacked++
		if r.sells {
			break
		}
		value, err := reserve.WithReceipt(c.Row, given.DER)
		if err != nil {
			panic("receipts: a record that was read cannot be read: " + err.Error())
		}
		return protocol.Output{Save: []protocol.Record{{Table: reserve.TableBundles, Key: c.Key, Value: value}}}
	}
	return protocol.Output{}
}
