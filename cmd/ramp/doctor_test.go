package main

import (
	"encoding/binary"
	"encoding/json"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
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
		{"this machine's is wrong", []int64{3_600_000, 3_600_050, 2}, "bad", "2 of 3 agents have another time"},
		{"another's is wrong", []int64{3_600_000, 1, 2}, "warning", "the others agree with this one"},
		{"all agree", []int64{30, -40, 2}, "good", "of 3 other agents"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := net.Listen("unix", filepath.Join(m.path("user"), "control.sock"))
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: clocks(c.ahead), ReadHeaderTimeout: time.Minute}
			done := make(chan struct{})
			go func() { defer close(done); _ = server.Serve(l) }()                               // until it is closed
			out, _ := exec.Command("ramp", "doctor", "--dir", m.path("user"), "--json").Output() // it ends with 1 if something is bad
			_ = server.Close()
			<-done
			if f := finding(t, out, "clock"); f.State != c.state || !strings.Contains(f.Found, c.found) {
				t.Errorf("%+v, want %s: %s", f, c.state, c.found)
			}
		})
	}
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
	m, err := newMarket(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ agent, file, command string }{
		{"user", "journal.db", "user list"}, {"bank", "ledger.db", "bank balance"},
	} {
		t.Run(c.file, func(t *testing.T) {
			args := append(strings.Fields(c.command), "--dir", m.path(c.agent))
			if out, err := exec.Command("ramp", args...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			later(t, filepath.Join(m.path(c.agent), c.file))
			out, err := exec.Command("ramp", args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), "written by a newer ramp: it has schema 9") ||
				!strings.Contains(string(out), "hint: use the version of the program that wrote it") || strings.Count(string(out), "\n") != 2 {
				t.Errorf("%v: %s", err, out)
			}
			out, _ = exec.Command("ramp", "doctor", "--dir", m.path(c.agent), "--json").Output() // it ends with 1
			if f := finding(t, out, "journal"); f.State != "bad" {
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
