package slurm

import (
	"fmt"
	"strconv"
	"strings"
)

// maxHosts bounds the nodes of one list.
const maxHosts = 1 << 17

// hosts expands a list of nodes as Slurm abbreviates them: node[1-3,07],login.
// Leading zeros keep the width. Errors: brackets that do not match, ranges that
// run backward, more than maxHosts nodes.
func hosts(list string) ([]string, error) {
	var all []string
	for list != "" {
		part, rest, err := cutHost(list)
		if err != nil {
			return nil, err
		}
		if all, err = expand(all, part); err != nil {
			return nil, err
		}
		list = rest
	}
	return all, nil
}

// cutHost splits a list at its first comma outside brackets.
func cutHost(list string) (part, rest string, err error) {
	depth := 0
	for i, c := range list {
		switch {
		case c == '[' && depth == 0:
			depth++
		case c == ']' && depth == 1:
			depth--
		case c == '[' || c == ']':
			return "", "", fmt.Errorf("nodes %.60q: brackets do not match", list)
		case c == ',' && depth == 0:
			return list[:i], list[i+1:], nil
		}
	}
	if depth != 0 {
		return "", "", fmt.Errorf("nodes %.60q: brackets do not match", list)
	}
	return list, "", nil
}

// expand appends the nodes of one part, which may have several brackets.
func expand(all []string, part string) ([]string, error) {
	open := strings.IndexByte(part, '[')
	if open < 0 {
		if len(all) >= maxHosts {
			return nil, fmt.Errorf("nodes: more than %d", maxHosts)
		}
		return append(all, part), nil
	}
	end := strings.IndexByte(part, ']')
	for _, span := range strings.Split(part[open+1:end], ",") {
		first, last, width, err := bounds(span)
		if err != nil {
			return nil, err
		}
		for i := first; i <= last; i++ {
			if all, err = expand(all, part[:open]+fmt.Sprintf("%0*d", width, i)+part[end+1:]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func bounds(span string) (first, last, width int, err error) {
	a, b, ok := strings.Cut(span, "-")
	if !ok {
		b = a
	}
	first, err1 := strconv.Atoi(a)
	last, err2 := strconv.Atoi(b)
	if err1 != nil || err2 != nil || first < 0 || last < first || last-first >= maxHosts {
		return 0, 0, 0, fmt.Errorf("nodes: %.60q is not a range", span)
	}
	return first, last, len(a), nil
}
