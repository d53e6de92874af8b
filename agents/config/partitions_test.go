package config

import (
	"maps"
	"testing"
	"time"

	"ramp/agents/queue/slurm"
)

// Which partitions get an agent: each node is sold once, in partitions of equal nodes
// in which everybody's jobs begin, if there are such.
func TestWhichPartitionsAreSold(t *testing.T) {
	alike := func(name string, nodes ...string) slurm.Partition {
		return slurm.Partition{Name: name, NodeNames: nodes, Alike: true}
	}
	all := slurm.Partition{Name: "all", NodeNames: []string{"a1", "a2", "b1"}}
	down := alike("a", "b1")
	down.Bars = "partition a is DOWN"
	debug, staff, hours := alike("b", "b1"), alike("big", "a1", "a2"), alike("hours", "b1")
	debug.Longest, staff.Only, hours.Longest = time.Minute, "AllowGroups=staff", time.Hour
	for name, c := range map[string]struct {
		list  []slurm.Partition
		asked []string
		want  map[string]string
	}{
		"of equal nodes before one of all": {
			[]slurm.Partition{all, alike("cpu", "a1", "a2"), alike("fat", "b1"), alike("one", "a1")}, nil,
			map[string]string{"all": "its nodes differ, and all of them are in partitions of equal nodes: cpu, fat, one", "one": `all of its nodes are in "cpu" too`},
		},
		"one of all before some of its nodes": {
			[]slurm.Partition{all, alike("cpu", "a1", "a2")}, nil,
			map[string]string{"cpu": `all of its nodes are in "all" too`},
		},
		"none in which no job begins": {
			[]slurm.Partition{down, debug}, nil, map[string]string{"a": "partition a is DOWN"},
		},
		"the one that lets jobs last longer": {
			[]slurm.Partition{debug, hours, alike("z", "b1")}, nil,
			map[string]string{"b": `all of its nodes are in "z" too`, "hours": `all of its nodes are in "z" too`},
		},
		"the one that is open to everybody": {
			[]slurm.Partition{staff, alike("open", "a1", "a2")}, nil, map[string]string{"big": `all of its nodes are in "open" too`},
		},
		"those that are asked for": {
			[]slurm.Partition{down, debug, all}, []string{"a", "all"}, map[string]string{"b": "not asked for"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := unsold(c.list, c.asked)
			maps.DeleteFunc(got, func(_, why string) bool { return why == "" })
			if !maps.Equal(got, c.want) {
				t.Errorf("left out %v, want %v", got, c.want)
			}
		})
	}
}
