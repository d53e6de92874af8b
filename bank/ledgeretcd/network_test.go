package ledgeretcd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ramp/bank/ledgeretcd/etcdtest"
)

// gate is a network that can lose every packet. While it is cut its connections stay
// open, and new ones are accepted, but nothing comes through.
type gate struct {
	mu     sync.Mutex
	change *sync.Cond
	cut    bool
}

func newGate() *gate {
	g := &gate{}
	g.change = sync.NewCond(&g.mu)
	return g
}

// Cut stops all traffic. Calling it again changes nothing.
func (g *gate) Cut() { g.set(true) }

// Mend lets all traffic through again, delayed and new.
func (g *gate) Mend() { g.set(false) }

func (g *gate) set(cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = cut
	g.change.Broadcast()
}

func (g *gate) pass() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for g.cut {
		g.change.Wait()
	}
}

// gated returns addresses that lead to others through one gate, until the test ends.
func gated(t testing.TB, to ...string) (addresses []string, g *gate) {
	t.Helper()
	g = newGate()
	t.Cleanup(g.Mend)
	for _, a := range to {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, l.Addr().String())
		carry(t, l, a, func(net.Conn) []*gate { return []*gate{g} })
	}
	return addresses, g
}

// carry joins the connections of a listener with an address, through their gates.
func carry(t testing.TB, l net.Listener, to string, gates func(net.Conn) []*gate) {
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer a.Close()
				through := gates(a)
				b, err := net.Dial("tcp", to)
				if err != nil {
					return
				}
				defer b.Close()
				go func() { pump(b, a, through); _ = b.Close() }()
				pump(a, b, through)
			}()
		}
	}()
}

// pump copies until one side ends.
func pump(to io.Writer, from io.Reader, through []*gate) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		for _, g := range through {
			g.pass()
		}
		if n > 0 {
			if _, failed := to.Write(b[:n]); failed != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// parted is a cluster whose members can be cut off from each other.
type parted struct {
	*etcdtest.Cluster
	gates []*gate
}

// link puts gates between the members: traffic between two of them passes the gates of
// both.
func (c *parted) link(t testing.TB) {
	t.Helper()
	for i := range etcdtest.Members {
		c.gates = append(c.gates, newGate())
		t.Cleanup(c.gates[i].Mend)
	}
	for i := range etcdtest.Members {
		l, err := net.Listen("tcp", c.Peers[i])
		if err != nil {
			t.Fatal(err)
		}
		carry(t, l, c.Listens[i], func(from net.Conn) []*gate {
			if j := c.member(from); j >= 0 {
				return []*gate{c.gates[i], c.gates[j]}
			}
			return []*gate{c.gates[i]}
		})
	}
}

// CutOff separates a member from the others; clients still reach it.
func (c *parted) CutOff(i int) { c.gates[i].Cut() }

// Mend is the end of CutOff.
func (c *parted) Mend(i int) { c.gates[i].Mend() }

// member is the member at the other end of a connection on this machine, or -1.
func (c *parted) member(conn net.Conn) int {
	socket := socketOf(conn.RemoteAddr().(*net.TCPAddr).Port)
	for i, pid := range c.PIDs() {
		links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
		for _, l := range links {
			if s, err := os.Readlink(l); err == nil && s == socket {
				return i
			}
		}
	}
	return -1
}

// socketOf is Linux's name of the socket of a connected local port.
func socketOf(port int) string {
	f, err := os.Open("/proc/net/tcp")
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		w := strings.Fields(lines.Text()) // number, local, remote, state, …, inode
		if len(w) < 10 || w[2] == "00000000:0000" {
			continue
		}
		_, hex, _ := strings.Cut(w[1], ":")
		if p, err := strconv.ParseUint(hex, 16, 16); err == nil && int(p) == port && w[9] != "0" {
			return "socket:[" + w[9] + "]"
		}
	}
	return ""
}
