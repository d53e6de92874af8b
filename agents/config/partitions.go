package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ramp/agents/queue/slurm"
)

// unsold says why partitions get no agent, by name: two agents would sell the same cores,
// or the nodes differ, so that an offer describes the weakest in each respect. Partitions
// that were named get an agent in any case.
func unsold(list []slurm.Partition, asked []string) map[string]string {
	why := map[string]string{}
	for _, p := range list {
		switch {
		case slurm.CheckPartition(p.Name) != nil:
			why[p.Name] = "its name is not made of letters, digits, '_', '.' and '-'"
		case len(asked) > 0 && !slices.Contains(asked, p.Name):
			why[p.Name] = "not asked for"
		case len(asked) == 0:
			why[p.Name] = p.Bars
		}
	}
	if len(asked) > 0 {
		return why
	}
	left := func() []slurm.Partition {
		return slices.DeleteFunc(slices.Clone(list), func(p slurm.Partition) bool { return why[p.Name] != "" })
	}
	for _, p := range left() {
		if names := equals(left(), p); len(names) > 0 {
			why[p.Name] = "its nodes differ, and all of them are in partitions of equal nodes: " + strings.Join(names, ", ")
		}
	}
	for _, p := range left() {
		if q, ok := best(left(), p); ok {
			why[p.Name] = fmt.Sprintf("all of its nodes are in %q too", q.Name)
		}
	}
	return why
}

// equals lists the partitions of equal nodes, open to everybody, that make up a partition of
// different nodes; none if they do not cover it.
func equals(list []slurm.Partition, p slurm.Partition) []string {
	var names, nodes []string
	for _, q := range list {
		if q.Alike && q.Only == "" && q.Within(p) {
			names, nodes = append(names, q.Name), append(nodes, q.NodeNames...)
		}
	}
	slices.Sort(nodes)
	if p.Alike || !p.Within(slurm.Partition{NodeNames: nodes}) {
		return nil
	}
	return names
}

// best finds the partition that is sold instead of p; false if p itself is.
func best(list []slurm.Partition, p slurm.Partition) (slurm.Partition, bool) {
	found := false
	for _, q := range list {
		if instead(q, p) {
			p, found = q, true // a partition that replaces q replaces p too
		}
	}
	return p, found
}

// instead reports whether q is sold instead of p: it has all its nodes and more of them, is
// open to more, allows longer jobs, or has the smaller name.
func instead(q, p slurm.Partition) bool {
	if q.Name == p.Name || !p.Within(q) || q.Only != "" && p.Only == "" {
		return false
	}
	return cmp.Or(
		cmp.Compare(len(p.NodeNames), len(q.NodeNames)), cmp.Compare(len(q.Only), len(p.Only)),
		cmp.Compare(uint64(p.Longest-1), uint64(q.Longest-1)), cmp.Compare(q.Name, p.Name), // 0 means no limit, so it is the longest
	) < 0
}

// shared notes which sold partitions share nodes with p.
func shared(list []slurm.Partition, why map[string]string, p slurm.Partition) []string {
	var names []string
	for _, q := range list {
		if q.Name != p.Name && why[q.Name] == "" && slices.ContainsFunc(q.NodeNames, func(n string) bool { return slices.Contains(p.NodeNames, n) }) {
			names = append(names, q.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []string{"some of its nodes are sold as " + strings.Join(names, ", ") + " too: both offer them, and who is bought first has them"}
}
