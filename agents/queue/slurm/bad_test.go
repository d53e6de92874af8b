package slurm_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/agents/queue/slurm"
	"ramp/protocol"
	"ramp/protocol/message"
)

// recorded is a directory of commands that print what a real Slurm 22.05 of four
// nodes printed, with a running job of 20 cores and a waiting one of 60.
func recorded(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	data, err := filepath.Abs("testdata")
	if err != nil {
		tb.Fatal(err)
	}
	for program, file := range map[string]string{"sinfo": "sinfo.json", "squeue": "squeue.json", "scontrol": "reservations.txt"} {
		script(tb, dir, program, opened("cat '"+filepath.Join(data, file)+"'"))
	}
	script(tb, dir, "scancel", "true")
	return dir
}

// openPartition is what scontrol says of a partition without limits.
const openPartition = "PartitionName=batch AllowGroups=ALL AllowAccounts=ALL DefaultTime=01:00:00 MaxTime=UNLIMITED OverSubscribe=NO State=UP TotalCPUs=64"

// opened is a stand-in for scontrol that says of partitions that they are open.
func opened(line string) string {
	return `case "$*" in "-a -o show partition "*) echo "` + openPartition + `"; exit;; "show config") echo "SelectTypeParameters = CR_CORE"; exit;; esac` + "\n" + line
}

func script(tb testing.TB, dir, program, line string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, program), []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		tb.Fatal(err)
	}
}

// longLimit is a time limit that only a command that hangs reaches, on any machine.
const longLimit = time.Minute

// first is the first thing that a driver tells whose commands may take so long.
func first(t *testing.T, bin string, limit time.Duration) (protocol.Body, string) {
	t.Helper()
	var log strings.Builder
	d, err := slurm.Open(slurm.Config{
		Agent: "seller@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", Partition: "batch", Bin: bin, Limit: limit,
		Now: clock(), Slog: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
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

// clock stands at the time of the recording and goes on from there.
func clock() func() time.Time {
	begun := time.Now()
	at := time.Unix(recordedAt, 0).UTC()
	return func() time.Time { return at.Add(time.Since(begun)) }
}

func TestTheRecordedState(t *testing.T) {
	body, _ := first(t, recorded(t), longLimit)
	q, ok := body.(message.QueueChanged)
	if !ok {
		t.Fatalf("%+v", body)
	}
	if q.Capacity != 64 || len(q.Running) != 1 || q.Running[0].Cores != 20 || len(q.Queued) != 1 || q.Queued[0].Cores != 60 || q.Queued[0].Wall != 30*time.Minute {
		t.Fatalf("%+v", q)
	}
	if len(q.Reservations) != 2 || q.Reservations[0].ID != "a b;c" || q.Reservations[0].Mine || q.Reservations[1].Slot.Cores != 10 {
		t.Fatalf("reservations %+v", q.Reservations)
	}
}

// partitioned is a recorded Slurm whose scontrol says something else of partitions.
func partitioned(tb testing.TB, line string) string {
	tb.Helper()
	bin := recorded(tb)
	change(tb, bin, "scontrol", `case "$*" in *partition*) `+line+`; exit;; esac; exec $REAL "$@"`)
	return bin
}

// Cores that a node keeps for the system can be reserved, but no job gets them.
func TestCoresForTheSystemAreNotSold(t *testing.T) {
	for line, special := range map[string]bool{
		"NodeName=node1 CPUAlloc=0 CPUEfctv=14 CPUTot=16 CoreSpecCount=2": true,
		"NodeName=node1 CPUAlloc=0 CPUTot=16 CoreSpecCount=1":             true,
		"NodeName=node1 CPUAlloc=0 CPUEfctv=16 CPUTot=16":                 false,
		"NodeName=other CPUAlloc=0 CPUEfctv=14 CPUTot=16 CoreSpecCount=2": false,
		"garbage": false,
	} {
		bin := recorded(t)
		change(t, bin, "scontrol", `case "$*" in *"show nodes") echo '`+line+`'; exit;; esac; exec $REAL "$@"`)
		body, _ := first(t, bin, longLimit)
		down, ok := body.(message.QueueDown)
		if ok != special || ok && !strings.Contains(down.Why, "node1 that keep cores for the system (CoreSpecCount)") {
			t.Errorf("%s: told %+v", line, body)
		}
	}
}

// What contains jobs has another name since 25.11.
func TestWhatLeavesJobsUncontainedIsNamed(t *testing.T) {
	for config, want := range map[string]int{
		"ProctrackType = proctrack/linuxproc\nJobContainerType = (null)":           2,
		"ProctrackType = proctrack/cgroup\nJobContainerType = job_container/tmpfs": 0,
		"ProctrackType = proctrack/cgroup\nNamespaceType = (null)":                 1,
		"ProctrackType = proctrack/cgroup\nNamespaceType = namespace/tmpfs":        0,
	} {
		bin := t.TempDir()
		script(t, bin, "scontrol", "echo '"+config+"'")
		if got := slurm.Uncontained(slurm.Config{Bin: bin}); len(got) != want {
			t.Errorf("%q: %q", config, got)
		}
	}
}

// Slurm reserves in a partition in which nothing may run, so the driver has to look.
func TestWhatNoJobMayRunInIsNotSold(t *testing.T) {
	say := func(old, new string) string { return "echo '" + strings.Replace(openPartition, old, new, 1) + "'" }
	for name, c := range map[string]struct{ line, want string }{
		"down":                          {say("State=UP", "State=DOWN"), "partition batch is DOWN: no job can start in it"},
		"drained":                       {say("State=UP", "State=DRAIN"), "partition batch is DRAIN"},
		"whole nodes for a job":         {say("=NO", "=EXCLUSIVE"), "whole nodes"},
		"one user on a node":            {say("AllowAccounts", "ExclusiveUser=YES AllowAccounts"), "partition batch gives each node to one user at a time"},
		"whole nodes, as 26.05 says it": {say("AllowAccounts", "Exclusive=NODE AllowAccounts"), "whole nodes"},
		"one user, as 26.05 says it":    {say("AllowAccounts", "Exclusive=USER AllowAccounts"), "partition batch gives each node to one user at a time"},
		"a block for a job":             {say("AllowAccounts", "ExclusiveTopo=YES AllowAccounts"), "whole nodes"},
		"a block, as 26.05 says it":     {say("AllowAccounts", "Exclusive=TOPO AllowAccounts"), "whole nodes"},
		"some CPUs of a node":           {say("AllowAccounts", "MaxCPUsPerNode=15 AllowAccounts"), "lets its jobs use 15 of the 16 CPUs of a node (MaxCPUsPerNode)"},
		"less than a minute":            {say("UNLIMITED", "00:00:30"), "gives its jobs less than a minute (MaxTime)"},
		"no time at all":                {say("UNLIMITED", "00:00:00"), "gives its jobs less than a minute (MaxTime)"},
		"several nodes for a job":       {say("AllowAccounts", "MinNodes=2 AllowAccounts"), "runs no job on fewer than 2 nodes (MinNodes)"},
		"no time":                       {say("UNLIMITED", "soon"), `MaxTime="soon" is not a time`},
		"another partition":             {say("batch", "other"), "instead of partition batch"},
		"garbage":                       {`printf '\001\377\000garbage\n'`, "instead of partition batch"},
		"nothing":                       {"true", "instead of partition batch"},
		"cut off":                       {"printf '" + openPartition[:60] + "'", "cut off after 60 bytes"},
		"a partition that is not there": {"echo 'Partition batch not found'; exit 1", "exit code 1"},
	} {
		t.Run(name, func(t *testing.T) {
			body, log := first(t, partitioned(t, c.line), longLimit)
			down, ok := body.(message.QueueDown)
			if !ok || !strings.Contains(down.Why, c.want) || strings.Count(log, "\n") != 1 {
				t.Fatalf("told %+v, log %q, want %q", body, log, c.want)
			}
		})
	}
}

func TestHowLongAJobMayLastIsTold(t *testing.T) {
	for said, want := range map[string]time.Duration{"UNLIMITED": 0, "00:10:00": 10 * time.Minute, "7-00:00:00": 7 * 24 * time.Hour} {
		body, _ := first(t, partitioned(t, "echo '"+strings.Replace(openPartition, "UNLIMITED", said, 1)+"'"), longLimit)
		if q, ok := body.(message.QueueChanged); !ok || q.Longest != want {
			t.Errorf("MaxTime=%s: told %+v, want %s", said, body, want)
		}
	}
}

func TestBadOutputIsRefusedInOneLine(t *testing.T) {
	page := `echo '<html><head><title>502 Bad Gateway</title></head></html>'`
	for name, c := range map[string]struct{ program, line, want string }{
		"garbage for nodes":             {"sinfo", `printf '\001\377\000garbage'`, "instead of JSON"},
		"an error page for nodes":       {"sinfo", page, "502 Bad Gateway"},
		"truncated nodes":               {"sinfo", "head -c 2000 " + data(t, "sinfo.json"), "invalid JSON"},
		"nothing for nodes":             {"sinfo", "true", "sinfo printed nothing"},
		"JSON of something else":        {"sinfo", `echo '{"nodes":[]}'`, "not from Slurm"},
		"a core of threads without end": {"sinfo", `echo '{"meta":{},"errors":[],"nodes":[{"name":"n1","cores":65536,"sockets":1,"threads":281474976710656,"cpus":1,"partitions":["batch"]}]}'`, `node "n1" has 281474976710656 threads`},
		"a node of no cores":            {"sinfo", `echo '{"meta":{},"errors":[],"nodes":[{"name":"n1","cores":0,"sockets":0,"cpus":0,"partitions":["batch"]}]}'`, `node "n1" has 0 cores`},
		"garbage for jobs":              {"squeue", `printf '\001\377\000garbage'`, "instead of JSON"},
		"truncated jobs":                {"squeue", "head -c 2000 " + data(t, "squeue.json"), "invalid JSON"},
		"nothing for jobs":              {"squeue", "true", "squeue printed nothing"},
		"garbage for reservations":      {"scontrol", `printf '\001\377\000garbage\n'`, "not a reservation"},
		"200 MB of reservations":        {"scontrol", "head -c 200000000 /dev/zero", "more than 134217728 bytes"},
		"two documents":                 {"squeue", "cat " + data(t, "squeue.json") + "; echo '{}'", "invalid JSON"},
		"an error inside the JSON":      {"squeue", `echo '{"meta":{},"errors":[{"error":"slurm down"}],"jobs":[]}'`, "slurm down"},
		"an error without any words":    {"sinfo", `echo '{"meta":{},"errors":[{"error":"Unspecified error","errno":-1}],"nodes":[]}'`, "slurmctld does not answer: sinfo: the answer is an error"},
		"an error without a reason":     {"sinfo", `echo 'slurm_load_partitions error: Unable to contact slurm controller' >&2; echo '{"meta":{},"errors":[{"error":"Unspecified error","errno":-1}],"nodes":[]}'`, "sinfo: slurm_load_partitions error: Unable to contact slurm controller"},
		"JSON without jobs":             {"squeue", `echo '{"meta":{},"errors":[]}'`, "no list of jobs"},
		"negative cores":                {"squeue", `echo '{"meta":{},"errors":[],"jobs":[{"job_id":7,"cpus":-5}]}'`, "job 7: -5 cores"},
		"a job on nodes without end":    {"squeue", `echo '{"meta":{},"errors":[],"jobs":[{"job_id":7,"cpus":5,"job_state":"RUNNING","nodes":"n[1-999999999]"}]}'`, "not a range"},
		"an error page for jobs":        {"squeue", page, "instead of JSON"},
		"200 MB":                        {"squeue", "head -c 200000000 /dev/zero", "more than 134217728 bytes"},
		"a command that hangs":          {"squeue", "sleep 60", "exceeded its time limit of 2s"},
		"a child that keeps the pipe":   {"squeue", "sleep 60 &", "left a process that keeps its output open"},
		"a controller that is away":     {"squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", "Unable to contact slurm controller"},
		"a failure without a word":      {"squeue", "exit 3", "exit code 3, with nothing on stderr"},
		"truncated reservations":        {"scontrol", "head -c 300 " + data(t, "reservations.txt"), "cut off"},
		"an error page of scontrol":     {"scontrol", page, "not a reservation"},
		"nothing for reservations":      {"scontrol", "true", "printed nothing"},
		"a reservation without an end":  {"scontrol", "echo 'ReservationName=x StartTime=2026-11-21T07:08:42 CoreCnt=1'", `EndTime=""`},
		"a command that is not there":   {"scontrol", "exec /nowhere/at/all", "exit code 127"},
	} {
		t.Run(name, func(t *testing.T) {
			bin := recorded(t)
			script(t, bin, c.program, opened(c.line))
			limit := longLimit
			if strings.Contains(c.want, "time limit") {
				limit = 2 * time.Second
			}
			body, log := first(t, bin, limit)
			down, ok := body.(message.QueueDown)
			if !ok || !strings.Contains(down.Why, c.want) {
				t.Fatalf("told %+v, want one that says %q", body, c.want)
			}
			if strings.Count(log, "\n") != 1 || len(down.Why) > 400 || strings.ContainsAny(down.Why, "\n\x00\x01") {
				t.Fatalf("not one clear line: %q, %q", down.Why, log)
			}
		})
	}
}

func data(tb testing.TB, file string) string {
	tb.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", file))
	if err != nil {
		tb.Fatal(err)
	}
	return "'" + path + "'"
}

func TestAWrongConfigurationNamesTheField(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  slurm.Config
		want string
	}{
		"no partition":       {slurm.Config{}, "partition"},
		"a shell's words":    {slurm.Config{Partition: "a;$(b)"}, "partition"},
		"an option":          {slurm.Config{Partition: "--x"}, "partition"},
		"a user with commas": {slurm.Config{Partition: "p", Users: []string{"a,b"}}, "users"},
		"another hold":       {slurm.Config{Partition: "p", Hold: "hope"}, "hold"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := slurm.Open(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one about %s", err, c.want)
			}
		})
	}
}

// recordedAt is when testdata was recorded, in Unix seconds.
const recordedAt = 1795239640

// A job whose time is over, and that Slurm still calls running, keeps its cores now:
// they are not sold. A job of no cores takes none.
func TestTimesInThePastAndJobsWithoutCores(t *testing.T) {
	bin := recorded(t)
	script(t, bin, "squeue", `echo '{"meta":{},"errors":[],"jobs":[`+
		`{"job_id":7,"cpus":5,"job_state":"RUNNING","partition":"batch","nodes":"node1","start_time":1000,"end_time":2000,"time_limit":16},`+
		`{"job_id":8,"cpus":0,"job_state":"RUNNING","partition":"batch","nodes":"node1","start_time":1000,"end_time":2000,"time_limit":16},`+
		`{"job_id":9,"cpus":3,"job_state":"RUNNING","partition":"batch","nodes":"node1","start_time":-5,"end_time":-1,"time_limit":0}]}'`)
	body, log := first(t, bin, longLimit)
	if down, ok := body.(message.QueueDown); ok {
		t.Fatalf("%s; %s", down.Why, log)
	}
	q := body.(message.QueueChanged)
	cores := 0
	for _, r := range q.Running {
		cores += r.Cores
		if r.Cores > 0 && r.End.Before(q.At.Add(slurm.Late)) {
			t.Errorf("%d cores count until %s, it is %s", r.Cores, r.End, q.At)
		}
	}
	if cores != 8 {
		t.Errorf("%d cores run, want 8: %+v", cores, q.Running)
	}
}

// What the driver learns while it refuses a slot is told like any change.
func TestADrainSeenInARefusalIsTold(t *testing.T) {
	bin := fakeSlurm(t, t.TempDir())
	cfg := fakeConfig(bin)
	cfg.Poll, cfg.PollMost = 3*time.Second, 3*time.Second
	ask, states := begin(t, cfg)
	awaitState(t, states, "all nodes", func(q message.QueueChanged) bool { return q.Capacity == 64 })
	change(t, bin, "sinfo", `$REAL | sed 's/"state_flags": \[/&"DRAIN"/'`)
	change(t, bin, "scontrol", `[ "$1" != create ] || { echo "Requested nodes are busy" >&2; exit 1; }; exec $REAL "$@"`)
	if r := ask(message.Reserve{ID: "r", Slot: ahead(2, 1, 4)}).(message.Reserved); r.OK || r.Reason.Code != protocol.CodeUnavailable {
		t.Fatalf("where every node is drained: OK %v, %+v", r.OK, r.Reason)
	}
	awaitState(t, states, "no cores", func(q message.QueueChanged) bool { return q.Capacity == 0 })
}

// A failure that no poll saw is over with the next poll.
func TestAStateThatCouldNotBeReadOnceIsToldSoon(t *testing.T) {
	bin := fakeSlurm(t, t.TempDir())
	cfg := fakeConfig(bin)
	cfg.Poll, cfg.PollMost = 3*time.Second, 3*time.Second
	ask, states := begin(t, cfg)
	awaitState(t, states, "all nodes", func(q message.QueueChanged) bool { return q.Capacity == 64 })
	failed := filepath.Join(t.TempDir(), "failed")
	change(t, bin, "sinfo", `[ -e `+failed+` ] && exec $REAL; touch `+failed+`; exit 1`)
	begun := time.Now()
	ask(message.Release{ID: "r"}) // the state is read after it
	awaitState(t, states, "what it was", func(q message.QueueChanged) bool { return q.At.After(begun) })
	if _, err := os.Stat(failed); err != nil {
		t.Fatal("it did not fail")
	}
}
