package queue_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/queue"
	"ramp/protocol"
	"ramp/protocol/message"
)

func program(limit time.Duration, most int) queue.Program {
	return queue.Program{Env: []string{"PATH=" + os.Getenv("PATH"), "WORD=x"}, Limit: limit, Most: most}
}

func TestAProgramGetsItsArgumentsAsTheyAre(t *testing.T) {
	nasty := "a b;$(touch x)`y`\n\"'*"
	out, err := program(10*time.Second, 1024).Run(nil, "printf", "%s", nasty)
	if err != nil || string(out) != nasty {
		t.Fatalf("%q, %v", out, err)
	}
}

func TestAProgramGetsItsInputAndNothingOfTheEnvironment(t *testing.T) {
	t.Setenv("SECRET", "y")
	out, err := program(10*time.Second, 1024).Run([]byte("in"), "sh", "-c", `cat; echo "$WORD$SECRET"`)
	if err != nil || string(out) != "inx\n" {
		t.Fatalf("%q, %v", out, err)
	}
	p := program(10*time.Second, 1024)
	p.Prefix = []string{"env", "WORD=z"}
	if out, err = p.Run(nil, "sh", "-c", `echo "$WORD"`); err != nil || string(out) != "z\n" {
		t.Fatalf("with a prefix %q, %v", out, err)
	}
}

func TestAProgramThatTalksTooMuchIsKilled(t *testing.T) {
	_, err := program(10*time.Second, 1000).Run(nil, "sh", "-c", "head -c 1001 /dev/zero; sleep 60")
	if !errors.Is(err, queue.ErrTooMuch) {
		t.Fatalf("error %v", err)
	}
	if out, err := program(10*time.Second, 1000).Run(nil, "head", "-c", "1000", "/dev/zero"); err != nil || len(out) != 1000 {
		t.Fatalf("as much as allowed: %d bytes, %v", len(out), err)
	}
}

// A program that hangs is killed with its children, which would go on otherwise.
func TestAProgramThatHangsIsKilledWithItsChildren(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	_, err := program(300*time.Millisecond, 1000).Run(nil, "sh", "-c", `(sleep 5; : >"$0") & sleep 60`, alive)
	if !errors.Is(err, queue.ErrTimeLimit) {
		t.Fatalf("error %v", err)
	}
	if _, err := program(10*time.Second, 1000).Run(nil, "sleep", "5.5"); err != nil { // past the child's time
		t.Fatal(err)
	}
	if _, err := os.Stat(alive); err == nil {
		t.Fatal("its child went on")
	}
}

func TestAFailureIsOneLine(t *testing.T) {
	_, err := program(10*time.Second, 1000).Run(nil, "sh", "-c", `printf 'bad\n\tnode \033[31m%01000d' 0 >&2; exit 3`)
	var exit *queue.ExitError
	if !errors.As(err, &exit) || exit.Code != 3 || !strings.HasPrefix(exit.Words, "bad node ?[31m") {
		t.Fatalf("error %v", err)
	}
	if s := err.Error(); len(s) > 400 || strings.ContainsAny(s, "\n\t\033") {
		t.Fatalf("%q is not one line", s)
	}
	if _, err := program(time.Second, 10).Run(nil, "/nowhere/at all"); err == nil {
		t.Fatal("a program that is not there runs")
	}
}

// Whatever an ID is made of, its name is made of what every batch system takes,
// and says the ID again to its own agent, and to no other.
func TestMarksReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 1, queue.MaxID).Draw(t, "id"))
		m := queue.MarkOf("ann@aaaa")
		name := m.Name(id)
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") != "" {
			t.Fatalf("name %q", name)
		}
		if got, ok := m.ID(name); !ok || got != id {
			t.Fatalf("%q reads back as %q, %v", id, got, ok)
		}
		if _, ok := queue.MarkOf("bob@bbbb").ID(name); ok {
			t.Fatal("another agent takes it for its own")
		}
	})
}

func TestNamesThatNoMarkMakes(t *testing.T) {
	m := queue.MarkOf("ann@aaaa")
	for _, rest := range []string{"", "_", "_4", "_zz", "_61", "a b", "a_4A", "ä"} {
		if id, ok := m.ID(string(m) + rest); ok {
			t.Errorf("%q is the name of %q", rest, id)
		}
	}
}

// The oracle counts hour by hour.
func TestTakenIsTheMostAtAnyInstant(t *testing.T) {
	zero := time.Unix(0, 0)
	draw := rapid.Custom(func(t *rapid.T) protocol.Slot {
		from := rapid.IntRange(0, 9).Draw(t, "from")
		return protocol.Slot{Start: zero.Add(time.Duration(from) * time.Hour), Cores: rapid.IntRange(1, 5).Draw(t, "cores"),
			End: zero.Add(time.Duration(from+rapid.IntRange(1, 5).Draw(t, "hours")) * time.Hour)}
	})
	rapid.Check(t, func(t *rapid.T) {
		uses, slot := rapid.SliceOfN(draw, 0, 8).Draw(t, "uses"), draw.Draw(t, "slot")
		most := 0
		for h := slot.Start; h.Before(slot.End); h = h.Add(time.Hour) {
			sum := 0
			for _, u := range uses {
				if u.Overlaps(protocol.Slot{Start: h, End: h.Add(time.Hour)}) {
					sum += u.Cores
				}
			}
			most = max(most, sum)
		}
		if got := queue.Taken(uses, slot); got != most {
			t.Fatalf("%d, want %d", got, most)
		}
	})
}

func TestPaceSlowsDownAndComesBack(t *testing.T) {
	p := queue.Pace{Least: time.Second, Most: 5 * time.Second}
	now := time.Unix(1000, 0)
	if !p.Due(now) {
		t.Fatal("the first look is not at once")
	}
	for _, want := range []time.Duration{1, 2, 4, 5, 5} {
		if news := p.Looked(now, false, nil); news {
			t.Fatal("nothing is news")
		}
		if got := p.Next().Sub(now); got != want*time.Second {
			t.Fatalf("the next look is after %s, want %d s", got, want)
		}
	}
	p.Soon(now)
	if p.Due(now.Add(999*time.Millisecond)) || !p.Due(now.Add(time.Second)) {
		t.Fatal("a change of its own is not looked at after a second")
	}
	if news := p.Looked(now, true, nil); !news || p.Next().Sub(now) != time.Second {
		t.Fatalf("a change: news %v, the next look after %s", news, p.Next().Sub(now))
	}
}

func TestAnOutageIsNewsWhenItBeginsAndEnds(t *testing.T) {
	p := queue.Pace{Least: time.Second, Most: time.Minute}
	down := errors.New("away")
	for i, c := range []struct {
		changed bool
		err     error
		news    bool
	}{{true, nil, true}, {false, down, true}, {false, down, false}, {true, down, false}, {false, nil, true}, {false, nil, false}} {
		if got := p.Looked(time.Unix(int64(i), 0), c.changed, c.err); got != c.news {
			t.Fatalf("look %d: news %v, want %v", i, got, c.news)
		}
	}
}

func TestWhatWasSeenAndNotToldIsNews(t *testing.T) {
	var fault error
	q := message.QueueChanged{Capacity: 4}
	p := queue.Polled{Pace: queue.Pace{Least: time.Second, Most: time.Second}, Read: func(at time.Time) (message.QueueChanged, error) {
		if q.At = at; fault != nil {
			return message.QueueChanged{}, fault
		}
		return q, nil
	}}
	now := time.Unix(1000, 0)
	news := func(what string, want bool) {
		t.Helper()
		now = now.Add(time.Second)
		if got, _ := p.Advance(now); got != want {
			t.Fatalf("%s: news %v, want %v", what, got, want)
		}
		fault = nil
		_, _ = p.State(now)
	}
	news("the first state", true)
	news("no change", false)
	q.Capacity = 3
	_, _ = p.Look(now) // as a refusal does
	news("a change that was seen before", true)
	now, fault = now.Add(time.Millisecond), errors.New("away")
	_, _ = p.State(now)
	fault = nil
	news("the end of a failure that no poll saw", true)
	news("no change", false)
}

func TestStatesAreTheSameButForTheirTime(t *testing.T) {
	a := message.QueueChanged{At: time.Unix(1, 0), Capacity: 4, Running: []message.RunningJob{{Cores: 1, End: time.Unix(9, 0)}}}
	b := a
	b.At = time.Unix(2, 0)
	if !queue.Same(a, b) {
		t.Fatal("another time is another state")
	}
	b.Running = []message.RunningJob{{Cores: 2, End: time.Unix(9, 0)}}
	if queue.Same(a, b) {
		t.Fatal("another job is the same state")
	}
}
