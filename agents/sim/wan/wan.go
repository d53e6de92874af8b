package wan

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// WAN is a running network. Its methods are safe for concurrent use.
type WAN struct {
	net     netip.Prefix
	hosts   []*Host
	outlets []*outlet
	inboxes []*inbox
	routers []*router
	at      map[netip.Addr]int // hosts by the addresses that the WAN sees
	free    netip.Addr         // the last address that was given away
	atMu    sync.RWMutex

	sent, delivered, lost, cut, dropped, refused atomic.Uint64

	done    chan struct{}
	closing sync.Once
	wg      sync.WaitGroup
}

// Available returns why no WAN can be created here, or nil.
func Available() error {
	if _, err := os.Stat("/dev/net/tun"); err != nil {
		return fmt.Errorf("wan: no TUN devices: %w", err)
	}
	if os.Geteuid() != 0 {
		return errors.New("wan: network namespaces need root")
	}
	return nil
}

// New creates a WAN.
func New(cfg Config) (*WAN, error) {
	if cfg.Net == (netip.Prefix{}) {
		cfg.Net = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, 0, 0}), 16)
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if err := Available(); err != nil {
		return nil, err
	}
	w := &WAN{net: cfg.Net, done: make(chan struct{}), at: map[netip.Addr]int{}, free: cfg.Net.Addr()}
	for i := range cfg.Hosts {
		kind := Public
		if i < len(cfg.NAT) {
			kind = cfg.NAT[i]
		}
		w.free = w.free.Next()
		w.at[w.free] = i
		w.routers = append(w.routers, newRouter(kind, w.free, cfg.Forget))
		h := &Host{addr: w.free, jobs: make(chan func()), done: w.done}
		net := cfg.Net
		if kind.translates() {
			h.addr, net = inside(i), everything
		}
		if err := h.open(net); err != nil {
			return nil, errors.Join(fmt.Errorf("host %d: %w", i, err), w.Close())
		}
		w.hosts = append(w.hosts, h)
		w.outlets = append(w.outlets, newOutlet(cfg.Hosts, cfg.Link, cfg.Seed, i))
		w.inboxes = append(w.inboxes, newInbox())
	}
	for i := range w.hosts {
		w.wg.Go(func() { w.listen(i) })
		w.wg.Go(func() { w.inboxes[i].drain(w.done, func(b []byte) { w.deliver(i, b) }) })
	}
	return w, nil
}

// Hosts is the number of hosts.
func (w *WAN) Hosts() int { return len(w.hosts) }

// Host is host i, from 0.
func (w *WAN) Host(i int) *Host { return w.hosts[i] }

// SetLink changes the link from one host to another, in that direction only.
func (w *WAN) SetLink(from, to int, l Link) error {
	if err := l.Validate(); err != nil {
		return err
	}
	w.outlets[from].change(to, func(old *Link) { *old = l })
	return nil
}

// Cut drops all packets from one host to another, in that direction only.
func (w *WAN) Cut(from, to int) { w.outlets[from].change(to, func(l *Link) { l.Cut = true }) }

// Heal undoes Cut; the link's other properties are unchanged.
func (w *WAN) Heal(from, to int) { w.outlets[from].change(to, func(l *Link) { l.Cut = false }) }

// Outside is the address of host i as others see it.
func (w *WAN) Outside(i int) netip.Addr {
	r := w.routers[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.outside
}

// Move gives the router of a host behind a translating NAT another address, as when a
// laptop wakes in another network. Packets to the old address are lost.
func (w *WAN) Move(i int) error {
	if !w.routers[i].kind.translates() {
		return fmt.Errorf("wan: host %d is %s: only a router can move", i, w.routers[i].kind)
	}
	w.atMu.Lock()
	defer w.atMu.Unlock()
	if !w.net.Contains(w.free.Next()) {
		return fmt.Errorf("wan: no address is left in %s", w.net)
	}
	w.free = w.free.Next()
	delete(w.at, w.Outside(i))
	w.at[w.free] = i
	w.routers[i].move(w.free)
	return nil
}

// everything makes every address of the upper half a neighbour, so that no route is needed.
var everything = netip.PrefixFrom(netip.AddrFrom4([4]byte{128, 0, 0, 0}), 1)

// listen reads what a host sends, until its device is closed.
func (w *WAN) listen(from int) {
	buf := make([]byte, mtu+64)
	for {
		n, err := w.hosts[from].tun.Read(buf)
		if err != nil {
			return // closed
		}
		b := buf[:n]
		if to, ok := w.destination(b); ok && w.routers[from].leave(b, time.Now()) {
			w.forward(from, to, b)
		}
	}
}

// destination is the host that an IPv4 packet goes to. Broadcasts and other addresses have no host.
func (w *WAN) destination(b []byte) (int, bool) {
	if len(b) < leastHeader || b[0]>>4 != 4 {
		return 0, false
	}
	w.atMu.RLock()
	defer w.atMu.RUnlock()
	i, ok := w.at[netip.AddrFrom4([4]byte(b[destination:destination+4]))]
	return i, ok
}

// forward puts a packet on its way.
func (w *WAN) forward(from, to int, b []byte) {
	w.sent.Add(1)
	what, due := w.outlets[from].fate(time.Now(), to)
	switch {
	case what == cut:
		w.cut.Add(1)
	case what == lost:
		w.lost.Add(1)
	case !w.inboxes[to].put(due, append([]byte(nil), b...)):
		w.dropped.Add(1)
	}
}

// deliver hands a packet to the kernel of a host.
func (w *WAN) deliver(to int, b []byte) {
	if !w.routers[to].enter(b, time.Now()) {
		w.refused.Add(1)
		return
	}
	w.delivered.Add(1)
	_, _ = w.hosts[to].tun.Write(b) // it is being closed, or has no room
}

// Close kills every program on the hosts and removes the network.
func (w *WAN) Close() error {
	var err error
	w.closing.Do(func() {
		err = w.killAll()
		close(w.done)
		for _, h := range w.hosts {
			err = errors.Join(err, h.tun.Close(), h.ns.Close())
		}
		w.wg.Wait()
	})
	return err
}

// killAll kills every process in the namespaces of the hosts, including background processes.
func (w *WAN) killAll() error {
	ours := map[uint64]bool{}
	for _, h := range w.hosts {
		var s unix.Stat_t
		if err := unix.Fstat(int(h.ns.Fd()), &s); err != nil {
			return fmt.Errorf("wan: %w", err)
		}
		ours[s.Ino] = true
	}
	for range killTries {
		if n, err := killIn(ours); n == 0 || err != nil {
			return err
		}
	}
	return errors.New("wan: processes on its hosts cannot be killed")
}

// killTries bounds the rounds of killing: a process may start another one before it dies.
const killTries = 10_000

// killIn kills the processes in some namespaces, and returns how many it found.
func killIn(ours map[uint64]bool) (found int, err error) {
	paths, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return 0, err
	}
	for _, p := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(p))))
		var s unix.Stat_t
		if err != nil || pid == os.Getpid() || unix.Stat(p, &s) != nil || !ours[s.Ino] {
			continue // its main thread may be a host's; or it has ended meanwhile
		}
		_ = unix.Kill(pid, unix.SIGKILL) // likewise
		found++
	}
	return found, nil
}
