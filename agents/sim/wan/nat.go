package wan

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// NAT is the kind of router that a host is behind (RFC 4787).
type NAT int

// The kinds of NAT. A host behind one has a private address; the WAN sees its router's.
const (
	Public         NAT = 0 // none
	FullCone       NAT = 1 // one mapping per socket; whoever knows it gets in
	PortRestricted NAT = 2 // one mapping per socket; only those get in that it has sent to
	Symmetric      NAT = 3 // a mapping per socket and destination; only that one gets in
	OutboundOnly   NAT = 4 // a public address, but a firewall: TCP that the host began, and no UDP
)

// NATs are all kinds.
func NATs() []NAT { return []NAT{Public, FullCone, PortRestricted, Symmetric, OutboundOnly} }

// String is the kind's name.
func (n NAT) String() string {
	names := map[NAT]string{Public: "public", FullCone: "full-cone", PortRestricted: "port-restricted", Symmetric: "symmetric", OutboundOnly: "outbound-only"}
	return cmp.Or(names[n], fmt.Sprintf("NAT(%d)", int(n)))
}

// translates reports whether the host has a private address.
func (n NAT) translates() bool { return n == FullCone || n == PortRestricted || n == Symmetric }

// inside is the address of a host behind a NAT that translates.
func inside(host int) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, byte(host), 2}) }

// Bounds of a router.
const (
	firstPort   = 20_000 // of its mappings
	maxMappings = 20_000 // the one that is unused the longest is forgotten
)

// flow is one direction of a connection.
type flow struct {
	protocol byte
	from, to netip.AddrPort
}

// mapping is a socket of the host as the WAN sees it.
type mapping struct {
	protocol byte
	inside   netip.AddrPort
	only     netip.AddrPort // of symmetric ones: the destination
	port     uint16         // outside
	used     time.Time
	sentTo   map[netip.AddrPort]time.Time
}

// router owns the mappings of one host.
type router struct {
	kind NAT

	mu       sync.Mutex
	outside  netip.Addr
	forget   time.Duration // since the last packet; 0: never
	mappings []*mapping
	next     uint16
}

func newRouter(kind NAT, outside netip.Addr, forget time.Duration) *router {
	return &router{kind: kind, outside: outside, forget: forget, next: firstPort}
}

// leave translates a packet from the host, and reports whether it may leave.
func (r *router) leave(b []byte, now time.Time) bool {
	if r.kind == Public {
		return true
	}
	f, ok := flowOf(b)
	if !ok || r.kind == OutboundOnly && f.protocol != tcp {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	m := r.mappingFor(f)
	m.used, m.sentTo[f.to] = now, now
	if r.kind.translates() {
		setAddr(b, source, netip.AddrPortFrom(r.outside, m.port))
	}
	return true
}

// enter translates a packet to the host, and reports whether it gets in.
func (r *router) enter(b []byte, now time.Time) bool {
	if r.kind == Public {
		return true
	}
	f, ok := flowOf(b)
	if !ok {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expire(now)
	m := r.holding(f)
	if m == nil {
		return false
	}
	m.used = now
	if _, answered := m.sentTo[f.from]; answered {
		m.sentTo[f.from] = now
	}
	if r.kind.translates() {
		setAddr(b, destination, m.inside)
	}
	return true
}

// mappingFor is the mapping of an outgoing flow, a new one if there is none.
func (r *router) mappingFor(f flow) *mapping {
	var only netip.AddrPort
	if r.kind == Symmetric {
		only = f.to
	}
	for _, m := range r.mappings {
		if m.protocol == f.protocol && m.inside == f.from && m.only == only {
			return m
		}
	}
	if len(r.mappings) >= maxMappings {
		r.mappings = slices.Delete(r.mappings, 0, 1)
	}
	m := &mapping{protocol: f.protocol, inside: f.from, only: only, port: f.from.Port(), sentTo: map[netip.AddrPort]time.Time{}}
	if r.kind.translates() {
		m.port = r.next
		r.next = max(r.next+1, firstPort)
	}
	r.mappings = append(r.mappings, m)
	return m
}

// holding is the mapping that lets an incoming flow in.
func (r *router) holding(f flow) *mapping {
	for _, m := range r.mappings {
		if m.protocol != f.protocol || m.port != f.to.Port() {
			continue
		}
		if _, answered := m.sentTo[f.from]; answered || r.kind == FullCone {
			return m
		}
	}
	return nil
}

// expire forgets what was not used for long.
func (r *router) expire(now time.Time) {
	if r.forget == 0 {
		return
	}
	old := func(t time.Time) bool { return now.Sub(t) > r.forget }
	r.mappings = slices.DeleteFunc(r.mappings, func(m *mapping) bool { return old(m.used) })
	for _, m := range r.mappings {
		maps.DeleteFunc(m.sentTo, func(_ netip.AddrPort, t time.Time) bool { return old(t) })
	}
}

// move gives the router another address; it knows no mappings there.
func (r *router) move(outside netip.Addr) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.outside, r.mappings = outside, nil
}

// Offsets and numbers of IPv4, TCP and UDP headers.
const (
	tcp, udp       = 6, 17
	source         = 12 // of the source address
	destination    = 16
	headerSum      = 10
	leastHeader    = 20
	tcpSum, udpSum = 16, 6 // within the header
)

// flowOf reads a packet. Fragments and other protocols have no flow.
func flowOf(b []byte) (flow, bool) {
	if len(b) < leastHeader || b[0]>>4 != 4 {
		return flow{}, false
	}
	at, p := int(b[0]&15)*4, b[9]
	fragment := binary.BigEndian.Uint16(b[6:]) & 0x3fff
	if p != tcp && p != udp || fragment != 0 || at < leastHeader || len(b) < at+leastHeader && (p == tcp || len(b) < at+8) {
		return flow{}, false
	}
	return flow{p, addrAt(b, source, at), addrAt(b, destination, at+2)}, true
}

func addrAt(b []byte, ip, port int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[ip:ip+4])), binary.BigEndian.Uint16(b[port:]))
}

// setAddr replaces an address and port of a packet with a flow, and corrects its sums (RFC 1624).
func setAddr(b []byte, which int, a netip.AddrPort) {
	at := int(b[0]&15) * 4
	port, sum := at, at+tcpSum
	if which == destination {
		port = at + 2
	}
	if b[9] == udp {
		sum = at + udpSum
	}
	ip := a.Addr().As4()
	old := slices.Concat(b[which:which+4], b[port:port+2])
	changed := binary.BigEndian.AppendUint16(slices.Clone(ip[:]), a.Port())
	copy(b[which:], ip[:])
	binary.BigEndian.PutUint16(b[port:], a.Port())
	correct(b[headerSum:], old[:4], changed[:4])
	if b[9] == tcp || binary.BigEndian.Uint16(b[sum:]) != 0 { // 0: UDP without a sum
		correct(b[sum:], old, changed)
	}
}

// correct updates a sum for words that were replaced.
func correct(sum, old, changed []byte) {
	s := uint32(^binary.BigEndian.Uint16(sum))
	for i := 0; i < len(old); i += 2 {
		s += uint32(^binary.BigEndian.Uint16(old[i:])) + uint32(binary.BigEndian.Uint16(changed[i:]))
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	binary.BigEndian.PutUint16(sum, ^uint16(s))
}
