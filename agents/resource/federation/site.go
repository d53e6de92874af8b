// Package federation is a site's part in a federation whose members share their cores by
// priority, without money and without a centre (003). It decides which jobs the site
// takes, which one runs, and which one is suspended for it.
//
// A Site is the home of its own users' jobs, which it auctions, a bidder for all jobs of
// the federation, and the dispatcher of the jobs that it has won. It decides without I/O.
// Works carries out what it decides about programs, and reports with Heard.
//
// A job that was sold to the site goes through these states, each durable before anybody
// hears of it:
//
//	staging --its input is here--> waiting
//	waiting --modules are free, or their jobs are suspended--> running
//	running --a more urgent job needs its modules--> suspended --they are free--> running
//	running, suspended --it ends--> done | failed
//	staging --its input does not come--> returned
//
// More urgent jobs pre-empt at once. Of the jobs below, those of the lowest level are
// suspended first, and of one level the newest. There is no ageing: under a steady load of
// urgent jobs the lowest level starves (003 has it so).
package federation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

// Bounds of a Site. Beyond them it refuses offers with limit, and does not bid.
const (
	MaxJobs = 1 << 12 // own jobs that are not over
	MaxKept = 1 << 14 // own jobs, with those that are over
	MaxBids = 1 << 12 // auctions in which it bids, an equal share for each home
	MaxRuns = 1 << 12 // jobs that it has taken and that are not over; with the others MaxKept
	// MaxUndecided is how many jobs a home may have awarded here without a decision; for
	// further ones of that home the site does not bid.
	MaxUndecided = 8

	lastRuns = 100 // from which the mean run time follows
)

// Config is a site's part of a federation.
type Config struct {
	Self    protocol.AgentID
	Modules int // that the site gives to the federation; Resize changes it
	Rules   rules.Rules
	Memory  int64         // most bytes of all suspended jobs; 0: no bound
	Input   int64         // most bytes of a job's input; 0: no bound
	Longest time.Duration // of a job, which also ends with the reservation in which it begins; 0: no bound
	Stage   time.Duration // how long the site waits for the input of a job; 0: DefaultStage
	Keep    time.Duration // how long it remembers a job that is over; 0: DefaultKeep
	Phase   time.Duration // of its polls, if the rules say that it polls
	// Least and Most bound the length of an auction; Most 0: those of package rules.
	Least, Most time.Duration
	// Fixed: lengths follow from the mean in the rules, whatever the jobs' run times are.
	Fixed bool
}

// Times of a Site.
const (
	MaxClaim     = 30 * 24 * time.Hour // the longest reservation of its modules
	DefaultStage = 10 * time.Minute
	DefaultKeep  = 24 * time.Hour
	lateFirst    = 15 * time.Second // beyond twice its transfer, an input is late
	lateOwners   = 3                // so many owners of a home may be late before all are
	startSlack   = 2 * time.Minute  // for the start of a job, and for a limit in whole minutes
	signalPeriod = 5 * time.Second  // between orders to suspend or resume a job: one may be lost
)

// Works carries out what a Site decides about programs. Its answers come by Heard.
type Works interface {
	// Stage brings the input of a run here, if it is not on its way anyway, and calls Staged.
	Stage(now time.Time, r Run) protocol.Output
	// Begin begins a run on its modules, once, whatever crashes.
	Begin(now time.Time, r Run) protocol.Output
	// Signal suspends or resumes a run.
	Signal(now time.Time, r Run, verb message.JobSignal) protocol.Output
	// Drop gives up a run that never began.
	Drop(now time.Time, r Run) protocol.Output
}

// Site is a member of a federation.
type Site struct {
	floor
	ac english.AuctioneerConfig
	bc english.BidderConfig

	homes  map[string]*english.Auctioneer // own jobs that are not over
	over   map[string]*english.Auctioneer // own jobs that are
	bids   map[string]*english.Bidder     // by english.Key
	shown  map[string]protocol.Message    // auctions that it looks at when it polls, likewise
	lasted []time.Duration                // of the last own jobs
	alien  map[protocol.AgentID]string    // members with other rules, and the digest of these
	met    map[protocol.AgentID]bool      // members with the same rules
	late   lateness
	bidFor english.Capacity // from which the bids follow that stand
	pollAt time.Time
	forgot time.Time // when it looked for what can be forgotten
}

// New restores a Site. Its first Output continues where the last process stopped.
func New(cfg Config, works Works, tables protocol.Tables, now time.Time) (*Site, protocol.Output, error) {
	cfg.Stage, cfg.Keep = cmp.Or(cfg.Stage, DefaultStage), cmp.Or(cfg.Keep, DefaultKeep)
	if cfg.Most == 0 {
		cfg.Least, cfg.Most = rules.LeastLength, rules.MostLength
	}
	if !cfg.Rules.Member(cfg.Self) {
		return nil, protocol.Output{}, fmt.Errorf("federation: the rules file does not name this site, %s", cfg.Self)
	}
	if cfg.Modules < 0 || cfg.Modules > message.MaxModules {
		return nil, protocol.Output{}, fmt.Errorf("federation: %d modules: want 0..%d", cfg.Modules, message.MaxModules)
	}
	s := &Site{
		floor: floor{cfg: cfg, works: works, runs: map[string]*run{}, past: map[string]*run{}}, homes: map[string]*english.Auctioneer{}, over: map[string]*english.Auctioneer{},
		bids: map[string]*english.Bidder{}, shown: map[string]protocol.Message{}, alien: map[protocol.AgentID]string{}, met: map[protocol.AgentID]bool{}, late: lateness{},
	}
	s.ac = english.AuctioneerConfig{Self: cfg.Self, Rules: cfg.Rules.Digest, Sites: cfg.Rules.Members(), Scale: cfg.Rules.Scale, Length: s}
	s.bc = english.BidderConfig{Self: cfg.Self, Rules: cfg.Rules.Digest, Scale: cfg.Rules.Scale}
	if err := s.read(tables); err != nil {
		return nil, protocol.Output{}, err
	}
	var out protocol.Output
	if cfg.Rules.Poll > 0 {
		s.pollAt = now.Add(cfg.Phase % cfg.Rules.Poll)
		out.WakeAt = s.pollAt
	}
	for _, id := range sorted(s.homes) {
		out = out.Join(s.homes[id].Open(now))
	}
	for _, k := range sorted(s.bids) {
		out = out.Join(s.bids[k].Ask(now))
	}
	for _, id := range sorted(s.runs) {
		switch r := s.runs[id]; r.State {
		case message.JobStaging:
			out = out.Join(works.Stage(now, r.Run)).Join(wake(s.lateAt(r)))
		case message.JobSuspended:
			out = out.Join(s.signal(now, r, message.SignalSuspend))
		}
	}
	return s, s.settle(now, out), nil
}

// read reads the tables.
func (s *Site) read(tables protocol.Tables) error {
	err := tables.Each(english.TableJobs, func(id string, value []byte) error {
		a, err := english.ReadAuctioneer(&s.ac, id, value)
		if err != nil {
			return err
		}
		s.file(id, a)
		return nil
	})
	if err != nil {
		return err
	}
	err = tables.Each(english.TableTaken, func(k string, value []byte) error {
		home, job, _ := strings.Cut(k, "|")
		b, err := english.ReadBidder(&s.bc, s, protocol.AgentID(home), job, value)
		s.bids[k] = b
		return err
	})
	if err != nil {
		return err
	}
	return tables.Each(TableRuns, func(id string, value []byte) error {
		r, err := readRun(id, value)
		if err == nil {
			s.seat(r)
		}
		return err
	})
}

// file puts an own job where it belongs.
func (s *Site) file(id string, a *english.Auctioneer) {
	switch {
	case !a.Over():
		s.homes[id] = a
		return
	case s.over[id] != nil:
		return
	}
	delete(s.homes, id)
	s.over[id] = a
	if ran := a.Progress().Ran; ran > 0 {
		s.lasted = append(s.lasted, ran)
		s.lasted = s.lasted[max(0, len(s.lasted)-lastRuns):]
	}
}

// Next is the length of the next auction: a share of the mean run time of the last jobs.
func (s *Site) Next() (length, mean time.Duration) {
	mean = s.cfg.Rules.Mean
	if n := len(s.lasted); n > 0 && !s.cfg.Fixed {
		var sum time.Duration
		for _, d := range s.lasted {
			sum += d / time.Duration(n)
		}
		mean = sum
	}
	return min(s.cfg.Most, max(s.cfg.Least, mean/1000*time.Duration(s.cfg.Rules.Length))), mean
}

// Transfer is how long it takes to bring input here.
func (s *Site) Transfer(where protocol.AgentID, bytes int64) time.Duration {
	return s.cfg.Rules.Transfer(where, s.cfg.Self, bytes)
}

// Wake does what is due.
func (s *Site) Wake(now time.Time) protocol.Output {
	var out protocol.Output
	for _, id := range sorted(s.homes) {
		out = out.Join(s.homes[id].Wake(now))
	}
	for _, k := range sorted(s.bids) {
		out = out.Join(s.bids[k].Ask(now))
	}
	for _, id := range sorted(s.runs) {
		out = out.Join(s.wakeRun(now, s.runs[id]))
	}
	if s.cfg.Rules.Poll > 0 && !now.Before(s.pollAt) {
		for !now.Before(s.pollAt) {
			s.pollAt = s.pollAt.Add(s.cfg.Rules.Poll)
		}
		out = out.Join(s.look(now))
	}
	out.WakeAt = protocol.Earlier(out.WakeAt, s.pollAt)
	return s.settle(now, out.Join(s.forget(now)))
}

// forgetPeriod is between two looks for what can be forgotten.
const forgetPeriod = time.Minute

// forget drops what is over for long.
func (s *Site) forget(now time.Time) protocol.Output {
	var out protocol.Output
	if now.Sub(s.forgot) < forgetPeriod {
		return out
	}
	s.forgot = now
	for id, a := range s.over { // in any order: each is dropped for itself
		if now.Sub(a.OverAt()) >= s.cfg.Keep {
			delete(s.over, id)
			out.Save = append(out.Save, protocol.Record{Table: english.TableJobs, Key: id})
		}
	}
	for k, b := range s.bids {
		if b.Idle(now) {
			delete(s.bids, k)
		}
	}
	for id, r := range s.past {
		if now.Sub(r.Since) >= s.cfg.Keep {
			delete(s.past, id)
			out.Save = append(out.Save, protocol.Record{Table: TableRuns, Key: id})
		}
	}
	slices.SortFunc(out.Save, func(a, b protocol.Record) int { return cmp.Compare(a.Key, b.Key) })
	return out
}

// settle completes an Output: it delivers what the Site sends to itself, lets jobs begin
// and changes bids, until nothing changes any more.
func (s *Site) settle(now time.Time, out protocol.Output) protocol.Output {
	var all protocol.Output
	for {
		own := s.own(&out)
		all = all.Join(out)
		out = protocol.Output{}
		for _, m := range own {
			out = out.Join(s.receive(now, m))
		}
		if len(own) > 0 {
			continue
		}
		out = s.dispatch(now).Join(s.revise(now, false))
		if len(out.Send) == 0 && len(out.Save) == 0 {
			return all.Join(out)
		}
	}
}

// own takes the messages to this site itself out of an Output.
func (s *Site) own(out *protocol.Output) (own []protocol.Message) {
	send := out.Send[:0:0]
	for _, m := range out.Send {
		if i := slices.Index(m.Receivers, s.cfg.Self); i >= 0 {
			own = append(own, m)
			if m.Receivers = slices.Delete(slices.Clone(m.Receivers), i, i+1); len(m.Receivers) == 0 {
				continue
			}
		}
		send = append(send, m)
	}
	out.Send = send
	return own
}

// revise changes the bids that the site's load has changed; a site that polls does so by its polls.
func (s *Site) revise(now time.Time, polled bool) (out protocol.Output) {
	if s.cfg.Rules.Poll > 0 && !polled {
		return out
	}
	c := s.Capacity()
	if !polled && c.Free == s.bidFor.Free && c.Queued == s.bidFor.Queued && slices.Equal(c.Running, s.bidFor.Running) && slices.Equal(c.Coming, s.bidFor.Coming) {
		return out
	}
	s.bidFor = c
	for _, k := range sorted(s.bids) {
		out = out.Join(s.bids[k].Revise(now, c))
	}
	return out
}

// look is a poll: the site hears of the auctions since the last one, and changes its bids.
func (s *Site) look(now time.Time) protocol.Output {
	out := s.revise(now, true)
	for _, k := range sorted(s.shown) {
		out = out.Join(s.hear(now, k, s.shown[k]))
	}
	clear(s.shown)
	return out
}

// Resize changes the modules that the site has for the federation, which are reserved until an
// instant. Jobs that have none any more are suspended, as for more urgent ones.
func (s *Site) Resize(now time.Time, modules int, until time.Time) (out protocol.Output) {
	s.cfg.Modules, s.until = modules, until
	for _, v := range s.victims(message.MaxLevels + 1) {
		if s.claimed() <= modules {
			break
		}
		out = out.Join(s.expel(now, v))
	}
	return s.settle(now, out)
}

// Rules are those of the federation.
func (s *Site) Rules() rules.Rules { return s.cfg.Rules }

// Modules are those that the site has for the federation now.
func (s *Site) Modules() int { return s.cfg.Modules }

// Bids counts the auctions in which the site bids, or would if it had modules.
func (s *Site) Bids() (n int) {
	for _, b := range s.bids { // in any order: a count
		if b.State() == english.BidderBidding {
			n++
		}
	}
	return n
}

// Alien is the digest of the other rules that a member has; false: it has these, or is not
// known to have others.
func (s *Site) Alien(member protocol.AgentID) (string, bool) {
	digest, ok := s.alien[member]
	return digest, ok
}

// Meet hears of the rules of an agent by its presence.
func (s *Site) Meet(from protocol.AgentID, digest string) {
	switch {
	case !s.cfg.Rules.Member(from):
	case digest == s.cfg.Rules.Digest:
		delete(s.alien, from)
		s.met[from] = true
	default:
		s.alien[from] = digest
	}
}

// Met reports whether a member was met with the same rules.
func (s *Site) Met(member protocol.AgentID) bool { return s.met[member] }

// Runs lists the runs that have not ended, in order of contract.
func (s *Site) Runs() []Run {
	list := make([]Run, 0, len(s.runs))
	for _, id := range sorted(s.runs) {
		list = append(list, s.runs[id].Run)
	}
	return list
}

// Queue lists the jobs that the site has taken and that have not ended: first those whose homes have
// not decided yet.
func (s *Site) Queue() []Run {
	var list []Run
	for _, k := range sorted(s.bids) {
		if b := s.bids[k]; b.State() == english.BidderTaken {
			home, job, _ := strings.Cut(k, "|")
			list = append(list, Run{Home: protocol.AgentID(home), Job: job, Owner: b.Owner(), Terms: b.Terms(), Award: b.Award(), State: message.JobTaken})
		}
	}
	return append(list, s.Runs()...)
}

// Better counts the own jobs that ended, and those of them that went to another site than
// the first bidder's.
func (s *Site) Better() (ended, better int) {
	for _, a := range s.over { // in any order: counts
		ended++
		if a.Better() {
			better++
		}
	}
	return ended, better
}

func sorted[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
