package codec

import (
	"math"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

func presenceToWire(p message.Presence) *wire.Presence {
	return &wire.Presence{
		Agent:      int64(p.Agent),
		Properties: propertiesToWire(p.Properties),
		Start:      int64(p.Start),
		Min:        int64(p.Min),
		Terms:      termsToWire(p.Terms),
		Modes:      modesToWire(p.Modes),
		Ttl:        int64(p.TTL),
		Counter:    p.Counter,
		Addresses:  p.Addresses,
		After:      termsToWire(p.After),
		Recovering: nanos(p.Recovering),
	}
}

func (r *reader) presence(w *wire.Presence) message.Presence {
	p := message.Presence{
		Agent:      protocol.Kind(r.number("kind of agent", w.Agent, int64(protocol.KindUser), int64(protocol.KindBank))),
		Properties: r.properties(w.Properties),
		Start:      r.amount("start price", w.Start),
		Min:        r.amount("least price", w.Min),
		Terms:      list(r, "terms", w.Terms, protocol.MaxTerms, r.term),
		Modes:      r.modes(w.Modes),
		TTL:        time.Duration(w.Ttl),
		Counter:    w.Counter,
		Addresses:  list(r, "addresses", w.Addresses, protocol.MaxAddresses, r.address),
		After:      list(r, "terms paid after the fact", w.After, protocol.MaxTerms, r.term),
		Recovering: r.instant("recovering", w.Recovering),
	}
	if p.TTL < 0 || p.TTL > protocol.MaxTTL {
		r.malformed("ttl %s, want 0..%s", p.TTL, protocol.MaxTTL)
	}
	return p
}

func (r *reader) address(s string) string { return r.words("address", s) }

func propertiesToWire(p protocol.Properties) *wire.Properties {
	if p == (protocol.Properties{}) {
		return nil
	}
	return &wire.Properties{
		Os:         words(p.OS),
		OsVersion:  words(p.OSVersion),
		Arch:       words(p.Arch),
		CpuSpeed:   int64(p.CPUSpeed),
		Bandwidth:  int64(p.Bandwidth),
		RamPerCore: int64(p.RAMPerCore),
		TotalDisk:  int64(p.TotalDisk),
		NodeDisk:   int64(p.NodeDisk),
		Cores:      int64(p.Cores),
		NodeCores:  int64(p.NodeCores),
	}
}

func (r *reader) properties(w *wire.Properties) protocol.Properties {
	figure := func(field string, v int64) int { return r.number(field, v, 0, math.MaxInt32) }
	return protocol.Properties{
		OS:         r.words("os", w.GetOs()),
		OSVersion:  r.words("os version", w.GetOsVersion()),
		Arch:       r.words("architecture", w.GetArch()),
		CPUSpeed:   figure("cpu speed", w.GetCpuSpeed()),
		Bandwidth:  figure("bandwidth", w.GetBandwidth()),
		RAMPerCore: figure("ram per core", w.GetRamPerCore()),
		TotalDisk:  figure("total disk", w.GetTotalDisk()),
		NodeDisk:   figure("node disk", w.GetNodeDisk()),
		Cores:      r.cores(w.GetCores()),
		NodeCores:  r.cores(w.GetNodeCores()),
	}
}

func termsToWire(terms []protocol.Terms) []*wire.Terms {
	out := make([]*wire.Terms, len(terms))
	for i, t := range terms {
		out[i] = &wire.Terms{Bank: string(t.Bank), Currency: t.Currency}
	}
	return out
}

func (r *reader) term(w *wire.Terms) protocol.Terms {
	return protocol.Terms{Bank: r.agent("bank", w.Bank), Currency: r.currency(w.Currency)}
}

func modesToWire(modes []protocol.Mode) []string {
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return out
}
