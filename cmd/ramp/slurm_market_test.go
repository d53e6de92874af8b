package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ramp/agents/queue"
	"ramp/agents/queue/slurm/slurmtest"
	"ramp/agents/sim/wan"
	"ramp/protocol"
	"ramp/protocol/message"
)

// What a market of real Slurm clusters is like, unless the environment says
// otherwise (RAMP_SLURM_CLUSTERS, RAMP_SLURM_USERS, RAMP_SLURM_TIME).
const (
	slurmClusters = 3
	slurmUsers    = 3
	slurmTrade    = 30 * time.Second
)

// slurmMarket is real clusters, each with a seller, in network namespaces of their
// own, and users and a bank in others.
type slurmMarket struct {
	*market
	tb       testing.TB
	wan      *wan.WAN
	clusters []*slurmtest.Cluster
	sites    []string
	users    []string

	mu     sync.Mutex
	votes  []float64 // ms, of purchases of one unit
	bought int
	failed map[string]int
}

// Real clusters trade with real users. Afterwards every sold slot is a reservation
// in its cluster, every reservation with an agent's mark is a sold slot, and no
// core is sold twice.
func TestSlurmMarket(t *testing.T) {
	if os.Getenv("RAMP_TEST_SLURM") == "" {
		t.Skip("needs real Slurm clusters: 'make test-slurm' installs Slurm and sets RAMP_TEST_SLURM")
	}
	m := newSlurmMarket(t, fromEnv(t, "RAMP_SLURM_CLUSTERS", slurmClusters), fromEnv(t, "RAMP_SLURM_USERS", slurmUsers))
	length := slurmTrade
	if v := os.Getenv("RAMP_SLURM_TIME"); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			t.Fatal(err)
		}
	}
	m.meet()
	ctx, cancel := context.WithTimeout(context.Background(), length)
	defer cancel()
	m.trade(ctx)
	if os.Getenv("RAMP_SLURM_TIME") == "" {
		m.outage()
	}
	orphans, twice := m.compare()
	median, p95 := share(m.votes, .5), share(m.votes, .95)
	fmt.Printf("slurm market: %d clusters, %d users, %s: %d purchases, %.1f per minute; hold median %.0f ms, p95 %.0f ms; %d orphaned reservations, %d double sales; not bought: %v\n",
		len(m.sites), len(m.users), length, m.bought, float64(m.bought)/length.Minutes(), median, p95, orphans, twice, m.failed)
	if m.bought < len(m.users) || orphans != 0 || twice != 0 {
		t.Errorf("%d bought, %d orphaned, %d sold twice", m.bought, orphans, twice)
	}
}

// newSlurmMarket brings everything up. Before the seller of a host is started,
// change may change its configuration.
func newSlurmMarket(t *testing.T, clusters, users int, change ...func(m *slurmMarket, site string, host int)) *slurmMarket {
	t.Helper()
	dir, err := os.MkdirTemp("", "slurmmarket") // munge and slurm are other users: not below t's own
	check(t, err)
	check(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	base, err := newMarket(dir, nil)
	check(t, err)
	m := &slurmMarket{market: base, tb: t, failed: map[string]int{}}
	t.Cleanup(func() { m.endOf(t) })
	m.wan, err = wan.New(wan.Config{Hosts: clusters + users + 1, Link: wan.Link{Delay: 2 * time.Millisecond}, Seed: 1})
	check(t, err)
	t.Cleanup(func() { _ = m.wan.Close() })
	m.addBank()
	m.addClusters(clusters, change...)
	for i := range users {
		m.addUser(fmt.Sprintf("user%d", i+1), 1+clusters+i)
	}
	return m
}

func check(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func (m *slurmMarket) enter(host int) []string {
	return []string{"nsenter", "--net=" + m.wan.Host(host).Namespace()}
}

func (m *slurmMarket) listen(host int) string {
	return fmt.Sprintf("/ip4/%s/tcp/4101", m.wan.Host(host).Addr())
}

// start starts the daemon of an agent on a host.
func (m *slurmMarket) start(host int, kind, name string) *daemon {
	m.tb.Helper()
	d, err := startProgram(m.path(name+".log"), nil, append(m.enter(host), "ramp", kind, "serve", "--dir", m.path(name))...)
	check(m.tb, err)
	m.daemons[name] = d
	return d
}

func (m *slurmMarket) run(args ...string) []byte {
	m.tb.Helper()
	out, err := m.try(args...)
	check(m.tb, err)
	return out
}

func (m *slurmMarket) try(args ...string) ([]byte, error) {
	var out, words bytes.Buffer
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &words
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, words.String())
	}
	return out.Bytes(), nil
}

func (m *slurmMarket) addBank() {
	m.tb.Helper()
	conf := "listen: [" + m.listen(0) + "]\nbank: {currencies: [CPU], grace: 1s}\n"
	check(m.tb, os.WriteFile(m.path("bank/config.yaml"), []byte(conf), 0o600))
	m.start(0, "bank", "bank")
}

// addClusters brings the clusters up, a few at a time, and makes a seller of each as an
// admin would: by looking at it.
func (m *slurmMarket) addClusters(n int, change ...func(m *slurmMarket, site string, host int)) {
	m.tb.Helper()
	m.clusters = make([]*slurmtest.Cluster, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	slots := make(chan struct{}, 4)
	for i := range n {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			m.clusters[i], errs[i] = slurmtest.Up(slurmtest.Options{Dir: m.path(fmt.Sprintf("slurm%d", i+1)), Enter: m.enter(1 + i)})
		})
	}
	wg.Wait()
	m.tb.Cleanup(func() {
		for _, c := range m.clusters {
			if c != nil {
				_ = c.Down()
			}
		}
	})
	for i, c := range m.clusters {
		check(m.tb, errs[i])
		name := fmt.Sprintf("site%d", i+1)
		m.run(append(m.enter(1+i), "ramp", "resource", "init", "--driver", "slurm", "--conf", c.Conf(), "--name", name, "--ca", m.path("ca"),
			"--dir", m.path(name), "--bank", string(m.ids["bank"]), "--listen", m.listen(1+i), "--bootstrap", m.daemons["bank"].ready.Addresses[0],
			"--start-price", strconv.Itoa(20+i))...)
		for _, f := range change {
			f(m, name, 1+i)
		}
		m.start(1+i, "resource", name)
		m.run("ramp", "bank", "account", "open", name, "--cert", m.path(name+"/agent.pem"), "--dir", m.path("bank"))
		m.sites = append(m.sites, name)
	}
}

func (m *slurmMarket) addUser(name string, host int) {
	m.tb.Helper()
	check(m.tb, m.credential(name, time.Now(), 24*time.Hour))
	conf := fmt.Sprintf("listen: [%s]\nbootstrap: [%s]\nuser: {pay: [{bank: %s, currency: CPU}], hold: 60s, settle: 25s}\n",
		m.listen(host), m.daemons["bank"].ready.Addresses[0], m.ids["bank"])
	check(m.tb, os.WriteFile(m.path(name+"/config.yaml"), []byte(conf), 0o600))
	m.start(host, "user", name)
	m.run("ramp", "bank", "account", "open", name, "--cert", m.path(name+"/agent.pem"), "--dir", m.path("bank"))
	m.run("ramp", "bank", "credit", name, "1000000000", "--dir", m.path("bank"))
	m.users = append(m.users, name)
}

// trade lets every user buy, one purchase after the other, until it is told to stop.
func (m *slurmMarket) trade(ctx context.Context) {
	var wg sync.WaitGroup
	for i, u := range m.users {
		wg.Go(func() {
			r := mathrand.New(mathrand.NewPCG(1, uint64(i)))
			for n := 0; ctx.Err() == nil; n++ {
				m.buy(u, n, r)
			}
		})
	}
	wg.Wait()
}

// buy asks for one to three parts of 1 to 16 cores for half an hour to two hours,
// within two days.
func (m *slurmMarket) buy(user string, n int, r *mathrand.Rand) {
	var parts []string
	for i := range 1 + r.IntN(3) {
		parts = append(parts, requestXML(fmt.Sprintf("p%d", i), 1+r.IntN(16), 60))
	}
	file := m.path(fmt.Sprintf("%s-%d.xml", user, n))
	if err := os.WriteFile(file, []byte(document(parts...)), 0o600); err != nil {
		m.note("", nil, 0)
		return
	}
	out, _ := m.try("ramp", "user", "buy", file, "--again", "--json", "--dir", m.path(user)) // what was not bought is told in JSON too
	var p message.Purchase
	if err := json.Unmarshal(out, &p); err != nil {
		m.note("no answer", nil, 0)
		return
	}
	if !p.Settled {
		m.note(p.Why, nil, 0)
		return
	}
	m.note("", p.Units, p.VoteMS)
}

func (m *slurmMarket) purchases() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bought
}

func (m *slurmMarket) note(why string, units []message.PurchasedUnit, vote float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if units == nil {
		what, _, _ := strings.Cut(why, " (")
		m.failed[what]++
		return
	}
	m.bought++
	m.votes = append(m.votes, vote)
}

// outage takes the first cluster's slurmctld away, as a power cut would, while users
// buy: it forgets what it granted and what it deleted last. And the bank is taken from
// everybody. Sales pause with a reason, no sold slot is lost, and sales go on by
// themselves.
func (m *slurmMarket) outage() {
	m.tb.Helper()
	sold := make([]int, len(m.sites))
	for i := range m.sites {
		sold[i] = m.status(i).Slots.Sold
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	before := m.purchases()
	wg.Go(func() { m.trade(ctx) })
	check(m.tb, until(untilTime, func() (bool, error) { return m.purchases() > before+len(m.users), nil }))
	check(m.tb, m.clusters[0].KillController())
	cancel()
	m.cut(true)
	m.await("the first site pauses for its batch system", 0, func(s message.ResourceStatus) bool {
		return s.Sales == message.SalesPaused && s.Queue.State == "down" && s.Why != ""
	})
	last := len(m.sites) - 1
	m.await("the last site pauses for its bank", last, func(s message.ResourceStatus) bool {
		return s.Sales == message.SalesPaused && !*s.Banks[0].Reachable
	})
	for i := range m.sites {
		if s := m.status(i); s.Slots.Sold < sold[i] || s.Slots.Broken > 0 {
			m.tb.Errorf("%s: %d slots were sold, %d are, %d are broken", m.sites[i], sold[i], s.Slots.Sold, s.Slots.Broken)
		}
	}
	m.cut(false)
	check(m.tb, m.clusters[0].StartController())
	for i := range m.sites {
		m.await("sales go on", i, func(s message.ResourceStatus) bool { return s.Sales == message.SalesOpen && s.Slots.Sold >= sold[i] })
	}
}

// cut cuts the bank off from everybody, or mends that.
func (m *slurmMarket) cut(on bool) {
	m.tb.Helper()
	for i := 1; i < m.wan.Hosts(); i++ {
		check(m.tb, m.wan.SetLink(0, i, wan.Link{Cut: on}))
		check(m.tb, m.wan.SetLink(i, 0, wan.Link{Cut: on}))
	}
}

func (m *slurmMarket) status(site int) (s message.ResourceStatus) {
	m.tb.Helper()
	check(m.tb, json.Unmarshal(m.run("ramp", "resource", "status", "--dir", m.path(m.sites[site]), "--json"), &s))
	return s
}

func (m *slurmMarket) await(what string, site int, want func(message.ResourceStatus) bool) {
	m.tb.Helper()
	var s message.ResourceStatus
	if err := until(4*untilTime, func() (bool, error) { s = m.status(site); return want(s), nil }); err != nil {
		m.tb.Fatalf("%s: %s: %v; its status is %+v", m.sites[site], what, err, s)
	}
}

// compare counts, once nothing is held any more, the reservations with an agent's
// mark that are no sold slot, the sold slots that are no reservation, and the
// instants at which more cores are sold than a cluster has.
func (m *slurmMarket) compare() (orphans, twice int) {
	m.tb.Helper()
	for i, name := range m.sites {
		var s message.ResourceStatus
		check(m.tb, until(2*untilTime, func() (bool, error) {
			out, err := m.try("ramp", "resource", "status", "--dir", m.path(name), "--json")
			if err == nil {
				err = json.Unmarshal(out, &s)
			}
			return err == nil && s.Slots.Held+s.Slots.InDoubt == 0, err
		}))
		var faults []string
		var over int
		// What slurmctld forgot is asked for again within protocol.RetryMost; what it
		// refuses then is paid back, and sold no more.
		_ = until(untilTime, func() (bool, error) {
			faults, over = m.compareSite(m.clusters[i], s.Agent, m.soldBy(name))
			return len(faults) == 0, nil
		})
		for _, f := range faults {
			m.tb.Logf("%s: %s", name, f)
		}
		orphans, twice = orphans+len(faults), twice+over
	}
	return orphans, twice
}

// soldBy are the slots that a site says are sold.
func (m *slurmMarket) soldBy(site string) map[string]protocol.Slot {
	m.tb.Helper()
	var lines []message.ReservationLine
	check(m.tb, json.Unmarshal(m.run("ramp", "resource", "reservations", "--dir", m.path(site), "--json"), &lines))
	sold := map[string]protocol.Slot{}
	for _, l := range lines {
		if l.State == "sold" {
			sold[l.ID] = l.Slot
		}
	}
	return sold
}

func (m *slurmMarket) compareSite(c *slurmtest.Cluster, agent protocol.AgentID, sold map[string]protocol.Slot) (faults []string, twice int) {
	m.tb.Helper()
	list, err := c.Run("scontrol", "-o", "show", "reservation")
	check(m.tb, err)
	there := map[string]bool{}
	for line := range strings.Lines(list) {
		rest, ok := strings.CutPrefix(line, "ReservationName=")
		name, _, _ := strings.Cut(rest, " ")
		id, mine := queue.MarkOf(agent).ID(name)
		if !ok || !mine {
			continue
		}
		there[id] = true
		if _, ok := sold[id]; !ok {
			faults = append(faults, fmt.Sprintf("reservation %s is nobody's", id))
		}
	}
	var slots []protocol.Slot
	for id, slot := range sold {
		slots = append(slots, slot)
		if !there[id] {
			faults = append(faults, fmt.Sprintf("the sold slot %s has no reservation", id))
		}
	}
	for _, s := range slots {
		if queue.Taken(slots, s) > c.Nodes*c.Cores {
			twice++
		}
	}
	return faults, twice
}
