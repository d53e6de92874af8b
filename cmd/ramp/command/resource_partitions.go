package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"ramp/agents/queue/slurm"
)

// unsold is why partitions get no agent, by name: two agents would sell the same
// cores, and one of different nodes tells the least of each. Those that are asked for
// get one whatever they are.
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

// equals are the partitions of equal nodes, open to everybody, that a partition of
// different nodes is made of; none: it is not.
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

// best is what is sold in place of p, and nothing in place of that; false: p is sold.
func best(list []slurm.Partition, p slurm.Partition) (slurm.Partition, bool) {
	found := false
	for _, q := range list {
		if instead(q, p) {
			p, found = q, true // whatever is sold in place of q is so in place of p
		}
	}
	return p, found
}

// instead reports whether q is sold in place of p: it has all of its nodes, and more,
// or is open to more, lets jobs last longer, or has the smaller name.
func instead(q, p slurm.Partition) bool {
	if q.Name == p.Name || !p.Within(q) || q.Only != "" && p.Only == "" {
		return false
	}
	return cmp.Or(
		cmp.Compare(len(p.NodeNames), len(q.NodeNames)), cmp.Compare(len(q.Only), len(p.Only)),
		cmp.Compare(uint64(p.Longest-1), uint64(q.Longest-1)), cmp.Compare(q.Name, p.Name), // 0 is no limit: the longest
	) < 0
}

// shared notes which partitions that are sold have nodes of p as well.
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
