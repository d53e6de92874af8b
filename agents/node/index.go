package node

import (
	"context"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/index"
	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// indexed puts the parts of an index around the role of a bank or of a site, which sells.
func (n *Node) indexed(sells bool, load func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error)) func(protocol.Tables, time.Time) (agents.Role, protocol.Output, error) {
	n.Index = &index.Keeper{Self: index.Home{ID: n.Cred.ID, Issuer: codec.IssuerOf(n.Cred.Chain)}, Serves: n.Cfg.Index}
	if sells {
		n.Index.Sells = &index.SellerConfig{
			Credential: n.Cred, Addresses: func() []string { return n.Mesh.Addresses() }, // asked once there are indexes
			Load: func(r index.Role, now time.Time) int { return resource.LoadOf(r.(*resource.Role), now) },
		}
	}
	if n.Cfg.Index {
		n.monitor.Index(func() *control.IndexStand { return n.indexStand(context.Background()) })
	}
	return func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
		role, out, err := load(t, now)
		if err != nil {
			return nil, out, err
		}
		around, out := n.Index.Around(now, role, out)
		return around, out, nil
	}
}
