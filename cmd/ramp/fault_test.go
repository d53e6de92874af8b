package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ramp/protocol"
	"ramp/protocol/message"
)

// overTime bounds a purchase of which one party cannot write: a seller that lost
// its vote to the disk is waited for once.
const overTime = 2 * protocol.VoteTimeout

// A full disk: who cannot write refuses, nobody lies, and with space again all
// goes on. The disk is full when no file may grow, which needs no privilege.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	for _, victim := range []string{"user", "atlas", "bank"} {
		t.Run(victim, func(t *testing.T) {
			settled := m.count(t)
			m.fill(t, victim, true)
			watching, stop := context.WithTimeout(context.Background(), untilTime)
			defer stop()
			m.watch(watching, m.begin(t, "job.xml"), func(p message.Purchase) {
				if p.State == "deciding" {
					stop() // as far as it comes without the bank
				}
			})
			if err := context.Cause(watching); err == context.DeadlineExceeded {
				t.Errorf("nobody was told for %s that the purchase is over", untilTime)
			}
			m.fill(t, victim, false)
			m.recovered(t, victim)
			m.meet(t) // it has forgotten whom it knew
			m.settleDown(t)
			m.verify(t)
			if n := m.count(t); victim != "bank" && n != settled {
				t.Errorf("%d purchases are settled, were %d: one that could not be written", n, settled)
			}
			m.sellsBeyond(t, m.count(t)) // with space again
			m.verify(t)
		})
	}
}

// fill lets no file of a daemon grow, or all.
func (m *market) fill(t *testing.T, name string, full bool) {
	t.Helper()
	limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	if full {
		limit.Cur = 0
	}
	pid := m.daemons[name].cmd.Process.Pid
	if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
		t.Skipf("the limit of another process cannot be set: %v", err)
	}
}

// recovered waits until a daemon can write again.
func (m *market) recovered(t *testing.T, name string) {
	t.Helper()
	path := map[string]string{"user": "/v1/resources", "bank": "/v1/balances"}[name]
	if path == "" {
		path = "/v1/reservations"
	}
	must(t, until(untilTime, func() (bool, error) {
		err := call(context.Background(), m.path(name), path, nil, new(any))
		return err == nil, err
	}))
}

// count is how many purchases are settled.
func (m *market) count(t *testing.T) int {
	t.Helper()
	list, err := m.purchases()
	must(t, err)
	n := 0
	for _, p := range list {
		if p.Settled {
			n++
		}
	}
	return n
}

// A daemon that is started on a full disk serves: what it has decided before can
// be told, and what is new is refused. (make soak-real found it ending instead.)
func TestStartedOnAFullDisk(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	for _, victim := range []string{"user", "atlas", "bank"} {
		m.daemons[victim].kill()
		addresses := filepath.Join(m.path(victim), "addresses")
		must(t, os.Remove(addresses))
		must(t, os.Mkdir(addresses, 0o700)) // the file cannot be written
		m.restart(t, victim)
	}
	m.watch(context.Background(), m.begin(t, "job.xml"), nil)
	m.settleDown(t)
	m.verify(t)
}

// SIGTERM in the middle of a purchase: what was promised is finished or taken up
// again after the restart.
func TestTermInTheMiddle(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	for _, victim := range []string{"user", "atlas", "bank"} {
		t.Run(victim, func(t *testing.T) {
			watching, stop := context.WithTimeout(context.Background(), untilTime)
			defer stop()
			m.watch(watching, m.begin(t, "job.xml"), func(p message.Purchase) {
				if p.State == "confirming" || p.State == "deciding" {
					stop()
				}
			})
			if err := m.daemons[victim].stop(); err != nil {
				t.Errorf("it did not end well: %v", err)
			}
			m.restart(t, victim)
			m.settleDown(t)
			m.verify(t)
		})
	}
}

// Garbage on the control socket is refused, and nothing else happens.
func TestGarbageOnTheControlSocket(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	noise := make([]byte, 64<<10)
	_, _ = rand.Read(noise) // it never fails
	for name, sent := range map[string][]byte{
		"noise":          noise,
		"half a request": []byte("POST /v1/buy HTTP/1.1\r\nContent-Length: 100\r\n\r\n{"),
		"no JSON":        request("/v1/buy", "no JSON"),
		"another type":   request("/v1/buy", "[1,2]"),
		"unknown field":  request("/v1/buy", `{"idd":"x"}`),
		"no document":    request("/v1/buy", `{"id":"x"}`),
		"bad document":   request("/v1/buy", `{"id":"x","document":"<a/>"}`),
		"no such call":   request("/v2/everything", "{}"),
		"long ID":        request("/v1/buy", `{"id":"`+strings.Repeat("x", 5000)+`","document":"<a/>"}`),
		"100 MB":         request("/v1/buy", `{"document":"`+strings.Repeat("x", 100<<20)+`"}`),
		"a wrong method": []byte("DELETE /v1/buy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			answer := m.send(t, "user", sent)
			if len(answer) > 0 && !bytes.HasPrefix(answer, []byte("HTTP/1.1 4")) && !bytes.Contains(answer, []byte(`"failed"`)) {
				t.Errorf("answered %.300q", answer)
			}
		})
	}
	m.sells(t)
	m.verify(t)
}

func request(path, body string) []byte {
	return []byte("POST " + path + " HTTP/1.1\r\nHost: agent\r\nConnection: close\r\nContent-Length: " +
		strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// send writes bytes to a control socket, says that no more will come, and reads
// what is answered.
func (m *market) send(t *testing.T, name string, b []byte) []byte {
	t.Helper()
	c, err := net.Dial("unix", m.path(name)+"/control.sock")
	must(t, err)
	defer c.Close()
	must(t, c.SetDeadline(time.Now().Add(untilTime)))
	go func() {
		_, _ = c.Write(b) // the daemon may hang up first
		_ = c.(*net.UnixConn).CloseWrite()
	}()
	answer, err := io.ReadAll(io.LimitReader(c, 1<<20))
	if err != nil && !strings.Contains(err.Error(), syscall.ECONNRESET.Error()) {
		t.Error(err)
	}
	return answer
}
