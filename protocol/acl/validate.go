package acl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Validate reports whether Format can write m so that Parse reads it: a known performative, names
// for all agents, UTF-8 text, keys that are words, and no value over its bound.
func (m Message) Validate() error {
	if !Known(m.Performative) {
		return fmt.Errorf("performative %q is not a FIPA performative", clip(string(m.Performative)))
	}
	for _, check := range []func() error{m.checkAgents, m.checkContent, m.checkText, m.checkReplyBy} {
		if err := check(); err != nil {
			return err
		}
	}
	return checkUser(m.User)
}

func (m *Message) checkAgents() error {
	if !m.Sender.empty() {
		if err := m.Sender.validate(1); err != nil {
			return fmt.Errorf("sender: %w", err)
		}
	}
	if err := checkAgents(m.Receivers, 1); err != nil {
		return fmt.Errorf("receiver: %w", err)
	}
	if err := checkAgents(m.ReplyTo, 1); err != nil {
		return fmt.Errorf("reply-to: %w", err)
	}
	return nil
}

func (m *Message) checkContent() error {
	if m.Content.Text != "" && len(m.Content.Bytes) > 0 {
		return errors.New("content: both text and bytes")
	}
	if !utf8.ValidString(m.Content.Text) {
		return errors.New("content: text that is not UTF-8; set Bytes")
	}
	if key, ok := m.otherMark(); ok {
		return fmt.Errorf("user parameter %s: content of bytes travels as Base64", key)
	}
	return nil
}

func (m *Message) checkText() error {
	for _, key := range textKeys() {
		if field, _ := m.text(key); checkValue(*field) != nil {
			return fmt.Errorf("%s: %w", key, checkValue(*field))
		}
	}
	return nil
}

func (m *Message) checkReplyBy() error {
	switch {
	case m.ReplyIn != nil && !m.ReplyBy.IsZero():
		return errors.New("reply-by: both a time and a duration")
	case m.ReplyIn != nil && m.ReplyIn.Abs()/year > maxYears:
		return fmt.Errorf("reply-by: %s from sending, want at most %d years", *m.ReplyIn, maxYears)
	case m.ReplyBy.IsZero():
		return nil
	}
	if y := m.ReplyBy.UTC().Year(); y < minYear || y > maxYear {
		return fmt.Errorf("reply-by: year %d, want %d..%d", y, minYear, maxYear)
	}
	return nil
}

func (a AID) empty() bool {
	return a.Name == "" && len(a.Addresses) == 0 && len(a.Resolvers) == 0 && len(a.User) == 0
}

func (a AID) validate(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("resolvers nested deeper than %d", MaxDepth)
	}
	if a.Name == "" {
		return errors.New("an agent without a name")
	}
	if err := checkValue(a.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if len(a.Addresses) > MaxAddresses {
		return fmt.Errorf("%d addresses of one agent, want at most %d", len(a.Addresses), MaxAddresses)
	}
	for _, s := range a.Addresses {
		if s == "" || checkValue(s) != nil {
			return fmt.Errorf("address %q: want 1..%d bytes of UTF-8", clip(s), MaxValue)
		}
	}
	if err := checkAgents(a.Resolvers, depth+1); err != nil {
		return fmt.Errorf("resolvers: %w", err)
	}
	return checkUser(a.User)
}

func checkAgents(list []AID, depth int) error {
	if len(list) > MaxAgents {
		return fmt.Errorf("%d agents, want at most %d", len(list), MaxAgents)
	}
	for _, a := range list {
		if err := a.validate(depth); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(s string) error {
	if len(s) > MaxValue || !utf8.ValidString(s) {
		return fmt.Errorf("%q: want at most %d bytes of UTF-8", clip(strings.ToValidUTF8(s, "?")), MaxValue)
	}
	return nil
}

func checkUser(user map[string]string) error {
	if len(user) > MaxUser {
		return fmt.Errorf("%d user parameters, want at most %d", len(user), MaxUser)
	}
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(user)) {
		if err := checkUserParameter(key, user[key]); err != nil {
			return err
		}
		lower := strings.ToLower(key)
		if seen[lower] {
			return fmt.Errorf("duplicate user parameter %q", clip(key))
		}
		seen[lower] = true
	}
	return nil
}

func checkUserParameter(key, value string) error {
	name, ok := userKey(key)
	if !ok || name != key || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == '(' || r == ')' }) {
		return fmt.Errorf("user parameter %q: want a word that begins with X-", clip(key))
	}
	if isMark(key, value) {
		return fmt.Errorf("user parameter %s: it marks content as Base64; set Content.Bytes", key)
	}
	if value == "" {
		return fmt.Errorf("user parameter %s: no value", clip(key))
	}
	if err := checkValue(key); err != nil {
		return fmt.Errorf("user parameter: %w", err)
	}
	return checkValue(value)
}
