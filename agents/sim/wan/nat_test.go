package wan_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"ramp/agents/sim/wan"
)

// upper is a network that hosts behind a NAT can use.
var upper = netip.MustParsePrefix("140.88.0.0/16")

// natted opens a WAN: host 0 is behind a NAT, hosts 1 and 2 are public.
func natted(t *testing.T, kind wan.NAT) (w *wan.WAN, inner, one, two *net.UDPConn) {
	t.Helper()
	w = open(t, wan.Config{Hosts: 3, Net: upper, NAT: []wan.NAT{kind}})
	return w, listen(t, w.Host(0)), listen(t, w.Host(1)), listen(t, w.Host(2))
}

// heard sends a text and returns where it seems to come from.
func heard(t *testing.T, from, at *net.UDPConn) netip.AddrPort {
	t.Helper()
	send(t, from, at, "hello")
	must(t, at.SetReadDeadline(time.Now().Add(longest)))
	_, seen, err := at.ReadFromUDPAddrPort(make([]byte, 100))
	must(t, err)
	return seen
}

// reaches sends a text to an address and reports whether it arrives.
func reaches(t *testing.T, w *wan.WAN, from *net.UDPConn, to netip.AddrPort, at *net.UDPConn) bool {
	t.Helper()
	before := w.Stats().Refused
	_, err := from.WriteToUDPAddrPort([]byte("answer"), to)
	must(t, err)
	got := make(chan string, 1)
	go func() { got <- receive(t, at, longest) }()
	deadline := time.Now().Add(longest)
	for time.Now().Before(deadline) {
		select {
		case s := <-got:
			return s == "answer"
		case <-time.After(time.Millisecond):
		}
		if w.Stats().Refused > before {
			must(t, at.SetReadDeadline(time.Unix(1, 0)))
			<-got
			return false
		}
	}
	t.Fatal("the packet is neither refused nor delivered")
	return false
}

// What RFC 4787 says of each kind: whether the mapping depends on the destination, and who
// gets in.
func TestEachKindMapsAndFiltersAsItsNameSays(t *testing.T) {
	for _, c := range []struct {
		kind               wan.NAT
		sameMapping, anyIn bool
	}{
		{wan.FullCone, true, true},
		{wan.PortRestricted, true, false},
		{wan.Symmetric, false, false},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			w, inner, one, two := natted(t, c.kind)
			first := heard(t, inner, one)
			if first.Addr() != w.Outside(0) || first.Addr() == w.Host(0).Addr() {
				t.Fatalf("seen at %s: want the router's %s, not the host's %s", first, w.Outside(0), w.Host(0).Addr())
			}
			if !reaches(t, w, one, first, inner) {
				t.Error("no answer from where it sent to")
			}
			if got := reaches(t, w, two, first, inner); got != c.anyIn {
				t.Errorf("a third host gets in: %t, want %t", got, c.anyIn)
			}
			if again := heard(t, inner, two); (again == first) != c.sameMapping {
				t.Errorf("%s to one host, %s to another: want the same %t", first, again, c.sameMapping)
			}
		})
	}
}

func TestARouterMoves(t *testing.T) {
	w, inner, one, _ := natted(t, wan.PortRestricted)
	first := heard(t, inner, one)
	must(t, w.Move(0))
	if after := heard(t, inner, one).Addr(); after == first.Addr() || after != w.Outside(0) {
		t.Errorf("seen at %s after the move from %s to %s", after, first.Addr(), w.Outside(0))
	}
	if err := w.Move(1); err == nil {
		t.Error("a public host has moved")
	}
}

func TestAnOutboundOnlyHostHasTCPThatItBegan(t *testing.T) {
	w, inner, one, _ := natted(t, wan.OutboundOnly)
	send(t, inner, one, "by UDP")
	l := map[int]net.Listener{}
	for i := range 2 {
		must(t, w.Host(i).Do(func() (err error) {
			l[i], err = net.Listen("tcp4", net.JoinHostPort(w.Host(i).Addr().String(), "4001"))
			return err
		}))
		defer l[i].Close()
	}
	dial := func(from, to int, within time.Duration) error {
		return w.Host(from).Do(func() error {
			c, err := net.DialTimeout("tcp4", l[to].Addr().String(), within)
			if err == nil {
				_ = c.Close()
			}
			return err
		})
	}
	must(t, dial(0, 1, longest))
	if err := dial(1, 0, 300*time.Millisecond); err == nil {
		t.Error("a connection got in")
	}
	if got := receive(t, one, 50*time.Millisecond); got != "" {
		t.Errorf("%q left", got)
	}
}

func TestHostsBehindNATNeedTheUpperHalf(t *testing.T) {
	for _, c := range []wan.Config{
		{Hosts: 1, Net: netip.MustParsePrefix("10.0.0.0/16"), NAT: []wan.NAT{wan.Symmetric}},
		{Hosts: 1, Net: upper, NAT: wan.NATs()},
		{Hosts: 1, Net: upper, Forget: -1},
	} {
		if c.Validate() == nil {
			t.Errorf("%+v is accepted", c)
		}
	}
}
