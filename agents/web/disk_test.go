package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
	"ramp/protocol/message"
)

// fullDisk has the user's agent live on a file system that is full: receipts are still whole, an
// order gets a page that says what to do, and when there is room again nothing was lost.
func fullDisk(t *testing.T, m *market) {
	disk := m.ownDisk("user", 96<<20)
	b := newBrowser(t)
	base := m.enter(b, "user", "user")
	composed(b, base, "before", "4", "30")
	b.press("Ask the market")
	b.sees("Your decision")
	b.press("Buy for ")
	b.sees("State: settled.")
	bought := m.purchases()
	p := bought[len(bought)-1]
	b.open(base + "/purchase/" + p.ID)
	m.await("the proof", func() bool {
		value[bool](b, `(fetch(location.pathname+"/receipt.zip").then(r=>r.bytes()).then(x=>{window.archive=x.toBase64()}),true)`)
		b.await("the archive", "window.archive")
		return bytes.Contains(decode64(t, value[string](b, "window.archive")), []byte("proof"))
	})
	disk.fill()
	value[bool](b, `(window.archive=null,fetch(location.pathname+"/receipt.zip").then(r=>r.bytes()).then(x=>{window.archive=x.toBase64()}),true)`)
	b.await("the archive, on a full disk", "window.archive")
	verifyReceipt(t, m, value[string](b, "window.archive"))
	big := filepath.Join(t.TempDir(), "big")
	m.must(os.WriteFile(big, make([]byte, 1<<20), 0o600))
	b.program(base, "upload", "wc -c big", big)
	b.press("Ask the market")
	b.sees("no space left on device")
	b.sees("make room there and send it again.")
	m.orderUntilRefused(p.ID)
	composed(b, base, "full", "4", "30")
	b.press("Ask the market")
	b.sees("see that its disk has room")
	disk.empty()
	m.awaitSites() // a failed write has the agent load its role anew, and hear the sites once more
	composed(b, base, "after", "4", "30")
	b.press("Ask the market")
	b.sees("Your decision")
	b.press("Buy for ")
	b.sees("State: settled.")
	names := map[string]bool{}
	for _, p := range m.purchases() {
		names[p.ID] = true
	}
	for _, p := range bought {
		if !names[p.ID] {
			t.Errorf("purchase %s is lost", p.ID)
		}
	}
}

// orderUntilRefused orders the same again, with a limit that nobody meets and a long program, until
// the journal has no pages left.
func (m *market) orderUntilRefused(id string) {
	m.t.Helper()
	ctx, client := context.Background(), m.client("user")
	var o control.OrderView
	m.must(control.Order.Ask(ctx, client, control.IDCall{ID: id}, &o))
	o.Options.Confirm, o.Options.MaxCost, o.Options.Rounds, o.Options.RoundLimit = false, 1, 1, 100*time.Millisecond
	program := &message.Program{Command: []string{"sh", "-c", strings.Repeat("#", protocol.MaxArgBytes/2)}, Detached: true}
	for range 2000 {
		q := control.BuyCall{ID: control.NewPurchaseID(false), Name: "filler", Document: o.Document, Options: o.Options, Program: program}
		if err := control.Buy.Follow(ctx, client, q, func(control.ProgressLine) error { return nil }); err != nil {
			return
		}
	}
	m.t.Error("a full disk refuses no order")
}

// disk is a file system of its own, below an agent's directory.
type disk struct {
	m      *market
	filler string
}

// ownDisk moves an agent to a file system of its own until the end of the test.
func (m *market) ownDisk(name string, size int) disk {
	m.t.Helper()
	dir, aside := filepath.Join(m.dir, name), filepath.Join(m.dir, "aside")
	m.kill(name)
	m.shell("cp", "-a", dir, aside)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("mode=0700,size=%d", size)); err != nil {
		m.t.Skip("needs to mount a file system:", err)
	}
	m.t.Cleanup(func() {
		m.kill(name)
		m.must(errors.Join(syscall.Unmount(dir, syscall.MNT_DETACH), os.RemoveAll(aside)))
		m.serve(name, name)
	})
	m.shell("cp", "-a", aside+"/.", dir)
	m.serve(name, name)
	m.awaitSites()
	return disk{m, filepath.Join(dir, "filler")}
}

func (m *market) shell(name string, args ...string) {
	m.t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		m.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
}

// fill leaves no room.
func (d disk) fill() {
	f, err := os.Create(d.filler)
	d.m.must(err)
	for size := 1 << 20; size >= 1; size /= 2 {
		for err == nil {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) {
			d.m.t.Fatal(err)
		}
		err = nil
	}
	d.m.must(f.Close())
}

func (d disk) empty() { d.m.must(os.Remove(d.filler)) }
