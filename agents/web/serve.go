package web

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ramp/agents/control"
	"ramp/agents/words"
)

const (
	maxConnections = 512 // at once; further ones wait
	idleTime       = 2 * time.Minute
	headerTime     = 10 * time.Second // for the head of a request
	bodyTime       = 30 * time.Second // for all of it
)

// CommandOf is the command that makes a link to the pages of an agent.
func CommandOf(kind, dir string) string { return "ramp " + kind + " web --dir " + words.ShellWord(dir) }

// NewHTTPServer bounds what a browser, or anybody else, may cost.
func NewHTTPServer(pages http.Handler) *http.Server {
	return &http.Server{Handler: pages, ReadHeaderTimeout: headerTime, ReadTimeout: bodyTime, IdleTimeout: idleTime, MaxHeaderBytes: 1 << 15}
}

// LinkTo answers control.Web for pages on a socket.
func (s *Server) LinkTo(socket string) func(context.Context, control.None) (control.WebLink, error) {
	return func(context.Context, control.None) (control.WebLink, error) {
		return control.WebLink{Socket: socket, Origin: s.cfg.Origin, Path: s.Link("")}, nil
	}
}

// ListenLoopback opens a port of this machine's loopback. Only processes of this account
// reach what is behind it: other accounts share the loopback, and cookies ignore ports.
func ListenLoopback(port int) (net.Listener, error) {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return nil, err
	}
	return &ownListener{Listener: l, uid: os.Getuid(), room: make(chan struct{}, maxConnections), owners: owners{read: connections}}, nil
}

// ownListener accepts connections, and reads only from those of processes of one account.
type ownListener struct {
	net.Listener
	uid    int
	room   chan struct{} // one for each open connection
	owners owners
}

func (l *ownListener) Accept() (net.Conn, error) {
	l.room <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.room
		return nil, err
	}
	return &ownConn{Conn: c, free: sync.OnceFunc(func() { <-l.room }), own: sync.OnceValue(func() bool {
		uid, ok := l.owners.find(c)
		return ok && uid == l.uid
	})}, nil
}

// ownConn makes room when it is closed. Whose it is, is asked by its first reader: others that
// connect do not wait for the answer.
type ownConn struct {
	net.Conn
	own  func() bool
	free func()
}

// Read closes the connections of other accounts. Their owners may not even learn why.
func (c *ownConn) Read(b []byte) (int, error) {
	if !c.own() {
		_ = c.Close()
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

func (c *ownConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// owners finds the accounts of connections in the kernel's table. One reading of it serves
// everybody who asked before it began, so that many connections cost little more than one.
type owners struct {
	read   func() string
	mu     sync.Mutex // held while the table is read
	asked  atomic.Int64
	served int64 // of those who asked
	table  string
}

// find returns the account that has the other end of a connection on this machine.
func (o *owners) find(c net.Conn) (uid int, ok bool) {
	here, ok1 := c.LocalAddr().(*net.TCPAddr)
	there, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return 0, false
	}
	return ownerIn(o.now(o.asked.Add(1)), there, here)
}

func (o *owners) now(number int64) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.served < number {
		o.served = o.asked.Load()
		o.table = o.read()
	}
	return o.table
}

// connections is the kernel's table of TCP connections.
func connections() string {
	v4, _ := os.ReadFile("/proc/net/tcp") // without it no connection is known to be ours
	v6, _ := os.ReadFile("/proc/net/tcp6")
	return string(v4) + string(v6)
}

// ownerIn finds the account of the connection from one address to another in a table of the kernel. An
// end that its program has closed is root's there, and has no inode.
func ownerIn(table string, from, to *net.TCPAddr) (uid int, ok bool) {
	want := [2]string{fmt.Sprintf(":%04X", from.Port), fmt.Sprintf(":%04X", to.Port)}
	for line := range strings.Lines(table) {
		if !strings.Contains(line, want[0]) { // most lines
			continue
		}
		f := strings.Fields(line)
		if len(f) < 10 || f[9] == "0" || !strings.HasSuffix(f[1], want[0]) || !strings.HasSuffix(f[2], want[1]) || !same(f[1], from.IP) || !same(f[2], to.IP) {
			continue
		}
		if _, err := fmt.Sscan(f[7], &uid); err == nil {
			return uid, true
		}
	}
	return 0, false
}

// same reports whether an address of the kernel's table, in words of the machine's order,
// is an IP. Only little-endian machines have RAMP's packages, but both orders are known.
func same(field string, ip net.IP) bool {
	text, _, _ := strings.Cut(field, ":")
	v4 := ip.To4()
	if v4 == nil {
		return false
	}
	little := fmt.Sprintf("%02X%02X%02X%02X", v4[3], v4[2], v4[1], v4[0])
	big := fmt.Sprintf("%02X%02X%02X%02X", v4[0], v4[1], v4[2], v4[3])
	return strings.HasSuffix(text, little) || strings.HasSuffix(text, big)
}
