package rfql

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Class is the kind of a Fault.
type Class int

// The classes.
const (
	Form    Class = 1 // the schema or a bound refuses the document
	Meaning Class = 2 // the form is right, but the values contradict each other or the clock
	Notice  Class = 3 // no fault, but something was ignored
)

var classNames = map[Class]string{Form: "form", Meaning: "meaning", Notice: "notice"}

func (c Class) String() string { return cmp.Or(classNames[c], fmt.Sprintf("class(%d)", int(c))) }

// MarshalText writes the name, so that JSON has "form", not 1.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// Fault is one fault of a document.
type Fault struct {
	Class   Class  `json:"class"`
	Line    int    `json:"line,omitempty"` // from 1; 0 if the document was not read from text
	Request int    `json:"request"`        // from 0; protocol.AllUnits for the whole document
	Term    Term   `json:"term"`
	Found   string `json:"found"`
	Allowed string `json:"allowed"`
	Hint    string `json:"hint,omitempty"`
}

// Error prints the fault on one line, without a file.
func (f Fault) Error() string { return f.In("") }

// In prints the fault on one line as FILE:LINE: TERM: found X; allowed Y (hint).
// An unknown file or line is left out.
func (f Fault) In(file string) string {
	var b strings.Builder
	switch {
	case file != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d: ", file, f.Line)
	case file != "":
		fmt.Fprintf(&b, "%s: ", file)
	case f.Line > 0:
		fmt.Fprintf(&b, "line %d: ", f.Line)
	case f.Request >= 0:
		fmt.Fprintf(&b, "request %d: ", f.Request+1)
	}
	fmt.Fprintf(&b, "%s: found %s; allowed %s", f.Term, f.Found, f.Allowed)
	if f.Hint != "" {
		fmt.Fprintf(&b, " (%s)", f.Hint)
	}
	return b.String()
}

// Faults are the faults of a document, in order of line.
type Faults []Fault

// Error prints one fault per line.
func (f Faults) Error() string { return f.In("") }

// In prints one fault per line, in the form of Fault.In.
func (f Faults) In(file string) string {
	lines := make([]string, len(f))
	for i, x := range f {
		lines[i] = x.In(file)
	}
	return strings.Join(lines, "\n")
}

// Of returns the faults of a class.
func (f Faults) Of(c Class) Faults {
	var out Faults
	for _, x := range f {
		if x.Class == c {
			out = append(out, x)
		}
	}
	return out
}

// sort orders f by line and keeps the order within a line.
func (f Faults) sort() {
	slices.SortStableFunc(f, func(a, b Fault) int { return cmp.Compare(a.Line, b.Line) })
}

// quote shortens foreign text, on one line and without control characters.
func quote(s string) string { return strconv.Quote(clip(s)) }

// mostQuoted bounds a quotation from the document, in bytes.
const mostQuoted = 60

func clip(s string) string {
	if len(s) <= mostQuoted {
		return s
	}
	cut := mostQuoted
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not within a character
		cut--
	}
	return s[:cut] + "…"
}
