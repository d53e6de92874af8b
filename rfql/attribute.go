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
				r.notice(t.line, element, "attribute "+a.name.String(), "optimize and sameStart on RequestForQuotation; name, application and zone on Request")
			}
		}
	}
}

func extensions(element Term) []Term {
	switch element {
	case RequestForQuotation:
		return []Term{Optimize, SameStart}
	case RequestElement:
		return []Term{Name, Application, Zone}
	}
	return nil
}

func (r *reader) rootAttributes(root token) {
	for _, a := range root.attributes {
		switch value := collapse(a.value); a.name {
		case name{ExtensionNamespace, string(Optimize)}:
			o, err := protocol.ParseObjective(value)
			if err != nil {
				r.form(root.line, Optimize, quote(string(a.value)), objectiveAllowed, "")
			}
			r.draft.Objective = o
		case name{ExtensionNamespace, string(SameStart)}:
			r.draft.SameStart = value == "true" || value == "1" // the forms of xs:boolean
			if !r.draft.SameStart && value != "false" && value != "0" {
				r.form(root.line, SameStart, quote(string(a.value)), "true or false", "")
			}
		}
	}
}

const objectiveAllowed = "cost, time or cost-time"
