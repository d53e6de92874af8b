package control

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"ramp/agents/exit"
	"ramp/bank/boltfile"
)

const (
	socketName     = "control.sock"
	webSocketName  = "web.sock"
	MaxControlBody = 8 << 20 // bytes of a request or refusal
	maxSocketPath  = 100     // bytes; the kernel's limit is 108
)

// How long to wait for a file that a command has open, and how often to try. Most commands
// take less.
const (
	BusyTime  = 3 * time.Second
	BusyPause = 20 * time.Millisecond
)

// SocketPath is where the daemon of an agent's directory listens: in the directory, or below
// the temporary directory if that path is too long for a socket.
func SocketPath(dir string) string { return socketAt(dir, socketName) }

// WebSocketPath is where the daemon of an agent's directory serves its pages.
func WebSocketPath(dir string) string { return socketAt(dir, webSocketName) }

func socketAt(dir, name string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // of a long path and a short link to it, both find one socket
	}
	p := filepath.Join(dir, name)
	if abs, err := filepath.Abs(p); err == nil {
		p = abs
	}
	if len(p) <= maxSocketPath {
		return p
	}
	sum := sha256.Sum256([]byte(p))
	return filepath.Join(os.TempDir(), fmt.Sprintf("ramp-%d-%x.sock", os.Getuid(), sum[:8]))
}

// ownSocket reports whether no other account can have made a socket. Below the temporary
// directory, where everybody can, it must belong to this account.
func ownSocket(p string) bool {
	if filepath.Base(p) == socketName { // in the agent's directory
		return true
	}
	info, err := os.Lstat(p)
	if err != nil {
		return false
	}
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Getuid()
}

// Listen opens the control socket and removes the one of a dead daemon. The caller holds
// the lock of the journal or ledger, so no other daemon lives.
func Listen(dir string) (net.Listener, error) { return listen(SocketPath(dir)) }

// ListenWeb opens the socket of the pages, as Listen does.
func ListenWeb(dir string) (net.Listener, error) { return listen(WebSocketPath(dir)) }

func listen(p string) (net.Listener, error) {
	if err := os.Remove(p); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, exit.Fail(exit.Failed, "", "socket %s: %w", p, err)
	}
	l, err := net.Listen("unix", p)
	if err != nil {
		return nil, exit.Fail(exit.Failed, "", "socket %s: %w", p, err)
	}
	if err := os.Chmod(p, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// DaemonListens reports whether a process of this account, or of root, has the control
// socket of a directory.
func DaemonListens(dir string) bool {
	p := SocketPath(dir)
	if !ownSocket(p) {
		return false
	}
	conn, err := net.DialTimeout("unix", p, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func awaitListener(dir, file string) {
	late := time.Now().Add(BusyTime)
	again := time.NewTicker(BusyPause)
	defer again.Stop()
	for !DaemonListens(dir) && time.Now().Before(late) {
		if who, err := boltfile.Holder(file); err != nil || who == nil {
			return
		}
		<-again.C
	}
}
