package rfql

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"ramp/protocol"
)

// Read reads a document that rfql.xsd accepts, in UTF-8, within the bounds, and without
// document type and entities. Its error is Faults of class Form; the Draft then holds the
// readable parts, for people, and Check refuses it.
//
// The second result are warnings, in order of line: faults of class Meaning that need no clock
// (such as an end before the start, in most documents of the first implementation), and Notices.
func Read(b []byte) (Draft, Faults, error) {
	s, err := newScanner(b)
	if err != nil {
		return Draft{}, nil, Faults{asFault(err)}
	}
	r := reader{scanner: s, unit: protocol.AllUnits}
	if err := r.document(); err != nil {
		r.faults = append(r.faults, asFault(err))
	}
	r.draft.faults = r.faults // so that Check refuses it too
	if form := r.faults.Of(Form); len(form) > 0 {
		form.sort()
		return r.draft, r.notices, form
	}
	c := checker{draft: r.draft, timeless: true}
	c.check()
	warnings := append(r.notices, c.faults...)
	warnings.sort()
	return r.draft, warnings, nil
}

// reader reads a document top down. Its functions return an error only if
// reading must stop: the text is not XML, or there are MaxFaults faults.
type reader struct {
	*scanner
	draft   Draft
	faults  Faults // of Form and Meaning
	notices Faults
	unit    int    // the current request, or protocol.AllUnits
	text    []byte // of the current term

	ours func(t token) error // reads a Contract of the current request
}

func (r *reader) fault(class Class, line int, t Term, found, allowed, hint string) {
	f := Fault{
		Class: class, Line: line, Request: r.unit,
		Term: t, Found: found, Allowed: allowed, Hint: hint,
	}
	switch {
	case class == Notice && len(r.notices) < MaxNotices:
		r.notices = append(r.notices, f)
	case class != Notice && !r.full():
		r.faults = append(r.faults, f)
	}
}

func (r *reader) full() bool { return len(r.faults) >= MaxFaults-1 }

func (r *reader) form(line int, t Term, found, allowed, hint string) {
	r.fault(Form, line, t, found, allowed, hint)
}

func (r *reader) notice(line int, t Term, found, allowed string) {
	r.fault(Notice, line, t, found, allowed, "ignored")
}

func (r *reader) document() error {
	root, err := r.next()
	if err != nil {
		return err
	}
	if root.name != (name{Namespace, string(RequestForQuotation)}) {
		f := broken(root.line, root.name.String(), string(RequestForQuotation)+` xmlns="`+Namespace+`"`, "the root element")
		f.Term = RequestForQuotation
		return f
	}
	r.attributesOf(RequestForQuotation, root)
	r.rootAttributes(root)
	if err := r.children(RequestForQuotation, r.request); err != nil {
		return err
	}
	if len(r.draft.Requests) == 0 {
		r.form(root.line, RequestForQuotation, "no Request", fmt.Sprintf("1 to %d", protocol.MaxUnits), "")
	}
	_, err = r.next()
	return err
}

func (n name) String() string {
	if n.space == "" {
		return clip(n.local) + " in no namespace"
	}
	return clip(n.local) + " of " + quote(n.space)
}

// children calls f with every child of our namespace until the parent ends. It skips
// foreign elements.
func (r *reader) children(parent Term, f func(token) error) error {
	for !r.full() {
		t, err := r.next()
		if err != nil {
			return err
		}
		switch {
		case t.kind == endToken:
			return nil
		case t.kind == textToken:
			r.noText(parent, t)
		case t.space == Namespace:
			err = f(t)
		default:
			err = r.foreign(parent, t)
		}
		if err != nil {
			return err
		}
	}
	return broken(r.line, "too many faults", fmt.Sprintf("at most %d are reported", MaxFaults), "reading stops here")
}

func (r *reader) noText(parent Term, t token) {
	if t.section { // never white space between elements
		r.form(t.line, parent, "a CDATA section", "elements only", "")
		return
	}
	if len(bytes.Trim(t.text, space)) > 0 {
		r.form(beginning(t.line, t.text), parent, "text "+quote(collapse(t.text)), "elements only", "")
	}
}

// foreign skips an element of another language. An element without a namespace is a
// fault: its namespace was most likely forgotten.
func (r *reader) foreign(parent Term, t token) error {
	switch t.space {
	case "":
		r.form(t.line, parent, "element "+t.name.String(), `elements of namespace "`+Namespace+`"`, "")
	case ExtensionNamespace:
		if r.ours != nil && parent == RequestElement && t.local == string(ContractElement) {
			return r.ours(t)
		}
		r.notice(t.line, parent, "element "+t.name.String(), "attributes, and Contract in a Request")
	}
	return r.skip()
}

// skip reads to the end of the current element.
func (r *reader) skip() error {
	for depth := 1; depth > 0; {
		t, err := r.next()
		if err != nil {
			return err
		}
		switch t.kind {
		case startToken:
			depth++
		case endToken:
			depth--
		}
	}
	return nil
}

// unknown reports an unexpected element and skips it.
func (r *reader) unknown(t token, allowed ...Term) error {
	words := make([]string, len(allowed))
	hint := ""
	for i, a := range allowed {
		words[i] = string(a)
		if strings.EqualFold(words[i], t.local) {
			hint = "write it " + words[i]
		}
	}
	r.form(t.line, Term(clip(t.local)), "an unexpected element", strings.Join(words, ", "), hint)
	return r.skip()
}

// value reads the text of a term, collapsed.
func (r *reader) value(term Term, t token) (string, error) {
	r.attributesOf(term, t)
	r.text = r.text[:0]
	for !r.full() {
		next, err := r.next()
		if err != nil {
			return "", err
		}
		switch next.kind {
		case endToken:
			return collapse(r.text), nil
		case textToken:
			r.text = append(r.text, next.text...)
		case startToken:
			r.form(next.line, term, "element "+next.name.String(), "text only", "")
			if err := r.skip(); err != nil {
				return "", err
			}
		}
	}
	return "", nil
}

// asFault converts an error of the scanner or the reader, which is always a Fault.
func asFault(err error) Fault {
	var f Fault
	if !errors.As(err, &f) {
		panic(fmt.Sprintf("rfql: %v is no fault", err))
	}
	return f
}
