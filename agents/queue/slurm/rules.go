package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"ramp/agents/queue"
)

// rules limit the jobs of a partition. Slurm accepts reservations against all of them,
// and then leaves the jobs waiting: slots that no job could use must not be sold.
type rules struct {
	state   string
	whole   bool          // a job always gets whole nodes
	single  bool          // a node runs jobs of one user at a time
	brief   bool          // jobs are limited to less than Slurm's unit, a minute
	longest time.Duration // of a job; 0: no limit, unless brief
	perNode int64         // CPUs of a node that jobs may use; 0: all
	spread  int64         // most nodes of a job; 0: no limit
	least   int64         // fewest nodes of a job
	special string        // a node that keeps cores for the system
	only    string        // who may use it, in Slurm's words; empty: everybody
	memory  memory
}

// rules reads the rules of a partition, even of a hidden one.
func (c cluster) rules(partition string) (rules, error) {
	b, err := c.run("scontrol", "-a", "-o", "show", "partition", partition)
	if err != nil {
		return rules{}, err
	}
	all, err := readRules(b)
	if err != nil {
		return rules{}, err
	}
	r, ok := all[partition]
	if !ok {
		return rules{}, fmt.Errorf("%s printed %[3]q instead of partition %[2]s", showPartition, partition, queue.OneLine(b[:min(len(b), 80)]))
	}
	return r, nil
}

// allRules reads the rules of every partition, by name.
func (c cluster) allRules() (map[string]rules, error) {
	b, err := c.run("scontrol", "-a", "-o", "show", "partition")
	if err != nil {
		return nil, err
	}
	return readRules(b)
}

const showPartition = "scontrol show partition"

// readRules reads a line for each partition. Only the name may contain spaces.
func readRules(b []byte) (map[string]rules, error) {
	all := map[string]rules{}
	for line := range bytes.Lines(b) {
		name, of, ok := bytes.Cut(bytes.TrimPrefix(line, []byte("PartitionName=")), []byte(" AllowGroups="))
		switch {
		case !ok:
			continue
		case line[len(line)-1] != '\n':
			return nil, fmt.Errorf("%s: its output is cut off after %d bytes", showPartition, len(b))
		}
		r, err := readRule(fields("AllowGroups=" + string(of)))
		if err != nil {
			return nil, fmt.Errorf("%s: partition %.80q: %w", showPartition, name, err)
		}
		all[string(name)] = r
	}
	return all, nil
}

func readRule(f map[string]string) (rules, error) {
	exclusive := f["Exclusive"] // 26.05 has only this
	r := rules{
		state: f["State"], single: f["ExclusiveUser"] == "YES" || exclusive == "USER",
		whole: strings.HasPrefix(f["OverSubscribe"], "EXCLUSIVE") || f["ExclusiveTopo"] == "YES" || exclusive == "NODE" || exclusive == "TOPO",
		only:  onlyFor(f), memory: memoryOf(f),
	}
	r.perNode, _ = strconv.ParseInt(f["MaxCPUsPerNode"], 10, 64) // or UNLIMITED, or missing
	r.spread, _ = strconv.ParseInt(f["MaxNodes"], 10, 64)        // likewise
	r.least, _ = strconv.ParseInt(f["MinNodes"], 10, 64)
	if r.state == "" {
		return r, errors.New("State is missing")
	}
	if most := f["MaxTime"]; most != "UNLIMITED" {
		var err error
		if r.longest, err = elapsed(most); err != nil {
			return r, fmt.Errorf("MaxTime=%.40q is not a time", most)
		}
		r.brief = r.longest < time.Minute
	}
	return r, nil
}

// onlyFor lists the restrictions of a partition to some accounts.
func onlyFor(f map[string]string) string {
	var list []string
	for _, open := range []string{"AllowGroups=ALL", "AllowAccounts=ALL", "AllowQos=ALL", "RootOnly=NO", "Hidden=NO"} {
		key, everybody, _ := strings.Cut(open, "=")
		if v := f[key]; v != "" && v != everybody {
			list = append(list, key+"="+v)
		}
	}
	return strings.Join(list, " ")
}

// bars says why a partition whose nodes have up to so many CPUs starts no jobs, or not
// every job that fits into a slot; empty: it starts them.
func (r rules) bars(partition string, cpus int64) string {
	switch {
	case r.state != "UP":
		return fmt.Sprintf("partition %s is %s: no job can start in it", partition, r.state)
	case r.whole:
		return fmt.Sprintf("partition %s gives each job whole nodes (OverSubscribe=EXCLUSIVE, ExclusiveTopo, or Exclusive=NODE or TOPO), but a slot is a number of cores", partition)
	case r.single:
		return fmt.Sprintf("partition %s gives each node to one user at a time (ExclusiveUser=YES or Exclusive=USER), but a slot is a number of cores", partition)
	case r.special != "":
		return fmt.Sprintf("partition %s has nodes such as %s that keep cores for the system (CoreSpecCount): Slurm reserves them, but gives them to no job", partition, r.special)
	case r.brief:
		return fmt.Sprintf("partition %s gives its jobs less than a minute (MaxTime)", partition)
	case r.least > 1:
		return fmt.Sprintf("partition %s runs no job on fewer than %d nodes (MinNodes), but a slot may fit on one", partition, r.least)
	case r.perNode > 0 && r.perNode < cpus:
		return fmt.Sprintf("partition %s lets its jobs use %d of the %d CPUs of a node (MaxCPUsPerNode), but a slot may need all of them", partition, r.perNode, cpus)
	}
	return ""
}

// minutes is the time limit of a job that runs so long: whole minutes, and at most the
// partition's limit, since Slurm would never start a longer job.
func (r rules) minutes(wall time.Duration) int {
	n := max(int((wall+time.Minute-1)/time.Minute), 1)
	if r.longest > 0 {
		n = min(n, int(r.longest/time.Minute))
	}
	return n
}
