package pbs_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/pbs"
	"ramp/agents/queue/queuetest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// longLimit is a time limit that only a command that hangs reaches, on any machine.
const longLimit = time.Minute

func open(tb testing.TB, bin string, limit time.Duration, now func() time.Time, log *slog.Logger) *queue.Loop {
	tb.Helper()
	d, err := pbs.Open(pbs.Config{Agent: queuetest.Agent, Bin: bin, Limit: limit, Users: []string{"ann"}, Now: now, Slog: log})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func TestContractWithStandInsForTheCommands(t *testing.T) {
	queuetest.Run(t, func(tb testing.TB, dir string) queue.Driver {
		return open(tb, standIns(tb, dir), longLimit, time.Now, slog.New(slog.DiscardHandler))
	})
}

// first is the first thing that a driver tells.
func first(t *testing.T, bin string, limit time.Duration) (protocol.Body, string) {
	t.Helper()
	var log strings.Builder
	at := time.Date(2020, 9, 14, 10, 30, 0, 0, time.UTC)
	d := open(t, bin, limit, func() time.Time { return at }, slog.New(slog.NewTextHandler(&log, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	var body protocol.Body
	_ = d.Run(ctx, func(m protocol.Message) {
		if body == nil {
			body = m.Body
		}
		cancel()
	})
	return body, log.String()
}

// jobs is what "qstat -f -F json" shows in the manual, shortened: one that runs,
// one that waits, one that is held, and one in a reservation.
const jobs = `cat <<'END'
{"timestamp":1600079400,"pbs_version":"20.0.1","pbs_server":"south","Jobs":{
"9.south":{"Job_Name":"b","job_state":"Q","queue":"workq","Resource_List":{"ncpus":4,"nodect":1,"walltime":"02:00:00"}},
"10.south":{"Job_Name":"h","job_state":"H","queue":"workq","Resource_List":{"ncpus":4,"walltime":"02:00:00"}},
"7.south":{"Job_Name":"a","job_state":"R","queue":"workq","stime":"Mon Sep 14 10:00:00 2020","Resource_List":{"ncpus":3,"walltime":"01:00:00"}},
"8.south":{"Job_Name":"r","job_state":"R","queue":"R1","stime":"Mon Sep 14 10:00:00 2020","Resource_List":{"ncpus":2,"walltime":"01:00:00"}}}}
END`

const oneReservation = `cat <<'END'
Resv ID: R1.south
Reserve_Name = maintenance
reserve_state = RESV_RUNNING
reserve_start = Mon Sep 14 10:00:00 2020
reserve_end = Mon Sep 14 12:00:00 2020
queue = R1
Resource_List.ncpus = 2

Resv ID: R2.south
Reserve_Name = never
reserve_state = RESV_UNCONFIRMED
reserve_start = Mon Sep 14 10:00:00 2020
reserve_end = Mon Sep 14 12:00:00 2020
queue = R2
Resource_List.ncpus = 2

END`

func TestTheDocumentedState(t *testing.T) {
	bin := standIns(t, t.TempDir())
	script(t, bin, "qstat", jobs)
	script(t, bin, "pbs_rstat", oneReservation)
	body, _ := first(t, bin, longLimit)
	q, ok := body.(message.QueueChanged)
	end := time.Date(2020, 9, 14, 11, 0, 0, 0, time.UTC).Add(pbs.Late)
	if !ok || q.Capacity != 16 || len(q.Running) != 1 || q.Running[0].Cores != 3 || !q.Running[0].End.Equal(end) {
		t.Fatalf("%+v", body)
	}
	if len(q.Queued) != 1 || q.Queued[0] != (message.QueuedJob{Cores: 4, Wall: 2 * time.Hour, ID: q.Queued[0].ID, Submitted: q.Queued[0].Submitted}) || q.Queued[0].ID == "" {
		t.Fatalf("waiting %+v", q.Queued)
	}
	if len(q.Reservations) != 1 || q.Reservations[0].ID != "R1.south" || q.Reservations[0].Mine || q.Reservations[0].Slot.Cores != 2 {
		t.Fatalf("reservations %+v", q.Reservations)
	}
}

func TestBadOutputIsRefusedInOneLine(t *testing.T) {
	page := `echo '<html><head><title>502 Bad Gateway</title></head></html>'`
	for name, c := range map[string]struct{ program, line, want string }{
		"garbage":                    {"pbsnodes", `printf '\001\377\000garbage'`, "instead of JSON"},
		"an error page":              {"qstat", page, "502 Bad Gateway"},
		"truncated JSON":             {"qstat", `printf '{"pbs_server":"south","Jobs":{"1.s":{"job'`, "invalid JSON"},
		"nothing":                    {"qstat", "true", "qstat printed nothing"},
		"no nodes":                   {"pbsnodes", `echo '{"nodes":{}}'`, "lists no nodes"},
		"JSON of something else":     {"qstat", "echo '{}'", "not from PBS"},
		"negative cores":             {"qstat", `echo '{"pbs_server":"s","Jobs":{"1.s":{"Resource_List":{"ncpus":-4}}}}'`, "want a whole number"},
		"truncated reservations":     {"pbs_rstat", `printf 'Resv ID: R1.south\nReserve_Name = x\n'`, "cut off"},
		"an error page of pbs_rstat": {"pbs_rstat", page + "; echo", "not a reservation"},
		"a reservation without end":  {"pbs_rstat", `printf 'Resv ID: R1.south\nReserve_Name = x\n\n'`, `to ""`},
		"200 MB":                     {"qstat", "head -c 200000000 /dev/zero", "more than 134217728 bytes"},
		"a command that hangs":       {"pbsnodes", "sleep 60", "exceeded its time limit of 2s"},
		"a server that is away":      {"qstat", "echo 'qstat: cannot connect to server south (errno=15010)' >&2; exit 199", "cannot connect to server"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := standIns(t, t.TempDir())
			script(t, bin, c.program, c.line)
			limit := longLimit
			if strings.Contains(c.want, "time limit") {
				limit = 2 * time.Second
			}
			body, log := first(t, bin, limit)
			down, ok := body.(message.QueueDown)
			if !ok || !strings.Contains(down.Why, c.want) || strings.Count(log, "\n") != 1 {
				t.Fatalf("told %+v, logged %q; want one line that says %q", body, log, c.want)
			}
		})
	}
}

// A job whose time is over, and that PBS still calls running, keeps its cores now: they
// are not sold. A job of no cores takes none.
func TestTimesInThePastAndJobsWithoutCores(t *testing.T) {
	bin := standIns(t, t.TempDir())
	script(t, bin, "qstat", `echo '{"pbs_server":"south","Jobs":{`+
		`"7.south":{"job_state":"R","queue":"workq","stime":"Mon Sep 14 10:00:00 1970","Resource_List":{"ncpus":3,"walltime":"01:00:00"}},`+
		`"8.south":{"job_state":"R","queue":"workq","stime":"Mon Sep 14 10:00:00 1970","Resource_List":{"ncpus":0,"walltime":"01:00:00"}}}}'`)
	body, _ := first(t, bin, longLimit)
	q, ok := body.(message.QueueChanged)
	if !ok || len(q.Running) != 1 || q.Running[0].Cores != 3 || q.Running[0].End.Before(q.At.Add(pbs.Late)) {
		t.Fatalf("%+v", body)
	}
}

// Of arrays only 'qstat -t' lists the tasks. PBS writes words that are JSON by themselves
// without quotes, also the names of strangers' jobs.
func TestTasksOfArraysAndNamesThatAreJSON(t *testing.T) {
	bin := standIns(t, t.TempDir())
	task := func(id, name, state string) string {
		return `"` + id + `.south":{"Job_Name":` + name + `,"job_state":"` + state + `","queue":"workq","Resource_List":{"ncpus":2,"walltime":"00:10:00"}}`
	}
	script(t, bin, "qstat", `case " $* " in *" -t "*) ;; *) echo '{}'; exit;; esac; echo '{"pbs_server":"south","Jobs":{`+strings.Join([]string{
		task("7[]", `"a"`, "B"), task("7[1]", `"a"`, "X"), task("7[2]", `"a"`, "R"), task("7[3]", `"a"`, "Q"), task("8[]", `"b"`, "Q"), task("8[1]", `"b"`, "Q"),
		task("9", "true", "R"), task("10", "123", "Q"), task("11", "null", "Q"),
	}, ",")+"}}'")
	body, _ := first(t, bin, longLimit)
	q, ok := body.(message.QueueChanged)
	if !ok || len(q.Running) != 2 || len(q.Queued) != 4 || q.Queued[0].ID != "7[3].south" {
		t.Fatalf("%+v", body)
	}
}

// strangers are jobs whose owners passed on 005 (openpbs issue 1255) and the functions of
// their shell (issue 2541), as "qstat -f -F json" prints them.
const strangers = `{
    "timestamp":1600079400,
    "pbs_server":"south",
    "Jobs":{
        "7.south":{
            "Job_Name":007,
            "job_state":"R",
            "queue":"workq",
            "Resource_List":{
                "ncpus":3,
                "walltime":"01:00:00"
            },
            "stime":"Mon Sep 14 10:00:00 2020",
            "Variable_List":{
                "PBS_O_HOME":"/home/ann",
                "foo":005
            },
            "Submit_arguments":"-v foo=005"
        },
        "8.south":{
            "job_state":"Q",
            "Variable_List":{
                "BASH_FUNC_module()":"() {  eval \'$*\'
}",
                "BASH_FUNC_ml()":"() {  [ "$1" ] && echo \"{\"
  }"
            },
            "queue":"workq",
            "Submit_arguments":"-V -- /bin/echo \'{\,}\'",
            "Resource_List":{
                "ncpus":4,
                "walltime":"02:00:00"
            }
        }
    }
}
`

func TestJobsOfStrangersWithInvalidJSON(t *testing.T) {
	for _, list := range []string{strangers, strings.NewReplacer("    ", "\t", `":`, "\":\t").Replace(strangers)} {
		q, err := pbs.Jobs([]byte(list))
		if err != nil || len(q.Running) != 1 || q.Running[0].ID != "7.south" || q.Running[0].Cores != 3 ||
			len(q.Queued) != 1 || q.Queued[0].ID != "8.south" || q.Queued[0].Cores != 4 || q.Queued[0].Wall != 2*time.Hour {
			t.Errorf("%+v, %v out of %s", q, err, list)
		}
	}
}

func TestAnAccountIsAName(t *testing.T) {
	for _, u := range []string{"", "-x", "a b", "a,b", "$(x)", strings.Repeat("x", 65)} {
		if _, err := pbs.Open(pbs.Config{Users: []string{u}}); err == nil {
			t.Errorf("%q is an account", u)
		}
	}
}

func FuzzReservations(f *testing.F) {
	f.Add([]byte(strings.TrimSuffix(strings.TrimPrefix(oneReservation, "cat <<'END'\n"), "END")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n, err := pbs.Reservations(b); err == nil && n > strings.Count(string(b), "Resv ID: ") {
			t.Fatalf("%d reservations out of %q", n, b)
		}
	})
}

func FuzzJobs(f *testing.F) {
	f.Add([]byte(strings.TrimSuffix(strings.TrimPrefix(jobs, "cat <<'END'\n"), "END")))
	f.Add([]byte(strangers))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := pbs.Jobs(b)
		if err != nil {
			return
		}
		for _, w := range q.Queued {
			if w.Cores < 1 || w.Wall <= 0 {
				t.Fatalf("waiting %+v", w)
			}
		}
		for _, r := range q.Running {
			if r.Cores < 1 || r.End.Before(q.At) {
				t.Fatalf("running %+v", r)
			}
		}
	})
}
