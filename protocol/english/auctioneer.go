package english

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// TableJobs has a home's jobs, by ID.
const TableJobs = "federation-jobs"

// Times of a home.
const (
	Patience  = 10 * time.Second // for one answer to an award
	showFirst = 10 * time.Second // until an auction without a bid is shown again
	showMost  = 5 * time.Minute
	askFirst  = 2 * time.Second // after a restart, between questions to the winner of a sold job
	askPeriod = time.Minute     // then
)

// Length decides how long the next auction lasts, from a mean run time.
type Length interface {
	Next() (length, mean time.Duration)
}

// AuctioneerConfig is a home's part of its federation's rules.
type AuctioneerConfig struct {
	Self   protocol.AgentID
	Rules  string             // SHA-256 of the rules file
	Sites  []protocol.AgentID // all sites, the home itself among them; at most message.MaxSites
	Scale  Scale
	Length Length
}

// Auctioneer is a home's side of one job.
type Auctioneer struct {
	cfg   *AuctioneerConfig
	id    string
	job   job
	state message.JobState // auction while bids are taken; not durable

	bids    map[protocol.AgentID]message.AuctionBid // the last one of each site
	refused map[protocol.AgentID]int64              // Seq of bids that may not win any more
	first   protocol.AgentID                        // the first bidder
	leader  protocol.AgentID
	length  time.Duration
	ends    time.Time // of the auction
	showAt  time.Time
	shows   int
	alarm   time.Time     // of an award, or of a question
	pause   time.Duration // until the next question
}

// job is the record of a job at its home; the JSON names are stored.
type job struct {
	Owner     protocol.AgentID      `json:"owner"`
	Terms     message.JobTerms      `json:"terms"`
	State     message.JobState      `json:"state"` // queued, awarded, taken (sold) or one that its winner reports
	Number    int                   `json:"number"`
	Award     int                   `json:"award"`
	Seq       int64                 `json:"seq"`
	Winner    protocol.AgentID      `json:"winner,omitempty"`
	First     protocol.AgentID      `json:"first,omitempty"` // the first bidder of the last auction
	Sold      bool                  `json:"sold,omitempty"`
	Progress  message.JobProgress   `json:"progress"`
	Auctions  []message.AuctionLine `json:"auctions,omitempty"`
	Cancelled bool                  `json:"cancelled,omitempty"`
	OverAt    time.Time             `json:"over_at,omitzero"`
}

// NewAuctioneer takes a job, whose terms are valid. It is durable when the Output is.
// Open begins its auction.
func NewAuctioneer(cfg *AuctioneerConfig, id string, owner protocol.AgentID, terms message.JobTerms) (*Auctioneer, protocol.Output) {
	a := &Auctioneer{cfg: cfg, id: id, job: job{Owner: owner, Terms: terms, State: message.JobQueued}, state: message.JobQueued}
	return a, a.save()
}

// ReadAuctioneer restores a job from its record. Open continues it.
func ReadAuctioneer(cfg *AuctioneerConfig, id string, value []byte) (*Auctioneer, error) {
	a := &Auctioneer{cfg: cfg, id: id}
	if err := json.Unmarshal(value, &a.job); err != nil {
		return nil, fmt.Errorf("journal: table %s: %s: %w", TableJobs, id, err)
	}
	if err := a.job.Terms.Validate(); err != nil || !a.job.State.Known() {
		return nil, fmt.Errorf("journal: table %s: %s: state %q: %w", TableJobs, id, a.job.State, err)
	}
	a.state = a.job.State
	return a, nil
}

// Open begins the auction of a queued job. After a restart it repeats what may have been
// lost with the process.
func (a *Auctioneer) Open(now time.Time) protocol.Output {
	switch {
	case a.Over():
		return protocol.Output{}
	case a.job.Sold:
		a.pause = askFirst
		return a.ask(now)
	case a.state == message.JobAwarded:
		a.alarm = now.Add(Patience)
		return a.award(protocol.AcceptProposal, "").Join(wake(a.alarm))
	}
	return a.open(now)
}

// Over reports whether the job has ended.
func (a *Auctioneer) Over() bool { return a.job.State.Over() }

// OverAt is when the job ended; zero: it has not.
func (a *Auctioneer) OverAt() time.Time { return a.job.OverAt }

// Owner is the job's.
func (a *Auctioneer) Owner() protocol.AgentID { return a.job.Owner }

// Terms are the job's.
func (a *Auctioneer) Terms() message.JobTerms { return a.job.Terms }

// Better reports whether the job went to another site than the first bidder's.
func (a *Auctioneer) Better() bool { return a.job.Sold && a.job.First != a.job.Winner }

// Progress is how the job stands.
func (a *Auctioneer) Progress() message.JobProgress {
	p := a.job.Progress
	p.Award, p.State, p.Site = a.job.Award, a.job.State, ""
	if a.state == message.JobAuction {
		p.State = message.JobAuction
	}
	if a.job.Sold {
		p.Site = a.job.Winner
	}
	return p
}

// History is all that the home knows of the job.
func (a *Auctioneer) History() message.JobHistory {
	h := message.JobHistory{Terms: a.job.Terms, Progress: a.Progress(), Auctions: slices.Clone(a.job.Auctions)}
	if a.state == message.JobAuction && len(h.Auctions) > 0 {
		h.Auctions[len(h.Auctions)-1].Bids = a.standing()
	}
	return h
}

// Receive takes a message about the job from a site of the federation.
func (a *Auctioneer) Receive(now time.Time, m protocol.Message) protocol.Output {
	if !slices.Contains(a.cfg.Sites, m.Sender) {
		return protocol.Output{} // from nobody of the federation
	}
	if b, ok := m.Body.(message.JobAward); ok { // also when the job is over: a site may still ask
		return a.answer(now, m, b)
	}
	switch b := m.Body.(type) {
	case message.JobBid:
		return a.bid(now, m, b)
	case message.JobProgress:
		return a.progress(now, m, b)
	}
	return protocol.Output{}
}

// open begins the next auction. Bids of the last one do not count in it.
func (a *Auctioneer) open(now time.Time) protocol.Output {
	length, mean := a.cfg.Length.Next()
	a.state, a.job.State = message.JobAuction, message.JobQueued
	a.job.Number++
	a.bids, a.refused = map[protocol.AgentID]message.AuctionBid{}, map[protocol.AgentID]int64{}
	a.first, a.leader, a.length, a.ends = "", "", length, now.Add(length)
	a.job.Auctions = append(a.job.Auctions, message.AuctionLine{Number: a.job.Number, Length: length, Mean: mean, Minimum: a.cfg.Scale.Minimum})
	if n := len(a.job.Auctions); n > message.MaxAuctions {
		a.job.Auctions = a.job.Auctions[n-message.MaxAuctions:]
	}
	a.shows = 0
	return a.save().Join(a.show(now)).Join(wake(a.ends))
}

// show invites the sites, again with growing pauses as long as none has bid: the
// invitation may be lost, and a site may come later.
func (a *Auctioneer) show(now time.Time) protocol.Output {
	a.showAt = now.Add(min(showMost, showFirst<<min(a.shows, 10)))
	a.shows++
	return mail(a.cfg.Self, a.id, protocol.Inform, message.AuctionOpen{
		Rules: a.cfg.Rules, Owner: a.job.Owner, Terms: a.job.Terms, Number: a.job.Number, Minimum: a.cfg.Scale.Minimum, Ends: a.ends,
	}, a.cfg.Sites...).Join(wake(a.showAt))
}

// bid takes or withdraws a site's bid. Those of another auction, and those that a later
// one has overtaken, are dropped.
func (a *Auctioneer) bid(now time.Time, m protocol.Message, b message.JobBid) protocol.Output {
	late := a.state == message.JobAuction && a.length > 0 && now.After(a.ends)
	open := a.state == message.JobAuction || a.state == message.JobAwarded && a.bids != nil
	if !open || late || b.Number != a.job.Number || b.Seq <= a.bids[m.Sender].Seq {
		return protocol.Output{}
	}
	entry := message.AuctionBid{Site: m.Sender, Seq: b.Seq, At: now}
	if m.Performative == protocol.Propose && check(a.cfg.Scale, a.job.Terms, b) {
		entry.Free, entry.Victims, entry.Transfer, entry.Bid = b.Free, b.Victims, b.Transfer, a.cfg.Scale.Value(a.job.Terms.Level, b)
	}
	a.bids[m.Sender] = entry
	if a.state != message.JobAuction {
		return protocol.Output{}
	}
	if a.first == "" && stands(entry) {
		a.first = m.Sender
	}
	out := a.lead()
	if a.length == 0 && stands(entry) { // an auction without a length ends with its first bid, and those of the same instant
		out = out.Join(wake(now))
	}
	return out
}

// stands reports whether an entry is a bid: one that is withdrawn has no modules.
func stands(b message.AuctionBid) bool { return b.Free > 0 || len(b.Victims) > 0 }

// lead informs the bidders when another site leads.
func (a *Auctioneer) lead() protocol.Output {
	best, _ := a.best()
	if best.Site == a.leader {
		return protocol.Output{}
	}
	a.leader = best.Site
	return mail(a.cfg.Self, a.id, protocol.Inform, message.Standing{Number: a.job.Number, Leader: best.Site, Value: best.Bid}, a.bidders()...)
}

func (a *Auctioneer) bidders() []protocol.AgentID { return slices.Sorted(maps.Keys(a.bids)) }

// standing returns the bids that stand, in order of site.
func (a *Auctioneer) standing() (list []message.AuctionBid) {
	for _, site := range a.bidders() {
		if b := a.bids[site]; stands(b) {
			list = append(list, b)
		}
	}
	return list
}

// best is the best bid that may win.
func (a *Auctioneer) best() (best message.AuctionBid, ok bool) {
	for _, b := range a.standing() {
		if b.Seq > a.refused[b.Site] && (!ok || better(b, best)) {
			best, ok = b, true
		}
	}
	return best, ok
}

// Wake does what is due.
func (a *Auctioneer) Wake(now time.Time) protocol.Output {
	switch {
	case a.Over():
		return protocol.Output{}
	case a.state == message.JobAuction && !now.Before(a.ends) && len(a.standing()) > 0:
		return a.close(now)
	case a.state == message.JobAuction && len(a.standing()) > 0:
		return wake(a.ends)
	case a.state == message.JobAuction && !now.Before(a.showAt):
		return a.extend(now).Join(a.show(now))
	case a.state == message.JobAuction:
		return a.extend(now)
	case a.state == message.JobAwarded && !now.Before(a.alarm):
		return a.withdraw(now, "it did not answer in time")
	case a.job.Sold && !now.Before(a.alarm):
		return a.ask(now)
	}
	return wake(a.alarm)
}

// extend lets an auction that got no bid go on, by its length at a time.
func (a *Auctioneer) extend(now time.Time) protocol.Output {
	if a.length > 0 && !now.Before(a.ends) {
		behind := now.Sub(a.ends)
		a.ends = a.ends.Add((behind/a.length + 1) * a.length)
	}
	if a.length == 0 {
		return wake(a.showAt)
	}
	return wake(protocol.Earlier(a.ends, a.showAt))
}

// close ends the auction with the best bid that may win; if none may, the next auction begins.
func (a *Auctioneer) close(now time.Time) protocol.Output {
	best, ok := a.best()
	if !ok {
		return a.open(now)
	}
	line := &a.job.Auctions[len(a.job.Auctions)-1]
	line.Bids, line.Winner = a.standing(), best.Site
	a.state, a.job.State = message.JobAwarded, message.JobAwarded
	a.job.Award++
	a.job.Winner, a.job.Seq, a.job.First = best.Site, best.Seq, a.first
	a.alarm = now.Add(Patience)
	return a.save().Join(a.award(protocol.AcceptProposal, "")).Join(wake(a.alarm))
}

// award is a message to the winner about the last award.
func (a *Auctioneer) award(p protocol.Performative, why string) protocol.Output {
	return mail(a.cfg.Self, a.id, p, message.JobAward{Award: a.job.Award, Number: a.job.Number, Seq: a.job.Seq, Why: why}, a.job.Winner)
}

// answer takes a winner's answer, or its question what became of an award.
func (a *Auctioneer) answer(now time.Time, m protocol.Message, b message.JobAward) protocol.Output {
	current := b.Award == a.job.Award && m.Sender == a.job.Winner
	asks := m.Performative == protocol.Agree || m.Performative == protocol.QueryRef
	switch {
	case asks && current && a.job.Sold:
		return a.award(protocol.Confirm, "")
	case asks && current && a.state == message.JobAwarded:
		return a.sell(now)
	case asks: // withdrawn, or it never was
		return mail(a.cfg.Self, a.id, protocol.Cancel, message.JobAward{Award: b.Award, Number: b.Number, Seq: b.Seq}, m.Sender)
	case m.Performative == protocol.Refuse && current && a.state == message.JobAwarded:
		return a.next(now)
	}
	return protocol.Output{}
}

// sell decides: from here on the job is the winner's.
func (a *Auctioneer) sell(now time.Time) protocol.Output {
	a.state, a.job.State, a.job.Sold = message.JobTaken, message.JobTaken, true
	a.alarm, a.pause = now.Add(askPeriod), askPeriod
	return a.save().Join(a.award(protocol.Confirm, "")).Join(a.closed()).Join(wake(a.alarm))
}

// closed informs the sites that nobody needs to bid any more. One that does not hear of
// it forgets the auction later.
func (a *Auctioneer) closed() protocol.Output {
	return mail(a.cfg.Self, a.id, protocol.Inform, message.Standing{Number: a.job.Number, Leader: a.job.Winner, Closed: true}, a.cfg.Sites...)
}

// withdraw takes an award back. The next one is saved together with it, and the winner
// that answers late is cancelled.
func (a *Auctioneer) withdraw(now time.Time, why string) protocol.Output {
	return a.award(protocol.Cancel, why).Join(a.next(now))
}

// next awards the job to the next best site.
func (a *Auctioneer) next(now time.Time) protocol.Output {
	line := &a.job.Auctions[len(a.job.Auctions)-1]
	if len(line.Refused) < message.MaxSites {
		line.Refused = append(line.Refused, a.job.Winner)
	}
	if a.refused == nil { // bids are lost with the process
		return a.open(now)
	}
	a.refused[a.job.Winner] = max(a.refused[a.job.Winner], a.job.Seq)
	return a.close(now)
}

// ask asks the winner of a sold job how it stands: its report may be lost.
func (a *Auctioneer) ask(now time.Time) protocol.Output {
	a.alarm = now.Add(a.pause)
	a.pause = min(askPeriod, 2*a.pause)
	return a.award(protocol.QueryRef, "").Join(wake(a.alarm))
}

// progress takes the winner's report. A job that it returns is auctioned again.
func (a *Auctioneer) progress(now time.Time, m protocol.Message, p message.JobProgress) protocol.Output {
	if !a.job.Sold || a.Over() || m.Sender != a.job.Winner || p.Award != a.job.Award {
		return protocol.Output{}
	}
	switch p.State {
	case message.JobReturned:
		return a.again(now)
	case message.JobStaging, message.JobWaiting, message.JobRunning, message.JobSuspended, message.JobDone, message.JobFailed:
		a.job.Progress, a.job.State = p, p.State
		a.state, a.alarm, a.pause = p.State, now.Add(askPeriod), askPeriod
	default:
		return protocol.Output{}
	}
	if p.State.Over() {
		a.job.OverAt = now
	}
	return a.save()
}

// again auctions a sold job once more.
func (a *Auctioneer) again(now time.Time) protocol.Output {
	a.job.Sold, a.job.Progress = false, message.JobProgress{}
	if a.job.Cancelled {
		return a.end(now, "its owner has cancelled it")
	}
	return a.open(now)
}

func (a *Auctioneer) end(now time.Time, why string) protocol.Output {
	a.job.State, a.state, a.job.OverAt = message.JobFailed, message.JobFailed, now
	a.job.Progress = message.JobProgress{State: message.JobFailed, Exit: message.JobNever, Why: why}
	return a.save().Join(a.closed())
}

// Cancel ends a job that is not sold. It reports false if it is: then only its winner
// can end it, as its owner orders there.
func (a *Auctioneer) Cancel(now time.Time) (protocol.Output, bool) {
	switch {
	case a.Over():
		return protocol.Output{}, true
	case a.job.Sold:
		return protocol.Output{}, false
	}
	a.job.Award++ // nobody has it: a late agree is cancelled
	winner := a.job.Winner
	a.job.Winner = ""
	out := a.end(now, "its owner has cancelled it")
	if winner != "" {
		out = out.Join(mail(a.cfg.Self, a.id, protocol.Cancel, message.JobAward{Award: a.job.Award - 1, Number: a.job.Number, Seq: a.job.Seq}, winner))
	}
	return out, true
}

// Rerun auctions a sold job again although its winner has not returned it. The owner
// answers for a second run.
func (a *Auctioneer) Rerun(now time.Time) protocol.Output {
	if !a.job.Sold || a.Over() {
		return protocol.Output{}
	}
	return a.award(protocol.Cancel, "its owner has ordered a rerun").Join(a.again(now))
}

func (a *Auctioneer) save() protocol.Output {
	value, err := json.Marshal(a.job)
	if err != nil {
		panic(fmt.Sprintf("english: job %s cannot be encoded: %v", a.id, err)) // it has only our own types
	}
	return protocol.Output{Save: []protocol.Record{{Table: TableJobs, Key: a.id, Value: value}}}
}

func wake(at time.Time) protocol.Output { return protocol.Output{WakeAt: at} }

// String is for people and transcripts.
func (a *Auctioneer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s auction=%d award=%d", a.state, a.job.Number, a.job.Award)
	if a.job.Winner != "" {
		fmt.Fprintf(&b, " winner=%s", a.job.Winner.Name())
	}
	if a.job.Sold {
		b.WriteString(" sold")
	}
	return b.String()
}
