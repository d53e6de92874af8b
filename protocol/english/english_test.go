package english_test

import (
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/english"
	"ramp/protocol/message"
)

// TestAQuoteIsTheBestBid compares Quote with an oracle that tries all bids and values
// them as fractions, as the source has it.
func TestAQuoteIsTheBestBid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		level := rapid.IntRange(1, 4).Draw(t, "level")
		least := rapid.IntRange(1, 5).Draw(t, "least")
		terms := message.JobTerms{Level: level, Least: least, Most: least + rapid.IntRange(0, 5).Draw(t, "more")}
		c := english.Capacity{Free: rapid.IntRange(0, 6).Draw(t, "free"), Queued: rapid.IntRange(0, 4).Draw(t, "queued")}
		for range rapid.IntRange(0, 4).Draw(t, "jobs") {
			c.Running = append(c.Running, message.Victims{Level: rapid.IntRange(1, 4).Draw(t, "job"), Modules: rapid.IntRange(1, 4).Draw(t, "modules")})
		}
		bid, ok := english.Quote(terms, c, time.Second)
		want, can := bestOf(terms, c)
		if ok != can {
			t.Fatalf("bids: %t, want %t", ok, can)
		}
		scale := english.Scale{Alpha: 12_000, Gamma: 12_000}
		if got := big.NewRat(scale.Value(level, bid), 1000); ok && got.Cmp(want) != 0 {
			t.Fatalf("bid %+v is worth %s, the best %s", bid, got, want)
		}
	})
}

// bestOf is the value of the best bid with a transfer of a second, at α = γ = 12: so every
// share is a whole number.
func bestOf(t message.JobTerms, c english.Capacity) (best *big.Rat, ok bool) {
	if c.Queued >= t.Level {
		return nil, false
	}
	var lower []int // levels of single modules below the job's
	for _, r := range c.Running {
		for range r.Modules {
			if r.Level < t.Level {
				lower = append(lower, r.Level)
			}
		}
	}
	for set := range 1 << len(lower) {
		for free := range c.Free + 1 {
			n, v := free, big.NewRat(int64(12*free), 1)
			for i, l := range lower {
				if set>>i&1 == 1 {
					n++
					v.Add(v, new(big.Rat).Mul(big.NewRat(12, 1), big.NewRat(int64(t.Level-l), int64(t.Level))))
				}
			}
			if n < t.Least || n > t.Most {
				continue
			}
			if v.Sub(v, big.NewRat(12, 1)); !ok || v.Cmp(best) > 0 {
				best, ok = v, true
			}
		}
	}
	return best, ok
}

// TestTheBestBidWins compares the winner with an oracle that sorts what each site has bid
// last and in time. Times that are longer in one proportion change nothing.
func TestTheBestBidWins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type step struct {
			site, free int
			at         time.Duration
		}
		var steps []step
		at := time.Duration(0)
		for range rapid.IntRange(0, 12).Draw(t, "bids") {
			at += time.Duration(rapid.IntRange(0, 3000).Draw(t, "later")) * time.Millisecond
			steps = append(steps, step{rapid.IntRange(0, 2).Draw(t, "site"), rapid.IntRange(0, 5).Draw(t, "free"), at})
		}
		sites := []protocol.AgentID{agent("a"), agent("b"), agent("c")}
		play := func(scale time.Duration) (winner, first protocol.AgentID) {
			cfg := &english.AuctioneerConfig{Self: agent("home"), Sites: sites, Scale: english.Scale{Alpha: 1000, Minimum: 1000}, Length: fixed(10 * time.Second * scale)}
			a, _ := english.NewAuctioneer(cfg, "j", agent("ann"), message.JobTerms{Level: 1, Least: 1, Most: 4, Wall: time.Hour, Where: sites[0]})
			a.Open(epoch)
			for i, s := range steps {
				m := protocol.Message{Performative: protocol.Propose, Sender: sites[s.site], Body: message.JobBid{Number: 1, Seq: int64(i + 1), Free: s.free}}
				if s.free == 0 {
					m.Performative = protocol.Refuse
				}
				a.Receive(epoch.Add(s.at*scale), m)
			}
			out := a.Wake(epoch.Add(10 * time.Second * scale))
			for _, m := range out.Send {
				if m.Performative == protocol.AcceptProposal {
					return m.Receivers[0], a.History().Auctions[0].Winner
				}
			}
			return "", ""
		}
		// The oracle: of each site the last in time counts; one above what the job can use
		// withdraws what stood.
		last := map[int]step{}
		for _, s := range steps {
			if s.at <= 10*time.Second {
				last[s.site] = s
			}
		}
		var standing []step
		for _, s := range last {
			if s.free >= 1 && s.free <= 4 {
				standing = append(standing, s)
			}
		}
		slices.SortFunc(standing, func(x, y step) int {
			if x.free != y.free {
				return y.free - x.free
			}
			if x.at != y.at {
				return int(x.at - y.at)
			}
			return x.site - y.site
		})
		want := protocol.AgentID("")
		if len(standing) > 0 {
			want = sites[standing[0].site]
		}
		for _, scale := range []time.Duration{1, 1024} {
			if got, told := play(scale); got != want || told != want {
				t.Fatalf("times %d: %s wins, told as %s, want %s", scale, got, told, want)
			}
		}
	})
}

type fixed time.Duration

func (f fixed) Next() (length, mean time.Duration) { return time.Duration(f), 0 }

// TestOneSiteHasTheJob loses, repeats and holds up messages, and restarts everybody: an
// award is sold to one site, a site never has a job that the home has given to another,
// and once faults stop the job is sold.
func TestOneSiteHasTheJob(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t)
		w.sites["a"].capacity.Free, w.sites["b"].capacity.Free = 3, 2
		var out protocol.Output
		w.home, out = english.NewAuctioneer(&w.cfg, "j", agent("ann"), message.JobTerms{Level: 2, Least: 1, Most: 4, Wall: time.Hour, Where: agent("home")})
		w.carry("home", out)
		w.carry("home", w.home.Open(w.now))
		for range rapid.IntRange(10, 80).Draw(r, "steps") {
			w.fault(r)
		}
		w.run()
		for range 1200 {
			if w.soldTo() != "" {
				break
			}
			w.pass(time.Second)
		}
		if w.soldTo() == "" {
			r.Fatalf("not sold: %s", w.home)
		}
	})
}

// fault takes one step of an unreliable world.
func (w *world) fault(r *rapid.T) {
	switch name := rapid.SampledFrom([]string{"a", "b", "home"}).Draw(r, "party"); rapid.SampledFrom([]string{"deliver", "deliver", "deliver", "lose", "repeat", "pass", "restart", "load"}).Draw(r, "step") {
	case "deliver", "lose", "repeat":
		if len(w.queue) == 0 {
			return
		}
		what := rapid.SampledFrom([]string{"deliver", "deliver", "lose", "repeat"}).Draw(r, "fate")
		i := rapid.IntRange(0, len(w.queue)-1).Draw(r, "message")
		m := w.queue[i]
		if what != "repeat" {
			w.queue = slices.Delete(w.queue, i, i+1)
		}
		if what != "lose" {
			w.deliver(m)
		}
	case "pass":
		w.now = w.now.Add(time.Duration(rapid.IntRange(1, 12).Draw(r, "seconds")) * time.Second)
		w.carry("home", w.home.Wake(w.now))
		w.carry("a", w.sites["a"].bidder.Ask(w.now))
		w.carry("b", w.sites["b"].bidder.Ask(w.now))
	case "restart":
		w.restart(name)
	case "load":
		w.sites[name].capacity.Free = rapid.IntRange(0, 4).Draw(r, "free")
		w.carry(name, w.sites[name].bidder.Revise(w.now, w.sites[name].Capacity()))
	}
	w.soldTo()
	w.sites["a"].capacity.Free = max(1, w.sites["a"].capacity.Free)
}

// soldTo names the site that has the job, and fails if several have it.
func (w *world) soldTo() (site string) {
	for name, s := range w.sites {
		if len(s.sold) > 1 || len(s.sold) == 1 && site != "" {
			w.t.Fatalf("the job is sold twice: %s has %v, and %q too", name, s.sold, site)
		}
		if len(s.sold) == 1 {
			site = name
		}
	}
	if site != "" {
		if p := w.home.Progress(); p.Site != agent(site) {
			w.t.Fatalf("%s has the job, its home gave it to %q", site, p.Site)
		}
	}
	return site
}

// TestAShareOfTheLevel shows the value of victims: the nearer their level, the less.
func TestAShareOfTheLevel(t *testing.T) {
	s := english.Scale{Alpha: 1000, Gamma: 8000}
	for want, b := range map[int64]message.JobBid{
		2000:  {Free: 2},
		1500:  {Victims: []message.Victims{{Level: 1, Modules: 2}}},
		500:   {Victims: []message.Victims{{Level: 3, Modules: 2}}},
		-6000: {Free: 2, Transfer: time.Second},
	} {
		if got := s.Value(4, b); got != want {
			t.Errorf("%+v: %d, want %d", b, got, want)
		}
	}
	if got := fmt.Sprint(s.Value(4, message.JobBid{Free: 1, Transfer: 1 << 62})); got[0] != '-' {
		t.Errorf("an endless transfer is worth %s", got)
	}
}

// A job that is coming keeps its modules from others of its level and below, not from those above.
func TestWhatIsComingKeepsItsModules(t *testing.T) {
	terms := func(level, least, most int) message.JobTerms {
		return message.JobTerms{Level: level, Least: least, Most: most}
	}
	c := english.Capacity{
		Free: 3, Running: []message.Victims{{Level: 1, Modules: 1}, {Level: 1, Modules: 2}},
		Coming: []message.JobTerms{terms(3, 1, 4), terms(2, 9, 9)},
	}
	for what, x := range map[string]struct {
		terms message.JobTerms
		want  string
	}{
		"above all":         {terms(4, 1, 6), "{Number:0 Seq:0 Free:3 Victims:[{Level:1 Modules:3}] Transfer:0s} true"},
		"of the same level": {terms(3, 1, 6), "{Number:0 Seq:0 Free:0 Victims:[{Level:1 Modules:2}] Transfer:0s} true"},
		"too large":         {terms(3, 3, 6), "{Number:0 Seq:0 Free:0 Victims:[{Level:1 Modules:2}] Transfer:0s} false"},
		"behind one":        {terms(2, 1, 1), "{Number:0 Seq:0 Free:0 Victims:[] Transfer:0s} false"},
	} {
		b, ok := english.Quote(x.terms, c, 0)
		if got := fmt.Sprintf("%+v %t", b, ok); got != x.want {
			t.Errorf("%s: %s, want %s", what, got, x.want)
		}
	}
}
