package queue

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"ramp/protocol"
)

// Mark begins the names of one agent's reservations in a batch system that others use too. The rest
// of a name is the reservation's ID, so that the batch system itself remembers which is which.
type Mark string

// MarkOf is an agent's mark: two agents of one cluster never confuse their reservations.
func MarkOf(agent protocol.AgentID) Mark {
	sum := sha256.Sum256([]byte(agent))
	return Mark("ramp-" + hex.EncodeToString(sum[:6]) + "-")
}

const hexDigits = "0123456789abcdef"

// Name is the batch system's name of a reservation: letters, digits, '-' and '.' stay, any other
// byte becomes '_' and two hexadecimal digits. So no ID contains the batch system's own syntax.
func (m Mark) Name(id string) string {
	var b strings.Builder
	b.WriteString(string(m))
	for i := range len(id) {
		if c := id[i]; plain(c) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'_', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.'
}

// ID extracts the reservation's ID from a name that Name made.
func (m Mark) ID(name string) (string, bool) {
	rest, ok := strings.CutPrefix(name, string(m))
	if !ok {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case plain(c):
			b.WriteByte(c)
		case c == '_' && i+2 < len(rest):
			x, err := hex.DecodeString(rest[i+1 : i+3])
			if err != nil {
				return "", false
			}
			b.WriteByte(x[0])
			i += 2
		default:
			return "", false
		}
	}
	id := b.String()
	return id, id != "" && m.Name(id) == name
}
