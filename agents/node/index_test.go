package node

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/index"
	"ramp/agents/join"
	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// largeMarket is a market of real hosts, with two indexes that have heard of many sellers.
type largeMarket struct {
	t    *testing.T
	dir  string
	ca   *identity.CA
	bank *Bank
}

// agent writes the directory of an agent.
func (m *largeMarket) agent(name, role string) string {
	m.t.Helper()
	dir := filepath.Join(m.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		m.t.Fatal(err)
	}
	if _, err := join.Issue(m.ca, name, time.Hour, dir); err != nil {
		m.t.Fatal(err)
	}
	conf := "listen: [/ip4/127.0.0.1/tcp/0]\nheartbeat: 200ms\nbootstrap: ["
	if m.bank != nil {
		conf += fmt.Sprintf("%q", m.bank.Mesh.Addresses()[0])
	}
	m.write(filepath.Join(dir, config.Name), conf+"]\n"+role)
	return dir
}

func (m *largeMarket) write(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// site starts a seller.
func (m *largeMarket) site(name, more string) *Resource {
	m.t.Helper()
	dir := m.agent(name, fmt.Sprintf("%sresource:\n  driver: swf\n  swf: {log: idle.swf, base: 1000}\n  start_price: \"20\"\n  minimum_price: \"10\"\n"+
		"  pay: [{bank: %q, currency: CRD}]\n  properties: {os: LINUX, architecture: x86_64}\n", more, m.bank.Cred.ID))
	m.write(filepath.Join(dir, "idle.swf"), "; Version: 2.2\n; Computer: c\n; MaxProcs: 64\n1 0 0 10 1 -1 -1 1 10 -1 1 -1 -1 -1 1 -1 -1 -1\n")
	r, err := NewResource(filepath.Join(dir, config.Name), slog.New(slog.DiscardHandler), true, true)
	if err != nil {
		m.t.Fatal(err)
	}
	r.Run(m.t.Context())
	return r
}

// crowd has an index hear the presences of 300 sellers.
func crowd(t *testing.T, r *agents.Runner) {
	t.Helper()
	for i := range index.From {
		if err := r.Deliver(protocol.Message{
			Performative: protocol.Inform, Protocol: protocol.ProtocolPresence, Sender: protocol.AgentID(fmt.Sprintf("s%d@%032d", i, 0)),
			Body: message.Presence{Agent: protocol.KindResource, TTL: time.Hour, Counter: 1},
		}); err != nil {
			t.Fatal(err)
		}
	}
}

// until waits for a condition, which it looks at again and again.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.After(time.Minute); !ok(); {
		select {
		case <-again.C:
		case <-end:
			t.Fatalf("not within a minute: %s", what)
		}
	}
}

// user starts a user agent.
func (m *largeMarket) user(dir string) (*Node, *control.Client) {
	m.t.Helper()
	n, err := NewUser(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		m.t.Fatal(err)
	}
	n.Run(m.t.Context())
	mux := http.NewServeMux()
	n.UserRoutes(mux)
	return n, control.Local(mux)
}

// quote asks the market for a price.
func (m *largeMarket) quote(c *control.Client) (last message.Purchase) {
	m.t.Helper()
	from := time.Now().UTC().Add(time.Hour)
	end := from.Add(24 * time.Hour)
	call := control.BuyCall{
		ID: control.NewPurchaseID(true), Name: "job", Options: message.Options{QuoteOnly: true, Rounds: 2},
		Document: fmt.Sprintf(`<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request><CPUHourCost>60</CPUHourCost>`+
			`<EndDate>%s</EndDate><EndTime>%s</EndTime><StartDate>%s</StartDate><StartTime>%s</StartTime><WallTime>60</WallTime>`+
			`<Cores><TotalCores>16</TotalCores></Cores></Request></RequestForQuotation>`,
			end.Format(time.DateOnly), end.Format("15:04:05Z"), from.Format(time.DateOnly), from.Format("15:04:05Z")),
	}
	if err := control.Buy.Follow(m.t.Context(), c, call, func(l control.ProgressLine) error { last = l.Purchase; return nil }); err != nil {
		m.t.Fatal(err)
	}
	return last
}

func makeMarket(t *testing.T) *largeMarket {
	t.Helper()
	m := &largeMarket{t: t, dir: t.TempDir()}
	var err error
	if m.ca, err = identity.NewCA("market", time.Now(), time.Hour, rand.Reader); err != nil {
		t.Fatal(err)
	}
	dir := m.agent("bank", "index: true\nbank:\n  currencies: [CRD]\n")
	if m.bank, err = NewBank(t.Context(), filepath.Join(dir, config.Name), "", slog.New(slog.DiscardHandler), true); err != nil {
		t.Fatal(err)
	}
	m.bank.Run(t.Context())
	return m
}

// In a large market sellers bring their records to the indexes, and a user finds them
// there. When every index has gone, the last shortlist leads to them.
func TestALargeMarketFindsItsSellersInIndexes(t *testing.T) {
	m := makeMarket(t)
	second := m.site("second", "index: true\n")
	sites := []*Resource{m.site("a", ""), m.site("b", ""), second}
	for _, r := range sites[:2] {
		until(t, "the sites know both indexes", func() bool {
			indexes := slices.DeleteFunc(r.Mesh.Known(), func(k mesh.Known) bool {
				return k.Agent != m.bank.Cred.ID && k.Agent != second.Cred.ID || k.Until.IsZero()
			})
			return len(indexes) == 2
		})
	}
	crowd(t, m.bank.Runner)
	crowd(t, second.Runner)
	for _, n := range []*Node{m.bank.Node, second.Node} {
		until(t, n.Cred.ID.Name()+" keeps every record", func() bool { return stand(t, n).Records == len(sites) })
	}

	dir := m.agent("user", fmt.Sprintf("user:\n  pay: [{bank: %q, currency: CRD}]\n", m.bank.Cred.ID))
	user, c := m.user(dir)
	if err := user.Mesh.Acquainted(t.Context()); err != nil {
		t.Fatal(err)
	}
	until(t, "a user finds the sellers in the index", func() bool {
		before := stand(t, m.bank.Node).Fetched + stand(t, second.Node).Fetched
		p := m.quote(c)
		return stand(t, m.bank.Node).Fetched+stand(t, second.Node).Fetched-before >= len(sites) && p.State == "quoted" && p.Found == len(sites)
	})
	m.tells(second.Node, len(sites))
	if err := user.Stop(); err != nil {
		t.Fatal(err)
	}
	for _, stop := range []func() error{m.bank.Stop, second.Stop} { // every index
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	user, c = m.user(dir)
	until(t, "the last shortlist leads to the sellers", func() bool {
		p := m.quote(c)
		return p.State == "quoted" && p.Found == len(sites)
	})
	for _, stop := range []func() error{user.Stop, sites[0].Stop, sites[1].Stop} {
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// tells checks what an agent with an index says in its status and to Prometheus.
func (m *largeMarket) tells(n *Node, sellers int) {
	m.t.Helper()
	mux := http.NewServeMux()
	n.statusRoutes(mux)
	n.monitor.routes(mux)
	var s control.LiveStatus
	if err := control.Agent.Ask(m.t.Context(), control.Local(mux), control.None{}, &s); err != nil {
		m.t.Fatal(err)
	}
	if s.Index == nil || s.Index.Records != sellers || s.Index.Servers != 1 || s.Index.Market < index.From || s.Gossip.In == 0 || s.Gossip.Out == 0 {
		m.t.Errorf("status: index %+v, gossip %+v", s.Index, s.Gossip)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		fmt.Sprintf("ramp_index_records %d\n", sellers), "ramp_index_servers 1\n", "ramp_presence_bytes_total{direction=\"in\"} ", `ramp_gossip_peers{score="graylisted"} 0`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			m.t.Errorf("/metrics lacks %q", want)
		}
	}
}

// stand is how an agent's index stands.
func stand(t *testing.T, n *Node) (s index.Stand) {
	t.Helper()
	if err := n.Runner.Do(t.Context(), func(now time.Time, _ agents.Role) protocol.Output {
		s = *n.Index.Stand(now)
		return protocol.Output{}
	}); err != nil {
		t.Fatal(err)
	}
	return s
}
