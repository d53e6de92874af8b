package command_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/command"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// example is a documented program, and the one that it uses, for the Python that is
// installed: they may be reached by way of a slow wrapper.
func example(tb testing.TB, name string) string {
	tb.Helper()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		tb.Skip("the examples are Python programs, and python3 is not installed")
	}
	dir := tb.TempDir()
	for _, file := range examples {
		text, err := os.ReadFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
		if err := os.WriteFile(filepath.Join(dir, file), append([]byte("#!"+strings.TrimSpace(string(python))+" -IS\n"), text...), 0o755); err != nil {
			tb.Fatal(err)
		}
	}
	return filepath.Join(dir, name)
}

var examples = []string{"example.py", "runs.py"}

func open(tb testing.TB, program, dir string, limit time.Duration, log *slog.Logger) *queue.Loop {
	tb.Helper()
	d, err := command.Open(command.Config{
		Agent: queuetest.Agent, Program: program, Dir: dir, Limit: limit, Now: time.Now, Slog: log,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestContractOfTheExample(t *testing.T) {
	program := example(t, "example.py")
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver {
		return open(tb, program, dir, command.DefaultLimit, slog.New(slog.DiscardHandler))
	})
}

func TestContractOfTheExampleThatRunsJobs(t *testing.T) {
	program := example(t, "runs.py")
	queuetest.RunJobs(t, func(tb testing.TB, dir string) queue.Driver {
		return open(tb, program, dir, command.DefaultLimit, slog.New(slog.DiscardHandler))
	}, queuetest.Apart, queuetest.PlainSignals)
}

// Programs that have just been started show no command line yet, on a busy machine for a
// good while.
func TestTheExampleKnowsAJobWhateverItsCommandLineShows(t *testing.T) {
	program, dir := example(t, "runs.py"), t.TempDir()
	ask := func(request string) string {
		t.Helper()
		cmd := exec.Command(program)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(request)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", request, err)
		}
		return strings.TrimSpace(string(out))
	}
	ask(`{"do": "reserve", "now": 10, "id": "r", "slot": {"start": 10, "end": 100, "cores": 1}}`)
	ask(`{"do": "submit", "now": 10, "job": {"id": "j", "reservation": "r", "command": ["/bin/sleep", "60"], "env": []}}`)
	for _, c := range []struct{ request, answer string }{
		{`{"do": "jobs", "now": 11, "ids": ["j"]}`, `{"ok": true, "jobs": [{"id": "j", "state": "running"}]}`},
		{`{"do": "signal", "now": 12, "id": "j", "verb": "kill"}`, `{"ok": true}`},
	} {
		if got := ask(c.request); got != c.answer {
			t.Errorf("%s: %s, want %s", c.request, got, c.answer)
		}
	}
}

func TestTheExamplesAreDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/DRIVERS.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range examples {
		if !strings.Contains(string(doc), "(../agents/queue/command/"+file+")") {
			t.Errorf("docs/DRIVERS.md does not name %s", file)
		}
	}
}

// first runs a program of one line, asks it to reserve, and returns its first
// state and the answer.
func first(t *testing.T, line string, limit time.Duration) (protocol.Body, message.Reserved, string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	d := open(t, program, t.TempDir(), limit, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var body protocol.Body
	var answer message.Reserved
	slot := protocol.Slot{Start: time.Now().Add(time.Hour), End: time.Now().Add(2 * time.Hour), Cores: 1}
	d.Send(protocol.Message{Sender: queuetest.Agent, Body: message.Reserve{ID: "r-1", Slot: slot}})
	_ = d.Run(ctx, func(m protocol.Message) {
		if r, ok := m.Body.(message.Reserved); ok {
			answer = r
			cancel()
		} else if body == nil {
			body = m.Body
		}
	})
	return body, answer, log.String()
}

func TestBadAnswersAreRefusedInOneLine(t *testing.T) {
	for name, c := range map[string]struct {
		line, want string
		limit      time.Duration // 0: the usual one
	}{
		"nothing":              {"true", "printed nothing", 0},
		"garbage":              {`printf '\001\377garbage\n'`, "not an answer", 0},
		"truncated JSON":       {`printf '{"ok":true,"capa'`, "not an answer", 0},
		"an error page":        {`echo '<html>502 Bad Gateway</html>'`, "502 Bad Gateway", 0},
		"two answers":          {`echo '{"ok":true}{"ok":true}'`, "after its answer", 0},
		"an unknown field":     {`echo '{"ok":true,"capacty":4}'`, "capacty", 0},
		"a code of its own":    {`echo '{"ok":false,"code":"bored"}'`, `code "bored"`, 0},
		"ok with a code":       {`echo '{"ok":true,"code":"busy"}'`, "the answer is ok, but has the code", 0},
		"negative cores":       {`echo '{"ok":true,"capacity":-1}'`, "want 0..", 0},
		"a job without end":    {`echo '{"ok":true,"capacity":4,"running":[{"cores":1,"end":-1}]}'`, "end -1: want", 0},
		"a job of no cores":    {`echo '{"ok":true,"capacity":4,"queued":[{"cores":0,"wall":5}]}'`, "cores 0", 0},
		"a backward slot":      {`echo '{"ok":true,"capacity":4,"reservations":[{"id":"x","mine":true,"slot":{"start":9,"end":5,"cores":1}}]}'`, "not after its start", 0},
		"200 MB":               {"head -c 200000000 /dev/zero", "more than 16777216 bytes", 0},
		"a program that hangs": {"sleep 60", "exceeded its time limit of 2s", 2 * time.Second},
		"a failure":            {"echo 'no licence left' >&2; exit 4", "exit code 4: no licence left", 0},
	} {
		t.Run(name, func(t *testing.T) {
			body, answer, log := first(t, c.line, cmp.Or(c.limit, command.DefaultLimit))
			down, ok := body.(message.QueueDown)
			if !ok || !strings.Contains(down.Why, c.want) || strings.Count(log, "\n") != 1 {
				t.Fatalf("told %+v, logged %q; want one line that says %q", body, log, c.want)
			}
			if answer.OK || answer.Reason.Code != protocol.CodeUnavailable && !strings.Contains(c.line, `"code"`) && answer.Reason.Note == "" {
				t.Fatalf("the reservation: %+v", answer)
			}
		})
	}
}

func TestAGrantWithoutASlotIsNone(t *testing.T) {
	_, answer, _ := first(t, `echo '{"ok":true,"capacity":4}'`, command.DefaultLimit)
	if answer.OK || answer.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("%+v", answer)
	}
}

// The request is data for the program, whatever the ID is made of.
func TestTheRequestIsOneLineOfJSON(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	text := "#!/bin/sh\ncat >>requests\necho '{\"ok\":false,\"code\":\"busy\",\"free\":3,\"note\":\"full\"}'\n"
	if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	d := open(t, program, dir, command.DefaultLimit, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(context.Background())
	id := "a \"b\";$(touch x)\n"
	start := time.Now().Add(time.Hour).Truncate(time.Second)
	d.Send(protocol.Message{Sender: queuetest.Agent, Body: message.Reserve{ID: id, Slot: protocol.Slot{Start: start.Add(time.Millisecond), End: start.Add(time.Minute + time.Millisecond), Cores: 2}}})
	_ = d.Run(ctx, func(m protocol.Message) {
		if r, ok := m.Body.(message.Reserved); ok {
			if r.OK || r.Reason.Code != protocol.CodeBusy || r.Reason.Free != 3 || r.Reason.Note != "full" {
				t.Errorf("the answer is %+v", r)
			}
			cancel()
		}
	})
	b, err := os.ReadFile(filepath.Join(dir, "requests"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	var r struct {
		Do, ID string
		Now    int64
		Slot   struct{ Start, End, Cores int64 }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &r); err != nil {
		t.Fatalf("%v in %q", err, lines)
	}
	if r.Do != "reserve" || r.ID != id || r.Slot.Start != start.Unix() || r.Slot.End != start.Unix()+61 || r.Slot.Cores != 2 {
		t.Fatalf("the request is %+v", r)
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"", "relative", dir, plain, filepath.Join(dir, "absent")} {
		if _, err := command.Open(command.Config{Program: p}); err == nil {
			t.Errorf("%q is a program", p)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"ok":true,"capacity":16,"running":[{"cores":1,"end":5}],"queued":[{"cores":2,"wall":9}],"reservations":[{"id":"x","mine":true,"slot":{"start":1,"end":5,"cores":1}}]}`))
	f.Add([]byte(`{"ok":false,"code":"busy","free":3}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := command.StateOf(b)
		if err != nil {
			return
		}
		for _, r := range q.Reservations {
			if r.Slot.Validate() != nil || r.ID == "" {
				t.Fatalf("reservation %+v", r)
			}
		}
		for _, w := range q.Queued {
			if w.Cores < 1 || w.Wall <= 0 {
				t.Fatalf("waiting %+v", w)
			}
		}
	})
}
