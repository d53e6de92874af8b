package federation

import (
	"fmt"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// Receive takes a message of the federation; false: it is not one. Only users and sites
// that the rules file names are heard.
func (s *Site) Receive(now time.Time, m protocol.Message) (protocol.Output, bool) {
	if m.Protocol != protocol.ProtocolEnglish || m.Sender.Local() {
		return protocol.Output{}, false
	}
	return s.settle(now, s.receive(now, m)), true
}

func (s *Site) receive(now time.Time, m protocol.Message) protocol.Output {
	switch b := m.Body.(type) {
	case message.JobOffer:
		return s.offer(now, m, b)
	case message.JobOrder:
		return s.order(now, m, b)
	}
	if !s.cfg.Rules.Member(m.Sender) {
		return protocol.Output{} // from nobody of the federation
	}
	switch b := m.Body.(type) {
	case message.AuctionOpen:
		return s.opened(now, m, b)
	case message.Standing:
		return s.standing(now, m)
	case message.JobAward:
		return s.award(now, m, b)
	case message.JobBid, message.JobProgress:
		return s.atHome(now, m)
	}
	return protocol.Output{}
}

// atHome hands a message to the own job that it is about, and informs the job's owner.
func (s *Site) atHome(now time.Time, m protocol.Message) protocol.Output {
	a := s.homes[m.Conversation]
	if a == nil {
		return protocol.Output{}
	}
	before := a.Progress()
	out := a.Receive(now, m)
	s.file(m.Conversation, a)
	return out.Join(s.inform(m.Conversation, a, before))
}

// inform informs the owner of a job if its state has changed.
func (s *Site) inform(job string, a *english.Auctioneer, before message.JobProgress) protocol.Output {
	p := a.Progress()
	if p.State == before.State && p.Site == before.Site && p.Preempted == before.Preempted {
		return protocol.Output{}
	}
	return protocol.Output{Send: []protocol.Message{mail(s.cfg.Self, job, protocol.Inform, p, a.Owner())}}
}

func mail(self protocol.AgentID, job string, p protocol.Performative, body protocol.Body, to protocol.AgentID) protocol.Message {
	return protocol.Message{
		Performative: p, Sender: self, Receivers: []protocol.AgentID{to}, Protocol: protocol.ProtocolEnglish, Conversation: job, Body: body,
	}
}

// offer takes a user's job. The level is checked against the rules here, and by every
// site that hears of the auction.
func (s *Site) offer(now time.Time, m protocol.Message, o message.JobOffer) protocol.Output {
	if m.Performative != protocol.Request {
		return protocol.Output{}
	}
	if o.Level != "" {
		if o.Terms.Level = s.cfg.Rules.Level(o.Level); o.Terms.Level == 0 {
			return s.refuse(m, protocol.CodeMalformed, fmt.Sprintf("level %q: want %s", protocol.Clip(o.Level), strings.Join(s.cfg.Rules.Levels, ", ")))
		}
	}
	if a := s.job(m.Conversation); a != nil {
		if a.Owner() != m.Sender || a.Terms() != o.Terms {
			return s.refuse(m, protocol.CodeMismatch, "job "+m.Conversation+" exists already, with other terms")
		}
		return s.answer(m, protocol.Agree, a.Progress())
	}
	most := s.cfg.Rules.Allowed(m.Sender)
	switch err := o.Terms.Validate(); {
	case err != nil:
		return s.refuse(m, protocol.CodeMalformed, err.Error())
	case o.Terms.Level > len(s.cfg.Rules.Levels) || most == 0 || o.Terms.Level > most:
		why := "the rules of the federation do not let you use level " + s.cfg.Rules.Name(o.Terms.Level)
		if most > 0 {
			why += ", but up to " + s.cfg.Rules.Name(most)
		}
		return s.refuse(m, protocol.CodeForbidden, why)
	case s.cfg.Input > 0 && o.Terms.Bytes > s.cfg.Input:
		return s.refuse(m, protocol.CodeSize, fmt.Sprintf("inputs of %d bytes, this site takes at most %d; offer the job to a site that takes more", o.Terms.Bytes, s.cfg.Input))
	}
	if open, kept := s.ownedBy(m.Sender); open >= MaxJobs-len(s.homes) || kept >= MaxKept-len(s.homes)-len(s.over) {
		return s.refuse(m, protocol.CodeLimit, fmt.Sprintf("this site has too many jobs, %d open ones of yours; offer it to another one", open))
	}
	a, out := english.NewAuctioneer(&s.ac, m.Conversation, m.Sender, o.Terms)
	s.homes[m.Conversation] = a
	return out.Join(s.answer(m, protocol.Agree, a.Progress())).Join(a.Open(now))
}

// ownedBy counts the jobs of an owner that are not over, and with those that are. Nobody may have more
// than what is left for others.
func (s *Site) ownedBy(owner protocol.AgentID) (open, kept int) {
	for _, a := range s.homes { // in any order: they are counted
		if a.Owner() == owner {
			open++
		}
	}
	kept = open
	for _, a := range s.over {
		if a.Owner() == owner {
			kept++
		}
	}
	return open, kept
}

// order takes an order of a job's owner.
func (s *Site) order(now time.Time, m protocol.Message, o message.JobOrder) protocol.Output {
	a := s.job(m.Conversation)
	switch {
	case m.Performative != protocol.Request:
		return protocol.Output{}
	case a == nil:
		return s.refuse(m, protocol.CodeUnknown, "no job "+m.Conversation+" here")
	case a.Owner() != m.Sender:
		return s.refuse(m, protocol.CodeForbidden, "another user offered the job")
	}
	var out protocol.Output
	switch o.Verb {
	case message.JobCancel:
		var ended bool
		if out, ended = a.Cancel(now); !ended {
			return s.refuse(m, protocol.CodeExpired, "the job is sold to "+a.Progress().Site.Name()+": end it there")
		}
	case message.JobRerun:
		out = a.Rerun(now)
	}
	s.file(m.Conversation, a)
	return out.Join(s.answer(m, protocol.Inform, a.History()))
}

// job is an own job.
func (s *Site) job(id string) *english.Auctioneer {
	if a := s.homes[id]; a != nil {
		return a
	}
	return s.over[id]
}

func (s *Site) answer(m protocol.Message, p protocol.Performative, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{m.Reply(s.cfg.Self, p, body)}}
}

func (s *Site) refuse(m protocol.Message, code protocol.Code, why string) protocol.Output {
	return s.answer(m, protocol.Refuse, message.Refused(code, why))
}

// opened hears of an auction. One under other rules is noted, for the status.
func (s *Site) opened(now time.Time, m protocol.Message, b message.AuctionOpen) protocol.Output {
	if b.Rules != s.cfg.Rules.Digest {
		s.alien[m.Sender] = b.Rules
		return protocol.Output{}
	}
	delete(s.alien, m.Sender)
	if most := now.Add(s.cfg.Most); b.Ends.After(most) { // else it would never be forgotten
		b.Ends = most
		m.Body = b
	}
	k := english.Key(m.Sender, m.Conversation)
	switch {
	case b.Terms.Level > s.cfg.Rules.Allowed(b.Owner): // a level by say-so
		return protocol.Output{}
	case s.cfg.Input > 0 && b.Terms.Bytes > s.cfg.Input, s.runsAlready(m.Sender, m.Conversation):
		return protocol.Output{}
	case s.undecided(m.Sender, b.Owner) >= MaxUndecided, !s.fits(now, b.Terms): // a home that awards and never decides; or another site can begin it
		return protocol.Output{}
	case s.bids[k] == nil && s.auctions(m.Sender) >= MaxBids/len(s.ac.Sites) || len(s.runs) >= MaxRuns || len(s.runs)+len(s.past) >= MaxKept:
		return protocol.Output{} // it is shown again
	case s.cfg.Rules.Poll > 0:
		s.shown[k] = m
		return protocol.Output{}
	}
	return s.hear(now, k, m)
}

// auctions is how many of a home's auctions this site follows.
func (s *Site) auctions(home protocol.AgentID) (n int) {
	for k := range s.bids { // in any order: a count, as below
		if strings.HasPrefix(k, english.Key(home, "")) {
			n++
		}
	}
	for k := range s.shown {
		if strings.HasPrefix(k, english.Key(home, "")) {
			n++
		}
	}
	return n
}

// standing takes the standing of an auction. Once it is closed, its bidder can be forgotten.
func (s *Site) standing(now time.Time, m protocol.Message) protocol.Output {
	k := english.Key(m.Sender, m.Conversation)
	x := s.bids[k]
	if x == nil {
		return protocol.Output{}
	}
	out := x.Receive(now, m)
	if x.Idle(now) {
		delete(s.bids, k)
	}
	return out
}

// undecided counts the jobs of a home that it has awarded to this site and neither sold nor
// withdrawn for long, and, if it or an owner is late, those without their input.
func (s *Site) undecided(home, owner protocol.AgentID) (n int) {
	for k, b := range s.bids { // in any order: a count
		if b.State() == english.BidderTaken && !b.Awaits() && strings.HasPrefix(k, english.Key(home, "")) {
			n++
		}
	}
	all := s.late.all(home)
	for _, r := range s.runs { // likewise
		if r.State == message.JobStaging && r.Home == home && (all || r.Owner == owner && (r.late || s.late.is(home, owner))) {
			n++
		}
	}
	return n
}

// hear lets a bidder bid in an auction.
func (s *Site) hear(now time.Time, k string, m protocol.Message) protocol.Output {
	if s.bids[k] == nil {
		s.bids[k] = english.NewBidder(&s.bc, s, m.Sender, m.Conversation)
	}
	return s.bids[k].Receive(now, m)
}

// award takes a word about an award, from a job's home or from the winner of an own job.
// A site may be both.
func (s *Site) award(now time.Time, m protocol.Message, b message.JobAward) protocol.Output {
	var out protocol.Output
	k := english.Key(m.Sender, m.Conversation)
	switch m.Performative {
	case protocol.Agree, protocol.Refuse:
		return s.atHome(now, m)
	case protocol.QueryRef:
		if r, ok := s.Find(message.JobContract(m.Sender, m.Conversation, b.Award)); ok {
			out = out.Join(s.report(&run{Run: r}))
		}
		return out.Join(s.decide(now, m, b))
	case protocol.AcceptProposal:
		if s.bids[k] == nil {
			b.Why = "this site does not bid for the job"
			return out.Join(protocol.Output{Send: []protocol.Message{mail(s.cfg.Self, m.Conversation, protocol.Refuse, b, m.Sender)}})
		}
	}
	x := s.bids[k]
	switch {
	case x == nil:
		return out
	case m.Performative == protocol.AcceptProposal && x.State() == english.BidderBidding && s.undecided(m.Sender, x.Owner()) >= MaxUndecided: // it bid before there were so many
		b.Why = "too many jobs of this home are undecided, or have no input"
		return protocol.Output{Send: []protocol.Message{mail(s.cfg.Self, m.Conversation, protocol.Refuse, b, m.Sender)}}
	}
	out = x.Receive(now, m)
	if x.State() == english.BidderSold {
		delete(s.bids, k)
		out = out.Join(s.take(now, m.Sender, m.Conversation, x))
	}
	return out
}

// decide answers a winner that asks what became of an award. An own job that is not known
// any more is over, and was never that winner's: a sold one is kept until it has ended.
func (s *Site) decide(now time.Time, m protocol.Message, b message.JobAward) protocol.Output {
	if s.homes[m.Conversation] != nil {
		return s.atHome(now, m)
	}
	if a := s.over[m.Conversation]; a != nil {
		return a.Receive(now, m)
	}
	if _, ok := s.Find(message.JobContract(m.Sender, m.Conversation, b.Award)); ok || s.bids[english.Key(m.Sender, m.Conversation)] != nil {
		return protocol.Output{} // a home asks
	}
	return protocol.Output{Send: []protocol.Message{mail(s.cfg.Self, m.Conversation, protocol.Cancel, b, m.Sender)}}
}
