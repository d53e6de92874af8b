package launch_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Whatever is lost, doubled and delayed between buyer, sellers, batch systems and
// files, and whoever crashes or discards where: a launch has at most one job, which begins at
// most once, in its slot and with its inputs; and in the end buyer and sellers
// say the same of it.
func TestStorms(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := newStorm(t, rt)
		for range rapid.IntRange(5, 120).Draw(rt, "steps") {
			s.blow()
		}
		s.calm()
		s.judge()
	})
}

type storm struct {
	rt        *rapid.T
	p         *pair
	discarded bool // its buyer wanted to discard launches
}

func newStorm(t *testing.T, rt *rapid.T) *storm {
	program := message.Program{Command: []string{"/bin/work"}}
	for _, name := range []string{"a", "b"}[:rapid.IntRange(0, 2).Draw(rt, "inputs")] {
		source := "there"
		if rapid.IntRange(0, 9).Draw(rt, "gone") == 0 {
			source = "gone"
		}
		program.Inputs = append(program.Inputs, message.RunInput{File: protocol.StagedFile{Path: name, Size: 1}, Source: source})
	}
	s := &storm{rt: rt}
	units := rapid.IntRange(1, 2).Draw(rt, "units")
	s.p = newPair(t, units, program, open())
	s.p.crash = s.crash
	for i, b := range s.p.batches {
		b.length = time.Duration(rapid.IntRange(0, 4).Draw(rt, "minutes")) * time.Minute
		b.exit = rapid.IntRange(0, 2).Draw(rt, "exit")
		s.p.depots[i].outputs = []protocol.StagedFile{{Path: "out", Size: 1}}
	}
	return s
}

// crash draws whether and where a host crashes in an Output: before its records
// are durable, before anything is sent, or in the middle of that.
func (s *storm) crash(_ *host, out protocol.Output) (saved bool, sent int, dead bool) {
	switch rapid.IntRange(0, 24).Draw(s.rt, "crash") {
	case 0:
		return false, 0, true
	case 1:
		return true, rapid.IntRange(0, len(out.Send)).Draw(s.rt, "sent"), true
	}
	return true, len(out.Send), false
}

// blow lets one thing happen.
func (s *storm) blow() {
	p := s.p
	switch do := rapid.IntRange(0, 31).Draw(s.rt, "do"); {
	case do < 15:
		s.carry()
	case do < 22:
		p.step(time.Duration(rapid.IntRange(1, 100).Draw(s.rt, "seconds")) * time.Second)
	case do == 22:
		p.owner(message.VerbKill)
	case do == 23:
		p.owner(message.VerbSuspend)
	case do == 24:
		p.owner(message.VerbResume)
	case do == 25: // the batch system goes away, or comes back
		b := p.batches[rapid.IntRange(0, len(p.batches)-1).Draw(s.rt, "batch")]
		b.away, b.mute = rapid.Bool().Draw(s.rt, "away"), rapid.Bool().Draw(s.rt, "mute")
	case do == 26: // it loses what has not begun
		for _, j := range p.batches[0].sorted() {
			j.gone = j.gone || j.begun == 0
		}
	case do == 27:
		d := p.depots[rapid.IntRange(0, len(p.depots)-1).Draw(s.rt, "depot")]
		d.mute = !d.mute
	case do == 28:
		h := append([]*host{p.user}, p.sites...)[rapid.IntRange(0, len(p.sites)).Draw(s.rt, "dies")]
		h.die1()
		p.start(h)
	case do == 29:
		i := rapid.IntRange(0, len(p.sites)-1).Draw(s.rt, "discards")
		order := message.LaunchOrder{Contract: contract, Unit: i, ID: fmt.Sprintf("p1.%d", i+1), Verb: message.VerbDiscard}
		s.discarded = true
		p.wire = append(p.wire, packet{to: p.sites[i], m: protocol.Message{Performative: protocol.Request, Sender: buyerID, Receivers: []protocol.AgentID{p.sites[i].id}, Body: order}})
	default:
		p.quiet()
	}
}

// carry brings any of the messages on their way, perhaps twice, or loses it. What
// an agent and its own correspondents say stays in order, and comes once.
func (s *storm) carry() {
	p := s.p
	if len(p.wire) == 0 {
		return
	}
	i := rapid.IntRange(0, len(p.wire)-1).Draw(s.rt, "which")
	for j := range i {
		if p.wire[i].life != 0 && p.wire[j].life != 0 && p.wire[i].to == p.wire[j].to {
			i = j
			break
		}
	}
	k := p.wire[i]
	fate := rapid.IntRange(0, 5).Draw(s.rt, "fate")
	if fate != 1 || k.life != 0 {
		p.wire = append(p.wire[:i:i], p.wire[i+1:]...)
	}
	if fate != 0 {
		p.deliver(k)
	}
}

// calm lets all faults stop and everything come to its end.
func (s *storm) calm() {
	p := s.p
	p.crash = nil
	for i := range p.batches {
		p.batches[i].away, p.batches[i].mute, p.depots[i].mute = false, false, false
	}
	p.until(protocol.Later(p.now, slotEnd).Add(10 * time.Minute))
}

// judge holds what the batch systems did against what buyer and sellers say.
func (s *storm) judge() {
	run := s.p.run()
	if !run.Over || run.Fault == "" && run.Units[0].Status.Stage == message.StageAsked {
		s.rt.Fatalf("long after the slot the run is not over: %+v", run)
	}
	for i, u := range run.Units {
		s.oneJob(i)
		told, ok := s.p.sites[i].role.(siteRole).Status(buyerID, contract, i, u.Launch)
		switch {
		case !ok && (u.Status.Stage != message.StageFailed || len(s.p.batches[i].jobs) > 0):
			s.rt.Fatalf("unit %d: the seller knows of no launch, the buyer believes %+v", i, u.Status)
		case ok && (told.Stage != u.Status.Stage || told.Job != u.Status.Job || !s.discarded && len(told.Outputs) != len(u.Status.Outputs)):
			s.rt.Fatalf("unit %d: the seller has %+v, the buyer %+v", i, told, u.Status)
		}
		s.agrees(i, u)
	}
}

// oneJob: at most one job, begun at most once, in its slot, with its inputs.
func (s *storm) oneJob(i int) {
	b := s.p.batches[i]
	if len(b.jobs) > 1 {
		s.rt.Fatalf("unit %d: one launch has %d jobs", i, len(b.jobs))
	}
	for id, j := range b.jobs {
		at := j.status.Started
		switch {
		case j.begun > 1:
			s.rt.Fatalf("unit %d: job %s began %d times", i, id, j.begun)
		case j.begun == 1 && (at.Before(slotStart) || !at.Before(slotEnd)):
			s.rt.Fatalf("unit %d: job %s began at %s, out of its slot", i, id, at)
		case s.p.depots[i].prepared(id).Missing > 0:
			s.rt.Fatalf("unit %d: job %s was submitted without its inputs", i, id)
		case len(s.p.sites) > 1 && len(j.job.Env) < 8+4*len(s.p.sites):
			s.rt.Fatalf("unit %d: job %s does not know where the others are: %q", i, id, j.job.Env)
		}
	}
}

// agrees holds a unit's end as the buyer has it against what the batch system did.
func (s *storm) agrees(i int, u message.RunUnit) {
	state := protocol.JobState("")
	for _, j := range s.p.batches[i].jobs { // one at most
		if !j.gone || j.begun > 0 {
			state = j.status.State
		}
	}
	if u.Status.Stage == message.StageDone && u.Status.Job.State != protocol.JobLost && u.Status.Job.State != state {
		s.rt.Fatalf("unit %d: the buyer has %s, the batch system %q", i, u.Status.Job.State, state)
	}
	if u.Status.Stage == message.StageFailed && state != "" && state != protocol.JobExpired {
		s.rt.Fatalf("unit %d: it failed for the buyer (%s), and the batch system has %s", i, u.Status.Why, state)
	}
	if s.p.run().Killing && user.StateOf(u) == string(protocol.JobRunning) {
		s.rt.Fatalf("unit %d: it was killed, and runs", i)
	}
}
