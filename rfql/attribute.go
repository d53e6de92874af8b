package rfql

import (
	"slices"

	"ramp/protocol"
)

// attributesOf tells of attributes that may not stand on an element. Foreign
// ones are ignored; ours are, where they have no meaning, but not silently.
func (r *reader) attributesOf(element Term, t token) {
	for _, a := range t.attributes {
		term := Term(a.local)
		switch a.space {
		case "", Namespace:
			r.form(t.line, element, "attribute "+a.name.String(), "attributes of other namespaces only", "")
		case instanceNamespace:
			if a.local == "type" || a.local == "nil" {
				r.form(t.line, element, "attribute xsi:"+a.local, "no change of type", "remove it")
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

// objective takes our own attribute from the root.
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
