package slurm

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Partition is what a survey finds: the nodes of a partition, which are alike or
// not.
type Partition struct {
	Name       string
	Nodes      int
	Cores      int // of all nodes, usable or not
	NodeCores  int // of the smallest node
	RAMPerCore int // MiB, of the node with the least
	Arch, OS   string
	NodeNames  []string      // in order
	Features   []string      // that every node has, in order
	Alike      bool          // every node has the same cores, memory and features
	Bars       string        // why no job begins in it, so that it cannot be sold; empty: they do
	Only       string        // who may use it, in Slurm's words; empty: everybody
	Longest    time.Duration // of a job; 0: no limit
}

// Within reports whether every node of p is one of q's too: who sells both sells
// cores twice over, and Slurm has to refuse.
func (p Partition) Within(q Partition) bool {
	return !slices.ContainsFunc(p.NodeNames, func(n string) bool { _, ok := slices.BinarySearch(q.NodeNames, n); return !ok })
}

// CheckPartition reports what is wrong with a name of a partition.
func CheckPartition(name string) error {
	_, err := Config{Partition: name, Users: []string{"root"}}.filled()
	return err
}

// Survey lists the partitions of a cluster, in order of name. cfg.Partition is
// ignored. Errors: Slurm cannot be asked.
func Survey(cfg Config) ([]Partition, error) {
	cfg.Partition = "any"
	cfg, err := cfg.filled()
	if err != nil {
		return nil, err
	}
	nodes, err := newCluster(cfg).nodes("")
	if err != nil {
		return nil, err
	}
	rules, err := newCluster(cfg).allRules()
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
		if p.Only, p.Longest = r.only, r.longest; r.state != "" { // made between the two questions: not known yet
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

// mostCPUs are those of the largest of some nodes.
func mostCPUs(nodes []node) (most int64) {
	for _, n := range nodes {
		most = max(most, int64(n.cores())*n.threads())
	}
	return most
}

// features are a node's, in order: one text with commas, or a list.
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

// Cores is how many cores a partition has now, usable or not.
func Cores(cfg Config) (int, error) {
	list, err := Survey(cfg)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(list, func(p Partition) bool { return p.Name == cfg.Partition })
	if i < 0 {
		return 0, fmt.Errorf("partition %q has no nodes, or is not there", cfg.Partition)
	}
	return list[i].Cores, nil
}
