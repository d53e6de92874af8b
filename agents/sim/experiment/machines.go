package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/queue/swf"
	"ramp/agents/workload"
	"ramp/testdata"
)

// machine is a resource's log, ready to begin at any second.
type machine struct {
	Site
	replay *workload.Replay
	base   int64
	cores  int
}

// Logs are the machines of the twenty resources, and what stands for what.
type Logs struct {
	machines []machine
	real     []realLog
	dir      string
	Told     []string // every substitution, for reports
}

// realLog is a log of a directory.
type realLog struct {
	name string
	log  *workload.Log
}

// busyShare is the mean load of a week from which Curie's bases are counted: its
// cleaned log begins late (specs §1.4).
const busyShare = 0.6

// LoadLogs reads the logs of a directory, by the machine's name in the file's;
// what is missing there, or everything if dir is empty, is synthetic. Errors name
// file and line.
func LoadLogs(dir string) (*Logs, error) {
	l := &Logs{dir: dir}
	replays := map[string]*workload.Replay{}
	shift := map[string]int64{}
	for i, s := range Sites() {
		if _, known := replays[s.Machine]; !known {
			r, err := l.open(dir, s.Machine, shift)
			if err != nil {
				return nil, err
			}
			replays[s.Machine] = r
		}
		m, err := l.machine(i, s, replays[s.Machine], shift[s.Machine])
		if err != nil {
			return nil, err
		}
		l.machines = append(l.machines, m)
	}
	return l, nil
}

// open reads the real log of a machine; nil: there is none.
func (l *Logs) open(dir, machine string, shift map[string]int64) (*workload.Replay, error) {
	path, err := find(dir, machine)
	if err != nil {
		return nil, err
	}
	if path == "" {
		l.Told = append(l.Told, fmt.Sprintf("%s: no log at hand; synthetic ones by Lublin and Feitelson of its size, EASY played over them, one for each resource, from 24..47 h on.", machine))
		return nil, nil
	}
	log, err := swf.Load(path)
	if err != nil {
		return nil, err
	}
	l.real = append(l.real, realLog{filepath.Base(path), log})
	told := fmt.Sprintf("%s: %s, %d jobs, %d cores", machine, filepath.Base(path), len(log.Jobs), log.Capacity())
	if _, headed := log.Header("MaxProcs"); !headed {
		told += " (no MaxProcs header: the most that a job had)"
	}
	if machine == "Curie" {
		at, ok := workload.FirstBusyWeek(log, busyShare)
		if !ok {
			return nil, fmt.Errorf("workload log %s: no week has a mean load of %g", path, busyShare)
		}
		shift[machine] = at
		told += fmt.Sprintf("; base times counted from second %d, the first after which one week's mean load is at least %g", at, busyShare)
	}
	l.Told = append(l.Told, told+".")
	return workload.NewReplay(log), nil
}

// find is the first file by name whose name has the machine's in it.
func find(dir, machine string) (string, error) {
	if dir == "" {
		return "", nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", fmt.Errorf("workload logs: %w", err)
	}
	for _, e := range entries {
		name := strings.ToLower(e.Name())
		if strings.Contains(name, strings.ToLower(machine)) && strings.Contains(name, ".swf") {
			return filepath.Join(dir, e.Name()), nil
		}
	}
	return "", nil
}

func (l *Logs) machine(i int, s Site, real *workload.Replay, shift int64) (machine, error) {
	if real != nil {
		return machine{Site: s, replay: real, base: s.Base + shift, cores: real.Machine(s.Base + shift).Capacity()}, nil
	}
	log, err := synthetic(s.Name)
	if err != nil {
		return machine{}, err
	}
	return machine{Site: s, replay: workload.NewReplay(log), base: syntheticBase(i), cores: log.Capacity()}, nil
}

// synthetic is the log of a resource that comes with the program.
func synthetic(name string) (*workload.Log, error) {
	path := "swf/" + name + ".swf.gz"
	b, err := testdata.Logs.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("workload log: %w", err)
	}
	plain, err := workload.Plain(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("workload log %s: %w", path, err)
	}
	log, err := workload.ReadSWF(plain)
	if err != nil {
		return nil, fmt.Errorf("workload log %s: %w", path, err)
	}
	return log, nil
}

// syntheticBase is where a resource starts in its own log: after a day, each at
// its own hour, so that a queue has formed.
func syntheticBase(i int) int64 { return int64(24+(i*7)%24) * 3600 }
