package acl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"ramp/protocol"
)

// UnmarshalJSON reads the output of MarshalJSON. It also accepts a bare name for an agent, one
// agent for a list, keys in any case, a reply-by in FIPA's form, and Base64 text with
// X-JADE-Encoding. It refuses unknown and duplicate keys. The message is valid.
func (m *Message) UnmarshalJSON(b []byte) error {
	if len(b) > MaxText || !utf8.Valid(b) {
		return fmt.Errorf("message of %d bytes: want at most %d, in UTF-8", len(b), MaxText)
	}
	list, err := members(b)
	if err != nil {
		return fmt.Errorf("message: %w", err)
	}
	var out Message
	for _, kv := range list {
		if err := out.member(kv); err != nil {
			return fmt.Errorf("%s: %w", clip(kv.key), err)
		}
	}
	if err := out.unwrap(); err != nil {
		return err
	}
	if err := out.Validate(); err != nil {
		return err
	}
	*m = out
	return nil
}

// UnmarshalJSON reads an agent: an object as in Message, or a bare name.
func (a *AID) UnmarshalJSON(b []byte) (err error) {
	if len(b) > MaxText {
		return fmt.Errorf("agent of %d bytes: want at most %d", len(b), MaxText)
	}
	*a, err = unmarshalAgent(b, 1)
	return err
}

// UnmarshalJSON reads a string or {"base64":"…"}.
func (c *Content) UnmarshalJSON(b []byte) (err error) {
	*c, err = unmarshalContent(b)
	return err
}

func (m *Message) member(kv member) (err error) {
	lower := strings.ToLower(kv.key)
	switch lower {
	case "performative":
		var s string
		s, err = unmarshalText(kv.value)
		m.Performative = protocol.Performative(strings.ToLower(s))
	case "sender":
		m.Sender, err = unmarshalAgent(kv.value, 1)
	case "receiver":
		m.Receivers, err = unmarshalAgents(kv.value, 1)
	case "reply-to":
		m.ReplyTo, err = unmarshalAgents(kv.value, 1)
	case "content":
		m.Content, err = unmarshalContent(kv.value)
	case "reply-by":
		err = m.unmarshalReplyBy(kv.value)
	default:
		if field, ok := m.text(lower); ok {
			*field, err = unmarshalText(kv.value)
			return err
		}
		m.User, err = unmarshalUser(m.User, kv)
	}
	return err
}

func (m *Message) unmarshalReplyBy(b []byte) error {
	s, err := unmarshalText(b)
	if err != nil {
		return err
	}
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		m.ReplyBy = t.UTC().Truncate(time.Millisecond)
		return nil
	}
	if m.ReplyBy, m.ReplyIn, err = parseDate(s); errors.Is(err, errDate) {
		err = fmt.Errorf("%w, or one such as 2026-08-01T12:00:00Z", err)
	}
	return err
}

func unmarshalAgent(b []byte, depth int) (a AID, err error) {
	if depth > MaxDepth {
		return a, fmt.Errorf("resolvers nested deeper than %d", MaxDepth)
	}
	if b = bytes.TrimSpace(b); bytes.HasPrefix(b, []byte{'"'}) {
		a.Name, err = unmarshalText(b)
		return a, err
	}
	list, err := members(b)
	if err != nil {
		return a, err
	}
	for _, kv := range list {
		switch strings.ToLower(kv.key) {
		case "name":
			a.Name, err = unmarshalText(kv.value)
		case "addresses":
			a.Addresses, err = unmarshalList(kv.value, unmarshalText)
		case "resolvers":
			a.Resolvers, err = unmarshalAgents(kv.value, depth+1)
		default:
			a.User, err = unmarshalUser(a.User, kv)
		}
		if err != nil {
			return a, fmt.Errorf("%s: %w", clip(kv.key), err)
		}
	}
	return a, nil
}

func unmarshalAgents(b []byte, depth int) ([]AID, error) {
	return unmarshalList(b, func(b []byte) (AID, error) { return unmarshalAgent(b, depth) })
}

// unmarshalList reads a list, or one value for a list of one. Validate checks its length.
func unmarshalList[T any](b []byte, one func([]byte) (T, error)) ([]T, error) {
	raw := []json.RawMessage{b}
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte{'['}) {
		if err := json.Unmarshal(b, &raw); err != nil {
			return nil, err
		}
	}
	var list []T
	for _, r := range raw {
		v, err := one(r)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}

func unmarshalContent(b []byte) (Content, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(b), []byte{'{'}) {
		s, err := unmarshalText(b)
		return Content{Text: s}, err
	}
	list, err := members(b)
	if err != nil {
		return Content{}, err
	}
	if len(list) != 1 || list[0].key != "base64" {
		return Content{}, errors.New(`want a string or {"base64":"…"}`)
	}
	s, err := unmarshalText(list[0].value)
	if err != nil {
		return Content{}, err
	}
	raw, err := decodeBase64(Content{Text: s})
	return Content{Bytes: raw}, err
}

func unmarshalUser(u map[string]string, kv member) (map[string]string, error) {
	name, ok := userKey(kv.key)
	if !ok {
		return u, errors.New("unknown key: want one of FIPA's, or a name that begins with X-")
	}
	s, err := unmarshalText(kv.value)
	return withUser(u, name, s), err
}

func unmarshalText(b []byte) (string, error) {
	var s *string
	if err := json.Unmarshal(b, &s); err != nil || s == nil {
		return "", fmt.Errorf("found %s, want a string", clip(string(b)))
	}
	if halved(b) {
		return "", fmt.Errorf("found %s, which has half a surrogate pair", clip(string(b)))
	}
	return *s, nil
}

// halved reports whether a JSON string escapes half of a surrogate pair, which the
// library would replace by another character.
func halved(b []byte) bool {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		i++
		r := unit16(b[i:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if len(b) < i+7 || b[i+5] != '\\' || utf16.DecodeRune(r, unit16(b[i+6:])) == utf8.RuneError {
			return true
		}
		i += 6
	}
	return false
}

// unit16 reads the u and four digits of an escape; 0 for any other escape.
func unit16(b []byte) rune {
	if len(b) < 5 || b[0] != 'u' {
		return 0
	}
	n, err := strconv.ParseUint(string(b[1:5]), 16, 16)
	if err != nil {
		return 0
	}
	return rune(n)
}

type member struct {
	key   string
	value json.RawMessage
}

// members reads a JSON object and refuses duplicate keys, in any case.
func members(b []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("found %s, want a JSON object", clip(string(b)))
	}
	var list []member
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		kv := member{key: t.(string)} // the decoder allows nothing else here
		if lower := strings.ToLower(kv.key); seen[lower] {
			return nil, fmt.Errorf("duplicate key %q", clip(kv.key))
		} else {
			seen[lower] = true
		}
		if err := d.Decode(&kv.value); err != nil {
			return nil, err
		}
		list = append(list, kv)
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return nil, err
	}
	return list, nil
}
