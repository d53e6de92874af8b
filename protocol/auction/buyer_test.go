package auction_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// The transcripts in testdata/buyer are auctions of one buyer; sellers say only
// what the transcript says. Every Output is printed.
func TestBuyerTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/buyer", func(t *testing.T, path string) {
		w := &buyerWorld{t: t, now: begin, timing: auction.NewTiming()}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}

var begin = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

type buyerWorld struct {
	t      *testing.T
	now    time.Time
	timing *auction.Timing
	b      *auction.Buyer
	asked  int // auctions so far
}

func agent(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", protocol.FingerprintLen))
}

func (w *buyerWorld) run(d *datadriven.TestData) string {
	defer func() {
		if r := recover(); r != nil {
			d.Fatalf(w.t, "%v", r)
		}
	}()
	switch d.Cmd {
	case "open":
		return w.open(d)
	case "propose", "refuse":
		return w.show(w.b.Receive(w.now, w.answer(d)))
	case "unreachable":
		return w.show(w.b.Receive(w.now, protocol.Message{Performative: protocol.Failure, Sender: protocol.LocalMesh,
			Conversation: "c", Body: message.Undeliverable{To: agent(value(d, "to", ""))}}))
	case "wait":
		pause, err := time.ParseDuration(d.CmdArgs[0].Key)
		must(err)
		w.now = w.now.Add(pause)
		return w.show(w.b.Wake(w.now))
	case "solve":
		return w.solve(d)
	case "why":
		return w.why()
	case "rounds":
		return w.rounds()
	case "patience":
		return w.timing.Patience().String() + "\n"
	}
	panic("unknown command " + d.Cmd)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func value(d *datadriven.TestData, key, otherwise string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return otherwise
}

func number(d *datadriven.TestData, key string, otherwise int) int {
	n, err := strconv.Atoi(value(d, key, strconv.Itoa(otherwise)))
	must(err)
	return n
}

// sellersOf reads "a,b,c", or "64" for s001 … s064.
func sellersOf(s string) []protocol.AgentID {
	var list []protocol.AgentID
	if n, err := strconv.Atoi(s); err == nil {
		for i := range n {
			list = append(list, agent(fmt.Sprintf("s%03d", i+1)))
		}
		return list
	}
	for _, name := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' }) {
		list = append(list, agent(name))
	}
	return list
}

// window is what every unit of a transcript asks: an hour of 4 cores, from one
// to three hours from the beginning.
func window(price int) auction.Want {
	return auction.Want{Ceiling: protocol.Credits(price) * protocol.Credit, NotBefore: begin.Add(time.Hour), End: begin.Add(3 * time.Hour), Wall: time.Hour, Cores: 4}
}

func (w *buyerWorld) open(d *datadriven.TestData) string {
	w.asked++
	cfg := auction.BuyerConfig{
		Self: agent("buyer"), Conversation: "c", Document: []byte("<x/>"), Sellers: sellersOf(value(d, "sellers", "")),
		Rounds: number(d, "rounds", 3), RoundLimit: 15 * time.Second, Objective: protocol.ObjectiveCost,
		NoEarlyClose: value(d, "fixed", "") != "", SameStart: value(d, "same-start", "") != "", MaxCost: protocol.Credits(number(d, "max-cost", 0)) * protocol.Credit,
	}
	if cfg.Budget = number(d, "budget", 0); cfg.Budget > 0 {
		cfg.Prospects = prospects(len(cfg.Sellers), number(d, "units", 1))
	}
	for range number(d, "units", 1) {
		want := window(number(d, "price", 50))
		if s := value(d, "last-start", ""); s != "" {
			at, err := time.ParseDuration(s)
			must(err)
			want.LastStart = begin.Add(at)
		}
		cfg.Wants = append(cfg.Wants, want)
	}
	if err := cfg.Validate(); err != nil {
		return err.Error() + "\n"
	}
	b, out := auction.NewBuyer(w.now, cfg, w.timing)
	w.b = b
	return w.show(out)
}

// prospects are the price bands of a transcript's sellers: from 60 down to 11 for
// the first, and up to one credit more for each that follows.
func prospects(n, units int) []auction.Prospect {
	list := make([]auction.Prospect, n)
	for i := range list {
		list[i] = auction.Prospect{Start: 60 * protocol.Credit, Min: protocol.Credits(11+i) * protocol.Credit}
		for u := range units {
			list[i].Units.Add(u)
		}
	}
	return list
}

// offerOf reads "unit:price", "unit+unit:price" and options "@2h30m" for a start
// and "x8" for cores, "~1m" for how long it is valid, "#g" for a group.
func offerOf(now time.Time, s string) protocol.Offer {
	units, rest, _ := strings.Cut(s, ":")
	start, cores, valid, group := time.Hour, 4, 10*time.Minute, ""
	cut := func(mark string) string {
		before, after, _ := strings.Cut(rest, mark)
		rest = before
		return after
	}
	if g := cut("#"); g != "" {
		group = g
	}
	var err error
	if v := cut("~"); v != "" {
		valid, err = time.ParseDuration(v)
		must(err)
	}
	if v := cut("x"); v != "" {
		cores, err = strconv.Atoi(v)
		must(err)
	}
	if v := cut("@"); v != "" {
		start, err = time.ParseDuration(v)
		must(err)
	}
	price, err := protocol.ParseCredits(rest)
	must(err)
	o := protocol.Offer{ID: s, ValidUntil: now.Add(valid), Group: group}
	for _, u := range strings.Split(units, "+") {
		unit, err := strconv.Atoi(u)
		must(err)
		slot := protocol.Slot{Start: begin.Add(start), End: begin.Add(start + time.Hour), Cores: cores}
		cost, err := protocol.Cost(max(price, 0), cores, time.Hour)
		must(err)
		o.Items = append(o.Items, protocol.Item{Unit: unit, Slot: slot, Price: price, Cost: cost})
		o.Cost += cost
	}
	return o
}

func (w *buyerWorld) answer(d *datadriven.TestData) protocol.Message {
	m := protocol.Message{Performative: protocol.Propose, Sender: agent(value(d, "from", "")), Conversation: "c"}
	round := number(d, "round", w.b.Round())
	reasons := w.reasons(d)
	if d.Cmd == "refuse" {
		m.Performative, m.Body = protocol.Refuse, message.Refusal{Round: round, Reasons: reasons}
		return m
	}
	p := message.Proposal{Round: round, Refusals: reasons}
	for _, s := range strings.Fields(d.Input) {
		if !strings.Contains(s, "=") {
			p.Offers = append(p.Offers, offerOf(w.now, s))
		}
	}
	m.Body = p
	return m
}

// reasons reads fields "code=unit[,asks][,start][,want:have]"; want and have are of a term.
func (w *buyerWorld) reasons(d *datadriven.TestData) []protocol.Reason {
	var list []protocol.Reason
	for _, s := range strings.Fields(d.Input) {
		code, rest, ok := strings.Cut(s, "=")
		if !ok {
			continue
		}
		f := strings.Split(rest, ",")
		unit, err := strconv.Atoi(f[0])
		must(err)
		r := protocol.Reason{Code: protocol.Code(code), Unit: unit}
		for _, v := range f[1:] {
			if want, have, ok := strings.Cut(v, ":"); ok {
				r.Term, r.Want, r.Have = "term", want, have
				continue
			}
			if wait, err := time.ParseDuration(v); err == nil && v != "0" {
				r.Start = begin.Add(wait)
				continue
			}
			r.Asks, err = protocol.ParseCredits(v)
			must(err)
		}
		list = append(list, r)
	}
	return list
}

func (w *buyerWorld) show(out protocol.Output) string {
	var s strings.Builder
	for _, m := range out.Send {
		c := m.Body.(message.CallForProposals)
		to := fmt.Sprint(len(m.Receivers), " sellers")
		if len(m.Receivers) <= 4 {
			var names []string
			for _, id := range m.Receivers {
				names = append(names, cmp.Or(id.Name(), string(id)))
			}
			to = strings.Join(names, " ")
		}
		fmt.Fprintf(&s, "%s to %s: round %d", m.Performative, to, c.Round)
		if c.Best {
			s.WriteString(", best offers")
		}
		if c.Document != nil {
			s.WriteString(", with the document")
		}
		if c.Budget > 0 {
			fmt.Fprintf(&s, ", %d of %d", c.Budget, c.Among)
		}
		if !c.Start.IsZero() {
			fmt.Fprintf(&s, ", from %s", c.Start.Sub(begin))
		}
		for _, x := range c.Ceilings {
			fmt.Fprintf(&s, ", unit %d below %s", x.Unit, x.Price)
			if x.Tied {
				s.WriteString(" (tied)")
			}
		}
		for _, x := range c.Bundles {
			fmt.Fprintf(&s, ", units %v below %s", x.Units, x.Cost)
		}
		s.WriteString("\n")
	}
	if !out.WakeAt.IsZero() {
		fmt.Fprintf(&s, "wake in %s\n", out.WakeAt.Sub(w.now))
	}
	if w.b.Over() {
		fmt.Fprintf(&s, "%s%s\n", w.b.State(), set(w.b.Result().Bids))
		for _, v := range w.b.Violations(w.b.Result().Bids) {
			fmt.Fprintf(&s, "violated: %s\n", v)
		}
	}
	if s.Len() == 0 {
		return "nothing\n"
	}
	return s.String()
}

func set(bids []protocol.Bid) string {
	var s strings.Builder
	for _, b := range bids {
		fmt.Fprintf(&s, " %s %s", b.Seller.Name(), b.Offer.ID)
	}
	return s.String()
}

// solve resolves without the offers "seller/offer" that are given.
func (w *buyerWorld) solve(d *datadriven.TestData) string {
	out := map[protocol.BidKey]bool{}
	for _, s := range strings.Fields(d.Input) {
		seller, offer, _ := strings.Cut(s, "/")
		out[protocol.BidKey{Seller: agent(seller), Offer: offer}] = true
	}
	bids, ok := w.b.Choose(w.now, nil, func(b protocol.Bid) bool { return out[b.Key()] })
	if !ok {
		return "none\n"
	}
	return strings.TrimSpace(set(bids)) + "\n"
}

func (w *buyerWorld) why() string {
	var s strings.Builder
	why := w.b.Explain().Why()
	for _, c := range slices.Sorted(maps.Keys(why)) {
		fmt.Fprintf(&s, "%d %s\n", why[c], c)
	}
	if lack := w.b.Explain().Lack(); lack != "" {
		s.WriteString(lack + "\n")
	}
	for _, r := range w.b.Explain().Relaxations() {
		s.WriteString(auction.AdviceOf(r) + "\n")
	}
	return s.String()
}

func (w *buyerWorld) rounds() string {
	var s strings.Builder
	for _, r := range w.b.Rounds() {
		fmt.Fprintf(&s, "round %d: %d offer, %d refuse, %.0f ms, best", r.Round, r.Offers, r.Refusals, r.MS)
		for _, p := range r.Best {
			if p == nil {
				s.WriteString(" -")
			} else {
				s.WriteString(" " + p.String())
			}
		}
		s.WriteString("\n")
	}
	return s.String()
}
