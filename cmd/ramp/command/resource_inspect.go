package command

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

	"ramp/agents/queue"
	program "ramp/agents/queue/command"
	"ramp/agents/queue/pbs"
	"ramp/agents/queue/slurm"
	"ramp/agents/queue/swf"
)

// inspection is what to look at: the driver, and how to reach its batch system.
type inspection struct {
	driver     string
	partitions []string // of Slurm; none: all
	conf       string
	prefix     []string
	log        string // of swf
	program    string // of command
	claims     string // of local: a directory; empty: the machine's own
}

// found is what an inspection finds that one agent can sell.
type found struct {
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
	Hold       string   `json:"hold"`               // what a sold slot will be
	HoldBy     string   `json:"hold_by,omitempty"`  // of Slurm
	HoldWhy    string   `json:"hold_why,omitempty"` // it is not a true reservation
	Notes      []string `json:"notes,omitempty"`
}

// leftOut is a part of the machine for which no agent is made, and why.
type leftOut struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// inspectors look at the machine, by driver.
var inspectors = map[string]func(inspection) ([]found, []leftOut, error){
	"swf": inspectLog, "local": inspectLocal, "slurm": inspectSlurm, "pbs": inspectPBS, "command": inspectProgram,
}

// inspect looks at the machine. Nothing is changed, but that whether an account
// may reserve in Slurm is tried.
func inspect(q inspection) ([]found, []leftOut, error) {
	look := inspectors[q.driver]
	if look == nil {
		return nil, nil, fail(exitUsage, "", "--driver %q: want %s", q.driver, driverNames())
	}
	return look(q)
}

// likelyDriver is the batch system whose commands are installed, else local.
func likelyDriver() string {
	for _, d := range []struct{ driver, command string }{{"slurm", "sinfo"}, {"pbs", "pbsnodes"}} {
		if _, err := exec.LookPath(d.command); err == nil {
			return d.driver
		}
	}
	return "local"
}

// unasked is the error of a batch system that cannot be asked.
func unasked(err error) error {
	return fail(exitUnreachable, "is it running, and may this account ask it? --conf and --prefix say how", "%w", err)
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// inspectSlurm finds the partitions that can be sold beside each other.
func inspectSlurm(q inspection) ([]found, []leftOut, error) {
	cfg := slurm.Config{Conf: q.conf, Prefix: q.prefix, Now: time.Now, Slog: quiet()}
	list, err := slurm.Survey(cfg)
	if err != nil {
		return nil, nil, unasked(err)
	}
	var sold []found
	var out []leftOut
	for _, name := range q.partitions {
		if !slices.ContainsFunc(list, func(p slurm.Partition) bool { return p.Name == name }) {
			return nil, nil, fail(exitUsage, "there are: "+partitionNames(list), "--partition %s: Slurm has no such partition, or no nodes in it", name)
		}
	}
	why := unsold(list, q.partitions)
	for _, p := range list {
		if why := why[p.Name]; why != "" {
			out = append(out, leftOut{p.Name, why})
			continue
		}
		f := foundPartition(p)
		f.Notes = append(f.Notes, shared(list, why, p)...)
		cfg.Partition = p.Name
		f.hold(slurm.MayReserve(cfg))
		sold = append(sold, f)
	}
	if len(sold) == 0 {
		return nil, out, fail(exitUsage, "", "Slurm has no partition that can be sold: %v", out)
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

func foundPartition(p slurm.Partition) found {
	f := found{
		Name: p.Name, Nodes: p.Nodes, Cores: p.Cores, NodeCores: p.NodeCores, RAMPerCore: p.RAMPerCore, Arch: p.Arch,
		Features: p.Features, Alike: p.Alike,
	}
	f.OS, _, _ = strings.Cut(p.OS, " ")
	if !p.Alike {
		f.Notes = append(f.Notes, "its nodes differ; what is told of them is the least of each: split it into partitions of equal nodes if you can")
	}
	if p.Bars != "" {
		f.Notes = append(f.Notes, p.Bars+": it sells nothing until that is changed")
	}
	if p.Only != "" {
		f.Notes = append(f.Notes, "not everybody may use it ("+p.Only+"): whoever runs jobs in what is sold has to be one of those")
	}
	if p.Longest > 0 {
		f.Notes = append(f.Notes, "jobs last at most "+p.Longest.String()+" in it, and so do slots")
	}
	return f
}

// hold says what a sold slot will be, from whether the account may reserve.
func (f *found) hold(denied error) {
	f.Hold, f.HoldBy = "a reservation", string(slurm.HoldReservation)
	if denied != nil {
		f.Hold, f.HoldBy = "a placeholder job", string(slurm.HoldJob)
		f.HoldWhy = "this account may not reserve: " + queue.OneLine([]byte(denied.Error()))
	}
}

func inspectPBS(q inspection) ([]found, []leftOut, error) {
	s, err := pbs.Survey(pbs.Config{Conf: q.conf, Prefix: q.prefix, Now: time.Now, Slog: quiet()})
	if err != nil {
		return nil, nil, unasked(err)
	}
	f := found{Nodes: s.Nodes, Cores: s.Cores, NodeCores: s.NodeCores, RAMPerCore: s.RAMPerCore, OS: osName(s.Arch), Alike: s.Alike, Hold: "a reservation"}
	if !s.Alike {
		f.Notes = append(f.Notes, "its nodes differ; what is told of them is the least of each")
	}
	return []found{f}, nil, nil
}

// osName is the operating system that PBS calls the architecture.
func osName(arch string) string {
	if strings.EqualFold(arch, "linux") {
		return "Linux"
	}
	return ""
}

func inspectLog(q inspection) ([]found, []leftOut, error) {
	if q.log == "" {
		return nil, nil, fail(exitUsage, "'ramp swf synth' makes one", "--log: want the workload log that is to be played")
	}
	l, notes, err := swf.Load(q.log)
	if err != nil {
		return nil, nil, fail(exitUsage, "'ramp swf info FILE' looks at a log", "%w", err)
	}
	f := found{Nodes: 1, Cores: l.Capacity(), Alike: true, Hold: "a reservation of the machine that plays the log"}
	if odd := swf.Told(notes); odd != "" {
		f.Notes = append(f.Notes, odd)
	}
	return []found{f}, nil, nil
}

func inspectProgram(q inspection) ([]found, []leftOut, error) {
	if q.program == "" {
		return nil, nil, fail(exitUsage, "docs/DRIVERS.md shows one in 30 lines", "--program: want the program that is the batch system")
	}
	cores, err := program.Cores(program.Config{Agent: "ramp@init", Program: q.program, Now: time.Now, Slog: quiet()})
	if err != nil {
		return nil, nil, unasked(err)
	}
	return []found{{Nodes: 1, Cores: cores, Alike: true, Hold: "what the program makes of it"}}, nil, nil
}

// inspectLocal looks at this machine.
func inspectLocal(inspection) ([]found, []leftOut, error) {
	cores := runtime.NumCPU()
	f := found{
		Nodes: 1, Cores: cores, NodeCores: cores, Alike: true, Hold: "a claim that all agents of this machine respect",
		OS: strings.ToUpper(runtime.GOOS[:1]) + runtime.GOOS[1:], Arch: machineArch(), CPUSpeed: cpuSpeed(),
	}
	f.RAMPerCore = memoryMB() / cores
	return []found{f}, nil, nil
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

// memoryMB and cpuSpeed read what the kernel says; 0: it does not.
func memoryMB() int { return kernelNumber("/proc/meminfo", "MemTotal") / 1024 }

func cpuSpeed() int { return kernelNumber("/proc/cpuinfo", "cpu MHz") }

// kernelNumber is the whole number behind the first "KEY:" of a file.
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

// account is the name of the account that runs this.
func account() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}
