package wan

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	device   = "wan0" // of every host
	loopback = "lo"
)

// errClosed is returned by the methods of hosts after their WAN was closed.
var errClosed = errors.New("wan: closed")

// Host is a network namespace with a loopback device and one address in the WAN.
type Host struct {
	addr netip.Addr
	tun  *os.File
	ns   *os.File // keeps the namespace
	jobs chan func()
	done <-chan struct{} // of the WAN
}

// Addr is the host's address.
func (h *Host) Addr() netip.Addr { return h.addr }

// Do runs f in a thread in the host's namespace: sockets that f opens belong to the host,
// wherever they are used. f must not start goroutines that open more. Calls for one host
// run one after another.
func (h *Host) Do(f func() error) error {
	result := make(chan error, 1)
	select {
	case h.jobs <- func() { result <- f() }:
		return <-result
	case <-h.done:
		return errClosed
	}
}

// Start starts a program on the host. It is killed when the WAN is closed or
// this process ends; the caller waits for it as usual.
func (h *Host) Start(c *exec.Cmd) error {
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL // when the host's thread ends
	return h.Do(c.Start)
}

// open creates the namespace of a host and its thread, and waits until both are ready.
func (h *Host) open(net netip.Prefix) error {
	begun := make(chan error)
	go h.live(net, begun)
	return <-begun
}

// live is the host's thread. It stays locked: the thread ends with the goroutine, and the
// programs that it started with it.
func (h *Host) live(net netip.Prefix, begun chan<- error) {
	runtime.LockOSThread()
	if err := h.settle(net); err != nil {
		begun <- err
		return
	}
	begun <- nil
	for {
		select {
		case job := <-h.jobs:
			job()
		case <-h.done:
			return
		}
	}
}

// settle moves the calling thread into a new namespace, and sets up its devices.
func (h *Host) settle(net netip.Prefix) error {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("wan: make a network namespace: %w", err)
	}
	ns, err := os.Open(fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid()))
	if err != nil {
		return fmt.Errorf("wan: %w", err)
	}
	h.ns = ns
	if h.tun, err = openTUN(); err != nil {
		return errors.Join(err, ns.Close())
	}
	if err := configure(h.addr, net); err != nil {
		return errors.Join(err, h.tun.Close(), ns.Close())
	}
	return nil
}

// openTUN creates the device in the thread's namespace. Closing the device removes it.
func openTUN() (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("wan: open /dev/net/tun: %w", err)
	}
	req, err := unix.NewIfreq(device)
	if err == nil {
		req.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, req)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wan: make the device %s: %w", device, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), device), nil
}

// configure assigns addresses to the devices of the thread's namespace.
func configure(addr netip.Addr, net netip.Prefix) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("wan: %w", err)
	}
	defer unix.Close(s)
	mask := binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-net.Bits()))
	ip := addr.As4()
	return errors.Join(
		set(s, device, unix.SIOCSIFADDR, func(r *unix.Ifreq) error { return r.SetInet4Addr(ip[:]) }),
		set(s, device, unix.SIOCSIFNETMASK, func(r *unix.Ifreq) error { return r.SetInet4Addr(mask) }),
		set(s, device, unix.SIOCSIFMTU, func(r *unix.Ifreq) error { r.SetUint32(mtu); return nil }),
		set(s, device, unix.SIOCSIFFLAGS, up),
		set(s, loopback, unix.SIOCSIFFLAGS, up),
	)
}

func up(r *unix.Ifreq) error {
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return nil
}

// set changes one thing about a device.
func set(socket int, name string, what uint, value func(*unix.Ifreq) error) error {
	req, err := unix.NewIfreq(name)
	if err == nil {
		err = value(req)
	}
	if err == nil {
		err = unix.IoctlIfreq(socket, what, req)
	}
	if err != nil {
		return fmt.Errorf("wan: configure %s (request %#x): %w", name, what, err)
	}
	return nil
}

// Namespace is a path of the host's network namespace, for nsenter --net=PATH, valid while
// the WAN is open.
func (h *Host) Namespace() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), h.ns.Fd()) }
