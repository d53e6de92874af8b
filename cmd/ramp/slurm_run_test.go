package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// runsAs is the account that jobs run as in these tests.
const runsAs = "games"

// Programs really run in slots of real Slurm clusters: two clusters, each in a
// network namespace of its own with a seller, and a user in a third.
func TestSlurmRuns(t *testing.T) {
	if os.Getenv("RAMP_TEST_SLURM") == "" {
		t.Skip("needs real Slurm clusters: 'make test-slurm' installs Slurm and sets RAMP_TEST_SLURM")
	}
	m := newSlurmMarket(t, 2, 1, (*slurmMarket).letRun)
	m.meet()
	t.Run("the first line comes soon", m.firstLine)
	t.Run("files, account and exit code", m.filesAndCode)
	t.Run("two units run together", m.twoUnits)
	t.Run("programs of a common start begin together", m.beginTogether)
	t.Run("one job per launch though the agent is killed", m.killedAgent)
	t.Run("what jobs can reach", m.escapes)
	t.Run("a program runs in a placeholder job", m.inPlaceholder)
	t.Run("a sweep runs on both clusters", m.sweeps)
}

// letRun lets programs run on a site, before it is started.
func (m *slurmMarket) letRun(site string, host int) {
	m.tb.Helper()
	dir := m.path("jobs-" + site)
	check(m.tb, os.Mkdir(dir, 0o711))
	f, err := os.OpenFile(m.path(site+"/config.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	check(m.tb, err)
	_, err = fmt.Fprintf(f, "  lead: 1s\n  jobs:\n    dir: %s\n    address: %s\n    pools: {guests: [%s, news]}\n    accounts: [{agent: \"*\", user: guests, commands: true}]\n",
		dir, m.wan.Host(host).Addr(), runsAs)
	check(m.tb, err)
	check(m.tb, f.Close())
}

// job writes a request for one unit of two minutes, and returns where.
func (m *slurmMarket) job(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("../../docs/examples/two.xml")
	check(tb, err)
	from, to := bytes.Index(text, []byte(`  <Request r:name="right">`)), bytes.Index(text, []byte("</RequestForQuotation>"))
	path := filepath.Join(tb.TempDir(), "job.xml")
	check(tb, os.WriteFile(path, slices.Concat(text[:from], text[to:]), 0o600))
	return path
}

func (m *slurmMarket) command(file string, args ...string) *exec.Cmd {
	argv := append([]string{"user", "run", file, "--again", "--optimize", "time", "--dir", m.path(m.users[0])}, args...)
	return exec.Command("ramp", argv...)
}

func (m *slurmMarket) firstLine(t *testing.T) {
	const n = 5
	file := m.job(t)
	took := make([]time.Duration, n)
	for i := range took {
		cmd := m.command(file, "--", "/bin/echo", "hello")
		out, err := cmd.StdoutPipe()
		check(t, err)
		var words bytes.Buffer
		cmd.Stderr = &words
		begun := time.Now()
		check(t, cmd.Start())
		line, _ := bufio.NewReader(out).ReadString('\n') // what it is says whether it came
		took[i] = time.Since(begun)
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil || line != "hello\n" {
			t.Fatalf("%q, %v: %v\n%s", line, err, cmd.ProcessState, words.String())
		}
	}
	slices.Sort(took)
	fmt.Printf("slurm run: from 'ramp user run' to the first line of output, %d times: median %s, most %s\n", n, took[n/2].Round(10*time.Millisecond), took[n-1].Round(10*time.Millisecond))
}

func (m *slurmMarket) filesAndCode(t *testing.T) {
	dir := t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, "numbers"), []byte("10\n9\n"), 0o600))
	cmd := m.command(m.job(t), "--in", filepath.Join(dir, "numbers"), "--out", filepath.Join(dir, "got"), "--",
		"/bin/sh", "-c", `sort -n numbers >sorted; id -un; id -gn; echo "$SLURM_JOB_RESERVATION" >&2; cat ../control/state.json ../../*/stdout; exit 3`)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	_ = cmd.Run() // its exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 3 {
		t.Fatalf("exit code %d, want 3\n%s%s", code, out.String(), words.String())
	}
	if want := runsAs + "\n" + runsAs + "\n"; out.String() != want { // and of others' files nothing
		t.Errorf("it printed %q, want %q", out.String(), want)
	}
	if !strings.Contains(words.String(), "ramp-") {
		t.Errorf("it did not run in a reservation: %s", words.String())
	}
	if b, err := os.ReadFile(filepath.Join(dir, "got", "sorted")); err != nil || string(b) != "9\n10\n" {
		t.Errorf("sorted is %q, %v", b, err)
	}
}

func (m *slurmMarket) twoUnits(t *testing.T) {
	program, err := filepath.Abs("../../docs/examples/sum.py")
	check(t, err)
	dir := t.TempDir()
	cmd := m.command("../../docs/examples/two.xml", "--in", program, "--out", dir, "--", "python3", "sum.py")
	out, err := cmd.CombinedOutput()
	check(t, err)
	for unit, host := range []int{1, 2} {
		line := regexp.MustCompile(fmt.Sprintf(`(?m)unit %d of 2 on (%s|%s): the sum is 5$`, unit+1, m.wan.Host(host).Addr(), m.wan.Host(3-host).Addr()))
		if !line.Match(out) {
			t.Errorf("no %s in\n%s", line, out)
		}
		if b, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("unit-%d", unit+1), "sum.txt")); err != nil || string(b) != "5\n" {
			t.Errorf("unit %d: sum.txt is %q, %v", unit+1, b, err)
		}
	}
}

// beginTogether runs both units of a common start, and measures when their programs begin.
// Slurm tries a submitted job at once or after at most batch_sched_delay (3 s).
func (m *slurmMarket) beginTogether(t *testing.T) {
	const n, most = 4, 6 * time.Second
	took := make([]time.Duration, 0, 2*n)
	for range n {
		cmd := exec.Command("ramp", "user", "run", "--cores", "2", "--wall", "1m", "--within", "1h", "--max-price", "60", "--same-start", "--optimize", "time",
			"--again", "--yes", "--dir", m.path(m.users[0]), "--and", "--", "/bin/sh", "-c", "echo began $(($(date +%s%3N) - RAMP_START * 1000))")
		out, err := cmd.CombinedOutput()
		check(t, err)
		for _, found := range regexp.MustCompile(`(?m)^[12]\| began (-?[0-9]+)$`).FindAllSubmatch(out, -1) {
			ms, _ := strconv.Atoi(string(found[1]))
			took = append(took, time.Duration(ms)*time.Millisecond)
		}
	}
	slices.Sort(took)
	if len(took) != 2*n || took[0] < 0 || took[2*n-1] > most {
		t.Fatalf("begun %s after the common start, want %d within %s", took, 2*n, most)
	}
	fmt.Printf("slurm same start: programs begin %s to %s after the start of their slots, median %s\n", took[0], took[2*n-1], took[n])
}

// killedAgent kills every seller while a job is submitted or runs, several times.
// Slurm has had one job for it in the end, and it began once.
func (m *slurmMarket) killedAgent(t *testing.T) {
	cmd := m.command(m.job(t), "--", "/bin/sh", "-c", "echo begun; sleep 4; echo over; exit 7")
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	check(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	check(t, until(untilTime, func() (bool, error) {
		jobs, err := m.slurmJobs()
		return len(jobs) > 0, err
	}))
	for range 2 {
		for i, site := range m.sites {
			m.daemons[site].kill()
			m.start(1+i, "resource", site)
		}
	}
	select {
	case <-ended:
	case <-time.After(2 * time.Minute):
		_ = cmd.Process.Kill()
		t.Fatalf("the run does not end\n%s%s", out.String(), words.String())
	}
	if code := cmd.ProcessState.ExitCode(); code != 7 || out.String() != "begun\nover\n" {
		t.Fatalf("exit code %d, want 7; it printed %q\n%s", code, out.String(), words.String())
	}
}

// slurmLeavesOpen are the attempts of the escape suite that Slurm does not stop without
// cgroups and job_container/tmpfs, as here: jobs of an account see the machine.
var slurmLeavesOpen = []string{
	"connect to an abstract socket of the machine", "connect to the machine's loopback", "open a socket to the hypervisor",
	"gain privileges by a setuid program", "make a user namespace", "handle page faults (userfaultfd)",
	"make a file that runs as its owner", "lock the agent out of its output",
	"find what an earlier job left in /tmp", "find what an earlier job left in /var/tmp", "find what an earlier job left in /dev/shm",
	"start more processes than allowed", "use more memory than allowed", "write more to the disk than allowed",
}

// escapes runs the escape suite in a cluster's jobs. Nothing more succeeds than is known.
func (m *slurmMarket) escapes(t *testing.T) {
	var out, words bytes.Buffer
	argv := append(m.enter(1), "ramp", "resource", "check", "--isolation", "--json", "--dir", m.path(m.sites[0]))
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &words
	_ = cmd.Run() // it ends with 1: something succeeds
	var list []struct {
		Attempt   string `json:"attempt"`
		Succeeded bool   `json:"succeeded"`
	}
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), words.String())
	}
	for _, r := range list {
		if r.Succeeded && !slices.Contains(slurmLeavesOpen, r.Attempt) {
			t.Errorf("%s: it succeeded", r.Attempt)
		}
	}
	if !strings.Contains(words.String(), "ProctrackType=proctrack/cgroup is missing") {
		t.Errorf("what Slurm lacks is not named: %s", words.String())
	}
}

// inPlaceholder has the second site hold slots by placeholder jobs of an ordinary account,
// as one does that may not reserve, and the first sell nothing.
func (m *slurmMarket) inPlaceholder(t *testing.T) {
	site := m.sites[1]
	m.run("ramp", "resource", "drain", "--dir", m.path(m.sites[0]))
	check(t, m.daemons[site].stop())
	text, err := os.ReadFile(m.path(site + "/config.yaml"))
	check(t, err)
	by := fmt.Sprintf("hold_by: job\n    prefix: [setpriv, --reuid=%s, --regid=%[1]s, --clear-groups, --]", runsAs)
	check(t, os.WriteFile(m.path(site+"/config.yaml"), bytes.Replace(text, []byte("hold_by: reservation"), []byte(by), 1), 0o600))
	m.start(2, "resource", site)
	file, dir := m.job(t), t.TempDir()
	check(t, until(untilTime, func() (bool, error) {
		_, err := m.try("ramp", "user", "quote", file, "--dir", m.path(m.users[0]))
		return err == nil, nil
	}))
	cmd := m.command(file, "--out", filepath.Join(dir, "got"), "--", "/bin/sh", "-c", `id -un; echo "$SLURM_JOB_RESERVATION$SLURM_JOB_NAME" >left; exit 3`)
	var out, words bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &words
	_ = cmd.Run() // its exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 3 || out.String() != runsAs+"\n" {
		t.Fatalf("exit code %d, want 3; it printed %q\n%s\n%s", code, out.String(), words.String(), m.daemons[site].lastLines())
	}
	b, err := os.ReadFile(filepath.Join(dir, "got", "left"))
	if job := strings.TrimSpace(string(b)); err != nil || !strings.HasPrefix(job, "ramp-") || strings.Contains(job, ".1") {
		t.Errorf("it ran in job %q, %v; want the placeholder of the slot", job, err)
	}
	m.killedInPlaceholder(t, file)
}

// killedInPlaceholder runs a program that cannot be suspended, says so, and is killed.
func (m *slurmMarket) killedInPlaceholder(t *testing.T, file string) {
	cmd := exec.Command("ramp", "user", "run", file, "--id", "held", "--dir", m.path(m.users[0]), "--", "sleep", "3600")
	check(t, cmd.Start())
	var said error
	check(t, until(untilTime, func() (bool, error) {
		_, said = m.try("ramp", "user", "suspend", "held", "--dir", m.path(m.users[0]))
		return said == nil || strings.Contains(said.Error(), "but not suspended"), nil
	}))
	if want := "a program in a placeholder job can be killed, but not suspended"; said == nil || !strings.Contains(said.Error(), m.sites[1]) || !strings.Contains(said.Error(), want) {
		t.Errorf("suspended: %v, want %s and %q", said, m.sites[1], want)
	}
	m.run("ramp", "user", "kill", "held", "--dir", m.path(m.users[0]))
	_ = cmd.Wait() // its exit code is looked at
	if code := cmd.ProcessState.ExitCode(); code != 137 {
		t.Errorf("killed, it ended with %d", code)
	}
}

// slurmJobs are the jobs of launches that are not over, of all clusters.
func (m *slurmMarket) slurmJobs() ([]string, error) {
	var all []string
	for _, c := range m.clusters {
		out, err := c.Run("squeue", "-h", "-o", "%j")
		if err != nil {
			return nil, err
		}
		all = append(all, strings.Fields(out)...)
	}
	return all, nil
}

// meet waits until every user knows every site.
func (m *slurmMarket) meet() {
	m.tb.Helper()
	for _, u := range m.users {
		check(m.tb, until(untilTime, func() (bool, error) {
			out, err := m.try("ramp", "user", "resources", "--dir", m.path(u), "--json")
			return strings.Count(string(out), `"name"`) >= len(m.sites), err
		}))
	}
}

func fromEnv(tb testing.TB, name string, otherwise int) int {
	tb.Helper()
	v := os.Getenv(name)
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 || n > 100 {
		tb.Fatalf("%s=%q: want 1..100", name, v)
	}
	return n
}

func share(list []float64, q float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[min(len(list)-1, int(q*float64(len(list))))]
}

// sweeps runs 60 tasks on both clusters, within a deadline and a budget.
func (m *slurmMarket) sweeps(t *testing.T) {
	const tasks, budget = 60, 20
	dir := t.TempDir()
	plan := filepath.Join(dir, "plan.yaml")
	check(t, os.WriteFile(plan, []byte(`parameters:
  n: {range: [1, 60], step: 1}
task:
  wall: 2m
  command: [/bin/sh, -c, "echo $$(( ${n} * ${n} )) >square"]
deadline: 8m
strategy: time
`), 0o600))
	cmd := exec.Command("ramp", "user", "sweep", plan, "--out", filepath.Join(dir, "out"), "--id", "squares", "--budget", fmt.Sprint(budget), "--json", "--dir", m.path(m.users[0]))
	var words bytes.Buffer
	cmd.Stderr = &words
	out, err := cmd.Output()
	var v struct {
		State     string
		Created   time.Time
		Deadline  time.Time
		Spent     json.Number
		Tasks     struct{ Done int }
		Resources []struct {
			Resource string
			Done     int
		}
	}
	if err != nil || json.Unmarshal(out, &v) != nil || v.Tasks.Done != tasks {
		t.Fatalf("%v: %s\n%s", err, out, words.String())
	}
	if spent, err := v.Spent.Float64(); err != nil || spent > budget || spent <= 0 {
		t.Errorf("%s spent, of %d", v.Spent, budget)
	}
	if took := time.Since(v.Created); time.Now().After(v.Deadline) {
		t.Errorf("it took %s", took)
	}
	for _, r := range v.Resources {
		if r.Done == 0 {
			t.Errorf("no task ran on %s: %s", r.Resource, out)
		}
	}
	for n := range tasks {
		b, err := os.ReadFile(filepath.Join(dir, "out", fmt.Sprintf("task-%05d", n+1), "square"))
		if want := fmt.Sprintln((n + 1) * (n + 1)); err != nil || string(b) != want {
			t.Errorf("task %d: %q, %v", n+1, b, err)
		}
	}
}
