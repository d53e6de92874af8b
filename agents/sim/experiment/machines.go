package experiment

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/queue/swf"
	"ramp/agents/workload"
	"ramp/agents/workload/published"
)

// machine is a resource's log, which can start at any second.
type machine struct {
	Site
	replay *workload.Replay
	path   string // of its real log; empty: a synthetic one is used
	base   int64
	cores  int
}

// Logs are the machines of the twenty resources, real or substituted.
type Logs struct {
	machines []machine
	real     []realLog
	dir      string
	Told     []string // substitutions and oddities of the logs, for reports
}

// realLog is a log of a directory.
type realLog struct {
	name string
	log  *workload.Log
}

// source is the real log of a machine of table 1, and the second from which base times count.
type source struct {
	path   string
	replay *workload.Replay
	shift  int64
}

// busyShare is the mean load of the week from which Curie's base times count, since its
// cleaned log begins late (specs §1.4).
const busyShare = 0.6

// LoadLogs reads the logs of a directory, whose file names contain the machine's name. It replaces
// missing logs, or all if dir is empty, by synthetic ones. Errors name file and line.
func LoadLogs(dir string) (*Logs, error) {
	l := &Logs{dir: dir}
	sources := map[string]source{}
	for _, m := range published.Machines() {
		s, err := l.open(dir, m.Name)
		if err != nil {
			return nil, err
		}
		sources[m.Name] = s
	}
	for i, s := range Sites() {
		m, err := placed(i, s, sources[s.Machine])
		if err != nil {
			return nil, err
		}
		l.machines = append(l.machines, m)
	}
	return l, nil
}

// Place is the real log of resource i, empty for a synthetic one, and the second of the
// log at which the market starts.
func (l *Logs) Place(i int) (path string, base int64) { return l.machines[i].path, l.machines[i].base }

// open reads the real log of a machine. The source has no replay if the log is missing.
func (l *Logs) open(dir, machine string) (source, error) {
	path, err := find(dir, machine)
	if err != nil {
		return source{}, err
	}
	if path == "" {
		l.Told = append(l.Told, fmt.Sprintf("%s: no log at hand; replaced by synthetic logs of its size (Lublin and Feitelson, scheduled with EASY), one for each resource, from 24..47 h on.", machine))
		return source{}, nil
	}
	log, notes, err := swf.Load(path)
	if err != nil {
		return source{}, err
	}
	l.real = append(l.real, realLog{filepath.Base(path), log})
	told := fmt.Sprintf("%s: %s, %d jobs, %d cores", machine, filepath.Base(path), len(log.Jobs), log.Capacity())
	from := source{path: path, replay: workload.NewReplay(log)}
	if machine == "Curie" {
		at, ok := workload.FirstBusyWeek(log, busyShare)
		if !ok {
			return source{}, fmt.Errorf("workload log %s: no week has a mean load of %g", path, busyShare)
		}
		from.shift = at
		told += fmt.Sprintf("; base times count from second %d, the start of the first week with a mean load of at least %g", at, busyShare)
	}
	l.Told = append(l.Told, told+". "+odd(notes))
	return from, nil
}

// odd describes the oddities of a log.
func odd(notes []workload.Note) string {
	if len(notes) == 0 {
		return "No oddities."
	}
	return "Oddities: " + swf.Told(notes) + "."
}

// find returns the first file whose name contains the machine's.
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

// placed is a resource on its machine's real log, or otherwise on its own synthetic one.
func placed(i int, s Site, real source) (machine, error) {
	m := machine{Site: s, replay: real.replay, path: real.path, base: s.Base + real.shift}
	if real.replay == nil {
		log, err := synthetic(s.Name)
		if err != nil {
			return machine{}, err
		}
		m.replay, m.base = workload.NewReplay(log), int64(24+(i*7)%24)*3600 // after a day, so that a queue has formed
	}
	m.cores = m.replay.Machine(m.base).Capacity()
	return m, nil
}

// synthetic reads the log of a resource that is built into the program.
func synthetic(name string) (*workload.Log, error) {
	path := "swf/" + name + ".swf.gz"
	b, err := published.Logs.ReadFile(path)
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
