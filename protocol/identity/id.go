package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base32"
	"fmt"
	"strings"

	"ramp/protocol"
)

// maxName is the longest name that an AgentID can hold.
const maxName = 63

// ID is the name of the agent with the certificate leaf: its common name and the
// fingerprint of its key. It fails only without a common name.
//
// The common names of grid authorities ("John Smith 1234") may contain characters that an AgentID
// must not have. Each run of them becomes one "-", "-" at the ends is removed, a name that does not
// begin with a letter gets the prefix "x-", and the result is cut to 63 bytes: "John-Smith-1234".
// Two names can become one; the fingerprint still distinguishes the agents.
func ID(leaf *x509.Certificate) (protocol.AgentID, error) {
	if leaf.Subject.CommonName == "" {
		return "", fmt.Errorf("subject %q has no common name: %w", leaf.Subject, ErrUsage)
	}
	return protocol.NewAgentID(agentName(leaf.Subject.CommonName), Fingerprint(leaf.RawSubjectPublicKeyInfo))
}

// Fingerprint is the fingerprint of a key given as SubjectPublicKeyInfo in DER:
// the first 20 bytes of its SHA-256 in base32, lower case, without padding.
func Fingerprint(spki []byte) string {
	sum := sha256.Sum256(spki)
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:20]))
}

func agentName(cn string) string {
	name := strings.Trim(strings.Join(strings.FieldsFunc(cn, notInName), "-"), "-")
	if name == "" {
		return "x"
	}
	if c := name[0] | 0x20; c < 'a' || c > 'z' {
		name = "x-" + name
	}
	return strings.TrimRight(name[:min(len(name), maxName)], "-")
}

func notInName(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !letter && (r < '0' || r > '9') && r != '.' && r != '_' && r != '-'
}

// IsLater reports whether one certificate, in DER, was issued after another.
func IsLater(der, than []byte) bool {
	if bytes.Equal(der, than) {
		return false
	}
	x, err1 := x509.ParseCertificate(der)
	y, err2 := x509.ParseCertificate(than)
	return err1 == nil && err2 == nil && x.NotBefore.After(y.NotBefore)
}
