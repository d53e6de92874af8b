package node

import (
	"encoding/binary"
	"os"

	"ramp/agents/mesh"
	"ramp/protocol"
)

// BareFrame is a frame that asks for an answer of a size; 0: for none.
func BareFrame(size, answer int) []byte {
	f := make([]byte, max(4, size))
	binary.BigEndian.PutUint32(f, uint32(answer))
	return f
}

// answerBare makes a seller answer bare frames.
func answerBare(n *Node) func(*mesh.Config) {
	return func(c *mesh.Config) {
		c.Bare = func(from protocol.AgentID, f []byte) {
			if len(f) < 4 {
				return
			}
			size := int(binary.BigEndian.Uint32(f))
			if size == 0 || size > protocol.MaxMessage {
				return
			}
			if err := n.Mesh.SendBare(from, make([]byte, size)); err != nil {
				n.Log.Warn("bare answer", "err", err)
			}
		}
	}
}

// BareEnv makes 'resource serve' answer bare frames, for 'bench auction'.
const BareEnv = "RAMP_BENCH_BARE"

func wantsBare() bool { return os.Getenv(BareEnv) == "1" }
