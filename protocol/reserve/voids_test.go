package reserve_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// deal is a buyer's conversation with a seller whose batch system grants everything.
type deal struct {
	w        *world
	from, id string
	items    []message.Reserve
	bundle   contract.Verified
}

// tell gives the seller a message, and applies what it saves.
func (d *deal) tell(t *testing.T, from protocol.AgentID, p protocol.Performative, body protocol.Body) string {
	t.Helper()
	out, ok := d.w.p.Receive(d.w.now, protocol.Message{Performative: p, Sender: from, Conversation: d.id, Body: body})
	if !ok {
		t.Fatalf("%s is not taken", body.Kind())
	}
	return d.w.brief(out)
}

// brief applies an Output and names its tables and refusals; show takes longer.
func (w *world) brief(out protocol.Output) string {
	w.tables.apply(out.Save)
	var b strings.Builder
	for _, r := range out.Save {
		fmt.Fprintln(&b, "save", r.Table)
	}
	for _, m := range out.Send {
		if r, ok := m.Body.(message.Refusal); ok {
			fmt.Fprintln(&b, m.Performative, r.Reasons)
		}
	}
	return b.String()
}

// hold has the seller hold an offer of so many units. It returns its answer, and a deal
// without items if it refuses.
func (w *world) hold(t *testing.T, from string, n, units int) (*deal, string) {
	t.Helper()
	d := &deal{w: w, from: from, id: fmt.Sprint(from, n)}
	slot := protocol.Slot{Start: w.now.Add(time.Hour), End: w.now.Add(2 * time.Hour), Cores: 1}
	o := protocol.Offer{ID: "o", ValidUntil: w.now.Add(time.Hour), Cost: protocol.Credit * protocol.Credits(units)}
	for u := range units {
		o.Items = append(o.Items, protocol.Item{Unit: u, Slot: slot, Price: protocol.Credit, Cost: protocol.Credit})
	}
	m := protocol.Message{Performative: protocol.AcceptProposal, Sender: w.id(from), Conversation: d.id}
	out := w.p.Accept(w.now, m, message.Acceptance{Offer: o}, &reserve.Offered{Offer: o, Document: strings.Repeat("d", 64)})
	answer := w.brief(out)
	for _, m := range out.Send {
		if r, ok := m.Body.(message.Reserve); ok {
			d.items = append(d.items, r)
		}
	}
	for _, r := range d.items {
		answer += d.tell(t, protocol.LocalQueue, protocol.Inform, message.Reserved{ID: r.ID, OK: true, Slot: r.Slot})
	}
	return d, answer
}

// sign has the seller sign a contract over what it holds.
func (d *deal) sign(t *testing.T) (answer string) {
	t.Helper()
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: d.id, User: d.w.id(d.from), Bank: d.w.id("bank"), Currency: "CRD",
		Mode: protocol.ModeOnReservation, RFQ: strings.Repeat("d", 64), Nonce: strings.Repeat("0", 32), SettleBy: d.w.now.Add(20 * time.Second),
	}
	for u, r := range d.items {
		b.Units = append(b.Units, protocol.BundleUnit{Unit: u, Seller: d.w.cfg.Self, Reservation: r.ID, Slot: r.Slot, Price: protocol.Credit, Cost: protocol.Credit})
		b.Total += protocol.Credit
	}
	var err error
	d.bundle, err = contract.SignVerified(d.w.agents[d.from], b, d.w.trust, d.w.now)
	must(t, err)
	answer = d.confirm(t)
	for _, r := range d.items {
		answer += d.tell(t, protocol.LocalQueue, protocol.Inform, message.Reserved{ID: r.ID, Kept: true, OK: true, Slot: r.Slot})
	}
	return answer
}

func (d *deal) confirm(t *testing.T) string {
	t.Helper()
	return d.tell(t, d.w.id(d.from), protocol.Confirm, message.Confirmation{Bundle: d.bundle})
}

func (d *deal) decide(t *testing.T, bank, outcome string) {
	t.Helper()
	r := d.w.receipt(t, d.bundle, args{"outcome": outcome, "by": bank})
	d.tell(t, d.w.id("bank"), protocol.Agree, message.Decision{Contract: d.bundle.ID, Outcome: r.Outcome, Receipt: r})
}

func (d *deal) release(t *testing.T) {
	t.Helper()
	for _, r := range d.items {
		d.tell(t, protocol.LocalQueue, protocol.Inform, message.Released{ID: r.ID, OK: true})
	}
}

// voided is a whole contract that its buyer does not pay.
func (w *world) voided(t *testing.T, from string, n, units int) *deal {
	t.Helper()
	d, answer := w.hold(t, from, n, units)
	if len(d.items) == units {
		answer += d.sign(t)
	}
	if !strings.Contains(answer, "save "+reserve.TableSales) {
		t.Fatalf("contract %d of %s: %s", n, from, answer)
	}
	d.decide(t, "bank", "void")
	d.release(t)
	return d
}

// stored are the octets of some tables.
func (w *world) stored(tables ...string) (n int) {
	for _, table := range tables {
		for key, value := range w.tables[table] {
			n += len(key) + len(value)
		}
	}
	return n
}

// bounded checks that a seller's memory and journal are within its bounds, and that the
// journal has no more than the seller counts.
func (w *world) bounded(t *testing.T) {
	t.Helper()
	counted := map[string]int{}
	for _, s := range w.p.Sizes() {
		if counted[s.Of] = s.N; s.N > s.Most {
			t.Fatalf("%d %s, at most %d", s.N, s.Of, s.Most)
		}
	}
	for of, n := range map[string]int{
		"bytes kept of unsold units": w.stored(reserve.TableDeals, reserve.TableSales, reserve.TableReceipts),
		"bytes of void contracts":    w.stored(reserve.TableVoids),
	} {
		if n > counted[of] {
			t.Fatalf("%s: %d counted, %d in the journal", of, counted[of], n)
		}
	}
}

func flooded(t *testing.T, holds int) *world {
	w := newWorld(t)
	w.cfg.BuyerHolds, w.cfg.BuyerReserves, w.cfg.BuyerCoreSeconds = holds, holds, 1<<60
	w.open(t)
	return w
}

// endless is a machine that always has cores free.
type endless struct{}

func (endless) Room(protocol.Slot) int    { return 1 << 20 }
func (endless) Add(string, protocol.Slot) {}
func (endless) Remove(string)             {}

// open begins the seller from its journal.
func (w *world) open(t *testing.T) {
	t.Helper()
	w.cfg.Book = endless{}
	p, out, err := reserve.NewParticipant(w.cfg, w.tables, w.now)
	must(t, err)
	w.p = p
	w.brief(out)
}

// A void contract costs its buyer nothing. Of a flood of them a seller keeps little, and
// serves others as before.
func TestAFloodOfVoidContracts(t *testing.T) {
	const contracts, least = 1000, 400
	w := flooded(t, protocol.MaxUnits)
	for i := range contracts {
		w.voided(t, "ann", i, 2)
		w.now = w.now.Add(50 * time.Millisecond)
	}
	bob := w.voided(t, "bob", 0, 1)
	w.bounded(t)
	w.now = w.now.Add(2 * time.Minute)
	w.show(w.p.Wake(w.now))
	w.bounded(t)
	if n := w.stored(reserve.TableDeals, reserve.TableSales, reserve.TableReceipts, reserve.TablePast); n > 0 {
		t.Errorf("%d bytes are kept of void contracts beside their receipts", n)
	}
	n, bytes := len(w.tables[reserve.TableVoids]), w.stored(reserve.TableVoids)
	if n < least || bytes > protocol.MaxBuyerVoids+2<<10 || bytes/n > 2<<10 {
		t.Errorf("%d receipts in %d bytes, want at least %d, at most 2 KiB each, and 1 MiB of each buyer", n, bytes, least)
	}
	again := bob.confirm(t)
	if !strings.Contains(again, "failure") || !strings.Contains(again, string(protocol.CodeSettleBy)) {
		t.Errorf("a void contract is confirmed again: %s", again)
	}
	w.open(t)
	w.bounded(t)
	w.now = w.now.Add(reserve.Retention)
	w.show(w.p.Wake(w.now))
	if n := w.stored(reserve.TableDeals, reserve.TableVoids); n > 0 {
		t.Errorf("%d bytes of void contracts are kept beyond a day", n)
	}
}

// A bank that settles what it has voided is convicted, although the contract is gone.
func TestAVoidContractConvictsItsBank(t *testing.T) {
	w := flooded(t, 4)
	d := w.voided(t, "ann", 0, 1)
	d.decide(t, "mint", "settled")
	if n := len(w.tables[reserve.TableContrary]); n != 0 {
		t.Fatal("another bank's receipt counts")
	}
	d.decide(t, "bank", "settled")
	if n := len(w.tables[reserve.TableContrary]); n != 1 {
		t.Fatalf("%d contradicting receipts are kept, want 1", n)
	}
}

// A buyer that lets go what it holds stays bounded until the seller may forget it, and
// closes the seller to nobody else.
func TestUnitsThatWereLetGoAreBounded(t *testing.T) {
	w := flooded(t, protocol.MaxUnits)
	for i := 0; ; i++ {
		d, answer := w.hold(t, "ann", i, protocol.MaxUnits)
		w.bounded(t)
		if len(d.items) == 0 {
			if !strings.Contains(answer, string(protocol.CodeHoldLimit)) || i < 8 || i*protocol.MaxUnits > protocol.MaxBuyerClaims {
				t.Fatalf("after %d offers: %s", i, answer)
			}
			break
		}
		var ids []string
		for _, r := range d.items {
			ids = append(ids, r.ID)
		}
		d.tell(t, w.id("ann"), protocol.Cancel, message.Cancellation{Reservations: ids})
	}
	w.voided(t, "bob", 0, 1)
}

// The bytes of contracts that no bank has decided yet are bounded for each buyer.
func TestContractsInDoubtAreBounded(t *testing.T) {
	w := flooded(t, reserve.MaxUnsold)
	for i := 0; ; i++ {
		d, answer := w.hold(t, "ann", i, 250)
		if len(d.items) > 0 {
			answer = d.sign(t)
		}
		w.bounded(t)
		if !strings.Contains(answer, "save "+reserve.TableSales) {
			if !strings.Contains(answer, string(protocol.CodeHoldLimit)) || i < 4 {
				t.Fatalf("after %d contracts: %s", i, answer)
			}
			break
		}
	}
	w.voided(t, "bob", 0, 1)
}

// Finished deals are deleted, the oldest first, when they take too much.
func TestThePastIsPruned(t *testing.T) {
	deleted, left := reserve.PrunePast(protocol.MaxPast/4, 5)
	if want := []string{"k0", "k1"}; !slices.Equal(deleted, want) || left > protocol.MaxPast {
		t.Errorf("deleted %q and kept %d bytes, want %q deleted", deleted, left, want)
	}
}

// Receipts of void contracts are deleted when they take too much: the oldest of the same
// buyer beyond its bound, and the oldest of all beyond the bound of all. Those of a buyer
// within its bound stay as long as there is room.
func TestReceiptsOfVoidContractsArePruned(t *testing.T) {
	for _, c := range []struct {
		name            string
		size, n, buyers int
		want            []string
	}{
		{"one buyer beyond its bound", protocol.MaxBuyerVoids / 4, 5, 1, []string{"k0", "k1"}},
		{"two buyers within theirs", protocol.MaxBuyerVoids / 4, 6, 2, nil},
		{"many buyers beyond the bound of all", protocol.MaxBuyerVoids / 2, 66, 66, []string{"k0", "k1", "k2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			deleted, left, all := reserve.KeepVoids(c.size, c.n, c.buyers)
			if !slices.Equal(deleted, c.want) || left > protocol.MaxBuyerVoids || all > protocol.MaxVoids {
				t.Errorf("deleted %q, want %q; %d bytes of a buyer and %d of all are left", deleted, c.want, left, all)
			}
		})
	}
}

// The bound on finished deals also counts their number.
func TestThePastIsPrunedByNumber(t *testing.T) {
	deleted, left := reserve.PrunePast(10, reserve.MaxClaims+2)
	if len(deleted) != 2 || deleted[0] != "k0" || left > protocol.MaxPast {
		t.Errorf("deleted %q and kept %d bytes, want the two oldest deleted", deleted, left)
	}
}
