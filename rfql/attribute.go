package rfql

import (
	"slices"

	"ramp/protocol"
)

// attributesOf reports attributes that an element must not have. It ignores foreign
// ones, and our own with a notice where they have no meaning.
func (r *reader) attributesOf(element Term, t token) {
	for _, a := range t.attributes {
		term := Term(a.local)
		switch a.space {
		case "", Namespace:
			r.form(t.line, element, "attribute "+a.name.String(), "attributes of other namespaces only", "")
		case instanceNamespace:
			if a.local == "type" || a.local == "nil" {
				r.form(t.line, element, "attribute xsi:"+a.local, "no attribute that changes the type", "remove it")
			}
		case ExtensionNamespace:
			if !slices.Contains(extensions(element), term) {
				r.notice(t.line, element, "attribute "+a.name.String(), "optimize on RequestForQuotation; name, application and zone on Request")
			}
		}
	}
}

// extensions are our attributes of an element.
func extensions(element Term) []Term {
	switch element {
	case RequestForQuotation:
		return []Term{Optimize}
	case RequestElement:
		return []Term{Name, Application, Zone}
	}
	return nil
}

// objective reads our own attribute of the root.
func (r *reader) objective(root token) {
	for _, a := range root.attributes {
		if a.name != (name{ExtensionNamespace, string(Optimize)}) {
			continue
		}
		o, err := protocol.ParseObjective(collapse(a.value))
		if err != nil {
			r.form(root.line, Optimize, quote(string(a.value)), objectiveAllowed, "")
		}
		r.draft.Objective = o
	}
}

const objectiveAllowed = "cost, time or cost-time"
