package acl

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Format writes a message in string form, one parameter to a line, ending with a newline. m must be
// valid (Validate). The performative is in lower case, as in the standard; a value is bare if it is
// a word without a quote, and otherwise quoted; receivers are always a set. A string that cannot be
// quoted (it ends with a backslash, or is content that a reader would trim) has its length in bytes
// before it.
func Format(m Message) []byte {
	b := append([]byte{'('}, m.Performative...)
	if m.Sender.Name != "" {
		b = appendAgent(append(b, "\n :sender "...), m.Sender)
	}
	b = appendAgents(b, "receiver", m.Receivers)
	b = appendAgents(b, "reply-to", m.ReplyTo)
	b = appendContent(b, m.Content)
	for _, key := range textKeys() {
		if field, _ := m.text(key); *field != "" {
			b = appendParameter(b, key, *field)
		}
	}
	if date := m.date(); date != "" {
		b = append(append(b, "\n :reply-by "...), date...)
	}
	for _, key := range slices.Sorted(maps.Keys(m.User)) {
		b = appendParameter(b, key, m.User[key])
	}
	return append(b, ")\n"...)
}

// date is the reply-by in FIPA's form, or "".
func (m *Message) date() string {
	switch {
	case !m.ReplyBy.IsZero():
		return formatDate(m.ReplyBy)
	case m.ReplyIn != nil:
		return formatRelative(*m.ReplyIn)
	}
	return ""
}

func appendParameter(b []byte, key, value string) []byte {
	b = append(append(append(b, "\n :"...), key...), ' ')
	return appendValue(b, value)
}

func appendAgents(b []byte, key string, list []AID) []byte {
	if len(list) == 0 {
		return b
	}
	b = append(append(append(b, "\n :"...), key...), " (set"...)
	for _, a := range list {
		b = appendAgent(append(b, ' '), a)
	}
	return append(b, ')')
}

func appendAgent(b []byte, a AID) []byte {
	b = appendValue(append(b, "(agent-identifier :name "...), a.Name)
	if len(a.Addresses) > 0 {
		b = append(b, " :addresses (sequence"...)
		for _, s := range a.Addresses {
			b = appendValue(append(b, ' '), s)
		}
		b = append(b, ')')
	}
	if len(a.Resolvers) > 0 {
		b = append(b, " :resolvers (sequence"...)
		for _, r := range a.Resolvers {
			b = appendAgent(append(b, ' '), r)
		}
		b = append(b, ')')
	}
	for _, key := range slices.Sorted(maps.Keys(a.User)) {
		b = append(append(append(b, " :"...), key...), ' ')
		b = appendValue(b, a.User[key])
	}
	return append(b, ')')
}

func appendContent(b []byte, c Content) []byte {
	switch {
	case len(c.Bytes) > 0:
		b = appendParameter(b, encodingKey, encodingValue)
		b = append(b, "\n :content \""...)
		b = base64.StdEncoding.AppendEncode(b, c.Bytes)
		return append(b, '"')
	case c.Text == "":
		return b
	}
	b = append(b, "\n :content "...)
	if trim(c.Text) != c.Text {
		return appendPrefixed(b, c.Text)
	}
	return appendString(b, c.Text)
}

// appendValue writes text as a word if possible.
func appendValue(b []byte, s string) []byte {
	if isWord(s) {
		return append(b, s...)
	}
	return appendString(b, s)
}

// isWord reports whether every reader takes s for a word. Readers disagree on a
// leading ":" or "@" and on a quote inside.
func isWord(s string) bool {
	if s == "" || strings.IndexByte("#0123456789-@:", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		if delimiter(s[i]) || s[i] == '"' {
			return false
		}
	}
	return true
}

func appendString(b []byte, s string) []byte {
	if strings.HasSuffix(s, `\`) {
		return appendPrefixed(b, s)
	}
	b = append(b, '"')
	for i := range len(s) {
		if s[i] == '"' {
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return append(b, '"')
}

func appendPrefixed(b []byte, s string) []byte {
	b = strconv.AppendInt(append(b, '#'), int64(len(s)), 10)
	return append(append(b, '"'), s...)
}
