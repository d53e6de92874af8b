package reserve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/clearing"
	"ramp/protocol/message"
)

// votePrefix marks the reply-with of an accept-proposal; the offer's ID follows.
const votePrefix = "vote-"

// maxElections bounds how often a refused vote leads to another set.
const maxElections = 1000

// elect makes the set the one to vote on: offers that are new to it are asked
// for, and those that are no longer in it are cancelled.
func (c *Coordinator) elect(now time.Time, set []clearing.Bid) protocol.Output {
	var out protocol.Output
	old := c.ballots
	c.ballots = nil
	for _, bid := range set {
		if b := find(old, auction.KeyOf(bid)); b != nil {
			c.ballots = append(c.ballots, b)
			continue
		}
		b := &ballot{bid: bid, deadline: now.Add(protocol.VoteTimeout)}
		c.ballots = append(c.ballots, b)
		out.Send = append(out.Send, c.askVote(now, b))
	}
	for _, b := range old {
		if find(c.ballots, auction.KeyOf(b.bid)) == nil {
			c.excluded[auction.KeyOf(b.bid)] = true
			if b.vote != nil {
				out.Send = append(out.Send, c.cancel(b.bid.Seller, b.vote))
			}
		}
	}
	return out
}

func find(ballots []*ballot, k auction.Key) *ballot {
	for _, b := range ballots {
		if auction.KeyOf(b.bid) == k {
			return b
		}
	}
	return nil
}

func (c *Coordinator) askVote(now time.Time, b *ballot) protocol.Message {
	m := c.message(b.bid.Seller, protocol.AcceptProposal, protocol.ProtocolCommit,
		message.Acceptance{Offer: b.bid.Offer, HoldUntil: now.Add(c.cfg.Hold)})
	m.ReplyWith = votePrefix + b.bid.Offer.ID
	m.ReplyBy = b.deadline
	return m
}

func (c *Coordinator) cancel(seller protocol.AgentID, v *message.Vote) protocol.Message {
	return c.message(seller, protocol.Cancel, protocol.ProtocolCommit, CancelVote(*v))
}

// CancelVote frees what a vote holds. It does nothing to what is countersigned,
// so a vote in a conversation that is over can always be answered with it.
func CancelVote(v message.Vote) message.Cancellation {
	ids := make([]string, len(v.Reservations))
	for i, r := range v.Reservations {
		ids[i] = r.ID
	}
	return message.Cancellation{Reservations: ids}
}

// voted takes a seller's yes. One for an offer that is no longer wanted, or that
// comes too late, is cancelled at once.
func (c *Coordinator) voted(now time.Time, m protocol.Message, v message.Vote) protocol.Output {
	b := find(c.ballots, auction.Key{Seller: m.Sender, Offer: v.Offer})
	switch {
	case b != nil && b.vote != nil, c.signed(m.Sender, v):
		return protocol.Output{} // a repeated vote
	case c.state != Voting || b == nil:
		return protocol.Output{Send: []protocol.Message{c.cancel(m.Sender, &v)}}
	}
	if err := checkVote(now, b.bid.Offer, v); err != nil {
		out := protocol.Output{Send: []protocol.Message{c.cancel(m.Sender, &v)}}
		return out.Join(c.lose(now, b, []protocol.Reason{{Code: protocol.CodeMismatch, Unit: protocol.AllUnits, Note: err.Error()}}))
	}
	b.vote = &v
	if agreed, asked := c.Votes(); agreed < asked {
		return protocol.Output{}
	}
	return c.becomeConfirming(now)
}

// signed reports whether a vote is for what the signed bundle has: a Coordinator
// that was resumed does not remember the votes themselves.
func (c *Coordinator) signed(seller protocol.AgentID, v message.Vote) bool {
	return slices.ContainsFunc(c.bundle.Bundle.Units, func(u protocol.BundleUnit) bool {
		return u.Seller == seller && slices.ContainsFunc(v.Reservations, func(r message.Reservation) bool { return r.ID == u.Reservation })
	})
}

// checkVote reports how a vote differs from the offer it is for.
func checkVote(now time.Time, o protocol.Offer, v message.Vote) error {
	if len(v.Reservations) != len(o.Items) {
		return fmt.Errorf("%d reservations for %d units", len(v.Reservations), len(o.Items))
	}
	if !v.HoldUntil.After(now.Add(2 * protocol.ClockSkew)) {
		return fmt.Errorf("held only until %s", v.HoldUntil.Format(time.RFC3339))
	}
	for _, it := range o.Items {
		i := slices.IndexFunc(v.Reservations, func(r message.Reservation) bool { return r.Unit == it.Unit })
		if i < 0 {
			return fmt.Errorf("no reservation for unit %d", it.Unit)
		}
		r := v.Reservations[i]
		if r.ID == "" || r.Slot.Cores != it.Slot.Cores || !r.Slot.Start.Equal(it.Slot.Start) || !r.Slot.End.Equal(it.Slot.End) {
			return fmt.Errorf("reservation %q of unit %d is for another slot", r.ID, it.Unit)
		}
	}
	return nil
}

// refused takes a seller's no: to its vote, or to the signed bundle.
func (c *Coordinator) refused(now time.Time, m protocol.Message, reasons []protocol.Reason) protocol.Output {
	if c.state == Confirming {
		return c.refusedConfirm(m, reasons)
	}
	offer, ok := strings.CutPrefix(m.InReplyTo, votePrefix)
	if !ok || c.state != Voting {
		return protocol.Output{} // an answer to something that no longer matters
	}
	if b := find(c.ballots, auction.Key{Seller: m.Sender, Offer: offer}); b != nil && b.vote == nil {
		return c.lose(now, b, reasons)
	}
	return protocol.Output{}
}

// maxRefusals bounds the reasons that a purchase keeps; later ones are not kept.
const maxRefusals = 2 * protocol.MaxReasons

func (c *Coordinator) keep(reasons []protocol.Reason) {
	c.refusals = append(c.refusals, reasons[:min(len(reasons), maxRefusals-len(c.refusals))]...)
}

func (c *Coordinator) expireVotes(now time.Time) protocol.Output {
	for _, b := range c.ballots {
		if b.vote == nil && !now.Before(b.deadline) {
			late := protocol.Reason{Code: protocol.CodeSilent, Unit: protocol.AllUnits, Note: "did not vote in time"}
			return c.lose(now, b, []protocol.Reason{late}).Join(c.expireVotes(now))
		}
	}
	return protocol.Output{}
}

// lose takes an offer out and votes on the best set without it: with what is
// agreed or still asked for if possible, else with the agreed ones, else anew.
func (c *Coordinator) lose(now time.Time, lost *ballot, reasons []protocol.Reason) protocol.Output {
	c.excluded[auction.KeyOf(lost.bid)] = true
	c.keep(reasons)
	c.ballots = slices.DeleteFunc(c.ballots, func(b *ballot) bool { return b == lost })
	if len(c.excluded) <= maxElections {
		for _, fixed := range [][]clearing.Bid{c.Chosen(), c.agreed(), nil} {
			if s, ok := c.cfg.Resolve(now, fixed, c.excluded); ok {
				return c.afterElection(now, c.elect(now, s.Chosen))
			}
		}
	}
	return c.becomeFailed(now)
}

// afterElection goes on if the new set happens to be agreed already.
func (c *Coordinator) afterElection(now time.Time, out protocol.Output) protocol.Output {
	if agreed, asked := c.Votes(); agreed == asked {
		return out.Join(c.becomeConfirming(now))
	}
	return out
}

func (c *Coordinator) agreed() []clearing.Bid {
	var list []clearing.Bid
	for _, b := range c.ballots {
		if b.vote != nil {
			list = append(list, b.bid)
		}
	}
	return list
}

// Abandon gives up a purchase that is still voting: what is held is cancelled.
func (c *Coordinator) Abandon(now time.Time) protocol.Output {
	if c.state != Voting {
		return protocol.Output{}
	}
	return c.becomeFailed(now)
}

func (c *Coordinator) becomeFailed(now time.Time) protocol.Output {
	if c.state != Voting {
		panic(fmt.Sprintf("reserve: %s cannot fail", c.state))
	}
	c.state = Failed
	c.settledAt = now
	return c.elect(now, nil)
}
