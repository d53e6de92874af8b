package slurm

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Where Slurm counts memory and has no default for it, a job that asks for none is
// given all that its nodes have: a second slot's job there would wait until the first
// has ended. So each asks for what its cores' share is.

// memory is what Slurm, or a partition, says about the memory of jobs, in MiB.
type memory struct {
	counts bool // memory is given out as cores are
	given  bool
	most   int64 // for each CPU; 0: no limit
}

// share are the arguments by which a job gets its cores' share of the memory; none
// where it gets no more than that by itself.
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

// readMemory reads the configuration as scontrol prints it: "NAME = VALUE" lines.
func readMemory(b []byte) (memory, error) {
	f := map[string]string{}
	for line := range bytes.Lines(b) {
		if k, v, ok := strings.Cut(string(line), "="); ok {
			f[strings.TrimSpace(k)] = strings.TrimSpace(v)
		}
	}
	if f["SelectTypeParameters"] == "" {
		return memory{}, errors.New("scontrol show config: it has no SelectTypeParameters")
	}
	m := memoryOf(f)
	m.counts = strings.Contains(strings.ToUpper(f["SelectTypeParameters"]), "MEMORY")
	return m, nil
}

// memoryOf reads what is said of memory. A limit that cannot be read is none: Slurm
// says then why it refuses.
func memoryOf(f map[string]string) memory {
	var m memory
	for _, key := range []string{"DefMemPerCPU", "DefMemPerNode"} {
		n, _ := strconv.ParseInt(f[key], 10, 64)
		m.given = m.given || n > 0
	}
	m.most, _ = strconv.ParseInt(f["MaxMemPerCPU"], 10, 64)
	return m
}

// perCPU is the memory of a CPU, of the node that has the least, in MiB.
func perCPU(nodes []node) int64 {
	least := int64(math.MaxInt64)
	for _, n := range nodes {
		least = min(least, max(n.Memory.n, 0)/(int64(n.cores())*n.threads()))
	}
	return least
}
