package protocol

import (
	"fmt"
	"strings"
)

// AgentID names an agent: the common name of its certificate, "@", and the
// base32 fingerprint (160 bits of SHA-256) of its public key, so that a name
// alone proves nothing and one key under two names is two agents.
//
// It is a FIPA word: it has no space, control or parenthesis and does not begin
// with a digit, "#", "@" or "-".
type AgentID string

// FingerprintLen is the length of the part after "@" in an AgentID.
const FingerprintLen = 32

// MaxAgentID bounds the length of an AgentID in bytes.
const MaxAgentID = 96

// Name is the part before "@", which people use.
func (a AgentID) Name() string {
	name, _, _ := strings.Cut(string(a), "@")
	return name
}

// Fingerprint is the part after "@": the hash of the agent's key.
func (a AgentID) Fingerprint() string {
	_, fp, _ := strings.Cut(string(a), "@")
	return fp
}

// NewAgentID joins a name and a key fingerprint. The name must have 1..63
// letters, digits, ".", "_" or "-" and begin with a letter.
func NewAgentID(name, fingerprint string) (AgentID, error) {
	id := AgentID(name + "@" + fingerprint)
	if err := id.Validate(); err != nil {
		return "", err
	}
	return id, nil
}

// Validate reports whether a is a well-formed AgentID.
func (a AgentID) Validate() error {
	name, fp, ok := strings.Cut(string(a), "@")
	if !ok || !validFingerprint(fp) {
		return fmt.Errorf("agent %q: want NAME@FINGERPRINT with %d base32 letters", Clip(string(a)), FingerprintLen)
	}
	if !validName(name) {
		return fmt.Errorf("agent name %q: want 1..63 letters, digits, '.', '_' or '-', beginning with a letter", Clip(name))
	}
	return nil
}

func validFingerprint(s string) bool {
	outside := func(c rune) bool { return (c < 'a' || c > 'z') && (c < '2' || c > '7') }
	return len(s) == FingerprintLen && !strings.ContainsFunc(s, outside)
}

func validName(s string) bool {
	if s == "" || len(s) > 63 {
		return false
	}
	for i, c := range []byte(s) {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		other := c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if !letter && (i == 0 || !other) {
			return false
		}
	}
	return true
}

// Clip shortens foreign input for an error message.
func Clip(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

// Kind says what an agent does in the market. The numbers are sent and stored.
type Kind int

// The kinds of agent.
const (
	KindUser     Kind = 1
	KindResource Kind = 2
	KindBank     Kind = 3
)

func (k Kind) String() string {
	switch k {
	case KindUser:
		return "user"
	case KindResource:
		return "resource"
	case KindBank:
		return "bank"
	}
	return fmt.Sprintf("kind(%d)", int(k))
}

// Local correspondents are not agents but the parts of the same process that do
// I/O for a role. Their names begin with ".", which no certificate allows.
const (
	LocalQueue   AgentID = ".queue"   // the batch system of a resource
	LocalHistory AgentID = ".history" // the store's older entries, for statements
	LocalControl AgentID = ".control" // the control socket: the agent's owner
	LocalMesh    AgentID = ".mesh"    // the transport, which reports undelivered messages
	LocalFiles   AgentID = ".files"   // the inputs and outputs of jobs
	Everyone     AgentID = ".everyone"
)

// Local reports whether a is a local correspondent (or Everyone), not an agent.
func (a AgentID) Local() bool { return strings.HasPrefix(string(a), ".") }
