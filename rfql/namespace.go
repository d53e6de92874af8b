package rfql

import (
	"bytes"
	"fmt"
)

const (
	xmlNamespace      = "http://www.w3.org/XML/1998/namespace"
	xmlnsNamespace    = "http://www.w3.org/2000/xmlns/"
	instanceNamespace = "http://www.w3.org/2001/XMLSchema-instance"
)

type binding struct{ prefix, space string }

// split cuts a name, which the lexer has checked, at its colon.
func split(raw []byte) (prefix, local []byte) {
	if i := bytes.IndexByte(raw, ':'); i >= 0 {
		return raw[:i], raw[i+1:]
	}
	return nil, raw
}

// bind adds the namespace declarations of the current tag.
func (s *scanner) bind() error {
	for _, a := range s.item.attributes {
		prefix, declared := declaredPrefix(a.name)
		if !declared {
			continue
		}
		if !bindable(prefix, string(a.value)) {
			return broken(s.line, fmt.Sprintf("%s=%s", clip(string(a.name)), quote(string(a.value))), "a namespace for a prefix other than xml and xmlns", "")
		}
		if len(s.bindings) == MaxBindings {
			return broken(s.line, "too many namespace declarations in scope", fmt.Sprintf("at most %d", MaxBindings), "")
		}
		s.bindings = append(s.bindings, binding{prefix, intern(a.value)})
	}
	return nil
}

func declaredPrefix(raw []byte) (string, bool) {
	prefix, local := split(raw)
	if prefix == nil {
		return "", string(local) == "xmlns"
	}
	return string(local), string(prefix) == "xmlns"
}

// bindable checks the rules of Namespaces in XML 1.0 §3: a prefix cannot be undeclared,
// and the two of XML itself keep their meaning.
func bindable(prefix, space string) bool {
	switch {
	case prefix == "xmlns" || space == xmlnsNamespace:
		return false
	case prefix == "xml" || space == xmlNamespace:
		return prefix == "xml" && space == xmlNamespace
	}
	return prefix == "" || space != ""
}

// resolve finds the namespace of an element's name.
func (s *scanner) resolve(prefix, local []byte) (name, bool) {
	for i := len(s.bindings) - 1; i >= 0; i-- {
		if s.bindings[i].prefix == string(prefix) {
			return name{s.bindings[i].space, intern(local)}, true
		}
	}
	return name{}, false
}

// intern is string(b), without an allocation for the words of the language.
func intern(b []byte) string {
	switch string(b) {
	case Namespace:
		return Namespace
	case ExtensionNamespace:
		return ExtensionNamespace
	case string(RequestForQuotation):
		return string(RequestForQuotation)
	case string(RequestElement):
		return string(RequestElement)
	}
	if at := Term(b).position(); at > 0 {
		return string(termAt(at))
	}
	return string(b)
}

// resolveAttributes resolves the attributes of the current tag, except the namespace
// declarations. An attribute without a prefix is in no namespace.
func (s *scanner) resolveAttributes() error {
	s.attributes = s.attributes[:0]
	for i, a := range s.item.attributes {
		for _, b := range s.item.attributes[:i] {
			if bytes.Equal(a.name, b.name) {
				return s.twice(a.name)
			}
		}
		if _, declared := declaredPrefix(a.name); declared {
			continue
		}
		n, ok := name{"", string(a.name)}, true
		if prefix, local := split(a.name); prefix != nil {
			n, ok = s.resolve(prefix, local)
		}
		if !ok {
			return s.unbound(a.name)
		}
		for _, b := range s.attributes {
			if n == b.name {
				return s.twice(a.name)
			}
		}
		s.attributes = append(s.attributes, attribute{n, a.value})
	}
	return nil
}

func (s *scanner) twice(raw []byte) error {
	return broken(s.line, "attribute "+clip(string(raw))+" twice", "once", "")
}

func (s *scanner) unbound(raw []byte) error {
	return broken(s.line, clip(string(raw)), "a name with a declared prefix", `declare it with xmlns:prefix="…"`)
}
