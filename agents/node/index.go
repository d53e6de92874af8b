package node

import (
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/index"
	"ramp/agents/resource"
	"ramp/protocol"
	"ramp/protocol/codec"
)

// loader restores a role.
type loader = func(t protocol.Tables, now time.Time) (agents.Role, protocol.Output, error)

// indexed puts the parts of an index around the role of a bank or of a site, which sells.
func (n *Node) indexed(sells bool, load loader) loader {
	n.Index = &index.Keeper{Self: index.Home{ID: n.Cred.ID, Issuer: codec.IssuerOf(n.Cred.Chain)}, Serves: n.Cfg.Index}
	if sells {
		n.Index.Sells = &index.SellerConfig{
			Credential: n.Cred, Addresses: n.addresses,
			Load: func(r index.Role, now time.Time) int { return resource.LoadOf(r.(*resource.Role), now) },
		}
	}
	if n.Cfg.Index {
		n.indexGauges()
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

// addresses are where others reach the agent, without its name there.
func (n *Node) addresses() (list []string) {
	if n.Mesh == nil {
		return nil
	}
	for _, a := range n.Mesh.Addresses() {
		list = append(list, a[:max(strings.LastIndex(a, "/p2p/"), 0)])
	}
	return list
}

func (n *Node) indexGauges() {
	for name, g := range map[string]struct {
		help string
		of   func(s index.Stand) int
	}{
		"ramp_index_records":      {"Sellers' records that this index keeps.", func(s index.Stand) int { return s.Kept }},
		"ramp_index_servers":      {"Other indexes that it knows.", func(s index.Stand) int { return s.Servers }},
		"ramp_index_market":       {"Sellers of the market, as far as it knows.", func(s index.Stand) int { return s.Market }},
		"ramp_index_queries":      {"Queries that it has answered.", func(s index.Stand) int { return s.Queries }},
		"ramp_index_records_put":  {"Records that were brought to it.", func(s index.Stand) int { return s.Records }},
		"ramp_index_refused":      {"Records that it has refused.", func(s index.Stand) int { return s.Refused }},
		"ramp_index_records_sent": {"Records that it has sent to users.", func(s index.Stand) int { return s.Fetched }},
		"ramp_index_dropped":      {"Messages beyond the allowance of their sender.", func(s index.Stand) int { return s.Dropped }},
	} {
		n.monitor.figure(name, g.help, func(now time.Time, _ agents.Role) int {
			s, _ := n.Index.Stand(now)
			return g.of(s)
		})
	}
}
