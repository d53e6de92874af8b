package web

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
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
func CommandOf(kind, dir string) string {
	return "ramp " + kind + " web --dir " + words.ShellWord(dir)
}

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
	return &ownListener{Listener: l, uid: os.Getuid(), room: make(chan struct{}, maxConnections)}, nil
}

// ownListener accepts connections from processes of one account.
type ownListener struct {
	net.Listener
	uid  int
	room chan struct{} // one for each open connection
}

// Accept closes the connections of other accounts.
func (l *ownListener) Accept() (net.Conn, error) {
	for {
		l.room <- struct{}{}
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.room
			return nil, err
		}
		if uid, ok := PeerUID(c); ok && uid == l.uid {
			return &ownConn{Conn: c, free: sync.OnceFunc(func() { <-l.room })}, nil
		}
		_ = c.Close() // its owner may not even learn why
		<-l.room
	}
}

// ownConn makes room when it is closed.
type ownConn struct {
	net.Conn
	free func()
}

func (c *ownConn) Close() error {
	defer c.free()
	return c.Conn.Close()
}

// PeerUID is the account that has the other end of a connection on this machine.
func PeerUID(c net.Conn) (uid int, ok bool) {
	here, ok1 := c.LocalAddr().(*net.TCPAddr)
	there, ok2 := c.RemoteAddr().(*net.TCPAddr)
	if !ok1 || !ok2 {
		return 0, false
	}
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if b, err := os.ReadFile(file); err == nil {
			if uid, ok := ownerIn(string(b), there, here); ok {
				return uid, true
			}
		}
	}
	return 0, false
}

// ownerIn finds the account of the connection from one address to another in a table of the kernel.
func ownerIn(table string, from, to *net.TCPAddr) (uid int, ok bool) {
	want := [2]string{fmt.Sprintf(":%04X", from.Port), fmt.Sprintf(":%04X", to.Port)}
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 10 || !strings.HasSuffix(f[1], want[0]) || !strings.HasSuffix(f[2], want[1]) || !same(f[1], from.IP) || !same(f[2], to.IP) {
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
