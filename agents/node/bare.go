package node

import (
	"encoding/binary"

	"ramp/agents/mesh"
	"ramp/protocol"
)

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
