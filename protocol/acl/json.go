package acl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// layoutJSON is how JSON carries a reply-by: RFC 3339 in UTC with milliseconds.
const layoutJSON = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes a message under FIPA's keys: "performative", "sender", "receiver", "reply-to",
// "content", "language", "encoding", "ontology", "protocol", "conversation-id", "reply-with",
// "in-reply-to", "reply-by" and the X- keys; an absent parameter has no key. An agent is an object
// of "name", "addresses", "resolvers" and X- keys, and receiver and reply-to are lists of agents.
// Content is a string, or {"base64":"…"} if it is bytes. A reply-by is RFC 3339 in UTC, or if
// relative, FIPA's form.
func (m Message) MarshalJSON() ([]byte, error) {
	var o object
	o.add("performative", m.Performative)
	if !m.Sender.empty() {
		o.add("sender", m.Sender)
	}
	addList(&o, "receiver", m.Receivers)
	addList(&o, "reply-to", m.ReplyTo)
	if !m.Content.Empty() {
		o.add("content", m.Content)
	}
	for _, key := range textKeys() {
		if field, _ := m.text(key); *field != "" {
			o.add(key, *field)
		}
	}
	switch {
	case !m.ReplyBy.IsZero():
		o.add("reply-by", m.ReplyBy.UTC().Truncate(time.Millisecond).Format(layoutJSON))
	case m.ReplyIn != nil:
		o.add("reply-by", formatRelative(*m.ReplyIn))
	}
	o.addUser(m.User)
	return o.done()
}

// MarshalJSON writes an agent as an object, as in Message.
func (a AID) MarshalJSON() ([]byte, error) {
	var o object
	o.add("name", a.Name)
	addList(&o, "addresses", a.Addresses)
	addList(&o, "resolvers", a.Resolvers)
	o.addUser(a.User)
	return o.done()
}

// MarshalJSON writes text as a string, and bytes as {"base64":"…"}.
func (c Content) MarshalJSON() ([]byte, error) {
	if len(c.Bytes) == 0 {
		return encode(c.Text)
	}
	var o object
	o.add("base64", c.Bytes)
	return o.done()
}

// object writes the members of a JSON object in order of the calls.
type object struct {
	b   []byte
	err error
}

func (o *object) add(key string, value any) {
	k, err := encode(key)
	v, err2 := encode(value)
	o.err = cmp.Or(o.err, err, err2)
	if len(o.b) > 0 {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, k...), ':'), v...)
}

func addList[T any](o *object, key string, list []T) {
	if len(list) > 0 {
		o.add(key, list)
	}
}

func (o *object) addUser(user map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(user)) {
		o.add(key, user[key])
	}
}

func (o *object) done() ([]byte, error) { return append(append([]byte{'{'}, o.b...), '}'), o.err }

// encode is json.Marshal without the escapes for HTML, which make XML unreadable.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}
