package main

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"ramp/protocol/message"
)

// A daemon that says how the clocks of others stand, in place of a true one.
func TestTheDoctorSeesAClockThatIsOffByAnHour(t *testing.T) {
	t.Parallel()
	m, err := newMarket(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		ahead []int64
		state string
		found string
	}{
		{"this machine's is wrong", []int64{3_600_000, 3_600_050, 2}, "bad", "this machine's clock is 1h0m0s behind that of siteb (2 of 3 agents disagree with it)"},
		{"it is the other way round", []int64{-3_600_000, -3_600_050, 2}, "bad", "1h0m0s ahead of that of siteb"},
		{"another's is wrong", []int64{3_600_000, 1, 2}, "warning", "that of sitea is 1h0m0s ahead of this one; the others agree with this one"},
		{"all agree", []int64{30, -40, 2}, "good", "of 3 other agents"},
	} {
		t.Run(c.name, func(t *testing.T) {
			stop := listenAs(t, m.path("user"), clocks(c.ahead))
			out, _ := exec.Command("ramp", "doctor", "--dir", m.path("user"), "--json").Output() // it ends with 1 if something is bad
			stop()
			if f := finding(t, out, "clock"); f.State != c.state || !strings.Contains(f.Found, c.found) {
				t.Errorf("%+v, want %s: %s", f, c.state, c.found)
			}
		})
	}
}

// Who does not buy is told if it may be for this machine's clock: the daemon that says
// how the clocks of others stand is one in place of a true one.
func TestWhoDoesNotBuyIsToldOfAWrongClock(t *testing.T) {
	t.Parallel()
	m, err := newMarket(t.TempDir(), nil)
	must(t, err)
	for _, c := range []struct {
		name  string
		ahead []int64
		want  string
	}{
		{"this machine's is ahead", []int64{-3_600_000, -3_599_950, 2}, "warning: this machine's clock is 1h0m0s ahead of that of sitea (2 of 3 agents disagree with it): set this machine's clock"},
		{"this machine's is behind", []int64{3_600_000, 3_599_950, 2}, "warning: this machine's clock is 1h0m0s behind that of sitea (2 of 3 agents disagree with it): set this machine's clock"},
		{"another's is wrong", []int64{3_600_000, 1, 2}, ""},
		{"all agree", []int64{30, -40, 2}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			mux := http.NewServeMux()
			mux.Handle("POST /v1/clocks", clocks(c.ahead))
			mux.HandleFunc("POST /v1/agent", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"peers":3,"banks":1}`)) })
			mux.HandleFunc("POST /v1/buy", func(w http.ResponseWriter, r *http.Request) {
				var order struct{ ID string }
				_ = json.NewDecoder(r.Body).Decode(&order) // what is wrong with it shows in the answer
				_ = json.NewEncoder(w).Encode(map[string]any{"done": true, "purchase": message.Purchase{ID: order.ID, State: "failed", Found: 3}})
			})
			defer listenAs(t, m.path("user"), mux)()
			told := &strings.Builder{}
			cmd := exec.Command("ramp", "user", "buy", m.path("job.xml"), "--dir", m.path("user"), "--quiet")
			cmd.Stderr = told
			var ended *exec.ExitError
			if err := cmd.Run(); !errors.As(err, &ended) || ended.ExitCode() != 3 {
				t.Errorf("it ended with %v: %s", err, told)
			}
			if got := strings.TrimSpace(told.String()); c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || strings.Contains(got, "\n") {
				t.Errorf("told %q, want %q", got, c.want)
			}
			status, _ := exec.Command("ramp", "status", "--dir", m.path("user")).Output() // it ends with 1 if something is bad
			if wrong := strings.Contains(string(status), "bad: this machine's clock is 1h0m0s "); wrong != (c.want != "") {
				t.Errorf("the status is %s", status)
			}
		})
	}
}

// listenAs serves the control socket of an agent, until stop is called.
func listenAs(t *testing.T, dir string, h http.Handler) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", filepath.Join(dir, "control.sock"))
	must(t, err)
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }() // until it is closed
	return func() { _ = server.Close(); <-done }
}

func clocks(ahead []int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var list []map[string]any
		for i, a := range ahead {
			list = append(list, map[string]any{"agent": "site" + string(rune('a'+i)) + "@" + strings.Repeat("a", 32), "ahead_ms": a, "within_ms": 5})
		}
		_ = json.NewEncoder(w).Encode(list) // the program has gone, or sees it
	})
}

type found struct{ Check, State, Found, Do string }

// finding is what the doctor says of one thing.
func finding(t *testing.T, out []byte, check string) found {
	t.Helper()
	var list []struct{ Findings []found }
	if err := json.Unmarshal(out, &list); err != nil || len(list) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	for _, f := range list[0].Findings {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("nothing about %s in %s", check, out)
	return found{}
}

// A journal and a ledger that a later version wrote are refused in one line.
func TestAFileOfALaterVersionIsRefusedWithWhatToDo(t *testing.T) {
	t.Parallel()
	m, err := newMarket(t.TempDir(), nil, "atlas")
	if err != nil {
		t.Fatal(err)
	}
	newer := regexp.MustCompile(`written by a newer ramp \(form 9; this one reads up to [47]\): install`)
	for _, c := range []struct{ agent, file, command, daemon string }{
		{"user", "journal.db", "user list", "user serve"},
		{"atlas", "journal.db", "resource reservations", "resource serve"},
		{"bank", "ledger.db", "bank balance", "bank serve"},
	} {
		t.Run(c.agent, func(t *testing.T) {
			run := func(line string) (string, int) {
				cmd := exec.Command("ramp", append(strings.Fields(line), "--dir", m.path(c.agent))...)
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil {
					t.Fatal(err)
				}
				return string(out), cmd.ProcessState.ExitCode()
			}
			if out, code := run(c.command); code != 0 {
				t.Fatalf("%d: %s", code, out)
			}
			later(t, filepath.Join(m.path(c.agent), c.file))
			for _, line := range []string{c.command, c.daemon} {
				out, code := run(line)
				if code != 1 || !newer.MatchString(out) ||
					!strings.Contains(out, "hint: use the version of the program that wrote it") || strings.Count(out, "\n") != 2 {
					t.Errorf("%s: %d: %s", line, code, out)
				}
			}
			out, _ := exec.Command("ramp", "doctor", "--dir", m.path(c.agent), "--json").Output() // it ends with 1
			if f := finding(t, out, "journal"); f.State != "bad" || !strings.HasPrefix(f.Do, "use the version") {
				t.Errorf("the doctor: %+v", f)
			}
		})
	}
}

// later makes a file look as if a later version had written it.
func later(t *testing.T, path string) {
	t.Helper()
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint32(nil, 9))
	})
	if err != nil {
		t.Fatal(err)
	}
}
