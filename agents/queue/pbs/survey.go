package pbs

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Site is the result of a survey of a server's nodes.
type Site struct {
	Nodes      int // usable ones
	Cores      int // of the usable nodes
	NodeCores  int // of the smallest
	RAMPerCore int // MiB, of the node with the least; 0: not reported
	Arch       string
	Alike      bool
}

// Survey asks a server for its nodes. Errors: PBS cannot be reached, or no node is usable.
func Survey(cfg Config) (Site, error) {
	b, err := open(cfg)
	if err != nil {
		return Site{}, err
	}
	out, err := b.run("pbsnodes", "-a", "-F", "json")
	if err != nil {
		return Site{}, err
	}
	return readSite(out)
}

type surveyed struct {
	State     text `json:"state"`
	Resources struct {
		Arch   text   `json:"arch"`
		Memory any    `json:"mem"`
		Cores  figure `json:"ncpus"`
	} `json:"resources_available"`
}

func readSite(out []byte) (Site, error) {
	var doc struct {
		Nodes map[string]surveyed `json:"nodes"`
	}
	if err := decode("pbsnodes", out, &doc); err != nil {
		return Site{}, err
	}
	s := Site{Alike: true}
	for _, name := range slices.Sorted(maps.Keys(doc.Nodes)) {
		if n := doc.Nodes[name]; usable(string(n.State)) && n.Resources.Cores > 0 {
			s.add(n)
		}
	}
	if s.Nodes == 0 {
		return s, errors.New("pbsnodes lists no usable nodes")
	}
	return s, nil
}

func (s *Site) add(n surveyed) {
	cores := int(n.Resources.Cores)
	ram := mebibytes(n.Resources.Memory) / cores
	if s.Nodes == 0 {
		s.NodeCores, s.RAMPerCore, s.Arch = cores, ram, string(n.Resources.Arch)
	}
	s.Alike = s.Alike && cores == s.NodeCores && ram == s.RAMPerCore && string(n.Resources.Arch) == s.Arch
	s.Nodes++
	s.Cores += cores
	s.NodeCores, s.RAMPerCore = min(s.NodeCores, cores), min(s.RAMPerCore, ram)
}

// mebibytes reads a size as PBS writes it, such as 16gb or 16777216kb; 0 if malformed.
func mebibytes(v any) int {
	text, ok := v.(string)
	if !ok {
		return 0
	}
	text = strings.ToLower(text)
	for unit, shift := range map[string]int{"kb": -10, "mb": 0, "gb": 10, "tb": 20} {
		digits, ok := strings.CutSuffix(text, unit)
		n, err := strconv.ParseInt(digits, 10, 40)
		switch {
		case !ok || err != nil || n < 0:
		case shift < 0:
			return int(n >> -shift)
		default:
			return int(n << shift)
		}
	}
	return 0
}
