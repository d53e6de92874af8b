package jobfile

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bounds of a file.
const (
	MaxFile  = 1 << 20 // bytes
	maxShown = 80      // bytes of foreign text in a fault
)

// Fault is what is wrong in a line of a file.
type Fault struct {
	Line int // from 1; 0: the whole file
	Text string
	File string // empty: the file that is read; otherwise one that it names
}

// Faults are all that is wrong with a file.
type Faults []Fault

func (f Faults) Error() string { return f.In("") }

// In prints one fault per line: FILE:LINE: what is wrong.
func (f Faults) In(file string) string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = Where(cmp.Or(x.File, file), x.Line) + ": " + x.Text
	}
	return strings.Join(lines, "\n")
}

// Where is a line of a file, for people.
func Where(file string, line int) string {
	switch {
	case line == 0:
		return file
	case file == "":
		return "line " + strconv.Itoa(line)
	}
	return file + ":" + strconv.Itoa(line)
}

// Root reads the one mapping that a YAML file holds. such is a line of such a file, and keys names
// some of its keys.
func Root(text []byte, such, keys string) (*yaml.Node, *Fault) {
	if len(text) > MaxFile {
		return nil, &Fault{Text: fmt.Sprintf("%d bytes, want at most %d", len(text), MaxFile)}
	}
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc, more yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, &Fault{Text: "it is empty: want keys such as " + keys}
	case err != nil:
		return nil, syntax(err)
	}
	root := doc.Content[0]
	switch err := d.Decode(&more); {
	case root.Kind != yaml.MappingNode: // the parser reports an empty document after '---' one line too late
		return nil, &Fault{Line: min(root.Line, strings.Count(string(text), "\n")+1), Text: "want lines such as '" + such + "'"}
	case errors.Is(err, io.EOF):
		return root, nil
	case err != nil:
		return nil, syntax(err)
	}
	return nil, &Fault{Line: more.Line, Text: "a second document: want one in a file"}
}

var yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)`)

// syntax describes a fault that the YAML library has found.
func syntax(err error) *Fault {
	first, _, _ := strings.Cut(err.Error(), "\n")
	m := yamlError.FindStringSubmatch(first)
	if m == nil {
		return &Fault{Text: "not YAML: " + Clip(first)}
	}
	line, _ := strconv.Atoi(m[1]) // none: the whole file
	return &Fault{Line: line, Text: "not YAML: " + Clip(m[2])}
}

// Nodes reads the nodes of a YAML file and collects what is wrong with them.
type Nodes struct{ Faults Faults }

// Fault notes what is wrong with a node.
func (r *Nodes) Fault(n *yaml.Node, format string, args ...any) {
	r.Faults = append(r.Faults, Fault{Line: n.Line, Text: fmt.Sprintf(format, args...)})
}

// Err is all that is wrong, by line, as Faults; nil: nothing is.
func (r *Nodes) Err() error {
	if len(r.Faults) == 0 {
		return nil
	}
	slices.SortStableFunc(r.Faults, func(a, b Fault) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	return r.Faults
}

// Each calls f for every key of a mapping.
func (r *Nodes) Each(n *yaml.Node, such string, f func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		r.Fault(n, "want lines such as '%s'", such)
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if first, twice := lines[key.Value]; twice {
			r.Fault(key, "%s is there already, in line %d", Clip(key.Value), first)
			continue
		}
		lines[key.Value] = key.Line
		f(key, value)
	}
}

// Scalar reads a single value as it is written.
func (r *Nodes) Scalar(key, n *yaml.Node) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.Fault(n, "%s: want a single value", Clip(key.Value))
	case n.Tag == "!!null":
		r.Fault(n, "%s: want a value", Clip(key.Value))
	case strings.ContainsRune(n.Value, 0):
		r.Fault(n, "%s: a zero byte", Clip(key.Value))
	default:
		return n.Value, true
	}
	return "", false
}

// Unknown notes a key that is not among the known ones.
func (r *Nodes) Unknown(key *yaml.Node, known []string) {
	text := fmt.Sprintf("unknown key %q", Clip(key.Value))
	if near := Nearest(key.Value, known); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	r.Fault(key, "%s", text)
}

// Clip shortens foreign text and escapes control characters.
func Clip(s string) string {
	if len(s) > maxShown {
		s = strings.ToValidUTF8(s[:maxShown], "") + "…"
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}
