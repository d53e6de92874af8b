package english_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// The transcripts are auctions of one job by its home among the sites a, b and home.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.do(t, d) })
	})
}

var epoch = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

func agent(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", 32))
}

// world is a federation of three sites and one job.
type world struct {
	t       *testing.T
	now     time.Time
	cfg     english.AuctioneerConfig
	home    *english.Auctioneer
	sites   map[string]*site
	disk    map[string]map[string][]byte // of each party, by table and key
	said    strings.Builder
	drop    map[string]int // "from kind" of messages that are lost, so often
	queue   []protocol.Message
	capture *protocol.Message // the last bid that was sent
}

// site is a bidder with its capacity.
type site struct {
	capacity english.Capacity
	transfer time.Duration
	bidder   *english.Bidder
	sold     []int // awards that were sold to it
}

func (s *site) Capacity() english.Capacity                     { return s.capacity }
func (s *site) Transfer(protocol.AgentID, int64) time.Duration { return s.transfer }
func (w *world) Next() (length, mean time.Duration)            { return 10 * time.Second, 30 * time.Second }
func (w *world) bidderConfig(name string) *english.BidderConfig {
	return &english.BidderConfig{Self: agent(name), Rules: "r", Scale: w.cfg.Scale}
}
func (w *world) newBidder(name string) *english.Bidder {
	return english.NewBidder(w.bidderConfig(name), w.sites[name], agent("home"), "j")
}
func args(d *datadriven.TestData) map[string]string {
	a := map[string]string{}
	for _, arg := range d.CmdArgs {
		a[arg.Key] = strings.Join(arg.Vals, ",")
	}
	return a
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, now: epoch, sites: map[string]*site{}, disk: map[string]map[string][]byte{}, drop: map[string]int{}}
	w.cfg = english.AuctioneerConfig{
		Self: agent("home"), Rules: "r", Sites: []protocol.AgentID{agent("a"), agent("b"), agent("home")},
		Scale: english.Scale{Alpha: 1000, Gamma: 8000, Minimum: 500}, Length: w,
	}
	for _, name := range []string{"a", "b", "home"} {
		w.sites[name] = &site{}
		w.sites[name].bidder = w.newBidder(name)
		w.disk[name] = map[string][]byte{}
	}
	return w
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (w *world) do(t *testing.T, d *datadriven.TestData) string {
	a := args(d)
	w.t = t
	w.said.Reset()
	switch d.Cmd {
	case "offer":
		terms := message.JobTerms{Level: number(t, a["level"]), Least: number(t, a["least"]), Most: number(t, a["most"]), Wall: time.Hour, Where: agent("home")}
		var out protocol.Output
		w.home, out = english.NewAuctioneer(&w.cfg, "j", agent("ann"), terms)
		w.carry("home", out)
		w.carry("home", w.home.Open(w.now))
	case "site":
		w.capacity(a)
		if w.home == nil {
			return ""
		}
	case "lose":
		w.drop[a["from"]+" "+a["what"]] = max(1, len(a["times"]))
		return ""
	case "pass":
		for k := range a {
			step, err := time.ParseDuration(k)
			if err != nil {
				t.Fatal(err)
			}
			w.pass(step)
		}
	case "restart":
		for name := range a {
			w.restart(name)
		}
	case "replay":
		w.deliver(*w.capture)
	case "report":
		w.send(agent(a["from"]), agent("home"), protocol.Inform, message.JobProgress{State: message.JobState(a["state"]), Award: number(t, a["award"])})
	case "bid":
		w.send(agent(a["from"]), agent("home"), protocol.Propose, message.JobBid{Number: number(t, a["number"]), Seq: 1 << 60, Free: number(t, a["free"])})
	case "cancel":
		out, ok := w.home.Cancel(w.now)
		fmt.Fprintf(&w.said, "cancelled: %t\n", ok)
		w.carry("home", out)
	case "rerun":
		w.carry("home", w.home.Rerun(w.now))
	default:
		t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	}
	w.run()
	fmt.Fprintf(&w.said, "home: %s\n", w.home)
	for _, name := range slices.Sorted(maps.Keys(w.sites)) {
		s := w.sites[name]
		fmt.Fprintf(&w.said, "%s: %s sold=%v\n", name, s.bidder, s.sold)
	}
	return w.said.String()
}

// capacity changes what a site has, and lets it bid anew.
func (w *world) capacity(a map[string]string) {
	s := w.sites[a["name"]]
	s.capacity = english.Capacity{Free: number(w.t, a["free"])}
	if a["queued"] != "" {
		s.capacity.Queued = number(w.t, a["queued"])
	}
	for _, part := range strings.FieldsFunc(a["running"], func(r rune) bool { return r == ',' }) {
		level, modules, _ := strings.Cut(part, ":")
		s.capacity.Running = append(s.capacity.Running, message.Victims{Level: number(w.t, level), Modules: number(w.t, modules)})
	}
	if a["transfer"] != "" {
		s.transfer, _ = time.ParseDuration(a["transfer"])
	}
	if _, quiet := a["quiet"]; !quiet {
		w.carry(a["name"], s.bidder.Revise(w.now, s.Capacity()))
	}
}

func (w *world) send(from, to protocol.AgentID, p protocol.Performative, body protocol.Body) {
	w.queue = append(w.queue, protocol.Message{Performative: p, Sender: from, Receivers: []protocol.AgentID{to}, Protocol: protocol.ProtocolEnglish, Conversation: "j", Body: body})
}

// carry saves and sends an output.
func (w *world) carry(name string, out protocol.Output) {
	for _, r := range out.Save {
		if r.Value == nil {
			delete(w.disk[name], r.Table)
			continue
		}
		w.disk[name][r.Table] = r.Value
	}
	for _, m := range out.Send {
		for _, to := range m.Receivers {
			one := m
			one.Receivers = []protocol.AgentID{to}
			w.queue = append(w.queue, one)
		}
	}
}

// run delivers messages until all is quiet.
func (w *world) run() {
	for len(w.queue) > 0 {
		m := w.queue[0]
		w.queue = w.queue[1:]
		key := m.Sender.Name() + " " + string(m.Performative)
		lost := ""
		if w.drop[key] > 0 {
			w.drop[key]--
			lost = " (lost)"
		}
		fmt.Fprintf(&w.said, "%s > %s: %s %s%s\n", m.Sender.Name(), m.Receivers[0].Name(), m.Performative, tell(m.Body), lost)
		if _, bid := m.Body.(message.JobBid); bid && lost == "" {
			w.capture = &m
		}
		if lost == "" {
			w.deliver(m)
		}
	}
}

func tell(body protocol.Body) string {
	switch b := body.(type) {
	case message.AuctionOpen:
		return fmt.Sprintf("auction-open %d", b.Number)
	case message.JobBid:
		return fmt.Sprintf("job-bid %d: %d+%d", b.Number, b.Free, english.Modules(b)-b.Free)
	case message.Standing:
		if b.Closed {
			return "standing, closed"
		}
		return fmt.Sprintf("standing %s %d", b.Leader.Name(), b.Value)
	case message.JobAward:
		return fmt.Sprintf("job-award %d %s", b.Award, b.Why)
	case message.JobProgress:
		return fmt.Sprintf("job-progress %s award=%d", b.State, b.Award)
	}
	return body.Kind()
}

func (w *world) deliver(m protocol.Message) {
	name := m.Receivers[0].Name()
	switch m.Body.(type) {
	case message.JobBid, message.JobProgress:
		w.carry("home", w.home.Receive(w.now, m))
		return
	case message.JobAward:
		if m.Performative == protocol.Agree || m.Performative == protocol.Refuse || m.Performative == protocol.QueryRef && name == "home" {
			w.carry("home", w.home.Receive(w.now, m))
			return
		}
	}
	s := w.sites[name]
	w.carry(name, s.bidder.Receive(w.now, m))
	if s.bidder.State() == english.BidderSold {
		s.sold = append(s.sold, s.bidder.Award())
		s.bidder = w.newBidder(name)
	}
}

// pass lets time go by, one second at a time.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Second)
		w.carry("home", w.home.Wake(w.now))
		w.run()
		for _, name := range slices.Sorted(maps.Keys(w.sites)) {
			w.carry(name, w.sites[name].bidder.Ask(w.now))
			w.run()
		}
	}
}

// restart loses what a party has in memory.
func (w *world) restart(name string) {
	var err error
	if value := w.disk["home"][english.TableJobs]; name == "home" {
		if w.home, err = english.ReadAuctioneer(&w.cfg, "j", value); err != nil {
			w.t.Fatal(err)
		}
		w.carry("home", w.home.Open(w.now))
	}
	s := w.sites[name]
	s.bidder = w.newBidder(name)
	if value := w.disk[name][english.TableTaken]; value != nil {
		if s.bidder, err = english.ReadBidder(w.bidderConfig(name), s, agent("home"), "j", value); err != nil {
			w.t.Fatal(err)
		}
		w.carry(name, s.bidder.Ask(w.now))
	}
}
