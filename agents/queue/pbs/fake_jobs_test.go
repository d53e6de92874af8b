package pbs_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A job of the stand-ins is a directory with these files; it really runs.
type fakeJob struct {
	ID    string `json:"-"`
	Name  string `json:"Job_Name"`
	State string `json:"job_state"`
	Queue string `json:"queue"`
	Start string `json:"stime"`
	Used  struct {
		Wall string `json:"walltime"`
		CPU  string `json:"cput"`
	} `json:"resources_used"`
}

func fakeDir() string { return filepath.Join(os.Getenv("RAMP_STATE"), "jobs") }

// fakeJobs prints the jobs that run, as qstat -f -F json does.
func fakeJobs() int {
	all := map[string]fakeJob{}
	dirs, err := os.ReadDir(fakeDir())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fakeFault(err)
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(fakeDir(), d.Name(), "over")); err == nil {
			continue
		}
		var j fakeJob
		b, err := os.ReadFile(filepath.Join(fakeDir(), d.Name(), "job.json"))
		if err != nil || json.Unmarshal(b, &j) != nil {
			continue // it is being made
		}
		if start, err := time.ParseInLocation(fakeStamp, j.Start, time.UTC); err == nil {
			ran := int(time.Since(start).Seconds())
			j.Used.Wall, j.Used.CPU = fmt.Sprintf("%02d:%02d:%02d", ran/3600, ran/60%60, ran%60), "00:00:00"
		}
		all[d.Name()] = j
	}
	doc := map[string]any{"timestamp": 1600079400, "pbs_version": "20.0.1", "pbs_server": "south"}
	if len(all) > 0 {
		doc["Jobs"] = all
	}
	b, err := json.MarshalIndent(doc, "", "    ")
	if err != nil {
		return fakeFault(err)
	}
	fmt.Println(string(b))
	return 0
}

func fakeFault(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 9
}

// fakeStart begins a job in a queue of a reservation: what stands after "--", as a
// child of a shell that outlives this program and tells when it is over.
func fakeStart(list []fakeReservation, args []string) int {
	at := slices.Index(args, "--")
	j := fakeJob{State: "R", Start: time.Now().UTC().Format(fakeStamp)}
	for i := 0; i+1 < at; i += 2 {
		switch args[i] {
		case "-N":
			j.Name = args[i+1]
		case "-q":
			j.Queue = args[i+1]
		}
	}
	if !slices.ContainsFunc(list, func(r fakeReservation) bool { return fmt.Sprintf("R%d", r.Number) == j.Queue }) {
		fmt.Fprintln(os.Stderr, "qsub: Unknown queue")
		return 170
	}
	n := 1
	if err := os.MkdirAll(fakeDir(), 0o700); err != nil {
		return fakeFault(err)
	}
	for os.Mkdir(filepath.Join(fakeDir(), fmt.Sprintf("%d.south", n)), 0o700) != nil {
		n++
	}
	j.ID = fmt.Sprintf("%d.south", n)
	dir := filepath.Join(fakeDir(), j.ID)
	b, err := json.Marshal(j)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "job.json"), b, 0o600)
	}
	if err != nil {
		return fakeFault(err)
	}
	const runner = `dir=$1; shift; "$@" 3>&- & echo $! >"$dir/pid"; exec 3>&-; wait $!; touch "$dir/over"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", runner, "sh", dir}, args[at+1:]...)...)
	cmd.Env, cmd.Dir = []string{"PBS_JOBID=" + j.ID, "PATH=" + os.Getenv("PATH")}, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	begun, theirs, err := os.Pipe()
	if err != nil {
		return fakeFault(err)
	}
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		return fakeFault(err)
	}
	theirs.Close() //nolint:errcheck // the runner's copy counts: it is closed when the pid is written
	if _, err := io.Copy(io.Discard, begun); err != nil {
		return fakeFault(err)
	}
	fmt.Println(j.ID)
	return 0
}

func fakeKill(id string) int {
	b, err := os.ReadFile(filepath.Join(fakeDir(), id, "pid"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "qdel: Unknown Job Id "+id)
		return 153
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err == nil {
		err = syscall.Kill(pid, syscall.SIGTERM)
	}
	if err != nil {
		return fakeFault(err)
	}
	return 0
}
