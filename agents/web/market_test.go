package web_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/porttest"
	"ramp/protocol/message"
)

// sites of the market below.
const sites = 4

// market is a market of real daemons, with a bank, sites and a user.
type market struct {
	t       testing.TB
	program string
	dir     string
	env     []string
	mu      sync.Mutex
	daemons map[string]*exec.Cmd
	proxy   string // the origin that site2's pages have behind a proxy
}

// A proxy's name for site2's pages.
const (
	proxyHost   = "hpc.example.org"
	proxyPrefix = "/ramp/site2"
)

// configure adds a line to an agent's configuration.
func (m *market) configure(name, line string) {
	m.t.Helper()
	f, err := os.OpenFile(filepath.Join(m.dir, name, "config.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	m.must(err)
	_, err = io.WriteString(f, "\n"+line+"\n")
	m.must(errors.Join(err, f.Close()))
}

// newMarket founds a market.
func newMarket(t testing.TB) *market {
	t.Helper()
	program := os.Getenv("RAMP_TEST_WEB")
	if program == "" {
		t.Skip("needs a built program and Chromium: 'make test-web' sets RAMP_TEST_WEB")
	}
	dir, err := os.MkdirTemp("", "web-") // its path must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &market{t: t, program: program, dir: dir, env: append(os.Environ(), "RAMP_DIR="), daemons: map[string]*exec.Cmd{}}
	t.Cleanup(m.close)
	m.run("bank", "init", "--currency", "CPU", "--credit", "1000000", "--uses", "20", "--dir", "bank")
	m.configure("bank", "monitor: 127.0.0.1:0")
	m.serve("bank", "bank")
	for i := range sites - 1 {
		m.addSite(i)
	}
	m.addRunner()
	m.run("user", "init", "--join", "bank/invitation.ramp", "--name", "ann", "--dir", "user")
	m.configure("user", "monitor: 127.0.0.1:0")
	m.serve("user", "user")
	m.awaitSites()
	return m
}

// addSite adds a site whose machine is idle.
func (m *market) addSite(i int) {
	name := fmt.Sprintf("site%d", i+1)
	log := "; Version: 2.2\n; Computer: " + name + "\n; MaxProcs: 64\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n"
	m.must(os.WriteFile(filepath.Join(m.dir, name+".swf"), []byte(log), 0o600))
	m.run("resource", "init", "--driver", "swf", "--log", filepath.Join(m.dir, name+".swf"), "--join", "bank/invitation.ramp", "--name", name,
		"--start-price", fmt.Sprint(20+2*i), "--minimum-price", fmt.Sprint(10+i), "--programs", "no", "--dir", name)
	m.configure(name, "monitor: 127.0.0.1:0")
	if i == 1 {
		port, err := porttest.Free()
		m.must(err)
		m.proxy = fmt.Sprintf("http://%s:%d", proxyHost, port)
		m.configure(name, "web: {origin: '"+m.proxy+"', prefix: "+proxyPrefix+"}")
	}
	m.serve(name, "resource")
}

// addRunner adds a site that runs programs on this machine. It is the dearest one.
func (m *market) addRunner() {
	who, err := user.Current()
	m.must(err)
	name := fmt.Sprintf("site%d", sites)
	m.run("resource", "init", "--driver", "local", "--join", "bank/invitation.ramp", "--name", name, "--claims", filepath.Join(m.dir, "claims"),
		"--start-price", "28", "--minimum-price", "24", "--programs", "as-user:"+who.Username, "--dir", name)
	m.serve(name, "resource")
}

func (m *market) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// command is a command of the program.
func (m *market) command(args ...string) *exec.Cmd {
	c := exec.Command(m.program, args...)
	c.Dir, c.Env = m.dir, m.env
	return c
}

// run runs a command, and returns what it prints.
func (m *market) run(args ...string) string {
	m.t.Helper()
	c := m.command(args...)
	var errs bytes.Buffer
	c.Stderr = &errs
	out, err := c.Output()
	if err != nil {
		m.t.Fatalf("ramp %s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return string(out)
}

// serve starts the daemon of a directory, and waits until it answers.
func (m *market) serve(name, kind string) {
	m.t.Helper()
	c := m.command(kind, "serve", "--dir", name)
	m.must(c.Start())
	m.mu.Lock()
	m.daemons[name] = c
	m.mu.Unlock()
	m.await(name+" to answer", func() bool {
		_, ok := control.Dial(filepath.Join(m.dir, name))
		return ok
	})
}

// kill ends a daemon as a crash does.
func (m *market) kill(name string) {
	m.mu.Lock()
	c := m.daemons[name]
	delete(m.daemons, name)
	m.mu.Unlock()
	_ = c.Process.Signal(syscall.SIGCONT)
	_ = c.Process.Kill()
	_ = c.Wait()
}

func (m *market) signal(name string, s os.Signal) {
	m.t.Helper()
	m.must(m.daemons[name].Process.Signal(s))
}

// allSites signals every site.
func (m *market) allSites(s os.Signal) {
	m.t.Helper()
	for i := range sites {
		m.signal(fmt.Sprintf("site%d", i+1), s)
	}
}

func (m *market) close() {
	for name := range m.daemons {
		m.kill(name)
	}
	_ = os.RemoveAll(m.dir)
}

// await waits for something that takes a moment.
func (m *market) await(what string, done func() bool) {
	m.t.Helper()
	late := time.After(waitTime)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for !done() {
		select {
		case <-again.C:
		case <-late:
			m.t.Fatalf("waited for %s", what)
		}
	}
}

func (m *market) awaitSites() {
	m.t.Helper()
	user := m.client("user")
	m.await("the user to know the sites", func() bool {
		var list []control.ResourceLine
		return control.Resources.Ask(context.Background(), user, control.None{}, &list) == nil && len(list) == sites
	})
}

func (m *market) client(name string) *control.Client { return control.At(filepath.Join(m.dir, name)) }

// purchases are what the user agent has bought or tried.
func (m *market) purchases() (list []message.Purchase) {
	m.t.Helper()
	m.must(control.Purchases.Ask(context.Background(), m.client("user"), control.LastCall{}, &list))
	return list
}

func (m *market) settled() (n int) {
	for _, p := range m.purchases() {
		if p.Settled {
			n++
		}
	}
	return n
}

// pages runs the command that serves an agent's pages, and returns its link.
func (m *market) pages(kind, name string) (base, link string) {
	m.t.Helper()
	c := m.command(kind, "web", "--print", "--json", "--dir", name)
	out, err := c.StdoutPipe()
	m.must(err)
	m.must(c.Start())
	m.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	var l struct {
		URL string `json:"url"`
	}
	m.must(json.NewDecoder(out).Decode(&l))
	go func() { _, _ = io.Copy(io.Discard, out) }()
	base, _, _ = strings.Cut(l.URL, "/login")
	return base, l.URL
}

// enter logs a browser in to an agent's pages.
func (m *market) enter(b *browser, kind, name string) (base string) {
	m.t.Helper()
	base, link := m.pages(kind, name)
	b.open(link)
	b.await("the first page", "document.querySelector('nav a')")
	return base
}

// answers are the reads of an agent over its socket, as JSON, by path.
func (m *market) answers(name string, kind control.Kind) map[string][]byte {
	m.t.Helper()
	list := map[string][]byte{}
	client := unixClient(control.SocketPath(filepath.Join(m.dir, name)))
	for _, c := range control.Table() {
		if c.Kind&kind == 0 || !c.Reads || c.Streams {
			continue
		}
		r, err := client.Get("http://agent" + c.Path)
		m.must(err)
		b, err := io.ReadAll(r.Body)
		m.must(err)
		m.must(r.Body.Close())
		if r.StatusCode == http.StatusOK {
			list[c.Path] = b
		}
	}
	return list
}
