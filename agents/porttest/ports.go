// Package porttest reserves ports for the daemons of tests that must know their port before
// they listen, or listen on the same one again.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// The ports are below those for outgoing connections (Linux: from 32768), so that no
// connection takes the port of a daemon that is down. Each test process has a block of ports
// to itself: a reserved port that nobody listens on yet looks free to other processes.
const (
	first  = 12000
	blocks = 20
	size   = 1000
)

type block struct {
	guard net.Listener // on the block's first port while the process lives
	next  int          // from the block's first port
}

var claim = sync.OnceValues(func() (*block, error) {
	from := rand.IntN(blocks)
	for i := range blocks {
		at := first + (from+i)%blocks*size
		if l, err := net.Listen("tcp4", address(at)); err == nil {
			return &block{guard: l}, nil
		}
	}
	return nil, errors.New("every block of ports is taken by another process")
})

var mu sync.Mutex // of the block

// Free returns a free port on loopback between 12001 and 31999. No other test of any process
// got it within the last 999 calls.
func Free() (int, error) {
	b, err := claim()
	if err != nil {
		return 0, err
	}
	mu.Lock()
	defer mu.Unlock()
	base := b.guard.Addr().(*net.TCPAddr).Port
	for range size {
		b.next = b.next%(size-1) + 1
		if l, err := net.Listen("tcp4", address(base+b.next)); err == nil {
			return base + b.next, l.Close()
		}
	}
	return 0, fmt.Errorf("no port from %d to %d is free", base+1, base+size-1)
}

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
