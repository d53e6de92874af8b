package rfql

import (
	"fmt"
	"slices"
	"strings"

	"ramp/protocol"
)

type requestReader struct {
	*reader
	*DraftRequest
	lines      *[positions]int
	start, end moment
	zone       zone // for dates and times without a zone
}

// moment is a date and a time; both are optional.
type moment struct {
	day
	clock
}

func (r *reader) request(t token) error {
	switch {
	case t.local != string(RequestElement):
		return r.unknown(t, RequestElement)
	case len(r.draft.Requests) == protocol.MaxUnits:
		r.form(t.line, RequestElement, fmt.Sprintf("more than %d", protocol.MaxUnits), fmt.Sprintf("1 to %d", protocol.MaxUnits), "")
		return r.skip()
	}
	r.draft.Requests = append(r.draft.Requests, DraftRequest{})
	r.draft.lines = append(r.draft.lines, [positions]int{t.line})
	r.unit = len(r.draft.Requests) - 1
	defer func() { r.unit = protocol.AllUnits }()
	q := requestReader{
		reader:       r,
		DraftRequest: &r.draft.Requests[len(r.draft.Requests)-1],
		lines:        &r.draft.lines[len(r.draft.lines)-1],
	}
	r.attributesOf(RequestElement, t)
	q.labels(t)
	r.ours = q.contract
	if err := r.children(RequestElement, q.term); err != nil {
		return err
	}
	q.require(RequestElement, required()...)
	q.times()
	return nil
}

func (q *requestReader) labels(t token) {
	for _, a := range t.attributes {
		if a.space != ExtensionNamespace {
			continue
		}
		term, value := Term(a.local), collapse(a.value)
		switch term {
		case Name, Application:
			if *q.word(term) = value; !validWord(value) {
				q.form(t.line, term, quote(value), wordAllowed, "")
			}
		case Zone:
			var ok bool
			if q.zone, ok = parseZone(value); !ok || !q.zone.given {
				q.form(t.line, term, quote(value), zoneAllowed, "")
			}
		}
	}
}

func (q *requestReader) term(t token) error {
	term := Term(t.local)
	if at := term.position(); at == 0 || at > Cores.position() {
		return q.unknown(t, requestTerms()...)
	}
	if !q.inOrder(t, Cores) {
		return q.skip()
	}
	switch term {
	case Disk:
		return q.choice(t, TotalDiskSpace, NodeDiskSpace)
	case Cores:
		return q.choice(t, TotalCores, Nodes)
	}
	return q.leaf(t)
}

func requestTerms() []Term {
	var terms []Term
	for at := CPUHourCost.position(); at <= Cores.position(); at++ {
		terms = append(terms, termAt(at))
	}
	return terms
}

// inOrder records the line of a term, and reports a fault if the term, or a term up to
// last that must follow it, came before. It returns false for a duplicate.
func (q *requestReader) inOrder(t token, last Term) bool {
	at := Term(t.local).position()
	if q.lines[at] > 0 {
		q.form(t.line, Term(t.local), "a second one", "one", fmt.Sprintf("the first is on line %d", q.lines[at]))
		return false
	}
	q.lines[at] = t.line
	for later := at + 1; later <= last.position(); later++ {
		if q.lines[later] > 0 {
			q.form(t.line, Term(t.local), "after "+string(termAt(later)), "before it", "the order is fixed")
			break
		}
	}
	return true
}

// required are the terms of every request (002 §5.2, which also requires CPUHourCost: see
// Document.Priced).
func required() []Term { return []Term{EndDate, EndTime, Cores} }

func (q *requestReader) require(parent Term, terms ...Term) {
	for _, t := range terms {
		if q.lines[t.position()] == 0 {
			q.form(q.lines[parent.position()], t, "nothing", "one in every "+string(parent), "")
		}
	}
}

// choice reads an element that holds exactly one of two.
func (q *requestReader) choice(t token, one, other Term) error {
	parent, chosen := Term(t.local), Term("")
	q.attributesOf(parent, t)
	err := q.children(parent, func(c token) error {
		term := Term(c.local)
		switch {
		case term != one && term != other:
			return q.unknown(c, one, other)
		case chosen == term:
			q.form(c.line, term, "a second one", "one", "")
		case chosen != "":
			q.form(c.line, parent, fmt.Sprintf("both %s and %s", chosen, term), fmt.Sprintf("one of %s and %s", one, other), "remove one of them")
		}
		chosen = term
		q.lines[term.position()] = c.line
		if term == Nodes {
			return q.nodes(c)
		}
		return q.leaf(c)
	})
	if err == nil && chosen == "" {
		q.form(t.line, parent, "neither", fmt.Sprintf("one of %s and %s", one, other), "")
	}
	return err
}

func (q *requestReader) nodes(t token) error {
	q.attributesOf(Nodes, t)
	q.lines[NodeCount.position()], q.lines[NodeCores.position()] = 0, 0
	err := q.children(Nodes, func(c token) error {
		if term := Term(c.local); term != NodeCount && term != NodeCores {
			return q.unknown(c, NodeCount, NodeCores)
		}
		if !q.inOrder(c, NodeCores) {
			return q.skip()
		}
		return q.leaf(c)
	})
	if err == nil {
		q.require(Nodes, NodeCount, NodeCores)
	}
	return err
}

func (q *requestReader) leaf(t token) error {
	term := Term(t.local)
	s, err := q.value(term, t)
	if err != nil {
		return err
	}
	if !q.set(term, s) {
		q.form(t.line, term, quote(s), allowed(term), hint(term, s))
	}
	return nil
}

func (q *requestReader) set(t Term, s string) (ok bool) {
	switch t {
	case CPUHourCost:
		q.Price, ok = parsePrice(s)
	case EndDate:
		q.end.day, ok = parseDay(s)
	case StartDate:
		q.start.day, ok = parseDay(s)
	case EndTime:
		q.end.clock, ok = parseClock(s)
	case StartTime:
		q.start.clock, ok = parseClock(s)
	case OperatingSystem, OSVersion, Architecture:
		*q.word(t), ok = s, validWord(s)
	case WallTime:
		var n int
		n, ok = parseNumber(t, s)
		q.Wall = minutes(n)
	default:
		*q.number(t), ok = parseNumber(t, s)
	}
	return ok
}

func allowed(t Term) string {
	switch t {
	case CPUHourCost:
		return priceAllowed
	case EndDate, StartDate:
		return dateAllowed
	case EndTime, StartTime:
		return clockAllowed
	case OperatingSystem, OSVersion, Architecture:
		return wordAllowed
	}
	return numberAllowed(t)
}

// hint suggests how to correct an unreadable value.
func hint(t Term, s string) string {
	switch {
	case s == "" && slices.Contains(required(), t):
		return "it is required"
	case s == "":
		return "leave the term out if it does not matter"
	case strings.HasPrefix(s, "-"):
		return "it cannot be negative"
	case strings.Contains(s, ","):
		return "write a decimal point, and no thousands separators"
	case strings.Trim(s, "0.+") == "":
		return "it cannot be zero"
	}
	return ""
}
