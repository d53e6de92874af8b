package ledger_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/bank/voids"
	"ramp/protocol"
)

// flooded is a bank where ann has used up her entries for void contracts.
func flooded(t testing.TB) *bank {
	t.Helper()
	b := funded(t)
	for i := range voids.Allowance {
		if r, err := b.void(b.free(fmt.Sprint("flood", i), time.Minute), agent("ann")); err != nil || r.Entry == 0 {
			t.Fatalf("void contract %d: %+v %v", i, r, err)
		}
	}
	return b
}

// free is a contract of ann with bob and eve.
func (b *bank) free(seed string, settle time.Duration) contract {
	return newContract(seed, agent("ann"), b.now.Add(settle), ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("eve"), Amount: 1})
}

func (b *bank) bytes() (n int) {
	for _, rows := range b.store {
		for key, value := range rows {
			n += len(key) + len(value)
		}
	}
	return n
}

// Void contracts beyond their user's allowance cost the bank nothing, and are void as soon
// as their settle-by is over. Other users notice nothing.
func TestAFloodOfVoidContractsLeavesNothingAtTheBank(t *testing.T) {
	b := flooded(t)
	entries, bytes := b.LastEntry(), b.bytes()
	var list []contract
	for i := range 2000 {
		c := b.free(fmt.Sprint("more", i), time.Minute)
		list = append(list, c)
		if _, err := b.void(c, agent("ann")); code(err) != protocol.CodeLimit {
			t.Fatalf("void contract %d before its settle-by: %v", i, err)
		}
	}
	if n := b.bytes(); n != bytes {
		t.Errorf("%d bytes are kept of refused requests", n-bytes)
	}
	b.now = b.now.Add(time.Minute)
	for i, c := range list {
		if r, err := b.void(c, agent("bob")); err != nil || r.Outcome != protocol.OutcomeVoid || r.Reason != protocol.CodeSettleBy || r.Entry != 0 {
			t.Fatalf("void contract %d after its settle-by: %+v %v", i, r, err)
		}
	}
	if n := b.bytes() - bytes; n > 200 || b.LastEntry() != entries {
		t.Errorf("%d bytes and %d entries are kept of %d contracts", n, b.LastEntry()-entries, len(list))
	}
	other := newContract("other", agent("eve"), b.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 1})
	if r, err := b.void(other, agent("eve")); err != nil || r.Entry == 0 {
		t.Errorf("a void contract of another user: %+v %v", r, err)
	}
	sound(t, b)
}

// The allowance comes back evenly, also across a restart.
func TestTheAllowanceForVoidContractsComesBack(t *testing.T) {
	b := flooded(t)
	for i, want := range []protocol.Code{protocol.CodeLimit, "", protocol.CodeLimit} {
		if i == 1 {
			b.now = b.now.Add(protocol.OutcomeMemory / voids.Allowance)
		}
		b.must(t, "reload", b.reload())
		if _, err := b.void(b.free(fmt.Sprint("again", i), time.Minute), agent("ann")); code(err) != want {
			t.Errorf("request %d: %v, want %q", i, err, want)
		}
	}
	b.now = b.now.Add(protocol.OutcomeMemory)
	for i := range voids.Allowance {
		_, err := b.void(b.free(fmt.Sprint("tomorrow", i), time.Minute), agent("ann"))
		b.must(t, "void tomorrow", err)
	}
}

// A purchase of a user without allowance settles as before; if it cannot be paid, it stays
// undecided until its settle-by.
func TestAUserWithoutAllowanceStillBuys(t *testing.T) {
	b := flooded(t)
	ann, bob, eve := agent("ann"), agent("bob"), agent("eve")
	for _, c := range []struct {
		name string
		pays []ledger.Payment
		want protocol.Outcome
	}{
		{"it can be paid", []ledger.Payment{{To: bob, Amount: 20}, {To: eve, Amount: 20}}, protocol.OutcomeSettled},
		{"it cannot", []ledger.Payment{{To: bob, Amount: 35}, {To: eve, Amount: 35}}, protocol.OutcomeGathering},
		{"nor one of a single seller", []ledger.Payment{{To: bob, Amount: 70}}, protocol.OutcomeGathering},
	} {
		x := newContract(c.name, ann, b.now.Add(time.Minute), c.pays...)
		for range 2 {
			for _, p := range c.pays {
				_, err := b.copy(x, p.To)
				b.must(t, c.name, err)
			}
		}
		b.must(t, "reload", b.reload())
		if r, err := b.Outcome(x.id); err != nil || r.Outcome != c.want {
			t.Errorf("%s: %+v %v", c.name, r, err)
		}
	}
	b.now = b.now.Add(time.Hour)
	if n := len(b.expire().Voided); n != 2 || len(b.store[ledger.TableGathering]) > 0 {
		t.Errorf("%d contracts are void after an hour, want 2", n)
	}
	sound(t, b)
}

// What is undecided at its settle-by leaves no trace beyond the allowance.
func TestExpiryWithoutAllowanceLeavesNothing(t *testing.T) {
	b := flooded(t)
	for i := range 500 {
		_, err := b.copy(b.free(fmt.Sprint("half", i), time.Minute), agent("bob"))
		b.must(t, "copy", err)
	}
	entries := b.LastEntry()
	b.now = b.now.Add(time.Hour)
	done := b.expire()
	if len(done.Voided) != 500 || done.Voided[0].Reason != protocol.CodeSettleBy || len(done.Voided[0].Sellers) != 2 {
		t.Fatalf("%d expired: %+v", len(done.Voided), done.Voided)
	}
	if n := int(b.LastEntry() - entries); n != voids.Allowance/24 || len(b.store[ledger.TableGathering])+len(b.store[ledger.TableCopies]) > 0 {
		t.Errorf("%d entries after an hour, and %d rows; want %d and none", n, len(b.store[ledger.TableGathering]), voids.Allowance/24)
	}
	sound(t, b)
}

// lapsed is a contract that the bank has called void without an entry, and its receipt.
func (b *bank) lapsed(t testing.TB) (contract, protocol.Receipt) {
	t.Helper()
	c := b.free("lapsed", time.Minute)
	b.now = b.now.Add(time.Minute)
	r, err := b.void(c, agent("ann"))
	if err != nil || r.Outcome != protocol.OutcomeVoid || r.Entry != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	return c, r
}

// A lapsed contract stays void: after a restart, although the clock was set back and all
// copies come, in recovery, and when its user has an allowance again.
func TestALapsedContractNeverChanges(t *testing.T) {
	b := flooded(t)
	c, want := b.lapsed(t)
	check := func(when string) {
		t.Helper()
		for _, seller := range []string{"bob", "eve"} {
			if r, err := b.copy(c, agent(seller)); err != nil || !reflect.DeepEqual(r, want) {
				t.Errorf("%s: copy of %s: %+v %v, want %+v", when, seller, r, err, want)
			}
		}
		if r, err := b.void(c, agent("ann")); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%s: void: %+v %v", when, r, err)
		}
	}
	b.now = b.now.Add(-time.Hour)
	check("the clock was set back")
	b.must(t, "reload", b.reload())
	check("after a restart")
	entry, records, err := b.SetRecovery(b.now, true, "backup")
	b.store.append(records)
	b.must(t, fmt.Sprint("recovery by entry ", entry.Number), err)
	check("in recovery")
	settled := protocol.Receipt{Version: ledger.ReceiptVersion, Bank: bankID, Contract: c.id, Outcome: protocol.OutcomeSettled, Entry: 9, Time: b.now, User: c.User, Total: c.Total, Currency: c.Currency}
	if _, _, err := b.Readmit(b.now, c.id, c.Bundle, settled); code(err) != protocol.CodeMismatch {
		t.Errorf("a receipt that it was settled: %v", err)
	}
	if r, records, err := b.Readmit(b.now, c.id, c.Bundle, want); err != nil || len(records) > 0 || !reflect.DeepEqual(r, want) {
		t.Errorf("its own receipt: %+v %v, %d records", r, err, len(records))
	}
	_, records, err = b.SetRecovery(b.now, false, "done")
	b.store.append(records)
	b.must(t, "end of recovery", err)
	b.now = b.now.Add(3 * protocol.OutcomeMemory)
	check("days later")
	sound(t, b)
}

// A bank whose backup is older than a lapsed contract decides again what its receipt says.
func TestALapsedContractIsReadmitted(t *testing.T) {
	b := flooded(t)
	backup := b.store.clone()
	c, told := b.lapsed(t)
	b.store = backup
	b.must(t, "reload", b.reload())
	_, records, err := b.SetRecovery(b.now, true, "backup")
	b.store.append(records)
	b.must(t, "recovery", err)
	r, err := saved[protocol.Receipt](b)(b.Readmit(b.now, c.id, c.Bundle, told))
	if err != nil || r.Outcome != protocol.OutcomeVoid || r.Reason != told.Reason || r.Entry == 0 {
		t.Errorf("%+v %v", r, err)
	}
	sound(t, b)
}

// TestWhatWasToldNeverChanges floods a bank at random, with restarts and clocks that jump:
// a contract has one decision, and what one user does is bounded.
func TestWhatWasToldNeverChanges(t *testing.T) {
	lapsed := 0
	rapid.Check(t, func(t *rapid.T) {
		b := &bank{store: memory{}, now: start()}
		must := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		must(b.reload())
		for _, name := range []string{"ann", "bob", "eve"} {
			must(ignore(saved[ledger.Entry](b)(b.Open(b.now, agent(name), name))))
			must(ignore(saved[ledger.Entry](b)(b.Credit(b.now, agent(name), "cr", 9, ""))))
		}
		for i := range voids.Allowance - 3 {
			must(ignore(b.void(b.free(fmt.Sprint("flood", i), time.Minute), agent("ann"))))
		}
		told, list, voids := map[protocol.ContractID]protocol.Receipt{}, []contract{}, 0
		for i := range 80 {
			switch rapid.IntRange(0, 9).Draw(t, "op") {
			case 0:
				b.now = b.now.Add(time.Duration(rapid.IntRange(-90, 90).Draw(t, "seconds")) * time.Second)
			case 1:
				must(b.reload())
			case 2:
				for _, v := range b.expire().Voided {
					told[v.Contract] = v.Receipt
				}
			case 3, 4, 5:
				list = append(list, b.free(fmt.Sprint("c", i), time.Duration(rapid.IntRange(-10, 60).Draw(t, "settle"))*time.Second))
			default:
				if len(list) == 0 {
					continue
				}
				c := list[rapid.IntRange(0, len(list)-1).Draw(t, "contract")]
				ask := func() (protocol.Receipt, error) { return b.void(c, agent("ann")) }
				if who := rapid.SampledFrom([]string{"", "bob", "eve"}).Draw(t, "who"); who != "" {
					ask = func() (protocol.Receipt, error) { return b.copy(c, agent(who)) }
				}
				r, err := ask()
				before, decided := told[c.id]
				if decided && (err != nil || !reflect.DeepEqual(r, before)) {
					t.Fatalf("contract %.8s was %+v, is %+v %v", c.id, before, r, err)
				}
				if err == nil && r.Outcome != protocol.OutcomeGathering {
					told[c.id] = r
				}
			}
		}
		for _, r := range told {
			if r.Outcome == protocol.OutcomeVoid && r.Entry == 0 {
				lapsed++
			} else if r.Outcome == protocol.OutcomeVoid {
				voids++
			}
		}
		if voids > 30 { // three, and one for each 337 s
			t.Fatalf("%d void contracts have entries", voids)
		}
		sound(t, b)
	})
	if lapsed == 0 {
		t.Fatal("no contract has lapsed")
	}
}

// A bundle that lacks copies lapses with the others of its user: it is never settled, and
// gets no entry, although the clock was set back or the user has an allowance again.
func TestAnUndecidedContractLapsesWithTheOthers(t *testing.T) {
	for _, c := range []struct {
		name string
		then time.Duration
	}{{"the clock was set back", -time.Minute}, {"an allowance is back", protocol.OutcomeMemory}} {
		t.Run(c.name, func(t *testing.T) {
			b := flooded(t)
			half := b.free("half", 50*time.Second)
			_, err := b.copy(half, agent("bob"))
			b.must(t, "copy", err)
			b.lapsed(t)
			b.now = b.now.Add(c.then)
			for range 2 {
				if r, err := b.copy(half, agent("eve")); err != nil || r.Outcome != protocol.OutcomeVoid || r.Entry != 0 {
					t.Errorf("the last copy: %+v %v", r, err)
				}
			}
			sound(t, b)
		})
	}
}
