package slurm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ramp/agents/queue"
)

// Bounds of one node.
const (
	maxNodeCores = 1 << 16
	maxThreads   = 1 << 10 // of a core
)

// node is an entry of sinfo and scontrol.
type node struct {
	Name         string   `json:"name"`
	Architecture string   `json:"architecture"`
	OS           string   `json:"operating_system"`
	CoresSocket  number   `json:"cores"` // of one socket
	Sockets      number   `json:"sockets"`
	Threads      number   `json:"threads"` // of one core
	CPUs         number   `json:"cpus"`
	Memory       number   `json:"real_memory"` // MiB
	State        words    `json:"state"`
	Flags        words    `json:"state_flags"`
	Partitions   []string `json:"partitions"`
	Features     any      `json:"features"`
}

// cores are a node's cores, 1..MaxCores.
func (n node) cores() int {
	if sum := n.CoresSocket.n * n.Sockets.n; sum > 0 {
		return int(sum)
	}
	return int(n.CPUs.n / n.threads())
}

// threads is the number of threads of a core. Slurm counts jobs in threads and
// reservations in cores.
func (n node) threads() int64 { return max(n.Threads.n, 1) }

// specialised names a node of some that keeps cores for the system (CoreSpecCount); "": none
// does. Reservations get such cores, and jobs do not.
func (c cluster) specialised(nodes []node) (string, error) {
	b, err := c.run("scontrol", "-a", "-o", "show", "nodes")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		f := fields(line)
		total, _ := strconv.Atoi(f["CPUTot"])
		left, err := strconv.Atoi(f["CPUEfctv"])
		if cores := f["CoreSpecCount"]; (cores == "" || cores == "0") && (err != nil || left >= total) {
			continue
		}
		if slices.ContainsFunc(nodes, func(n node) bool { return n.Name == f["NodeName"] }) {
			return f["NodeName"], nil
		}
	}
	return "", nil
}

// usable reports whether jobs may start on a node now.
func (n node) usable() bool {
	no := []string{"DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "UNKNOWN", "FUTURE",
		"NOT_RESPONDING", "INVALID", "INVALID_REG"}
	return !n.State.has(no...) && !n.Flags.has(no...)
}

// envelope is common to all of Slurm's JSON.
type envelope struct {
	Meta   json.RawMessage   `json:"meta"`
	Errors []json.RawMessage `json:"errors"`
}

// decode reads one JSON document of a program. It refuses a document that is cut off,
// empty, followed by more, not from Slurm, or one of Slurm's errors.
func decode(program string, b []byte, e *envelope, v any) error {
	b = bytes.TrimSpace(b)
	if len(b) == 0 {
		return fmt.Errorf("%s printed nothing", program)
	}
	if b[0] != '{' {
		return fmt.Errorf("%s printed %q instead of JSON", program, queue.OneLine(b[:min(len(b), 80)]))
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s printed invalid JSON: %w", program, err)
	}
	switch {
	case len(e.Errors) > 0:
		return fmt.Errorf("%s: %w: %s", program, errReported, queue.OneLine(e.Errors[0]))
	case len(e.Meta) == 0:
		return fmt.Errorf("%s printed JSON that is not from Slurm", program)
	}
	return nil
}

// errReported means that Slurm's JSON has an error in it.
var errReported = errors.New("the answer is an error")

// errAggregated means that sinfo of 23.02 or later merged nodes.
var errAggregated = errors.New("sinfo lists groups of nodes instead of each node")

// readNodes reads the nodes of a partition, or all if it is empty.
func readNodes(program string, b []byte, partition string) ([]node, error) {
	var doc struct {
		envelope
		Nodes *[]node          `json:"nodes"`
		Sinfo *json.RawMessage `json:"sinfo"`
	}
	if err := decode(program, b, &doc.envelope, &doc); err != nil {
		return nil, err
	}
	switch {
	case doc.Nodes == nil && doc.Sinfo != nil:
		return nil, errAggregated
	case doc.Nodes == nil:
		return nil, fmt.Errorf("%s printed no list of nodes", program)
	}
	ours := slices.DeleteFunc(*doc.Nodes, func(n node) bool { return partition != "" && !slices.Contains(n.Partitions, partition) })
	if len(ours) == 0 {
		return nil, fmt.Errorf("partition %s has no nodes or does not exist", partition)
	}
	for _, n := range ours {
		if c := n.cores(); c < 1 || c > maxNodeCores {
			return nil, fmt.Errorf("%s: node %q has %d cores", program, n.Name, c)
		}
		if n.threads() > maxThreads {
			return nil, fmt.Errorf("%s: node %q has %d threads per core", program, n.Name, n.threads())
		}
	}
	return ours, nil
}
