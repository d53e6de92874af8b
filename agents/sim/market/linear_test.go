package market_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"ramp/agents/sim"
	"ramp/agents/sim/market"
	"ramp/protocol"
	"ramp/protocol/message"
)

// ask is what the bank is asked about a contract, and answer what it says. Any
// outcome is possible for whoever never got an answer.
type ask struct {
	contract protocol.ContractID
	copies   int              // of the contract
	by       protocol.AgentID // whose copy, or who asks
	kind     string           // copy, void or query
}

// history records what a bank is asked and answers, with all its machines seen
// as one: an operation begins when its request arrives at any of them, and ends
// when one of them sends its asker an answer about that contract.
type history struct {
	start time.Time
	open  map[string][]int // operations without an answer, by asker and contract
	ops   []porcupine.Operation
}

func newHistory() *history {
	return &history{start: market.Dawn, open: map[string][]int{}}
}

func isBank(h *sim.Host) bool { return h.ID().Name() == market.BankName }

func (l *history) Durable(*sim.Host, []protocol.Record)       {}
func (l *history) Refused(*sim.Host, protocol.AgentID, error) {}
func (l *history) at(h *sim.Host) int64                       { return int64(h.World().Now().Sub(l.start)) }
func key(asker protocol.AgentID, id protocol.ContractID) string {
	return string(asker) + " " + string(id)
}

func (l *history) Delivered(to, _ *sim.Host, m protocol.Message) {
	if !isBank(to) {
		return
	}
	var in ask
	switch body := m.Body.(type) {
	case message.Settlement:
		in = ask{body.Sale.Verified.ID, len(body.Sale.Verified.Sellers()), body.Sale.Seller.ID, "copy"} // whoever brings it
	case message.Annulment:
		in = ask{body.Bundle.ID, len(body.Bundle.Sellers()), m.Sender, "void"}
	case message.OutcomeQuery:
		in = ask{body.Contract, 0, m.Sender, "query"}
	default:
		return
	}
	k := key(m.Sender, in.contract)
	l.open[k] = append(l.open[k], len(l.ops))
	l.ops = append(l.ops, porcupine.Operation{ClientId: len(l.ops), Input: in, Call: l.at(to), Output: protocol.Outcome(""), Return: math.MaxInt64})
}

// Sent takes an answer. It may be that of any of the asker's open operations on
// the contract, and is taken for that of all: each of them had begun by then.
func (l *history) Sent(from *sim.Host, m protocol.Message) {
	body, ok := m.Body.(message.Decision)
	if !ok || !isBank(from) {
		return
	}
	for _, to := range m.Receivers {
		k := key(to, body.Contract)
		for _, i := range l.open[k] {
			l.end(i, body.Outcome, l.at(from))
		}
		delete(l.open, k)
	}
}

// end ends an operation. Whoever shows a copy is answered when the bundle is
// decided: showing it and hearing of the decision are two operations.
func (l *history) end(i int, said protocol.Outcome, at int64) {
	op := &l.ops[i]
	op.Return = at
	in := op.Input.(ask)
	if in.kind != "copy" {
		op.Output = said
		return
	}
	in.kind = "query"
	l.ops = append(l.ops, porcupine.Operation{ClientId: len(l.ops), Input: in, Call: op.Call, Output: said, Return: at})
}

// state is a contract as its bank should have it.
type state struct {
	outcome protocol.Outcome // empty: not decided
	copies  string           // sellers whose copies are there, in order of arrival
	n       int
}

// model is the contract that every user and seller of a bank relies on: it is
// decided once, settled only with all copies, and everybody is told the same. With
// hearsay, an answer that nothing is decided says nothing: a machine that was
// deposed and does not know may give it.
func model(hearsay bool) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: byContract,
		Init:      func() []any { return []any{state{}} },
		Step:      func(s, in, out any) []any { return step(s, in, out, hearsay) },
		Equal:     func(a, b any) bool { return a == b },
	}
	return m.ToModel()
}

func byContract(ops []porcupine.Operation) [][]porcupine.Operation {
	index, parts := map[protocol.ContractID]int{}, [][]porcupine.Operation{}
	for _, op := range ops {
		id := op.Input.(ask).contract
		i, ok := index[id]
		if !ok {
			i = len(parts)
			index[id], parts = i, append(parts, nil)
		}
		parts[i] = append(parts[i], op)
	}
	return parts
}

// step are the states in which a contract may be after an operation with that
// answer; none: the answer is wrong.
func step(s, input, output any, hearsay bool) []any {
	in, said := input.(ask), output.(protocol.Outcome)
	var list []any
	for _, next := range after(s.(state), in) {
		told := next.outcome
		undecided := said == protocol.OutcomeGathering || said == protocol.OutcomeUnknown
		if said == "" || told == said || undecided && (hearsay || told == "") {
			list = append(list, next)
		}
	}
	return list
}

// after are the states that an operation may leave, whatever it answers. A bank
// may void a contract that is not decided at any time: settle-by may be over.
func after(s state, in ask) []state {
	if s.outcome != "" {
		return []state{s}
	}
	void := s
	void.outcome = protocol.OutcomeVoid
	switch in.kind {
	case "void":
		return []state{void}
	case "copy":
		if !strings.Contains(s.copies, string(in.by)+" ") {
			s.copies += string(in.by) + " "
			s.n++
		}
		if s.n == in.copies {
			s.outcome = protocol.OutcomeSettled
		}
	}
	return []state{s, void}
}

func TestTheBanksHistoryIsLinearizable(t *testing.T) {
	t.Parallel()
	t.Run("one machine", func(t *testing.T) { checkHistories(t, sim.Range{}) })
	t.Run("two machines", func(t *testing.T) { checkHistories(t, sim.Range{Least: 24, Most: 96}) })
}

// checkHistories looks at the histories of banks whose standby takes over so
// many times a day.
func checkHistories(t *testing.T, takeOvers sim.Range) {
	cast, err := market.NewCast()
	if err != nil {
		t.Fatal(err)
	}
	operations, last := 0, uint64(6)
	if testing.Short() {
		last = 2
	}
	for seed := uint64(1); seed <= last; seed++ {
		cfg := market.Default()
		cfg.Seed, cfg.Faults, cfg.Length, cfg.Resources, cfg.Users, cfg.Rate = seed, sim.Levels()["heavy"], 3*time.Hour, 4, 3, 10
		cfg.Faults.TakeOvers = takeOvers
		h := newHistory()
		m, checks := market.Open(cast, cfg, h)
		m.Live(checks, nil)
		operations += len(h.ops)
		if !porcupine.CheckOperations(model(takeOvers.Most > 0), h.ops) {
			t.Errorf("seed %d: the history of %d operations cannot be put in order", seed, len(h.ops))
		}
	}
	t.Logf("%d operations", operations)
	if operations < 80*int(last) {
		t.Errorf("only %d operations: too few to say anything", operations)
	}
}

// TestWrongHistoriesAreSeen proves that the test above can fail.
func TestWrongHistoriesAreSeen(t *testing.T) {
	op := func(n int, by, kind string, out protocol.Outcome) porcupine.Operation {
		return porcupine.Operation{ClientId: n, Input: ask{"c", 2, protocol.AgentID(by), kind}, Output: out, Call: int64(2 * n), Return: int64(2*n + 1)}
	}
	settled, void, gathering := protocol.OutcomeSettled, protocol.OutcomeVoid, protocol.OutcomeGathering
	for name, c := range map[string]struct {
		ops []porcupine.Operation
		ok  bool
	}{
		"both copies, settled":            {[]porcupine.Operation{op(0, "a", "copy", gathering), op(1, "b", "copy", settled), op(2, "a", "query", settled)}, true},
		"a repeated copy":                 {[]porcupine.Operation{op(0, "a", "copy", gathering), op(1, "a", "copy", gathering), op(2, "b", "copy", settled)}, true},
		"voided at its time":              {[]porcupine.Operation{op(0, "a", "copy", gathering), op(1, "b", "copy", void)}, true},
		"settled with one copy":           {[]porcupine.Operation{op(0, "a", "copy", settled)}, false},
		"settled, then void":              {[]porcupine.Operation{op(0, "a", "copy", gathering), op(1, "b", "copy", settled), op(2, "a", "void", void)}, false},
		"void, then settled":              {[]porcupine.Operation{op(0, "u", "void", void), op(1, "a", "copy", gathering), op(2, "b", "copy", settled)}, false},
		"decided, then gathering":         {[]porcupine.Operation{op(0, "u", "void", void), op(1, "a", "query", gathering)}, false},
		"a void request changes its mind": {[]porcupine.Operation{op(0, "u", "void", gathering)}, false},
	} {
		if got := porcupine.CheckOperations(model(false), c.ops); got != c.ok {
			t.Errorf("%s: linearizable %v, want %v", name, got, c.ok)
		}
	}
}
