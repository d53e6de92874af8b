package local_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"ramp/agents"
	"ramp/agents/journal"
	"ramp/agents/queue"
	"ramp/agents/resource/launch"
	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// soldUnit is a seller that has sold one unit.
type soldUnit struct{ unit reserve.Unit }

func (s soldUnit) Unit(protocol.ContractID, int) (reserve.Unit, bool) { return s.unit, true }

type launches struct{ *launch.Site }

func (l launches) Receive(now time.Time, m protocol.Message) protocol.Output {
	out, _ := l.Site.Receive(now, m)
	return out
}

// leased is a site with journal, depot and batch system on this machine, which has sold one
// unit, and what it says to the buyer.
type leased struct {
	tb     testing.TB
	runner *agents.Runner
	said   chan message.LaunchStatus
}

func newLeased(tb testing.TB) *leased {
	tb.Helper()
	dir, agent := tb.TempDir(), protocol.AgentID("seller@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
	unit := reserve.Unit{
		User: "ann", Reservation: "r1", State: reserve.ClaimSold, Units: 1,
		Slot: protocol.Slot{Start: time.Now().UTC(), End: time.Now().UTC().Add(time.Hour), Cores: 1},
	}
	store, err := journal.Open(filepath.Join(dir, "journal.db"), 1<<20)
	if err != nil {
		tb.Fatal(err)
	}
	loop, root := open(tb, agent, filepath.Join(dir, "machine")), filepath.Join(dir, "jobs")
	depot := stage.NewDepot(stage.DepotConfig{Agent: agent, Root: root, TakeBack: queue.TakeBack, Log: slog.New(slog.DiscardHandler)})
	l := &leased{tb: tb, said: make(chan message.LaunchStatus, 1024)}
	l.runner = agents.NewRunner(agents.Config{
		Store: store, Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Load: func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			s, out, err := launch.New(launch.Config{Self: agent, Root: root, Policy: launch.Policy{
				Accounts: map[protocol.AgentID]launch.Account{launch.Everybody: {Commands: true}},
			}}, soldUnit{unit}, t, now)
			return launches{s}, out, err
		},
		Route: func(m protocol.Message) {
			switch body := m.Body.(type) {
			case message.LaunchStatus:
				l.said <- body
			case message.Refusal:
				tb.Errorf("refused: %+v", body)
			default:
				if m.Receivers[0] == protocol.LocalFiles {
					depot.Send(m)
				} else {
					loop.Send(m)
				}
			}
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	deliver := func(m protocol.Message) {
		if _, ok := m.Body.(message.QueueChanged); !ok {
			_ = l.runner.Deliver(m)
		}
	}
	var wait sync.WaitGroup
	wait.Go(func() { _ = l.runner.Run(ctx) })
	wait.Go(func() { _ = loop.Run(ctx, deliver) })
	wait.Go(func() { depot.Run(ctx, deliver) })
	tb.Cleanup(func() { cancel(); wait.Wait(); _ = store.Close() })
	loop.Send(protocol.Message{Sender: agent, Body: message.Reserve{ID: "r1", Slot: unit.Slot}})
	return l
}

func (l *leased) ask(body protocol.Body) {
	_ = l.runner.Deliver(protocol.Message{Performative: protocol.Request, Sender: "ann", Receivers: []protocol.AgentID{"site"}, Body: body})
}

// run runs a program, and returns when each of its stages began, as its buyer learns it.
func (l *leased) run(id string, argv ...string) (stages map[message.LaunchStage]time.Time, job protocol.JobStatus) {
	l.tb.Helper()
	stages = map[message.LaunchStage]time.Time{message.StageAsked: time.Now()}
	l.ask(message.Launch{Contract: "c", ID: id, Command: argv})
	late := time.After(time.Minute)
	for {
		select {
		case s := <-l.said:
			if s.ID != id {
				continue // discarded
			}
			if _, ok := stages[s.Stage]; !ok {
				stages[s.Stage] = time.Now()
			}
			if s.Stage.Over() {
				return stages, s.Job
			}
		case <-late:
			l.tb.Fatalf("launch %s is not over after a minute: %v", id, stages)
		}
	}
}

// Programs follow each other in a lease, each launched when the last is done, which is then
// discarded. Reported is the time from the end of one to the beginning of the next, and
// what it consists of.
func BenchmarkLease(b *testing.B) {
	for _, seconds := range []string{"0", "0.3", "1.1"} {
		b.Run(seconds+"s", func(b *testing.B) {
			l := newLeased(b)
			var gaps, notice, collect, prepare, begin []time.Duration
			var last protocol.JobStatus
			for i := 0; b.Loop(); i++ {
				at, job := l.run(fmt.Sprint(i), "/bin/sleep", seconds)
				if i > 0 {
					gaps = append(gaps, job.Started.Sub(last.Ended))
					l.ask(message.LaunchOrder{Contract: "c", ID: fmt.Sprint(i - 1), Verb: message.VerbDiscard})
				}
				last = job
				notice = append(notice, at[message.StageCollecting].Sub(job.Ended))
				collect = append(collect, at[message.StageDone].Sub(at[message.StageCollecting]))
				prepare = append(prepare, at[message.StageSubmitting].Sub(at[message.StageAsked]))
				begin = append(begin, job.Started.Sub(at[message.StageSubmitting]))
			}
			for name, list := range map[string][]time.Duration{"gap": gaps, "notice": notice, "collect": collect, "prepare": prepare, "begin": begin} {
				slices.SortFunc(list, cmp.Compare)
				b.ReportMetric(float64(list[len(list)/2])/1e6, name+"-ms")
			}
			b.ReportMetric(float64(gaps[len(gaps)-1])/1e6, "worst-gap-ms")
			b.ReportMetric(0, "ns/op")
			if os.Getenv("RAMP_SHOW") != "" {
				b.Log(gaps)
			}
		})
	}
}
