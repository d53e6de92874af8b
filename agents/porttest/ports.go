// Package porttest gives tests ports for daemons that must know theirs before
// they listen, or come back on the same one.
package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
)

// Ports lie below those that systems hand out for outgoing connections (Linux:
// from 32768), so that none of these takes the place of a daemon that is away.
// They are divided into blocks, and each process of tests has one to itself: a
// port that is given out and not yet listened on looks free to everybody else.
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

// Free is a port on loopback on which nobody listens, between 12001 and 31999,
// that no other test of any process was given within the last 999.
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
