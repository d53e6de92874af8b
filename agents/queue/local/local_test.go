package local_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/escape"
	"ramp/agents/queue/local"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

func open(tb testing.TB, agent protocol.AgentID, dir string) *queue.Loop {
	tb.Helper()
	d, err := local.Open(local.Config{Agent: agent, Dir: dir, Now: time.Now, Slog: slog.New(slog.DiscardHandler), Keeper: []string{os.Args[0], keeps}, Contain: local.Containment{Accept: local.Protections()}})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// keeps is the variable that makes this test the keeper of a job.
const keeps = "keep-job"

// tries is the word that makes this test a job of the escape suite.
const tries = "try-escape"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == keeps {
		if err := local.Keep(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == tries {
		if err := escape.Try(os.Stdout, os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 3 && os.Args[1] == hides {
		fmt.Fprintln(os.Stderr, hide(os.Args[2]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestJobs(t *testing.T) {
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver { return open(tb, queuetest.Agent, dir) }, queuetest.Apart)
}

// Who looks at a job just when it begins neither takes it for lost nor keeps its
// keeper from beginning.
func TestWhoLooksDoesNotDisturb(t *testing.T) {
	for i := range 40 {
		job := message.Job{
			ID: fmt.Sprint(i), Dir: t.TempDir(), Argv: []string{"/bin/true"},
			Slot: protocol.Slot{Start: time.Now(), End: time.Now().Add(time.Minute), Cores: 1},
		}
		if err := os.MkdirAll(filepath.Join(job.Dir, "work"), 0o700); err != nil {
			t.Fatal(err)
		}
		looked, done := sync.WaitGroup{}, make(chan struct{})
		for range 4 {
			looked.Go(func() {
				for {
					s, err := local.Status(job)
					if err != nil || s.State == protocol.JobLost {
						t.Errorf("job %d: %+v, %v", i, s, err)
						return
					}
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		if err := local.Start([]string{os.Args[0], keeps}, job); err != nil {
			t.Error(err)
		}
		close(done)
		looked.Wait()
		if err := local.Leave(job); err != nil {
			t.Error(err)
		}
	}
}

func TestContract(t *testing.T) {
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver { return open(tb, queuetest.Agent, dir) })
}

// begin runs a driver and returns a way to ask it.
func begin(t *testing.T, agent protocol.AgentID, dir string) func(body protocol.Body) protocol.Body {
	t.Helper()
	return asks(t, agent, open(t, agent, dir))
}

// asks runs a driver, and returns a function that sends it a request and waits for the answer.
func asks(t *testing.T, agent protocol.AgentID, d *queue.Loop) func(body protocol.Body) protocol.Body {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	answers, stopped := make(chan protocol.Body, 64), make(chan struct{})
	go func() {
		defer close(stopped)
		_ = d.Run(ctx, func(m protocol.Message) {
			if m.InReplyTo != "" { // what it says unasked comes at any moment
				answers <- m.Body
			}
		})
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return func(body protocol.Body) protocol.Body {
		t.Helper()
		d.Send(protocol.Message{Sender: agent, ReplyWith: "answer", Body: body})
		select {
		case b := <-answers:
			return b
		case <-time.After(time.Minute):
			t.Fatal("no answer")
			return nil
		}
	}
}

// Several agents of one machine reserve at the same time: together they never
// get more cores than it has, and none can release or read another's claim.
func TestAgentsShareTheMachine(t *testing.T) {
	dir := t.TempDir()
	slot := protocol.Slot{Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour), Cores: 1}
	const agents = 4
	granted := make([]int, agents)
	var wait sync.WaitGroup
	for i := range agents {
		agent := protocol.AgentID(fmt.Sprintf("seller%d@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", i))
		ask := begin(t, agent, dir)
		wait.Go(func() {
			for n := range runtime.NumCPU() {
				r := ask(message.Reserve{ID: fmt.Sprintf("r-%d", n), Slot: slot}).(message.Reserved)
				if r.OK {
					granted[i]++
				} else if r.Reason.Code != protocol.CodeBusy {
					t.Errorf("refused: %+v", r.Reason)
				}
			}
		})
	}
	wait.Wait()
	sum := 0
	for _, n := range granted {
		sum += n
	}
	if sum != runtime.NumCPU() {
		t.Fatalf("%d cores granted of %d", sum, runtime.NumCPU())
	}
	stranger := begin(t, "stranger@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", dir)
	if r := stranger(message.Keep{ID: "r-0"}).(message.Reserved); r.OK {
		t.Fatal("an agent reads back another's claim")
	}
	stranger(message.Release{ID: "r-0"})
	if r := stranger(message.Reserve{ID: "x", Slot: slot}).(message.Reserved); r.OK {
		t.Fatal("an agent has released another's claim")
	}
}

func TestMoreCoresThanTheMachineHas(t *testing.T) {
	for _, cores := range []int{-1, runtime.NumCPU() + 1} {
		_, err := local.Open(local.Config{Agent: queuetest.Agent, Dir: t.TempDir(), Cores: cores, Now: time.Now, Slog: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Fatalf("%d cores are accepted", cores)
		}
	}
}

// The state file of a machine that another program has spoiled is not guessed at.
func TestASpoiledFileIsAnError(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "claims.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := local.Open(local.Config{Agent: queuetest.Agent, Dir: dir, Now: time.Now, Slog: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "claims.json") {
		t.Fatalf("error %v, want one that names the file", err)
	}
}
