package ledgeretcd_test

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"

	"ramp/bank/ledger"
	"ramp/bank/ledgeretcd"
)

// finish ends the clients and holds their history against the ledger, as who
// has nothing but the cluster reads it.
func (w *world) finish(atLeast int64) []operation {
	for end := time.Now().Add(5 * time.Minute); w.done.Load() < atLeast && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	w.stop.Store(true)
	w.clients.Wait()
	for _, a := range w.agents {
		_ = a.Process.Kill()
		_ = a.Wait()
	}
	cfg := testConfig(w, w.TempDir()+"/ledger.db")
	cfg.Bank = account(-1)
	ctx, cancel := context.WithTimeout(w.Context(), rebuildTime)
	defer cancel()
	begin := time.Now()
	s, err := ledgeretcd.Open(ctx, cfg)
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	w.Logf("a new mirror was built within %s", time.Since(begin).Round(time.Millisecond))
	w.check(s)
	return w.history
}

func (w *world) check(s *ledgeretcd.Store) {
	report, log, err := s.DB().AuditAll(false, nil, nil)
	if err != nil || len(report.Bad)+len(log.Bad) > 0 {
		w.Fatalf("audit: %v, %v, %v", err, report.Bad, log.Bad)
	}
	after := w.entries(s)
	var ops []porcupine.Operation
	unknown := 0
	for _, o := range w.history {
		balance, there := after[o.ref]
		switch {
		case o.ref == "" && !o.answered, o.ref != "" && !o.answered && !there:
			unknown++
			continue // it never happened, or nobody saw it
		case o.ref != "" && o.answered && !there:
			w.Fatalf("add %s was acknowledged and is lost", o.ref)
		case !o.answered:
			unknown++
			o.back, o.balance = math.MaxInt64, balance
		}
		ops = append(ops, porcupine.Operation{
			ClientId: o.client, Input: o, Call: o.call, Output: o.balance, Return: o.back,
		})
	}
	if len(ops) == 0 || porcupine.CheckOperationsTimeout(counters(), ops, time.Minute) != porcupine.Ok {
		w.Fatalf("the history of %d operations is not linearizable, or cannot be told to be", len(ops))
	}
	w.Logf("%d operations, of which %d had no answer; %d entries; linearizable", len(w.history), unknown, report.Entries)
}

// entries are the balances after all adds by their references, each there once.
func (w *world) entries(s *ledgeretcd.Store) map[string]int64 {
	after := map[string]int64{}
	for from := uint64(1); ; {
		page, err := s.DB().Entries(from, 1024)
		if err != nil {
			w.Fatal(err)
		}
		if len(page) == 0 {
			return after
		}
		for _, e := range page {
			from = e.Number + 1
			if e.Kind != ledger.KindCredit {
				continue
			}
			if _, twice := after[e.Ref]; twice {
				w.Fatalf("%s is in the ledger twice", e.Ref)
			}
			i := slices.IndexFunc(e.Legs, func(l ledger.Leg) bool { return l.Account != ledger.Issuer })
			after[e.Ref] = int64(e.Legs[i].After)
		}
	}
}

// counters is what clients may see: an account grows by one with each add.
func counters() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			parts := make([][]porcupine.Operation, accounts)
			for _, o := range history {
				i := o.Input.(operation).account
				parts[i] = append(parts[i], o)
			}
			return parts
		},
		Init: func() any { return int64(0) },
		Step: func(state, input, output any) (bool, any) {
			now := state.(int64)
			if input.(operation).ref != "" {
				now++
			}
			return output.(int64) == now, now
		},
	}
}
