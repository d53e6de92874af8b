package ledger_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// stamp stands for a signature: only who knows the word can make it.
func stamp(octets []byte) []byte {
	h := sha256.Sum256(append([]byte("only the bank knows"), octets...))
	return h[:]
}

func checkStamp(octets, signature []byte) error {
	if !bytes.Equal(stamp(octets), signature) {
		return errors.New("not the bank's")
	}
	return nil
}

// signedBank does one act of each kind, and what is no act.
func signedBank(t testing.TB) *bank {
	t.Helper()
	b := newBank(t)
	cfg := config()
	cfg.Sign = stamp
	var err error
	b.Ledger, err = ledger.Load(cfg, b.now, b.store)
	b.must(t, "load", err)
	do := func(e ledger.Entry, err error) {
		t.Helper()
		b.must(t, e.Kind.String(), err)
	}
	entry := saved[ledger.Entry](b)
	for _, name := range []string{"ann", "bob", "zoe"} {
		do(entry(b.Open(b.now, agent(name), name)))
	}
	do(entry(b.SetPolicy(b.now, "eur", ledger.Policy{Kind: ledger.PolicyAllowance, Decay: 100_000})))
	do(entry(b.SetAllowance(b.now, agent("ann"), "eur", 7*protocol.Credit, "student")))
	do(entry(b.Credit(b.now, agent("ann"), "cr", 100, "cash")))
	do(entry(b.SetOverdraft(b.now, agent("bob"), "cr", 50)))
	do(entry(b.SetStanding(b.now, agent("zoe"), ledger.StandingFrozen, "late")))
	do(entry(b.Exchange.SetRate(b.now, "cr", "eur", 2*protocol.Credit, "")))
	do(entry(b.Groups.Open(b.now, "A")))
	do(entry(b.Groups.Set(b.now, ledger.Group{Name: "A", Shared: ledger.Whole, Clusters: []protocol.AgentID{agent("ca")}}, "who is in")))
	do(entry(b.Invitations.Invite(b.now, ledger.Invitation{Token: token("t"), Uses: 2, Expires: b.now.Add(time.Hour), Credit: 3, Currency: "cr"}, "course")))
	b.must(t, "enrol", ignore(saved[ledger.Enrolment](b)(b.Invitations.Enrol(b.now, token("t"), agent("new"), "new"))))
	do(entry(b.SetRecovery(b.now, true, "")))
	do(entry(b.SetRecovery(b.now, false, "")))
	do(entry(b.Transfer(b.now, agent("ann"), agent("bob"), "cr", 1, ledger.Disputed{Contract: contractID("x"), Unit: 2}, "settled")))
	b.must(t, "voucher", ignore(saved[ledger.Hold](b)(b.Voucher(b.now, agent("ann"), "cr", "talk", 30, b.now.Add(time.Hour)))))
	c := deal(b, protocol.ModeMetered)
	c.Conversation = "talk"
	b.must(t, "copy", ignore(b.copy(c, agent("bob"))))
	b.now = b.now.Add(24 * time.Hour)
	do(entry(b.Transfer(b.now, agent("ann"), agent("bob"), "eur", 1, ledger.Disputed{}, "")))
	b.must(t, "report", ignore(saved[protocol.Receipt](b)(b.Report(b.now, c.id, c.Bundle, agent("bob"), ledger.JobReport{Usage: protocol.Usage{CPU: time.Hour, Wall: time.Hour}}))))
	b.must(t, "arbitrate", ignore(saved[protocol.Receipt](b)(b.Arbitrate(b.now, c.id, 0, 3, "hearing"))))
	b.must(t, "credit of the house", ignore(saved[ledger.Entry](b)(b.Credit(b.now, ledger.House, "eur", 1000, ""))))
	b.must(t, "quote", ignore(saved[ledger.Quote](b)(b.Exchange.Quote(b.now, agent("ann"), "q", "cr", "eur", 5))))
	b.must(t, "exchange", ignore(saved[ledger.Quote](b)(b.Exchange.CarryOut(b.now, agent("ann"), "q", 0))))
	c = deal(b, protocol.ModeOnCompletion)
	c.SettleBy, c.id = b.now.Add(time.Minute), contractID("open")
	b.must(t, "open unit", ignore(b.copy(c, agent("bob"))))
	return b
}

func TestEveryActIsSigned(t *testing.T) {
	b := signedBank(t)
	r, err := ledger.AuditSigned(b.store, checkStamp)
	if err != nil || len(r.Bad) > 0 {
		t.Fatal(err, r.Bad)
	}
	kinds, acts := map[ledger.Kind]bool{}, uint64(0)
	for n := uint64(1); n <= b.LastEntry(); n++ {
		e, err := b.store.entry(n)
		b.must(t, "entry", err)
		kinds[e.Kind] = true
		if e.Act() {
			acts++
		}
		if e.Act() != (len(e.Signature) > 0) {
			t.Errorf("entry %d, a %s: signature of %d octets", n, e.Kind, len(e.Signature))
		}
	}
	if r.Signed != acts || acts < 15 {
		t.Errorf("%d signatures verified, there are %d acts", r.Signed, acts)
	}
	for k := ledger.KindOpen; k <= ledger.KindEnrol; k++ {
		skip := []ledger.Kind{ledger.KindHold, ledger.KindPost, ledger.KindVoidHold, ledger.KindExpire, ledger.KindSettle, ledger.KindVoid, ledger.KindRefund, ledger.KindDraw, ledger.KindDispute}
		if !kinds[k] && !slices.Contains(skip, k) {
			t.Errorf("no entry of kind %s", k)
		}
	}
	b.must(t, "reload", b.reload())
}

// Whatever byte of the operator's acts and of what they set is changed, or which
// row is lost or added: the audit sees it. Names of accounts and times of
// deadlines are not recomputed.
func TestTheAuditSeesWhatWasNotTheOperators(t *testing.T) {
	b := signedBank(t)
	tables := []string{ledger.TablePolicies, ledger.TableGroups, ledger.TableStanding, ledger.TableAllowances, ledger.TableRates, ledger.TableInvitations, ledger.TableEnrolments, ledger.TableBalances, ledger.TableEntries}
	for _, table := range tables {
		for _, key := range slices.Sorted(maps.Keys(b.store[table])) {
			if e, err := ledger.DecodeEntry(key, b.store[table][key]); table == ledger.TableEntries && (err != nil || !e.Act()) {
				continue // the bank's log of proofs holds these
			}
			for i := range b.store[table][key] {
				changed := b.store.clone()
				value := slices.Clone(b.store[table][key])
				value[i] ^= 1
				changed[table][key] = value
				if audited(t, changed) {
					t.Fatalf("byte %d of %s %x was changed, and nobody saw it", i, table, key)
				}
			}
			lost := b.store.clone()
			delete(lost[table], key)
			if audited(t, lost) {
				t.Fatalf("row %x of %s was lost, and nobody saw it", key, table)
			}
		}
	}
	added := b.store.clone()
	added.append([]protocol.Record{{Table: ledger.TableRecovery, Key: "recovery", Value: []byte{1}}})
	if audited(t, added) {
		t.Error("recovery was slipped in, and nobody saw it")
	}
}

func audited(t *testing.T, m memory) bool {
	t.Helper()
	r, err := ledger.AuditSigned(m, checkStamp)
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Bad) == 0
}
