package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Partition is the result of a survey of a partition's nodes.
type Partition struct {
	Name       string
	Nodes      int
	Cores      int // of all nodes, usable or not
	NodeCores  int // of the smallest node
	RAMPerCore int // MiB, of the node with the least
	Arch, OS   string
	NodeNames  []string      // in order
	Features   []string      // of every node, in order
	Alike      bool          // every node has the same cores, memory and features
	Bars       string        // why it starts no jobs, so that it cannot be sold; empty: it does
	Only       string        // who may use it, in Slurm's words; empty: everybody
	Longest    time.Duration // of a job; 0: no limit
}

// Within reports whether every node of p is also in q: who sells both sells their cores
// twice, and Slurm has to refuse.
func (p Partition) Within(q Partition) bool {
	return !slices.ContainsFunc(p.NodeNames, func(n string) bool { _, ok := slices.BinarySearch(q.NodeNames, n); return !ok })
}

// CheckPartition checks the name of a partition.
func CheckPartition(name string) error {
	_, err := Config{Partition: name, Users: []string{"root"}}.filled()
	return err
}

// Survey lists the partitions of a cluster, in order of name. It ignores cfg.Partition.
// Errors: Slurm cannot be reached.
func Survey(cfg Config) ([]Partition, error) {
	cfg.Partition = "any"
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	c := newCluster(cfg)
	nodes, err := c.nodes("")
	if err != nil {
		return nil, err
	}
	rules, err := c.allRules()
	if err != nil {
		return nil, err
	}
	byName := map[string][]node{}
	for _, n := range nodes {
		for _, p := range n.Partitions {
			byName[p] = append(byName[p], n)
		}
	}
	var list []Partition
	for name, nodes := range byName {
		p, r := survey(name, nodes), rules[name]
		if p.Only, p.Longest = r.only, r.longest; r.state != "" { // an empty state: created between the two queries
			r.special, _ = c.specialised(nodes) // without an answer the daemon looks again
			p.Bars = r.bars(name, mostCPUs(nodes))
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b Partition) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func survey(name string, nodes []node) Partition {
	first := nodes[0]
	p := Partition{Name: name, Nodes: len(nodes), NodeCores: first.cores(), Arch: first.Architecture, OS: first.OS, Alike: true}
	p.RAMPerCore, p.Features = first.perCore(), first.features()
	for _, n := range nodes {
		p.Cores += n.cores()
		p.Alike = p.Alike && n.cores() == first.cores() && n.Memory == first.Memory && fmt.Sprint(n.Features) == fmt.Sprint(first.Features)
		p.NodeCores = min(p.NodeCores, n.cores())
		p.RAMPerCore = min(p.RAMPerCore, n.perCore())
		p.NodeNames = append(p.NodeNames, n.Name)
		has := n.features()
		p.Features = slices.DeleteFunc(p.Features, func(f string) bool { return !slices.Contains(has, f) })
	}
	slices.Sort(p.NodeNames)
	return p
}

// mostCPUs is the number of CPUs of the largest node.
func mostCPUs(nodes []node) (most int64) {
	for _, n := range nodes {
		most = max(most, int64(n.cores())*n.threads())
	}
	return most
}

// features are a node's, in order. Slurm writes one text with commas, or a list.
func (n node) features() []string {
	list := []string{}
	switch f := n.Features.(type) {
	case string:
		list = strings.FieldsFunc(f, func(r rune) bool { return r == ',' })
	case []any:
		for _, x := range f {
			if s, ok := x.(string); ok {
				list = append(list, s)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func (n node) perCore() int { return int(max(n.Memory.n, 0)) / n.cores() }

// Cores returns the number of cores in a partition now, usable or not.
func Cores(cfg Config) (int, error) {
	list, err := Survey(cfg)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(list, func(p Partition) bool { return p.Name == cfg.Partition })
	if i < 0 {
		return 0, fmt.Errorf("partition %q has no nodes or does not exist", cfg.Partition)
	}
	return list[i].Cores, nil
}

// Uncontained names what of Slurm's configuration leaves jobs of strangers uncontained.
func Uncontained(cfg Config) (missing []string) {
	cfg.Partition = "any"
	cfg, err := cfg.filled()
	if err != nil {
		return nil
	}
	out, err := newCluster(cfg).run("scontrol", "show", "config")
	f := fieldsOf(out)
	if err != nil || f["ProctrackType"] == "" {
		return nil // another command reports that
	}
	if f["ProctrackType"] != "proctrack/cgroup" {
		missing = append(missing, "ProctrackType=proctrack/cgroup is missing: processes may outlive their job")
	}
	if f["JobContainerType"] != "job_container/tmpfs" && !strings.HasPrefix(f["NamespaceType"], "namespace/") {
		missing = append(missing, "JobContainerType=job_container/tmpfs (since 25.11 NamespaceType=namespace/tmpfs) is missing: jobs share /tmp and /dev/shm")
	}
	return missing
}
