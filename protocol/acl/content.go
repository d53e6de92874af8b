package acl

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// unwrap decodes content that is marked as Base64 and removes the mark.
func (m *Message) unwrap() error {
	if err := m.decodeContent(); err != nil {
		return err
	}
	if len(m.User) > MaxUser {
		return fmt.Errorf("more than %d user parameters", MaxUser)
	}
	return nil
}

func (m *Message) decodeContent() error {
	for key, value := range m.User {
		if !isMark(key, value) { // at most one matches: keys differ in more than case
			continue
		}
		b, err := decodeBase64(m.Content)
		if err != nil {
			return err
		}
		m.Content = Content{Bytes: b}
		if delete(m.User, key); len(m.User) == 0 {
			m.User = nil
		}
		return nil
	}
	m.dropMark()
	return nil
}

// dropMark removes the name of another encoding from content of bytes, which always
// travels as Base64.
func (m *Message) dropMark() {
	if key, ok := m.otherMark(); ok {
		if delete(m.User, key); len(m.User) == 0 {
			m.User = nil
		}
	}
}

// otherMark is the key of X-JADE-Encoding, in any case, if the content is bytes.
func (m *Message) otherMark() (string, bool) {
	if len(m.Content.Bytes) == 0 {
		return "", false
	}
	for key := range m.User { // at most one matches: keys differ in more than case
		if strings.EqualFold(key, encodingKey) {
			return key, true
		}
	}
	return "", false
}

// isMark reports whether a user parameter marks the content as Base64.
func isMark(key, value string) bool {
	return strings.EqualFold(key, encodingKey) && strings.EqualFold(value, encodingValue)
}

// decodeBase64 reads Base64 with or without padding and ignores white space. Empty
// content decodes to nil.
func decodeBase64(c Content) ([]byte, error) {
	if len(c.Bytes) > 0 {
		return nil, fmt.Errorf("content is marked as Base64 but is not text")
	}
	s := strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, c.Text)
	b, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(s, "="))
	if err != nil {
		return nil, fmt.Errorf("content is marked as Base64: %w", err)
	}
	if len(b) == 0 {
		return nil, nil
	}
	return b, nil
}
