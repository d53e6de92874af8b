package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// funded is a bank where ann has 100 credits, and bob and eve have accounts.
func funded(t testing.TB) *bank {
	b := newBank(t)
	for _, name := range []string{"ann", "bob", "eve"} {
		if _, err := saved[ledger.Entry](b)(b.Open(b.now, agent(name), name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", 100, "first")); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestRefusedBundleChangesNothing(t *testing.T) {
	many := func(c *contract) {
		for i := range protocol.MaxUnits + 1 {
			c.Units = append(c.Units, protocol.BundleUnit{Unit: i + 1, Seller: agent("bob")})
		}
	}
	tests := []struct {
		name   string
		spoil  func(c *contract)
		seller string
		want   protocol.Code
	}{
		{"another bank", func(c *contract) { c.Bank = agent("other") }, "bob", protocol.CodeNoBank},
		{"an unnamed seller", func(*contract) {}, "eve", protocol.CodeForbidden},
		{"the user is no seller", func(*contract) {}, "ann", protocol.CodeForbidden},
		{"a currency that is not kept", func(c *contract) { c.Currency = "usd" }, "bob", protocol.CodeNoBank},
		{"an unknown mode", func(c *contract) { c.Mode = "later" }, "bob", protocol.CodeMode},
		{"a later version", func(c *contract) { c.Version = 2 }, "bob", protocol.CodeMalformed},
		{"a total above the costs", func(c *contract) { c.Total++ }, "bob", protocol.CodeMalformed},
		{"a total below the costs", func(c *contract) { c.Total-- }, "bob", protocol.CodeMalformed},
		{"a negative cost", func(c *contract) { c.Units[0].Cost, c.Total = -1, -1 }, "bob", protocol.CodeMalformed},
		{"costs that overflow", func(c *contract) {
			c.Units[0].Cost = protocol.MaxCredits
			c.Units = append(c.Units, protocol.BundleUnit{Unit: 1, Seller: agent("eve"), Cost: 1})
			c.Total = -protocol.MaxCredits - 1
		}, "bob", protocol.CodeOverflow},
		{"a unit twice", func(c *contract) { c.Units = append(c.Units, c.Units[0]); c.Total *= 2 }, "bob", protocol.CodeMalformed},
		{"no units", func(c *contract) { c.Units, c.Total = nil, 0 }, "bob", protocol.CodeMalformed},
		{"too many units", many, "bob", protocol.CodeMalformed},
		{"a contract ID in capitals", func(c *contract) { c.id = protocol.ContractID(strings.ToUpper(string(c.id))) }, "bob", protocol.CodeMalformed},
		{"a short contract ID", func(c *contract) { c.id = c.id[:62] }, "bob", protocol.CodeMalformed},
		{"too far ahead", func(c *contract) { c.SettleBy = start().Add(time.Hour + 1) }, "bob", protocol.CodeSettleBy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := funded(t)
			before := fmt.Sprint(b.store, b.LastEntry())
			c := newContract("x", agent("ann"), b.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 5})
			tt.spoil(&c)
			_, err := b.copy(c, agent(tt.seller))
			if got := code(err); got != tt.want {
				t.Fatalf("copy: %v, want code %s", err, tt.want)
			}
			_, err = b.refund(c, 0, 1, agent(tt.seller))
			if code(err) == "" {
				t.Fatal("a refund was taken")
			}
			if fmt.Sprint(b.store, b.LastEntry()) != before {
				t.Fatal("the refusal left something behind")
			}
		})
	}
}

func TestLargestBundle(t *testing.T) {
	b := newBank(t)
	var pays []ledger.Payment
	open := func(id protocol.AgentID) {
		if _, err := saved[ledger.Entry](b)(b.Open(b.now, id, "n")); err != nil {
			t.Fatal(err)
		}
	}
	open(agent("ann"))
	for i := range protocol.MaxUnits {
		pays = append(pays, ledger.Payment{To: agent(fmt.Sprint("s", i)), Amount: 1})
		open(pays[i].To)
	}
	_, _ = saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", protocol.MaxUnits, ""))
	c := newContract("x", agent("ann"), b.now.Add(time.Minute), pays...)
	for i, p := range pays {
		if i%50 == 49 {
			if err := b.reload(); err != nil {
				t.Fatal(err)
			}
		}
		r, err := b.copy(c, p.To)
		if last := i == len(pays)-1; err != nil || (r.Outcome == protocol.OutcomeSettled) != last {
			t.Fatalf("copy %d: %v, %v", i, r, err)
		}
	}
	for i, p := range pays {
		if r, err := b.refund(c, i, 1, p.To); err != nil || len(r.Refunds) != i+1 {
			t.Fatalf("refund %d: %v", i, err)
		}
	}
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Outcome(c.id); err != nil || len(r.Refunds) != len(pays) {
		t.Fatalf("outcome after a restart: %d refunds, %v", len(r.Refunds), err)
	}
	sound(t, b)
}

func TestUndecidedBundlesOfOneUserAreBounded(t *testing.T) {
	b := funded(t)
	for i := range ledger.MaxUserGather + 1 {
		c := newContract(fmt.Sprint(i), agent("ann"), b.now.Add(time.Minute),
			ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("eve"), Amount: 1})
		_, err := b.copy(c, agent("bob"))
		if i == ledger.MaxUserGather && code(err) != protocol.CodeLimit || i < ledger.MaxUserGather && err != nil {
			t.Fatalf("bundle %d: %v", i, err)
		}
	}
	b.now = b.now.Add(time.Minute)
	for left := ledger.MaxUserGather; left > 0; {
		n := len(b.expire().Voided)
		if n == 0 || n > ledger.MaxExpire {
			t.Fatalf("%d voided, %d left", n, left)
		}
		left -= n
	}
	if !b.NextDeadline().IsZero() {
		t.Fatal("something is still open")
	}
	sound(t, b)
}

// TestOldOutcomes: an outcome that left memory still settles nothing twice, and
// an answer from a store that lags does not count.
func TestOldOutcomes(t *testing.T) {
	b := funded(t)
	pay := ledger.Payment{To: agent("bob"), Amount: 5}
	old := newContract("old", agent("ann"), b.now.Add(time.Minute), pay)
	if _, err := b.copy(old, agent("bob")); err != nil {
		t.Fatal(err)
	}
	behind, _ := b.store.clone().outcome(contractID("none"))
	b.now = b.now.Add(protocol.OutcomeMemory + time.Second)
	for i := range 2 {
		c := newContract(fmt.Sprint(i), agent("ann"), b.now.Add(time.Minute), pay)
		if r, err := b.copy(c, agent("bob")); err != nil || r.Outcome != protocol.OutcomeSettled || b.asked != 0 {
			t.Fatalf("a new bundle: %v %v, asked %d times", r.Outcome, err, b.asked)
		}
	}
	if _, err := b.Outcome(old.id); err != ledger.ErrAskStore {
		t.Fatalf("outcome of an old contract: %v", err)
	}
	behind.AsOf--
	_ = b.Recall(old.id, behind)
	if _, _, err := b.Void(b.now, old.id, old.Bundle, agent("ann")); err != ledger.ErrAskStore {
		t.Fatalf("an answer of the past was believed: %v", err)
	}
	if r, err := b.refund(old, 0, 2, agent("bob")); err != nil || len(r.Refunds) != 1 {
		t.Fatalf("refund of an old contract: %v", err)
	}
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	if r, err := b.copy(old, agent("bob")); err != nil || r.Outcome != protocol.OutcomeSettled || r.Entry != 5 || len(r.Refunds) != 1 {
		t.Fatalf("old contract: %+v, %v", r, err)
	}
	sound(t, b)
}

// TestClockSteps: entries stay in order, and what was answered stays.
func TestClockSteps(t *testing.T) {
	b := funded(t)
	c := newContract("x", agent("ann"), b.now.Add(time.Minute),
		ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("eve"), Amount: 1})
	_, _ = b.copy(c, agent("bob"))
	b.now = b.now.Add(time.Hour)
	first, _ := b.copy(c, agent("eve"))
	b.now = b.now.Add(-3 * time.Hour)
	again, err := b.copy(c, agent("eve"))
	if err != nil || first.Outcome != protocol.OutcomeVoid || fmt.Sprint(again) != fmt.Sprint(first) {
		t.Fatalf("answered %v, and after the step %v (%v)", first, again, err)
	}
	if _, err := saved[ledger.Entry](b)(b.Credit(b.now, agent("bob"), "cr", 1, "")); err != nil {
		t.Fatal(err)
	}
	sound(t, b) // looks at the order of times
}

func TestLoadRefuses(t *testing.T) {
	b := funded(t)
	other := config()
	other.Bank = agent("other")
	if _, err := ledger.Load(other, b.now, b.store); err == nil || !strings.Contains(err.Error(), "belongs to bank") {
		t.Errorf("the ledger of another bank: %v", err)
	}
	for _, spoil := range []func(c *ledger.Config){
		func(c *ledger.Config) { c.Bank = "bank" },
		func(c *ledger.Config) { c.Currencies = nil },
		func(c *ledger.Config) { c.Currencies = []string{"c r"} },
		func(c *ledger.Config) { c.Grace = -1 },
		func(c *ledger.Config) { c.ReportWithin = ledger.LeastReportWithin - 1 },
		func(c *ledger.Config) { c.ReportWithin = protocol.ReportWithin + 1 },
	} {
		c := config()
		spoil(&c)
		if _, err := ledger.Load(c, b.now, b.store); err == nil || !strings.HasPrefix(err.Error(), "ledger config: ") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A unit that is paid after the fact is held as long as the ledger was told to wait
// for reports when it was settled, whatever it is told later.
func TestAHoldLastsAsLongAsReportsAreWaitedFor(t *testing.T) {
	for _, within := range []time.Duration{0, ledger.LeastReportWithin, time.Hour, protocol.ReportWithin} {
		b := newBank(t)
		for _, name := range []string{"ann", "bob"} {
			b.must(t, "open", ignore(saved[ledger.Entry](b)(b.Open(b.now, agent(name), name))))
		}
		b.must(t, "credit", ignore(saved[ledger.Entry](b)(b.Credit(b.now, agent("ann"), "cr", 100, ""))))
		c := config()
		c.ReportWithin = within
		var err error
		if b.Ledger, err = ledger.Load(c, b.now, b.store); err != nil {
			t.Fatal(err)
		}
		sale := deal(b, protocol.ModeOnCompletion)
		b.must(t, "copy", ignore(b.copy(sale, agent("bob"))))
		b.must(t, "reload", b.reload())
		want := sale.Units[0].Slot.End.Add(within)
		if within == 0 {
			want = sale.Units[0].Slot.End.Add(protocol.ReportWithin)
		}
		if holds := b.Holds(); len(holds) != 1 || !holds[0].Until.Equal(want) {
			t.Errorf("within %s: %+v, want one until %s", within, holds, want)
		}
	}
}

// busy is a bank with rows in every table.
func busy(t testing.TB) *bank {
	b := funded(t)
	until := b.now.Add(30 * time.Minute)
	pay := func(name string) ledger.Payment { return ledger.Payment{To: agent(name), Amount: 2} }
	for i := range 20 {
		c := newContract(fmt.Sprint(i), agent("ann"), until, pay("bob"))
		_, err1 := b.copy(c, agent("bob"))
		_, err2 := b.refund(c, 0, 2, agent("bob"))
		h, err3 := saved[ledger.Hold](b)(b.Hold(b.now, agent("ann"), "cr", 3, until, "job"))
		if i%2 == 0 {
			_, _ = saved[ledger.Entry](b)(b.PostHold(b.now, h.Number, []ledger.Payment{pay("eve")}, "job"))
		}
		if err1 != nil || err2 != nil || err3 != nil {
			t.Fatal(err1, err2, err3)
		}
	}
	_, _ = b.copy(newContract("open", agent("ann"), until, pay("bob"), pay("eve")), agent("eve"))
	sound(t, b)
	return b
}

// TestAuditSees takes every single row away, and flips every bit of what the
// entries and balances say.
func TestAuditSees(t *testing.T) {
	b := busy(t)
	for table, rows := range b.store {
		for key := range rows {
			if table == ledger.TableGathering || table == ledger.TableCopies || table == ledger.TableOutcomes {
				continue // what entries cannot tell: losing them loses no money
			}
			s := b.store.clone()
			delete(s[table], key)
			if r, err := ledger.Audit(s); err != nil || len(r.Bad) == 0 {
				t.Errorf("table %s without key %x: nothing noticed (%v)", table, key, err)
			}
		}
	}
	for n := uint64(1); n <= b.LastEntry(); n++ {
		flipAll(t, b.store, ledger.TableEntries, ledger.NumberKey(n))
	}
}

// flipAll flips the bits of an entry's amounts: the last octets of its value.
func flipAll(t *testing.T, sound memory, table, key string) {
	t.Helper()
	e, err := sound.entry(uint64(key[7]) + uint64(key[6])<<8)
	if err != nil || len(e.Legs) == 0 || e.Kind == ledger.KindOverdraft {
		return
	}
	value := sound[table][key]
	for at := len(value) - 4*len(e.Legs); at < len(value); at++ {
		for bit := range 8 {
			s := sound.clone()
			s[table][key] = slices.Clone(value)
			s[table][key][at] ^= 1 << bit
			if r, err := ledger.Audit(s); err != nil || len(r.Bad) == 0 {
				t.Errorf("entry %d: bit %d of octet %d flipped, nothing noticed", e.Number, bit, at)
			}
		}
	}
}

func TestAuditOfNothing(t *testing.T) {
	r, err := ledger.Audit(memory{})
	if err != nil || r.Entries != 0 || r.Bad == nil || len(r.Bad) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
}

// FuzzRows puts any value into any table: neither Load nor Audit may panic.
func FuzzRows(f *testing.F) {
	b := busy(f)
	tables := slices.Sorted(maps.Keys(b.store))
	for i, table := range tables {
		for key, value := range b.store[table] {
			f.Add(uint8(i), key, value)
			break
		}
	}
	f.Fuzz(func(t *testing.T, i uint8, key string, value []byte) {
		s := b.store.clone()
		s[tables[int(i)%len(tables)]][key] = value
		l, err := ledger.Load(config(), start(), s)
		if err == nil {
			_, _ = l.Expire(start().Add(time.Hour))
			l.Accounts()
		}
		if _, err := ledger.Audit(s); err != nil {
			t.Fatal(err)
		}
	})
}

func BenchmarkCopy(b *testing.B) {
	k := funded(b)
	_, _, _ = k.Credit(k.now, agent("ann"), "cr", 1<<50, "")
	contracts := make([]contract, b.N)
	for i := range contracts {
		contracts[i] = newContract(fmt.Sprint(i), agent("ann"), k.now.Add(time.Minute), ledger.Payment{To: agent("bob"), Amount: 1})
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range contracts {
		if r, _, err := k.Copy(k.now, contracts[i].id, contracts[i].Bundle, agent("bob")); err != nil || r.Outcome != protocol.OutcomeSettled {
			b.Fatal(r, err)
		}
	}
}
