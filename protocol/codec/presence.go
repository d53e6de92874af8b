package codec

import (
	"math"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

var presenceBodies = []row{
	body(16, presenceOf, on(protocol.ProtocolPresence, protocol.Inform)),
}

func presenceOf(c *coder, m *message.Presence, w *wire.Presence) {
	number(c, "kind of agent", &m.Agent, &w.Agent, int64(protocol.KindUser), int64(protocol.KindBank))
	if !c.writes || m.Properties != (protocol.Properties{}) {
		c.properties(&m.Properties, part(&w.Properties))
	}
	c.amount("start price", &m.Start, &w.Start)
	c.amount("minimum price", &m.Min, &w.Min)
	list(c, "terms", &m.Terms, &w.Terms, protocol.MaxTerms, (*coder).term)
	c.modes(&m.Modes, &w.Modes)
	if whole(c, &m.TTL, &w.Ttl); m.TTL < 0 || m.TTL > protocol.MaxTTL {
		c.malformed("ttl %s, want 0..%s", m.TTL, protocol.MaxTTL)
	}
	same(c, &m.Counter, &w.Counter)
	values(c, "addresses", &m.Addresses, &w.Addresses, protocol.MaxAddresses, func(c *coder, m, w *string) { c.plain("address", m, w) })
	list(c, "terms paid after the fact", &m.After, &w.After, protocol.MaxTerms, (*coder).term)
	c.instant("recovering", &m.Recovering, &w.Recovering)
	c.instant("issued", &m.Issued, &w.Issued)
	number(c, "index", &m.Index, &w.Index, 0, message.MaxIndexSellers)
	c.name("federation", &m.Federation, &w.Federation, protocol.MaxName)
}

func (c *coder) properties(m *protocol.Properties, w *wire.Properties) {
	figure := func(field string, m *int, w *int64) { number(c, field, m, w, 0, math.MaxInt32) }
	c.words("os", &m.OS, &w.Os)
	c.words("os version", &m.OSVersion, &w.OsVersion)
	c.words("architecture", &m.Arch, &w.Arch)
	figure("cpu speed", &m.CPUSpeed, &w.CpuSpeed)
	figure("bandwidth", &m.Bandwidth, &w.Bandwidth)
	figure("ram per core", &m.RAMPerCore, &w.RamPerCore)
	figure("total disk", &m.TotalDisk, &w.TotalDisk)
	figure("node disk", &m.NodeDisk, &w.NodeDisk)
	c.cores(&m.Cores, &w.Cores)
	c.cores(&m.NodeCores, &w.NodeCores)
}

func (c *coder) term(m *protocol.Terms, w *wire.Terms) {
	c.agent("bank", &m.Bank, &w.Bank)
	c.currency(&m.Currency, &w.Currency)
}
