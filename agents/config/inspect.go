package config

import (
	"log/slog"
	"os"
	"os/exec"
	"os/user"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"ramp/agents/exit"
	"ramp/agents/queue"
	program "ramp/agents/queue/command"
	"ramp/agents/queue/pbs"
	"ramp/agents/queue/slurm"
	"ramp/agents/queue/swf"
	"ramp/agents/words"
)

// Inspection names a driver and how to reach its batch system.
type Inspection struct {
	Driver     string
	Partitions []string // of Slurm; empty: all
	Conf       string
	Prefix     []string
	Log        string // of swf
	Program    string // of command
	Claims     string // of local: a directory; empty: the machine's own
}

// Found is what one agent can sell, as an inspection found it.
type Found struct {
	Name       string   `json:"name"` // of a part of the machine; empty: all of it
	Nodes      int      `json:"nodes"`
	Cores      int      `json:"cores"`
	NodeCores  int      `json:"node_cores,omitempty"`
	RAMPerCore int      `json:"ram_per_core_mb,omitempty"`
	CPUSpeed   int      `json:"cpu_speed_mhz,omitempty"`
	OS         string   `json:"os,omitempty"`
	Arch       string   `json:"architecture,omitempty"`
	Features   []string `json:"features,omitempty"`
	Alike      bool     `json:"alike"`
	Hold       string   `json:"hold"`               // how the batch system holds a sold slot
	HoldBy     string   `json:"hold_by,omitempty"`  // of Slurm
	HoldWhy    string   `json:"hold_why,omitempty"` // if not by a true reservation
	Notes      []string `json:"notes,omitempty"`
}

// LeftOut is a part of the machine that gets no agent, and why.
type LeftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

var inspectors = map[string]func(Inspection) ([]Found, []LeftOut, error){
	"swf": inspectLog, "local": inspectLocal, "slurm": inspectSlurm, "pbs": inspectPBS, "command": inspectProgram,
}

// Inspect finds out what a machine can sell. It changes nothing, except that it tries
// whether this account may reserve in Slurm.
func Inspect(q Inspection) ([]Found, []LeftOut, error) {
	look := inspectors[q.Driver]
	if look == nil {
		return nil, nil, exit.Fail(exit.Usage, "", "--driver %q: want %s", q.Driver, DriverNames())
	}
	return look(q)
}

// LikelyDriver is the batch system whose commands are installed, else local.
func LikelyDriver() string {
	for _, d := range []struct{ driver, command string }{{"slurm", "sinfo"}, {"pbs", "pbsnodes"}} {
		if _, err := exec.LookPath(d.command); err == nil {
			return d.driver
		}
	}
	return "local"
}

// unasked is the error for a batch system that does not answer.
func unasked(err error) error {
	return exit.Fail(exit.Unreachable, "is it installed and running, and may this account use it? See --conf, --prefix and --driver", "%w", err)
}

func Quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// inspectSlurm finds the partitions that can be sold side by side.
func inspectSlurm(q Inspection) ([]Found, []LeftOut, error) {
	cfg := slurm.Config{Conf: q.Conf, Prefix: q.Prefix, Now: time.Now, Slog: Quiet()}
	list, err := slurm.Survey(cfg)
	if err != nil {
		return nil, nil, unasked(err)
	}
	missing := slurm.Uncontained(cfg)
	var sold []Found
	var out []LeftOut
	for _, name := range q.Partitions {
		if !slices.ContainsFunc(list, func(p slurm.Partition) bool { return p.Name == name }) {
			return nil, nil, exit.Fail(exit.Usage, "its partitions: "+partitionNames(list), "--partition %s: Slurm has no such partition, or no nodes in it", name)
		}
	}
	why := unsold(list, q.Partitions)
	for _, p := range list {
		if why := why[p.Name]; why != "" {
			out = append(out, LeftOut{p.Name, why})
			continue
		}
		f := foundPartition(p)
		f.Notes = append(append(f.Notes, shared(list, why, p)...), missing...)
		cfg.Partition = p.Name
		f.hold(slurm.MayReserve(cfg))
		sold = append(sold, f)
	}
	if len(sold) == 0 {
		return nil, out, exit.Fail(exit.Usage, "", "Slurm has no partition that can be sold: %v", out)
	}
	return sold, out, nil
}

func partitionNames(list []slurm.Partition) string {
	names := make([]string, len(list))
	for i, p := range list {
		names[i] = p.Name
	}
	return strings.Join(names, ", ")
}

func foundPartition(p slurm.Partition) Found {
	f := Found{
		Name: p.Name, Nodes: p.Nodes, Cores: p.Cores, NodeCores: p.NodeCores, RAMPerCore: p.RAMPerCore, Arch: p.Arch,
		Features: p.Features, Alike: p.Alike,
	}
	f.OS, _, _ = strings.Cut(p.OS, " ")
	if !p.Alike {
		f.Notes = append(f.Notes, "its nodes differ, so the offer describes the weakest in each respect: split it into partitions of equal nodes if you can")
	}
	if p.Bars != "" {
		f.Notes = append(f.Notes, p.Bars+": it sells nothing until that is changed")
	}
	if p.Only != "" {
		f.Notes = append(f.Notes, "not everybody may use it ("+p.Only+"): whoever runs jobs in what is sold has to be one of those")
	}
	if p.Longest > 0 {
		f.Notes = append(f.Notes, "its jobs, and so its slots, last at most "+words.Ago(p.Longest))
	}
	return f
}

// hold says how a sold slot is held: by a placeholder job if the trial of a reservation failed.
func (f *Found) hold(denied error) {
	f.Hold, f.HoldBy = "a reservation", string(slurm.HoldReservation)
	if denied != nil {
		f.Hold, f.HoldBy = "a placeholder job", string(slurm.HoldJob)
		f.HoldWhy = queue.OneLine([]byte(denied.Error()))
	}
}

func inspectPBS(q Inspection) ([]Found, []LeftOut, error) {
	s, err := pbs.Survey(pbs.Config{Conf: q.Conf, Prefix: q.Prefix, Now: time.Now, Slog: Quiet()})
	if err != nil {
		return nil, nil, unasked(err)
	}
	f := Found{Nodes: s.Nodes, Cores: s.Cores, NodeCores: s.NodeCores, RAMPerCore: s.RAMPerCore, OS: osName(s.Arch), Alike: s.Alike, Hold: "a reservation"}
	if !s.Alike {
		f.Notes = append(f.Notes, "its nodes differ, so the offer describes the weakest in each respect")
	}
	return []Found{f}, nil, nil
}

// osName is the operating system, which PBS calls the architecture.
func osName(arch string) string {
	if strings.EqualFold(arch, "linux") {
		return "Linux"
	}
	return ""
}

func inspectLog(q Inspection) ([]Found, []LeftOut, error) {
	if q.Log == "" {
		return nil, nil, exit.Fail(exit.Usage, "'ramp swf synth' makes one", "--log is required: the workload log to replay")
	}
	l, notes, err := swf.Load(q.Log)
	if err != nil {
		return nil, nil, exit.Fail(exit.Usage, "'ramp swf info FILE' describes a log", "%w", err)
	}
	f := Found{Nodes: 1, Cores: l.Capacity(), Alike: true, Hold: "a reservation of the machine that plays the log"}
	if odd := swf.Told(notes); odd != "" {
		f.Notes = append(f.Notes, odd)
	}
	return []Found{f}, nil, nil
}

func inspectProgram(q Inspection) ([]Found, []LeftOut, error) {
	if q.Program == "" {
		return nil, nil, exit.Fail(exit.Usage, "docs/DRIVERS.md shows one in 30 lines", "--program is required: the program that acts as the batch system")
	}
	cores, err := program.Cores(program.Config{Agent: "ramp@init", Program: q.Program, Now: time.Now, Slog: Quiet()})
	if err != nil {
		return nil, nil, unasked(err)
	}
	return []Found{{Nodes: 1, Cores: cores, Alike: true, Hold: "what the program makes of it"}}, nil, nil
}

func inspectLocal(Inspection) ([]Found, []LeftOut, error) {
	cores := runtime.NumCPU()
	f := Found{
		Nodes: 1, Cores: cores, NodeCores: cores, Alike: true, Hold: "a claim that all agents of this machine respect",
		OS: strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:], Arch: machineArch(), CPUSpeed: kernelNumber("/proc/cpuinfo", "cpu MHz"),
	}
	f.RAMPerCore = kernelNumber("/proc/meminfo", "MemTotal") / 1024 / cores
	return []Found{f}, nil, nil
}

func machineArch() string {
	switch runtime.GOARCH {
	case "amd64":
		return "x86_64"
	case "arm64":
		return "aarch64"
	}
	return runtime.GOARCH
}

// kernelNumber is the whole number after the first "KEY:" of a file.
func kernelNumber(path, key string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		k, v, ok := strings.Cut(line, ":")
		if f := strings.Fields(v); ok && strings.TrimSpace(k) == key && len(f) > 0 {
			x, err := strconv.ParseFloat(f[0], 64)
			if err != nil || x < 0 || x > 1<<40 {
				return 0
			}
			return int(x)
		}
	}
	return 0
}

// AccountName is the name of the account that runs this program.
func AccountName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}
