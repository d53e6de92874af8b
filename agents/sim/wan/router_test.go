package wan

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// datagram is a UDP or TCP packet with correct sums.
func datagram(protocol byte, from, to netip.AddrPort, text []byte) []byte {
	b := make([]byte, 2*leastHeader, 2*leastHeader+len(text))
	b[0], b[9] = 4<<4|5, protocol
	copy(b[source:], from.Addr().AsSlice())
	copy(b[destination:], to.Addr().AsSlice())
	binary.BigEndian.PutUint16(b[20:], from.Port())
	binary.BigEndian.PutUint16(b[22:], to.Port())
	b = append(b, text...)
	binary.BigEndian.PutUint16(b[headerSum:], total(b[:leastHeader]))
	binary.BigEndian.PutUint16(b[leastHeader+sumOf(protocol):], total(covered(b)))
	return b
}

func sumOf(protocol byte) int {
	if protocol == tcp {
		return tcpSum
	}
	return udpSum
}

// covered is what the sum of TCP or UDP covers: a pseudo header and the rest (RFC 9293 §3.1).
func covered(b []byte) []byte {
	rest := b[leastHeader:]
	pseudo := append(append([]byte{}, b[source:destination+4]...), 0, b[9], byte(len(rest)>>8), byte(len(rest)))
	return append(pseudo, rest...)
}

// total is the Internet checksum, added up from the start (RFC 1071).
func total(b []byte) uint16 {
	var s uint32
	for i := 0; i < len(b); i += 2 {
		s += uint32(b[i]) << 8
		if i+1 < len(b) {
			s += uint32(b[i+1])
		}
	}
	for s > 0xffff {
		s = s>>16 + s&0xffff
	}
	return ^uint16(s)
}

func drawAddr(t *rapid.T, name string) netip.AddrPort {
	b := rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, name)
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b)), rapid.Uint16Min(1).Draw(t, name+" port"))
}

// The sums of a translated packet are those of the same packet made anew.
func TestATranslatedPacketHasCorrectSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SampledFrom([]byte{tcp, udp}).Draw(t, "protocol")
		from, to, instead := drawAddr(t, "from"), drawAddr(t, "to"), drawAddr(t, "instead")
		text := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "text")
		b := datagram(p, from, to, text)
		if rapid.Bool().Draw(t, "source") {
			setAddr(b, source, instead)
		} else {
			setAddr(b, destination, instead)
		}
		if total(b[:leastHeader]) != 0 || total(covered(b)) != 0 {
			t.Fatalf("sums %#x and %#x of what is left over: want 0", total(b[:leastHeader]), total(covered(b)))
		}
	})
}

func TestAMappingIsForgottenUnlessItIsUsed(t *testing.T) {
	host, peer := netip.MustParseAddrPort("192.168.0.2:5000"), netip.MustParseAddrPort("140.88.0.2:4001")
	outside := netip.MustParseAddr("140.88.0.1")
	for _, kind := range NATs()[1:] {
		protocol := byte(udp)
		if kind == OutboundOnly {
			protocol, host = tcp, netip.AddrPortFrom(outside, 5000)
		}
		r := newRouter(kind, outside, 30*time.Second)
		now := time.Unix(1000, 0)
		out := datagram(protocol, host, peer, nil)
		if !r.leave(out, now) {
			t.Fatalf("%s: nothing leaves", kind)
		}
		back := func(after time.Duration) bool {
			now = now.Add(after)
			f, _ := flowOf(out)
			return r.enter(datagram(protocol, peer, f.from, nil), now)
		}
		for range 2 {
			if !back(30 * time.Second) {
				t.Errorf("%s: a mapping in use is forgotten", kind)
			}
		}
		if back(31 * time.Second) {
			t.Errorf("%s: a mapping is kept", kind)
		}
	}
}
