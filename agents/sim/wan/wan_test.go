package wan_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/sim/wan"
)

// longest is how long a test waits for what must come.
const longest = 20 * time.Second

// helperEnv makes this program a WAN with a program on it, to be killed.
const helperEnv = "WAN_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		os.Exit(help())
	}
	os.Exit(m.Run())
}

// help opens a WAN, starts a program on it, says its number, and waits.
func help() int {
	w, err := wan.New(wan.Config{Hosts: 2})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	c := exec.Command("sleep", "1000")
	if err := w.Host(1).Start(c); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(c.Process.Pid)
	_ = c.Wait()
	return 0
}

func open(t *testing.T, cfg wan.Config) *wan.WAN {
	t.Helper()
	if err := wan.Available(); err != nil {
		t.Skip(err)
	}
	w, err := wan.New(cfg)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listen opens a UDP socket on a host.
func listen(t *testing.T, h *wan.Host) *net.UDPConn {
	t.Helper()
	var c *net.UDPConn
	must(t, h.Do(func() (err error) {
		c, err = net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(h.Addr(), 4000)))
		return err
	}))
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t *testing.T, from, to *net.UDPConn, text string) {
	t.Helper()
	_, err := from.WriteTo([]byte(text), to.LocalAddr())
	must(t, err)
}

// receive is the next datagram, or nothing within a time.
func receive(t *testing.T, c *net.UDPConn, within time.Duration) string {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(within)))
	b := make([]byte, 100)
	n, _, err := c.ReadFrom(b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ""
	}
	must(t, err)
	return string(b[:n])
}

func TestEveryPairHasItsOwnDelay(t *testing.T) {
	w := open(t, wan.Config{Hosts: 3, Link: wan.Link{Delay: 20 * time.Millisecond, Jitter: 5 * time.Millisecond}})
	must(t, w.SetLink(0, 2, wan.Link{Delay: 80 * time.Millisecond}))
	a := listen(t, w.Host(0))
	for to, least := range map[int]time.Duration{1: 20 * time.Millisecond, 2: 80 * time.Millisecond} {
		b := listen(t, w.Host(to))
		begun := time.Now()
		send(t, a, b, "there")
		if got := receive(t, b, longest); got != "there" {
			t.Fatalf("host %d got %q", to, got)
		}
		if took := time.Since(begun); took < least {
			t.Errorf("to host %d in %s, want at least %s", to, took, least)
		}
	}
}

func TestCutsAreOneWayAndEnd(t *testing.T) {
	w := open(t, wan.Config{Hosts: 2, Link: wan.Link{Delay: time.Millisecond}})
	a, b := listen(t, w.Host(0)), listen(t, w.Host(1))
	w.Cut(0, 1)
	send(t, a, b, "cut")
	send(t, b, a, "the other way")
	if got := receive(t, a, longest); got != "the other way" {
		t.Errorf("against the cut: %q", got)
	}
	if got := receive(t, b, 100*time.Millisecond); got != "" {
		t.Errorf("through the cut: %q", got)
	}
	w.Heal(0, 1)
	send(t, a, b, "healed")
	if got := receive(t, b, longest); got != "healed" {
		t.Errorf("after the cut: %q", got)
	}
	if s := w.Stats(); s.Cut != 1 || s.Delivered != 2 || s.Sent != 3 {
		t.Errorf("counted %+v", s)
	}
}

func TestALossyLinkLosesItsShare(t *testing.T) {
	w := open(t, wan.Config{Hosts: 2, Seed: 1, Link: wan.Link{Loss: 0.2}})
	a, b := listen(t, w.Host(0)), listen(t, w.Host(1))
	const n, burst = 2000, 100 // a device holds so many
	for i := range n {
		send(t, a, b, fmt.Sprint(i))
		if (i+1)%burst == 0 {
			await(t, func() bool { return w.Stats().Sent == uint64(i+1) })
		}
	}
	if lost := w.Stats().Lost; lost < n/10 || lost > 3*n/10 {
		t.Errorf("%d of %d are lost, want about a fifth", lost, n)
	}
	must(t, w.SetLink(0, 1, wan.Link{Loss: 1}))
	before := w.Stats().Lost
	send(t, a, b, "never")
	await(t, func() bool { return w.Stats().Sent == n+1 })
	if got := w.Stats().Lost; got != before+1 {
		t.Errorf("a link that loses all lost %d", got-before)
	}
}

// await waits until something is so.
func await(t *testing.T, so func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(longest); !so(); <-look.C {
		if time.Now().After(deadline) {
			t.Fatalf("not so within %s", longest)
		}
	}
}

// A stream survives delay, jitter and loss, and both ends see each other's
// address: the kernels' TCP runs over it.
func TestAStreamCrosses(t *testing.T) {
	w := open(t, wan.Config{Hosts: 2, Seed: 3, Link: wan.Link{Delay: 5 * time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 0.01}})
	var l net.Listener
	must(t, w.Host(1).Do(func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(w.Host(1).Addr().String(), "4001"))
		return err
	}))
	defer l.Close()
	got := make(chan string, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		defer c.Close()
		n, _ := io.Copy(io.Discard, c)
		got <- fmt.Sprint(n, " from ", c.RemoteAddr().(*net.TCPAddr).IP)
	}()
	var c net.Conn
	must(t, w.Host(0).Do(func() (err error) { c, err = net.DialTimeout("tcp4", l.Addr().String(), longest); return err }))
	must(t, c.SetDeadline(time.Now().Add(longest)))
	_, err := c.Write(make([]byte, 300_000))
	must(t, errors.Join(err, c.Close()))
	if g, want := <-got, fmt.Sprint(300_000, " from ", w.Host(0).Addr()); g != want {
		t.Errorf("got %s, want %s", g, want)
	}
}

func TestProgramsRunOnTheirHostAndEndWithTheWAN(t *testing.T) {
	w := open(t, wan.Config{Hosts: 2})
	c := exec.Command("cat", "/proc/net/fib_trie")
	pipe, err := c.StdoutPipe()
	must(t, err)
	must(t, w.Host(1).Start(c))
	said, err := io.ReadAll(pipe)
	must(t, errors.Join(err, c.Wait()))
	if !strings.Contains(string(said), w.Host(1).Addr().String()) || strings.Contains(string(said), w.Host(0).Addr().String()) {
		t.Errorf("addresses of host 1:\n%s", said)
	}
	long := exec.Command("sh", "-c", "sleep 1000 & sleep 1000")
	must(t, w.Host(0).Start(long))
	must(t, w.Close())
	if err := long.Wait(); err == nil {
		t.Error("a program ended well when its network was taken away")
	}
	if err := w.Host(0).Start(exec.Command("true")); err == nil {
		t.Error("a program was started on a WAN that is closed")
	}
}

// Whoever made the WAN is killed: its programs are gone, and nothing has a name
// that the next one would have to take.
func TestNothingOutlivesAKill(t *testing.T) {
	open(t, wan.Config{Hosts: 1})
	exe, err := os.Executable()
	must(t, err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), helperEnv+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	var pid int
	_, err = fmt.Fscan(out, &pid)
	must(t, errors.Join(err, c.Process.Kill()))
	_ = c.Wait() // it was killed
	await(t, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		return err != nil || !strings.HasPrefix(string(b), "sleep")
	})
}

func TestWrongConfigurationsAreNamed(t *testing.T) {
	for want, cfg := range map[string]wan.Config{
		"0 hosts":       {},
		"251 hosts":     {Hosts: 251},
		"network":       {Hosts: 1, Net: netip.MustParsePrefix("10.0.0.0/25")},
		"10.1.2.3/16":   {Hosts: 1, Net: netip.MustParsePrefix("10.1.2.3/16")},
		"loss 1.5":      {Hosts: 1, Link: wan.Link{Loss: 1.5}},
		"delay of -1ms": {Hosts: 1, Link: wan.Link{Delay: -time.Millisecond}},
		"jitter of 6m":  {Hosts: 1, Link: wan.Link{Jitter: 6 * time.Minute}},
	} {
		if _, err := wan.New(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", cfg, err, want)
		}
	}
}
