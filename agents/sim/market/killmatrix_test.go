package market_test

import (
	"cmp"
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/rfql"
)

var allCells = flag.Bool("all", false, "every cell of the kill matrix, not a sample of the large purchase")

// The kill matrix: at every step of a purchase that is bought and then given
// back, one thing fails. A step is a message between two agents, or an Output of
// one; steps are found by watching a purchase in which nothing fails. Whatever
// fails, all units are sold and paid or none is, and when it is over nothing is
// held anywhere: the invariants say so, cell by cell.
func TestKillMatrix(t *testing.T) {
	t.Parallel()
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	sum := map[string]int{}
	for _, units := range []int{1, 2, 25} {
		if units == 25 && testing.Short() {
			continue
		}
		k := newKillMatrix(t, cast, units)
		cells := k.cells()
		switch {
		case *allCells:
		case testing.Short():
			cells = sample(cells, 1)
		case units == 25:
			cells = sample(cells, 2)
		}
		covers(t, units, cells)
		for _, c := range cells {
			sum["cells"]++
			sum[k.run(c)]++
		}
	}
	t.Logf("%d cells: %d settled, %d void, %d over before", sum["cells"], sum["settled"], sum["void"], sum["failed"])
	if sum["settled"] == 0 || sum["void"] == 0 || sum["failed"] == 0 {
		t.Errorf("%v: the faults miss what they are for", sum)
	}
}

// The stages of a purchase.
var stages = []string{"auction", "vote", "commit", "settlement", "cancellation"}

// killStep is one step of the purchase in which nothing fails.
type killStep struct {
	stage  string
	role   string // who says it, or whose Output it is: user, seller, bank
	host   string // of an Output
	number int    // of a message, from 1 since the order; or of an Output of its host
	output bool
	saves  bool
	sends  bool
}

// cell is a step and what fails there.
type cell struct {
	killStep
	fault string
	point sim.Point
	fate  sim.Fate
	part  time.Duration // how long the speaker is cut off
	deaf  bool          // the one who is spoken to is cut off instead
}

func (c cell) group() string { return c.stage + ", " + c.fault + ", " + c.role }

// killMatrix is one purchase and its steps.
type killMatrix struct {
	t     *testing.T
	cast  *market.Cast
	units int
	cfg   market.Config
	steps []killStep
}

// maxSearch is how many markets are looked at for one with enough sellers.
const maxSearch = 200

// newKillMatrix finds a market in which several sites share the purchase, and
// all of them take their units back, and records its steps.
func newKillMatrix(t *testing.T, cast *market.Cast, units int) *killMatrix {
	for seed := range uint64(maxSearch) {
		k := &killMatrix{t: t, cast: cast, units: units, cfg: market.Default()}
		k.cfg.Seed, k.cfg.Resources, k.cfg.Users, k.cfg.Rate, k.cfg.Heartbeat, k.cfg.Length = seed, 4, 1, 0, 10*time.Second, time.Hour
		k.cfg.Faults.LocalJobs = sim.Range{}
		r := k.open()
		r.record = true
		if r.live() == "settled" && r.sellers() >= min(units, 3) && r.refunded() {
			k.steps = r.steps
			return k
		}
	}
	t.Fatalf("%d units: no market of %d has enough sellers", units, maxSearch)
	return nil
}

// cells are all that can fail at all steps.
func (k *killMatrix) cells() []cell {
	var list []cell
	for _, s := range k.steps {
		if !s.output {
			list = append(list,
				cell{killStep: s, fault: "drop", fate: sim.Fate{Drop: true}},
				cell{killStep: s, fault: "drop", fate: sim.Fate{Drop: true, Tell: true}},
				cell{killStep: s, fault: "duplicate", fate: sim.Fate{Copies: 2}},
				cell{killStep: s, fault: "delay", fate: sim.Fate{Delay: protocol.VoteTimeout + 2*time.Second}},
				cell{killStep: s, fault: "delay", fate: sim.Fate{Delay: protocol.DefaultHold + 5*time.Second}},
				cell{killStep: s, fault: "partition", part: 90 * time.Second},
				cell{killStep: s, fault: "partition", part: 90 * time.Second, deaf: true})
			continue
		}
		list = append(list, cell{killStep: s, fault: "crash", point: sim.BeforeSave})
		if s.saves {
			list = append(list, cell{killStep: s, fault: "crash", point: sim.InSave})
		}
		if s.sends {
			list = append(list, cell{killStep: s, fault: "crash", point: sim.AfterSave}, cell{killStep: s, fault: "crash", point: sim.InSend})
		}
	}
	return list
}

// sample keeps some cells of each group, evenly.
func sample(cells []cell, most int) []cell {
	groups := map[string][]cell{}
	for _, c := range cells {
		groups[c.group()] = append(groups[c.group()], c)
	}
	var list []cell
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		g := groups[name]
		for i := range min(most, len(g)) {
			list = append(list, g[i*len(g)/most%len(g)])
		}
	}
	return list
}

// covers: every stage meets every fault, at each role that has a part in it.
func covers(t *testing.T, units int, cells []cell) {
	t.Helper()
	has := map[string]bool{}
	for _, c := range cells {
		has[c.group()] = true
	}
	parts := map[string][]string{
		"auction": {"user", "seller"}, "vote": {"user", "seller"}, "commit": {"user", "seller"},
		"settlement": {"seller", "bank"}, "cancellation": {"user", "seller", "bank"},
	}
	for _, stage := range stages {
		for _, fault := range []string{"crash", "drop", "duplicate", "delay", "partition"} {
			for _, role := range parts[stage] {
				if g := (cell{killStep: killStep{stage: stage, role: role}, fault: fault}).group(); !has[g] {
					t.Errorf("%d units: no cell for %s", units, g)
				}
			}
		}
	}
}

// killRun is one purchase in which at most one thing fails.
type killRun struct {
	*killMatrix
	m        *market.Market
	checks   *market.Checks
	cell     *cell
	record   bool
	ordered  bool
	packets  int
	phase    int // stage that was reached
	steps    []killStep
	cutHost  *sim.Host
	cutUntil time.Duration
}

func (k *killMatrix) open() *killRun {
	r := &killRun{killMatrix: k}
	r.m, r.checks = market.Open(k.cast, k.cfg)
	r.m.World.Hook(sim.Hooks{Fate: r.fate, Crash: r.crash})
	return r
}

func (k *killMatrix) run(c cell) string {
	r := k.open()
	r.cell = &c
	end := r.live()
	for _, v := range r.checks.Violations() {
		k.t.Errorf("%d units, seed %d, %s at %s %d, point %d, %+v: %s: %s", k.units, k.cfg.Seed, c.group(), c.host, c.number, c.point, c.fate, v.Invariant, v.What)
	}
	return end
}

// fate is what becomes of a message.
func (r *killRun) fate(p sim.Packet) sim.Fate {
	if !r.ordered || p.Message.Protocol == protocol.ProtocolPresence {
		return r.partition(p)
	}
	r.packets++
	if stage := stageOf(p.Message.Body, r.phase); stage >= 0 {
		r.phase = max(r.phase, stage)
	}
	if r.record {
		r.steps = append(r.steps, killStep{stage: stages[r.phase], role: r.roleOf(p.From), number: r.packets})
	}
	if c := r.cell; c != nil && !c.output && c.number == r.packets {
		if c.part == 0 {
			r.cutUntil = r.m.World.Elapsed() + c.fate.Delay // nobody: but it is awaited
			return c.fate
		}
		r.cutHost, r.cutUntil = p.From, r.m.World.Elapsed()+c.part
		if c.deaf {
			r.cutHost = p.To
		}
	}
	return r.partition(p)
}

func (r *killRun) partition(p sim.Packet) sim.Fate {
	cut := r.m.World.Elapsed() < r.cutUntil && (p.From == r.cutHost || p.To == r.cutHost)
	return sim.Fate{Drop: cut}
}

// crash is where in an Output its host crashes.
func (r *killRun) crash(b sim.Boundary) sim.Point {
	if r.record && r.ordered {
		r.recordOutput(b)
	}
	if c := r.cell; c != nil && c.output && c.host == b.Host.Name && c.number == b.Output {
		return c.point
	}
	return sim.Survives
}

// recordOutput records an Output that has to do with the purchase.
func (r *killRun) recordOutput(b sim.Boundary) {
	phase := -1
	for _, m := range b.Out.Send {
		phase = max(phase, stageOf(m.Body, r.phase))
	}
	saves := slices.ContainsFunc(b.Out.Save, func(s protocol.Record) bool { return s.Table != "presence" && s.Table != "seller-presence" })
	if phase < 0 && !saves {
		return
	}
	r.steps = append(r.steps, killStep{
		stage: stages[max(phase, r.phase)], role: r.roleOf(b.Host), host: b.Host.Name, number: b.Output, output: true, saves: saves, sends: phase >= 0,
	})
}

func (r *killRun) roleOf(h *sim.Host) string {
	switch {
	case h.ID() == r.cast.ID(market.BankName):
		return "bank"
	case h == r.m.Users()[0].Host:
		return "user"
	}
	return "seller"
}

// stageOf is the stage to which a message belongs, as a place in stages; -1 if it
// belongs to none.
func stageOf(body protocol.Body, phase int) int {
	switch body.(type) {
	case message.CallForProposals, message.Proposal:
		return 0
	case message.Acceptance, message.Vote, message.Reserve:
		return 1
	case message.BundleCopy, message.Confirmation, message.Countersigned, message.Keep:
		return 2
	case message.Settlement:
		return 3
	case message.UnitCancellation, message.RefundRequest, message.Release:
		return 4
	case message.Decision:
		return max(3, phase)
	case message.Refusal, message.OutcomeQuery, message.Annulment, message.Cancellation:
		return phase
	}
	return -1
}

const killOrder = "p"

// live orders, gives back what was bought, lets everything end, and says what
// became of it.
func (r *killRun) live() string {
	r.m.World.Run(12 * time.Second)
	u := r.m.Users()[0]
	r.ordered = true
	r.m.World.Order(u.Host, message.Buy{ID: killOrder, Name: killOrder, Document: r.document(u), Options: message.Options{Rounds: 2}})
	settled, asked := false, false
	for idle, i := 0, 0; idle < 35 && i < 900; i++ { // seconds
		r.m.World.Run(time.Second)
		if p := r.purchase(); p.Settled && !asked {
			settled = true
			row, _ := u.Host.Disk().Get(user.TablePurchases, killOrder)
			asked = r.m.World.Order(u.Host, message.CancelPurchase{ID: killOrder, Unit: -1, Row: row})
		}
		if idle++; r.checks.Going() > 0 || r.m.World.Elapsed() < r.cutUntil {
			idle = 0
		}
	}
	r.m.Calm()
	r.m.World.Run(10 * time.Second)
	r.checks.Finish()
	switch {
	case settled:
		return "settled"
	case r.purchase().State == user.StateVoid:
		return "void"
	}
	return "failed"
}

// document asks for units of 64 cores, all at the same time, so that a small site
// has room for one of them.
func (r *killRun) document(u *market.User) []byte {
	var d rfql.Draft
	from := u.Host.Now().Add(3 * time.Hour).Truncate(time.Minute)
	for range r.units {
		d.Requests = append(d.Requests, rfql.DraftRequest{Price: 90 * protocol.Credit, TotalCores: 64, NotBefore: from, End: from.Add(2 * time.Hour), Wall: 2 * time.Hour})
	}
	doc, err := rfql.Check(d, u.Host.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	return doc.XML()
}

func (r *killRun) purchase() message.Purchase {
	value, _ := r.m.Users()[0].Host.Disk().Get(user.TablePurchases, killOrder)
	row, err := user.ReadRow([]byte(cmp.Or(string(value), "{}")))
	if err != nil {
		r.t.Fatal(err)
	}
	return row.View()
}

func (r *killRun) sellers() int {
	list := map[protocol.AgentID]bool{}
	for _, u := range r.purchase().Units {
		list[u.Seller] = true
	}
	return len(list)
}

// refunded reports whether every unit was taken back.
func (r *killRun) refunded() bool {
	return !slices.ContainsFunc(r.purchase().Units, func(u message.PurchasedUnit) bool { return u.State != user.StateCancelled })
}
