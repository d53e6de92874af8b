package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Where Slurm allocates memory and has no default, a job that asks for none gets all
// memory of its nodes, and a second slot's job there would wait for the first to end. So
// each job asks for the share of its cores.

// memory is the memory policy of Slurm or a partition, in MiB.
type memory struct {
	counts bool // Slurm allocates memory like cores
	given  bool
	most   int64 // for each CPU; 0: no limit
}

// share returns the arguments for a job's share of the memory; none where it gets no
// more by default.
func (b *batch) share(v *view) ([]string, error) {
	if v.rules.memory.given {
		return nil, nil
	}
	out, err := b.slow.run("scontrol", "show", "config")
	if err != nil {
		return nil, err
	}
	m, err := readMemory(out)
	if err != nil || !m.counts || m.given {
		return nil, err
	}
	share := v.perCPU
	for _, most := range []int64{m.most, v.rules.memory.most} {
		if most > 0 {
			share = min(share, most)
		}
	}
	if share < 1 {
		return nil, nil
	}
	return []string{fmt.Sprintf("--mem-per-cpu=%dM", share)}, nil
}

// fieldsOf reads the configuration as scontrol prints it: "NAME = VALUE" lines.
func fieldsOf(b []byte) map[string]string {
	f := map[string]string{}
	for line := range bytes.Lines(b) {
		if k, v, ok := strings.Cut(string(line), "="); ok {
			f[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	return f
}

func readMemory(b []byte) (memory, error) {
	f := fieldsOf(b)
	if f["SelectTypeParameters"] == "" {
		return memory{}, errors.New("scontrol show config: SelectTypeParameters is missing")
	}
	m := memoryOf(f)
	m.counts = strings.Contains(strings.ToUpper(f["SelectTypeParameters"]), "MEMORY")
	return m, nil
}

// memoryOf reads the memory settings. It ignores a malformed limit: Slurm then refuses
// a job with its own reason.
func memoryOf(f map[string]string) memory {
	var m memory
	for _, key := range []string{"DefMemPerCPU", "DefMemPerNode"} {
		n, _ := strconv.ParseInt(f[key], 10, 64)
		m.given = m.given || n > 0
	}
	m.most, _ = strconv.ParseInt(f["MaxMemPerCPU"], 10, 64)
	return m
}

// perCPU is the memory of a CPU on the node with the least, in MiB.
func perCPU(nodes []node) int64 {
	least := int64(math.MaxInt64)
	for _, n := range nodes {
		least = min(least, max(n.Memory.n, 0)/(int64(n.cores())*n.threads()))
	}
	return least
}
