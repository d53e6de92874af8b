package launch_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/resource/launch"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// lease is a site with one sold unit, in which its buyer launches one program after the
// other.
type lease struct {
	t    rapid.TB
	site *launch.Site
	sold *oneUnit
	disk disk
	now  time.Time
	jobs map[string]string // of each launch
	runs map[string]int    // how often each job was submitted
	gone map[string]int    // how often its files were discarded
}

func newLease(t rapid.TB) *lease {
	l := &lease{t: t, disk: disk{}, now: noon, jobs: map[string]string{}, runs: map[string]int{}, gone: map[string]int{}}
	l.sold = &oneUnit{reserve.Unit{
		User: "ann", Reservation: "r1", State: reserve.ClaimSold, Units: 1,
		Slot: protocol.Slot{Start: noon, End: noon.Add(time.Hour), Cores: 2},
	}}
	l.start()
	return l
}

// start starts the site, as after a crash if it ran before.
func (l *lease) start() {
	s, out, err := launch.New(launch.Config{Self: "atlas", Policy: open()}, l.sold, l.disk, l.now)
	if err != nil {
		l.t.Fatal(err)
	}
	l.site = s
	l.note(out)
}

func (l *lease) note(out protocol.Output) {
	l.disk.save(out.Save)
	for _, m := range out.Send {
		switch body := m.Body.(type) {
		case message.Submit:
			l.runs[body.Job.ID]++
		case message.Prepare:
			l.jobs["last"] = body.Job
		case message.Discard:
			l.gone[body.Job]++
		}
	}
}

// ask sends the buyer's request, and returns the answer.
func (l *lease) ask(body protocol.Body) protocol.Body {
	out, _ := l.site.Receive(l.now, protocol.Message{Performative: protocol.Request, Sender: "ann", Receivers: []protocol.AgentID{"atlas"}, Conversation: "x", ReplyWith: "q", Body: body})
	l.note(out)
	for _, m := range out.Send {
		if m.InReplyTo == "q" {
			return m.Body
		}
	}
	l.t.Fatalf("%+v is not answered", body)
	return nil
}

func (l *lease) launch(id string) protocol.Body {
	delete(l.jobs, "last")
	answer := l.ask(message.Launch{Contract: "c", ID: id, Command: []string{"/bin/work"}})
	if job := l.jobs["last"]; job != "" {
		l.jobs[id] = job
	}
	return answer
}

func (l *lease) order(verb message.LaunchVerb, id string) protocol.Body {
	return l.ask(message.LaunchOrder{Contract: "c", ID: id, Verb: verb})
}

func (l *lease) local(from protocol.AgentID, body protocol.Body) {
	out, _ := l.site.Receive(l.now, local("atlas", from, body))
	l.note(out)
}

// begin begins a launch, and end ends it with one file.
func (l *lease) begin(id string) {
	if s, ok := l.launch(id).(message.LaunchStatus); !ok {
		l.t.Fatalf("%s is refused: %+v", id, s)
	}
	l.local(protocol.LocalFiles, message.Prepared{Job: l.jobs[id]})
	l.note(l.site.Wake(l.now))
	l.local(protocol.LocalQueue, message.JobChanged{ID: l.jobs[id], At: l.now, Status: protocol.JobStatus{State: protocol.JobRunning, Started: l.now}})
}

func (l *lease) end(id string, status protocol.JobStatus) {
	l.local(protocol.LocalQueue, message.JobChanged{ID: l.jobs[id], At: l.now, Status: status})
	l.local(protocol.LocalFiles, message.Collected{Job: l.jobs[id], Outputs: []protocol.StagedFile{{Path: "out", Size: 1}}})
}

func (l *lease) exited(exit int, wall time.Duration) protocol.JobStatus {
	return protocol.JobStatus{State: protocol.JobExited, Exit: exit, Started: l.now.Add(-wall), Ended: l.now, Usage: protocol.Usage{CPU: wall, Wall: wall, Share: protocol.Core}}
}

func (l *lease) refused(answer protocol.Body) protocol.Code {
	if r, ok := answer.(message.Refusal); ok {
		return r.Reasons[0].Code
	}
	return ""
}

// size is how many launches the site remembers, without and with those discarded.
func (l *lease) size() [2]int { return [2]int{l.site.Sizes()[0].N, l.site.Sizes()[1].N} }

// reach lets the clock reach a time, and go right for an hour.
func (l *lease) reach(t time.Time) {
	for _, l.now = range []time.Time{t, t.Add(time.Hour)} {
		l.note(l.site.Wake(l.now))
	}
}

// Launches that are discarded make room for others in their unit, up to the bound of all,
// and are forgotten with the slot.
func TestManyLaunchesFollowEachOtherInAUnit(t *testing.T) {
	l := newLease(t)
	for i := range launch.MaxInUnit {
		id := fmt.Sprint(i)
		l.begin(id)
		l.end(id, l.exited(0, time.Second))
		if i >= launch.MaxPerUnit-1 {
			if code := l.refused(l.launch("more")); code != protocol.CodeLimit {
				t.Fatalf("after %d launches the next is answered with %q, want limit", i+1, code)
			}
			l.order(message.VerbDiscard, fmt.Sprint(i-launch.MaxPerUnit+1))
		}
	}
	if code := l.refused(l.launch("more")); code != protocol.CodeLimit {
		t.Fatalf("launch %d is answered with %q, want limit", launch.MaxInUnit+1, code)
	}
	if n := len(l.runs); n != launch.MaxInUnit || l.size() != [2]int{launch.MaxPerUnit - 1, launch.MaxInUnit} {
		t.Fatalf("%d programs ran, and %v launches are remembered", n, l.size())
	}
	l.reach(l.sold.unit.Slot.End)
	if l.size() != [2]int{launch.MaxPerUnit - 1, launch.MaxPerUnit - 1} {
		t.Fatalf("%v launches are remembered after the slot", l.size())
	}
	l.reach(l.now.Add(launch.DefaultKeep))
	if l.size() != [2]int{} || len(l.disk[launch.Table]) != 0 {
		t.Fatalf("%v launches and %d records are left", l.size(), len(l.disk[launch.Table]))
	}
	for id, n := range l.gone {
		if n != 1 {
			t.Errorf("the files of %s were discarded %d times", id, n)
		}
	}
}

func TestDiscardedLaunchNeverBeginsAgain(t *testing.T) {
	l := newLease(t)
	if code := l.refused(l.order(message.VerbDiscard, "1")); code != protocol.CodeUnknown {
		t.Fatalf("discarding an unknown launch is answered with %q", code)
	}
	l.begin("1")
	if code := l.refused(l.order(message.VerbDiscard, "1")); code != protocol.CodeExpired {
		t.Fatalf("discarding a launch that runs is answered with %q", code)
	}
	l.end("1", l.exited(3, time.Minute))
	first := l.order(message.VerbDiscard, "1").(message.LaunchStatus)
	if first.Stage != message.StageDone || first.Job.Exit != 3 || len(first.Outputs) > 0 || !first.Keep.IsZero() {
		t.Fatalf("answered with %+v", first)
	}
	for range 2 {
		again := l.order(message.VerbDiscard, "1").(message.LaunchStatus)
		late := l.launch("1").(message.LaunchStatus)
		l.local(protocol.LocalFiles, message.Prepared{Job: "r1.1"})
		l.note(l.site.Wake(l.now))
		if !reflect.DeepEqual(again, first) || !reflect.DeepEqual(late, first) || l.runs["r1.1"] != 1 {
			t.Fatalf("answered with %+v, the launch with %+v; it ran %d times", again, late, l.runs["r1.1"])
		}
		if _, ok := l.site.Grant("ann", "c", 0, "1"); ok || l.site.Knows("r1.1") || l.gone["r1.1"] == 0 {
			t.Fatalf("files: granted %t, kept %t, discarded %d times", ok, l.site.Knows("r1.1"), l.gone["r1.1"])
		}
		l.start()
	}
	l.sold.unit.Unpaid, l.now = true, l.sold.unit.Slot.End.Add(time.Hour)
	if l.note(l.site.Wake(l.now)); l.size()[1] != 1 {
		t.Fatal("forgotten before the usage of its unit is reported")
	}
	l.sold.unit.Reported, l.now = true, l.now.Add(time.Hour)
	if l.note(l.site.Wake(l.now)); l.size()[1] != 0 || l.refused(l.order(message.VerbDiscard, "1")) != protocol.CodeUnknown {
		t.Fatal("it is remembered after its unit is reported")
	}
}

// Discarding gives up outputs that wait until the usage is decided.
func TestWithheldOutputsCanBeDiscarded(t *testing.T) {
	l := newLease(t)
	l.sold.unit.Metered, l.sold.unit.Unpaid = true, true
	l.begin("1")
	l.end("1", l.exited(0, time.Minute))
	if s := l.order(message.VerbStatus, "1").(message.LaunchStatus); s.Stage != message.StageCollecting {
		t.Fatalf("it is %s, want its outputs withheld", s.Stage)
	}
	s := l.order(message.VerbDiscard, "1").(message.LaunchStatus)
	l.sold.unit.Unpaid = false
	l.note(l.site.Decided(l.now, "c"))
	if s.Stage != message.StageDone || l.gone["r1.1"] != 1 || len(l.order(message.VerbStatus, "1").(message.LaunchStatus).Outputs) > 0 {
		t.Fatalf("discarded %+v, files %d times", s, l.gone["r1.1"])
	}
}

// Whatever is launched, killed and discarded in a unit, restarts included: discarding changes
// neither the usage of the unit nor how it ends.
func TestDiscardingChangesNoUsage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		with, without := newLease(t), newLease(t)
		both := func(f func(l *lease)) { f(with); f(without) }
		metered := rapid.Bool().Draw(t, "metered")
		both(func(l *lease) { l.sold.unit.Metered = metered })
		for i := range rapid.IntRange(1, launch.MaxPerUnit).Draw(t, "launches") {
			id, exit := fmt.Sprint(i), rapid.IntRange(0, 2).Draw(t, "exit")
			wall := time.Duration(rapid.IntRange(0, 200).Draw(t, "seconds")) * time.Second
			state := rapid.SampledFrom([]protocol.JobState{protocol.JobExited, protocol.JobKilled, protocol.JobLost, ""}).Draw(t, "ends")
			both(func(l *lease) {
				if state == "" {
					l.launch(id)
					l.order(message.VerbKill, id)
					return
				}
				l.begin(id)
				l.now = l.now.Add(wall)
				status := l.exited(exit, wall)
				status.State = state
				l.end(id, status)
			})
			for old := range i + 1 {
				if rapid.Bool().Draw(t, "discard") {
					with.order(message.VerbDiscard, fmt.Sprint(old))
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "restart") == 0 {
				with.start()
			}
			for _, at := range []time.Time{with.now, with.sold.unit.Slot.End} {
				a, okA := with.site.Used(at, "r1")
				b, okB := without.site.Used(at, "r1")
				if a != b || okA != okB {
					t.Fatalf("used %+v %t, without discarding %+v %t", a, okA, b, okB)
				}
			}
			a, okA := with.site.Ends(with.jobs[id])
			b, okB := without.site.Ends(without.jobs[id])
			if a != b || okA != okB {
				t.Fatalf("%s ends %q %t, without discarding %q %t", id, a, okA, b, okB)
			}
		}
	})
}
