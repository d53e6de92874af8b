package resource_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"ramp/agents/resource"
	"ramp/agents/resource/federation"
	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/english/rules"
	"ramp/protocol/message"
)

// The home of a job confirms its sale to the winner and informs its owner at the same
// time. A launch that arrives before the confirmation is to be asked for again.
func TestALaunchMayOvertakeTheConfirmation(t *testing.T) {
	a := newAgents(t, "ann", "atlas", "home", "bank")
	text := fmt.Sprintf("levels: [low]\nusers: {'*': low}\nsites:\n- {agent: %s}\n- {agent: %s}\n", a.id("atlas"), a.id("home"))
	r, err := rules.Read([]byte(text))
	must(t, err)
	cfg := a.config()
	cfg.Federation = federation.Config{Modules: 2, Rules: r}
	s := newSite(t, cfg)
	s.pass(time.Second)
	say := func(from, token string, p protocol.Performative, body protocol.Body) (answers []protocol.Message) {
		s.receive(protocol.Message{Performative: p, Sender: a.id(from), Receivers: []protocol.AgentID{a.id("atlas")},
			Protocol: token, Conversation: "j", ReplyWith: "j", Body: body})
		return s.take(a.id(from))
	}
	home := func(p protocol.Performative, body protocol.Body) []protocol.Message {
		return say("home", protocol.ProtocolEnglish, p, body)
	}
	launched := func() protocol.Code {
		m := say("ann", protocol.ProtocolRequest, protocol.Request, message.Launch{
			Contract: message.JobContract(a.id("home"), "j", 1), ID: "j.1", Command: []string{"/bin/work"}})
		if len(m) != 1 {
			t.Fatalf("the launch has %d answers", len(m))
		}
		if no, ok := m[0].Body.(message.Refusal); ok {
			return no.Reasons[0].Code
		}
		return ""
	}

	m := home(protocol.Inform, message.AuctionOpen{Rules: r.Digest, Owner: a.id("ann"), Terms: message.JobTerms{Level: 1, Least: 1, Most: 2, Wall: time.Minute, Where: a.id("home")}, Number: 1, Ends: s.now})
	if len(m) != 1 || m[0].Performative != protocol.Propose {
		t.Fatalf("no bid, but %v", m)
	}
	award := message.JobAward{Award: 1, Number: 1, Seq: m[0].Body.(message.JobBid).Seq}
	if code := launched(); code != protocol.CodeUnknown {
		t.Errorf("the launch of a job that it does not have: %q", code)
	}
	if m := home(protocol.AcceptProposal, award); len(m) != 1 || m[0].Performative != protocol.Agree {
		t.Fatalf("not agreed to, but %v", m)
	}
	if code := launched(); code != protocol.CodeUnavailable {
		t.Errorf("before the confirmation: %q", code)
	}
	s.start()
	if code := launched(); code != protocol.CodeUnavailable {
		t.Errorf("after a restart: %q", code)
	}
	home(protocol.Confirm, award)
	if code := launched(); code == protocol.CodeUnavailable || code == protocol.CodeUnknown {
		t.Errorf("after the confirmation: %q", code)
	}
}

// member is a site of two cores in a federation, whose batch system has so many.
func member(t *testing.T, cores, modules int, other ...protocol.Slot) *site {
	a := newAgents(t, "atlas", "bank")
	r, err := rules.Read(fmt.Appendf(nil, "levels: [low]\nusers: {'*': low}\nsites:\n- {agent: %s}\n", a.id("atlas")))
	must(t, err)
	cfg := a.config()
	cfg.Properties.Cores = cores
	cfg.Federation = federation.Config{Modules: modules, Rules: r}
	s := &site{tb: t, cfg: cfg, store: store{}, batch: &batch{cores: cores, slots: map[string]protocol.Slot{}, jobs: map[string]protocol.JobStatus{}, other: other}, now: noon}
	s.start()
	s.pass(time.Second)
	return s
}

func modules(s *site) int { return resource.FederationOf(s.role).Modules() }

// offers reports whether the site offers cores for an hour at an instant.
func offers(s *site, cores int, at time.Time) bool {
	lines, err := s.role.Check(s.now, document(cores, at, at.Add(time.Hour)), 1)
	must(s.tb, err)
	return len(lines) == 1 && lines[0].Offer != nil
}

// claimedAt counts the cores that the batch system keeps for the federation at an instant.
func claimedAt(s *site, at time.Time) (n int) {
	for id, slot := range s.batch.slots {
		if strings.HasPrefix(id, "federation-") && !slot.Start.After(at) && slot.End.After(at) {
			n += slot.Cores
		}
	}
	return n
}

func TestClaimsFollowOneAnother(t *testing.T) {
	s := member(t, 3, 2)
	for end := noon.Add(50 * 24 * time.Hour); s.now.Before(end); s.pass(time.Second) {
		if n := modules(s); n != 2 || claimedAt(s, s.now) != 2 {
			t.Fatalf("%s: %d modules, %d cores claimed", s.now, n, claimedAt(s, s.now))
		}
		if s.now.Unix()%86400 != 1 {
			continue
		}
		if s.now.Day()%9 == 0 {
			s.start()
			s.pass(time.Second)
		}
		for days := range 60 { // in claims, across their borders and beyond
			at := s.now.Add(time.Duration(days)*24*time.Hour + 30*time.Minute)
			if claimedAt(s, at) > 2 || !offers(s, 1, at) || offers(s, 2, at) {
				t.Fatalf("%s: for %s: %d cores claimed, sells one: %t, two: %t", s.now, at, claimedAt(s, at), offers(s, 1, at), offers(s, 2, at))
			}
		}
	}
}

func TestALostClaimIsMadeAgain(t *testing.T) {
	s := member(t, 2, 2)
	s.pass(time.Hour)
	clear(s.batch.slots)
	s.pass(2 * time.Minute)
	if modules(s) != 2 || claimedAt(s, s.now) != 2 {
		t.Errorf("%d modules, %d cores claimed", modules(s), claimedAt(s, s.now))
	}
}

func TestAClaimHasWhatAnEarlierSaleLeaves(t *testing.T) {
	sold := protocol.Slot{Start: noon.Add(240 * time.Hour), End: noon.Add(241 * time.Hour), Cores: 1}
	s := member(t, 2, 2, sold)
	few := 0
	for end := noon.Add(40 * 24 * time.Hour); s.now.Before(end); s.pass(time.Minute) {
		switch n := modules(s); {
		case n == 2:
		case n == 1 && s.now.Sub(sold.Start).Abs() < 46*time.Hour:
			few++
			if why := resource.Shortage(s.role, s.now); !strings.HasPrefix(why, "1 of 2 cores, because the others were sold or in use") {
				t.Fatalf("shortage: %q", why)
			}
		default:
			t.Fatalf("%s: %d modules", s.now, n)
		}
		if s.now.Hour() == 3 && s.now.Minute() == 0 {
			s.start()
			s.pass(time.Second)
		}
	}
	if few < 60 || few > 46*60 {
		t.Errorf("one module for %d minutes, around a sale of an hour", few)
	}
}

func TestAFederationWithoutFreeCoresSaysWhy(t *testing.T) {
	s := member(t, 2, 2, protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 2})
	if why := resource.Shortage(s.role, s.now); why != "0 of 2 cores, because others have them" {
		t.Errorf("shortage: %q", why)
	}
	s.pass(66 * time.Minute)
	if why := resource.Shortage(s.role, s.now); modules(s) != 2 || why != "" {
		t.Errorf("afterwards %d modules: %q", modules(s), why)
	}
}

func TestAnotherNumberOfCoresCountsAtOnce(t *testing.T) {
	s := member(t, 3, 2)
	for _, n := range []int{3, 1, 2} {
		s.cfg.Federation.Modules = n
		s.start()
		s.pass(2 * time.Minute)
		if modules(s) != n || claimedAt(s, s.now) != n {
			t.Errorf("%d modules, %d cores claimed, want %d", modules(s), claimedAt(s, s.now), n)
		}
	}
}

// A site that leaves its federation lets the suspended jobs go on, and sells its cores once the last
// one has ended.
func TestASiteThatLeavesSellsAgain(t *testing.T) {
	s := member(t, 2, 2)
	for range 16 * 24 {
		s.pass(time.Hour)
	}
	far, batch := s.now.Add(40*24*time.Hour), ""
	if claimedAt(s, far) != 2 || offers(s, 1, far) {
		t.Fatalf("%d cores are claimed 40 days ahead", claimedAt(s, far))
	}
	for id, slot := range s.batch.slots {
		if !slot.Start.After(s.now) && slot.End.After(s.now) {
			batch = id
		}
	}
	begun := func(id string, cores int, state protocol.JobState) {
		s.batch.jobs[id] = protocol.JobStatus{State: state, Started: s.now}
		s.store.append([]protocol.Record{{Table: launch.Table, Key: id, Value: fmt.Appendf(nil,
			`{"stage":"submitted","batch":%q,"number":1,"reservation":%q,"launch":%[2]q,"slot":{"cores":%d},"status":{"state":%q,"started":%q}}`, batch, id, cores, state, s.now.Format(time.RFC3339))}})
	}
	begun("federation-a.1", 1, protocol.JobSuspended)
	begun("federation-b.1", 2, protocol.JobSuspended)
	begun("federation-c.1", 1, protocol.JobSuspended)
	begun("federation-d.1", 2, protocol.JobRunning)
	s.cfg.Federation = federation.Config{}
	s.start()
	s.pass(2 * time.Minute)
	if claimedAt(s, far) != 2 || offers(s, 1, far) {
		t.Errorf("a job may run on, and %d cores stay claimed", claimedAt(s, far))
	}
	if run := running(s); run != "d" {
		t.Errorf("%q run, want the one that ran", run)
	}
	claims := maps.Clone(s.batch.slots)
	clear(s.batch.slots)
	s.pass(2 * time.Minute)
	if run := running(s); run != "" {
		t.Errorf("%q run without a claim: their cores are sold", run)
	}
	maps.Copy(s.batch.slots, claims)
	s.pass(2 * time.Minute)
	for _, step := range []struct {
		run, end string
	}{{"ac", "a"}, {"c", "c"}, {"b", "b"}, {"d", "d"}} { // those whose cores fit go on
		s.start() // whatever was ordered before, by the journal alone
		if run := running(s); run != step.run {
			t.Fatalf("%q run, want %q", run, step.run)
		}
		if claimedAt(s, s.now) != 2 || offers(s, 1, s.now.Add(time.Minute)) {
			t.Errorf("a job runs, and %d cores are claimed", claimedAt(s, s.now))
		}
		if n := s.role.Status(s.now).Queue.Running; n != len(step.run) {
			t.Errorf("%d jobs are said to run, want %d", n, len(step.run))
		}
		if why := resource.Shortage(s.role, s.now); !strings.Contains(why, "sold again once its running jobs have ended") {
			t.Errorf("shortage: %q", why)
		}
		s.batch.jobs["federation-"+step.end+".1"] = protocol.JobStatus{State: protocol.JobExited, Started: noon, Ended: s.now}
		s.receive(protocol.Message{Performative: protocol.Inform, Sender: protocol.LocalQueue, Protocol: protocol.ProtocolQueue,
			Body: message.JobChanged{ID: "federation-" + step.end + ".1", At: s.now, Status: s.batch.jobs["federation-"+step.end+".1"]}})
	}
	if claimedAt(s, s.now) != 0 || claimedAt(s, far) != 0 {
		t.Errorf("after the last job, %d and %d cores stay claimed", claimedAt(s, s.now), claimedAt(s, far))
	}
	s.pass(2 * time.Minute)
	if !offers(s, 1, s.now.Add(time.Minute)) {
		t.Error("after the last job, nothing is offered")
	}
	if why := resource.Shortage(s.role, s.now); why != "" {
		t.Errorf("shortage: %q", why)
	}
}

// running names the federation's jobs that the batch system runs, by their letters.
func running(s *site) (names string) {
	for _, c := range "abcd" {
		if s.batch.jobs["federation-"+string(c)+".1"].State == protocol.JobRunning {
			names += string(c)
		}
	}
	return names
}
