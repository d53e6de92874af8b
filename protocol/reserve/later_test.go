package reserve_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/reserve"
)

// table is a store's tables in memory.
type table map[string]map[string][]byte

func (t table) Get(table, key string) ([]byte, error) { return t[table][key], nil }

func (t table) Each(name string, f func(key string, value []byte) error) error {
	for key, value := range t[name] {
		if err := f(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (t table) put(records ...protocol.Record) {
	for _, r := range records {
		if t[r.Table] == nil {
			t[r.Table] = map[string][]byte{}
		}
		if t[r.Table][r.Key] = r.Value; r.Value == nil {
			delete(t[r.Table], r.Key)
		}
	}
}

// signReceipt signs a receipt of one contract as the bank.
func (w *world) signReceipt(t *testing.T, r protocol.Receipt) contract.VerifiedReceipt {
	r.Version, r.Bank, r.Contract, r.Outcome = contract.ReceiptVersion, w.id("bank"), protocol.ContractID(strings.Repeat("1", 64)), protocol.OutcomeSettled
	r.User, r.Total, r.Currency, r.Time = w.id("ann"), 4, "CRD", w.now
	der, err := contract.SignReceipt(w.agents["bank"], r, w.now)
	must(t, err)
	return contract.VerifiedReceipt{Receipt: r, DER: der}
}

// In any order of arrival, the last receipt of the decision stands, and none of another
// decision.
func TestTheReceiptWithTheMostRefundsStands(t *testing.T) {
	w := newWorld(t)
	all := []contract.VerifiedReceipt{w.signReceipt(t, protocol.Receipt{Entry: 4})}
	for i := range 4 {
		r := all[i].Receipt
		r.Refunds = append(r.Refunds[:i:i], protocol.Refund{Unit: i, Entry: uint64(5 + i), Time: w.now, Amount: 1})
		all = append(all, w.signReceipt(t, r))
	}
	restored := w.signReceipt(t, protocol.Receipt{Entry: 9})
	rapid.Check(t, func(t *rapid.T) {
		store, most := table{}, 0
		for _, i := range rapid.SliceOf(rapid.IntRange(1, 4)).Draw(t, "come") {
			store.put(reserve.LaterRecords("p", all[i])...)
			most = max(most, i)
		}
		store.put(reserve.LaterRecords("p 2", all[4])...) // another conversation's
		got, err := reserve.LatestReceipt(store, "p", all[0].DER)
		if err != nil || !bytes.Equal(got, all[most].DER) {
			t.Fatalf("not the one with %d refunds: %v", most, err)
		}
		if got, err = reserve.LatestReceipt(store, "p", restored.DER); err != nil || !bytes.Equal(got, restored.DER) {
			t.Fatalf("not the one of the restored bank: %v", err)
		}
		if got, err = reserve.LatestReceipt(store, "p", nil); err != nil || got != nil {
			t.Fatalf("a receipt of what is not decided: %v", err)
		}
	})
	store := table{}
	for _, v := range all[1:] {
		store.put(reserve.LaterRecords("p", v)...)
	}
	if n := len(store[reserve.TableLater]); n != 1 {
		t.Errorf("%d receipts are kept of one contract", n)
	}
	store = table{}
	store.put(protocol.Record{Table: reserve.TableLater, Key: "p", Value: []byte{1}})
	if _, err := reserve.LatestReceipt(store, "p", all[0].DER); err == nil {
		t.Error("a key without a number is taken")
	}
}

// A restored bank gives new entry numbers; a receipt without a refund does not replace one
// that has it.
func TestARestoredBankRenumbersItsReceipts(t *testing.T) {
	shown := protocol.Receipt{Entry: 4, Refunds: []protocol.Refund{{Entry: 8}}, Ends: []protocol.UnitEnd{{Entry: 9}}}
	for name, c := range map[string]struct {
		given               protocol.Receipt
		confirms, numbering bool
	}{
		"the same":                         {shown, true, false},
		"the decision was entered again":   {protocol.Receipt{Entry: 6, Refunds: shown.Refunds, Ends: shown.Ends}, true, true},
		"it was, under its old number":     {protocol.Receipt{Entry: 4, Time: time.Unix(1, 0), Refunds: shown.Refunds, Ends: shown.Ends}, true, true},
		"only its refund was":              {protocol.Receipt{Entry: 4, Refunds: []protocol.Refund{{Entry: 6}}, Ends: shown.Ends}, true, true},
		"only its end was":                 {protocol.Receipt{Entry: 4, Refunds: shown.Refunds, Ends: []protocol.UnitEnd{{Entry: 6}}}, true, true},
		"the decision, without its refund": {protocol.Receipt{Entry: 6, Ends: shown.Ends}, false, true},
		"another contract's":               {protocol.Receipt{Entry: 4, Contract: "c", Refunds: shown.Refunds, Ends: shown.Ends}, false, false},
		"another outcome":                  {protocol.Receipt{Entry: 4, Outcome: protocol.OutcomeVoid, Refunds: shown.Refunds, Ends: shown.Ends}, false, false},
	} {
		if got := reserve.Confirms(c.given, shown); got != c.confirms {
			t.Errorf("%s: confirms %t", name, got)
		}
		if got := reserve.Renumbered(c.given, shown); got != c.numbering {
			t.Errorf("%s: other numbers %t", name, got)
		}
	}
}
