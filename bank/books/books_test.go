package books_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/bank/books"
	"ramp/bank/ledger"
	"ramp/protocol"
)

var start = time.Date(2026, 1, 31, 22, 0, 0, 0, time.UTC)

func leg(who protocol.AgentID, amount, held protocol.Credits) ledger.Leg {
	return ledger.Leg{Account: who, Currency: "CPU", Amount: amount, Held: held, After: amount}
}

func history() []ledger.Entry {
	at := func(n uint64, hours int, kind ledger.Kind, legs ...ledger.Leg) ledger.Entry {
		return ledger.Entry{Number: n, Time: start.Add(time.Duration(hours) * time.Hour), Kind: kind, Legs: legs}
	}
	settled := at(2, 1, ledger.KindSettle, leg("ann", -50, 0), leg("bob", 30, 0), leg("eve", 20, 0))
	reserved := at(5, 30, ledger.KindReserve, leg("ann", 0, 100))
	reserved.Total, reserved.Contract, reserved.Units = 100, "c", []ledger.HeldUnit{{Hold: 1, Legs: 1}}
	completed := at(6, 31, ledger.KindComplete, leg("ann", -60, -100), leg("bob", 60, 0))
	completed.Contract = "c"
	voided := at(7, 55, ledger.KindVoid)
	voided.Currency = "CPU"
	return []ledger.Entry{
		at(1, 0, ledger.KindCredit, leg(ledger.Issuer, -1000, 0), leg("ann", 1000, 0)),
		settled,
		at(3, 3, ledger.KindRefund, leg("eve", -20, 0), leg("ann", 20, 0)),
		at(4, 4, ledger.KindTransfer, leg("bob", -7, 0), leg("eve", 7, 0)),
		reserved,
		completed,
		voided,
		at(8, 56, ledger.KindOpen, leg("zoe", 0, 0)),
	}
}

func report(t interface{ Fatal(...any) }, q books.Query, entries []ledger.Entry) []books.Currency {
	r := books.NewReport(q)
	for _, e := range entries {
		if err := r.Add(e, 0); err != nil {
			t.Fatal(err)
		}
	}
	return r.Currencies()
}

func TestReportSaysWhatWasPaidRefundedIssuedAndMoved(t *testing.T) {
	got := report(t, books.Query{Step: 24 * time.Hour, Top: 2}, history())
	day := func(d int) time.Time { return time.Date(2026, 1, 31+d, 0, 0, 0, 0, time.UTC) }
	want := []books.Currency{{
		Currency: "CPU",
		Sums:     books.Sums{Contracts: 2, Voided: 1, Turnover: 110, Refunded: 20, Issued: 1000, Moved: 7},
		Prices:   books.Prices{Least: 50, Median: 50, Mean: 55, Most: 60},
		Periods: []books.Period{
			{Start: day(0), Sums: books.Sums{Contracts: 1, Turnover: 50, Issued: 1000}, Price: 50},
			{Start: day(1), Sums: books.Sums{Refunded: 20, Moved: 7}},
			{Start: day(2), Sums: books.Sums{Contracts: 1, Turnover: 60}, Price: 60},
			{Start: day(3), Sums: books.Sums{Voided: 1}},
		},
		Top: []books.Trader{{Account: "ann", Spent: 90}, {Account: "bob", Earned: 90}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A core-hour costs what was paid by the core-hours of the slots, whatever the contracts' sizes.
func TestThePriceOfACoreHour(t *testing.T) {
	r := books.NewReport(books.Query{Step: 24 * time.Hour})
	for i, c := range []struct{ paid, cores int64 }{{6_000_000, 3 * 3600}, {1_000_000, 4 * 3600}} {
		e := ledger.Entry{Number: uint64(i) + 1, Time: start, Kind: ledger.KindSettle, Legs: []ledger.Leg{leg("ann", protocol.Credits(-c.paid), 0)}}
		if err := r.Add(e, c.cores); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.Currencies()[0]; got.PerCoreHour != 1_000_000 || got.Periods[0].PerCoreHour != 1_000_000 {
		t.Errorf("7 credits for 7 core-hours are %s, and %s in the period", got.PerCoreHour, got.Periods[0].PerCoreHour)
	}
}

// What is held is a ceiling: a contract that is paid after the fact costs what was paid
// once all its units have ended, and counts where it was made.
func TestPricesAreWhatWasPaidOnceThatIsDecided(t *testing.T) {
	number := uint64(0)
	entry := func(hours int, kind ledger.Kind, id protocol.ContractID, legs ...ledger.Leg) ledger.Entry {
		number++
		return ledger.Entry{Number: number, Time: start.Add(time.Duration(hours) * time.Hour), Kind: kind, Contract: id, Legs: legs}
	}
	reserve := func(hours int, id protocol.ContractID, units ...protocol.Credits) ledger.Entry {
		e := entry(hours, ledger.KindReserve, id)
		for i, cost := range units {
			e.Units, e.Total = append(e.Units, ledger.HeldUnit{Unit: i, Hold: uint64(i + 1), Legs: 1}), e.Total+cost
			e.Legs = append(e.Legs, leg("ann", 0, cost))
		}
		return e
	}
	ends := func(hours int, id protocol.ContractID, held, paid protocol.Credits) ledger.Entry {
		return entry(hours, ledger.KindComplete, id, leg("ann", -paid, -held), leg("bob", paid, 0))
	}
	list := []ledger.Entry{
		ends(0, "before", 10, 5),
		reserve(1, "two units", 100, 100), reserve(1, "failed", 70), reserve(1, "open", 40, 40),
		ends(2, "two units", 100, 30), ends(2, "failed", 70, 0), ends(2, "open", 40, 40),
	}
	got := report(t, books.Query{From: start, Step: 24 * time.Hour}, list)[0]
	if got.Contracts != 3 || got.Open != 2 || got.Prices != (books.Prices{}) || got.Turnover != 75 {
		t.Errorf("while units are held: %+v", got)
	}
	got = report(t, books.Query{From: start, Step: 24 * time.Hour}, append(list, ends(50, "two units", 100, 20)))[0]
	if want := (books.Prices{Least: 50, Median: 50, Mean: 50, Most: 50}); got.Prices != want || got.Open != 1 {
		t.Errorf("prices %+v, %d open", got.Prices, got.Open)
	}
	if p := got.Periods; len(p) != 2 || p[0].Price != 50 || p[0].Open != 1 || p[1].Price != 0 || p[1].Turnover != 20 {
		t.Errorf("periods %+v", got.Periods)
	}
}

func TestPeriodsBeginWhereTheQueryDoes(t *testing.T) {
	got := report(t, books.Query{From: start, Step: 24 * time.Hour}, history())
	if p := got[0].Periods; len(p) != 3 || !p[1].Start.Equal(start.Add(24*time.Hour)) || p[0].Turnover != 50 {
		t.Errorf("periods %+v", p)
	}
}

func TestReportRefusesMorePeriodsThanItKeeps(t *testing.T) {
	r := books.NewReport(books.Query{Step: time.Second})
	for i := range books.MaxPeriods + 1 {
		e := ledger.Entry{Number: uint64(i) + 1, Time: start.Add(time.Duration(i) * time.Second), Kind: ledger.KindVoid, Currency: "CPU"}
		if err := r.Add(e, 0); (err != nil) != (i == books.MaxPeriods) {
			t.Fatalf("period %d: %v", i, err)
		}
	}
}

func TestQueriesOutOfRangeAreRefused(t *testing.T) {
	for _, q := range []books.Query{{}, {Step: -time.Hour}, {Step: time.Hour, Top: -1}, {Step: time.Hour, Top: books.MaxTop + 1}} {
		if q.Validate() == nil {
			t.Errorf("%+v is valid", q)
		}
	}
}

func TestSumsThatDoNotFitStayAtTheMost(t *testing.T) {
	pay := ledger.Entry{Number: 1, Time: start, Kind: ledger.KindSettle, Legs: []ledger.Leg{
		leg("ann", -protocol.MaxCredits, 0), leg("bob", protocol.MaxCredits, 0)}}
	got := report(t, books.Query{Step: time.Hour}, []ledger.Entry{pay, pay, pay})
	if got[0].Turnover != protocol.MaxCredits {
		t.Errorf("turnover %s", got[0].Turnover)
	}
}

func TestPricesAreThoseOfASortedListForAnyHistory(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		paid := rapid.SliceOfN(rapid.Int64Range(1, 1e9), 1, 200).Draw(t, "prices")
		var entries []ledger.Entry
		var sum int64
		for i, p := range paid {
			c := protocol.Credits(p)
			sum += p
			entries = append(entries, ledger.Entry{Number: uint64(i) + 1, Time: start, Kind: ledger.KindSettle, Legs: []ledger.Leg{leg("ann", -c, 0), leg("bob", c, 0)}})
		}
		got := report(t, books.Query{Step: time.Hour, Top: 5}, entries)[0]
		slices.Sort(paid)
		n := len(paid)
		want := books.Prices{
			Least: protocol.Credits(paid[0]), Most: protocol.Credits(paid[n-1]),
			Mean: protocol.Credits(sum / int64(n)), Median: protocol.Credits(paid[(n-1)/2]),
		}
		if got.Prices != want || got.Turnover != protocol.Credits(sum) || got.Top[0].Spent != got.Top[1].Earned {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestMedianOfManyPricesIsNearThatOfAll(t *testing.T) {
	var entries []ledger.Entry
	const many = 200_000
	for i := range many {
		c := protocol.Credits(i + 1)
		entries = append(entries, ledger.Entry{Number: uint64(i) + 1, Time: start, Kind: ledger.KindSettle, Legs: []ledger.Leg{leg("ann", -c, 0), leg("bob", c, 0)}})
	}
	p := report(t, books.Query{Step: time.Hour}, entries)[0].Prices
	if p.Least != 1 || p.Most != many || p.Median < many*49/100 || p.Median > many*51/100 {
		t.Errorf("prices %+v", p)
	}
}

func TestJournalBalancesAndAssertsEachAccount(t *testing.T) {
	var b strings.Builder
	names, err := books.Preamble(&b, "bank@x", []string{"CPU"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range history()[:2] {
		e.Ref = "two  words;\nmore"
		for _, l := range e.Legs {
			if err := names.Declare(&b, l.Account, l.Currency, l.Amount); err != nil {
				t.Fatal(err)
			}
		}
		if err := books.Journal(&b, e); err != nil {
			t.Fatal(err)
		}
	}
	want := `; books of bank@x, by ramp bank export
commodity "CPU"
    format 1000.000000 "CPU"

account bank:issuer

account bank:agents:ann

2026-01-31 * (1) credit two words, more
    ; time:22:00:00.000000000
    bank:issuer  -0.001000 "CPU" = -0.001000 "CPU"
    bank:agents:ann  0.001000 "CPU" = 0.001000 "CPU"

account bank:agents:bob

account bank:agents:eve

2026-01-31 * (2) settle two words, more
    ; time:23:00:00.000000000
    bank:agents:ann  -0.000050 "CPU" = -0.000050 "CPU"
    bank:agents:bob  0.000030 "CPU" = 0.000030 "CPU"
    bank:agents:eve  0.000020 "CPU" = 0.000020 "CPU"
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Error(d)
	}
}

// A currency that the bank keeps no more is in its history, and is declared there.
func TestEachNameIsDeclaredOnceBeforeItIsUsed(t *testing.T) {
	var b strings.Builder
	names, err := books.Preamble(&b, "bank@x", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, amount := range []protocol.Credits{0, 5, 5} {
		if err := names.Declare(&b, ledger.House, "OLD", amount); err != nil {
			t.Fatal(err)
		}
		if amount == 0 && strings.Contains(b.String(), "OLD") {
			t.Error("declared though it is not used")
		}
	}
	if strings.Count(b.String(), "commodity \"OLD\"\n") != 1 || strings.Count(b.String(), "\naccount bank:exchange\n") != 1 {
		t.Errorf("declared otherwise than once:\n%s", b.String())
	}
}

func TestJournalNamesGroupsAndTheBanksOwnAccounts(t *testing.T) {
	for id, want := range map[protocol.AgentID]string{
		ledger.GroupID("A"): "bank:groups:A", ledger.House: "bank:exchange", ledger.Issuer: "bank:issuer", "ann@k": "bank:agents:ann@k",
	} {
		var b strings.Builder
		e := ledger.Entry{Number: 1, Time: start, Kind: ledger.KindTransfer, Legs: []ledger.Leg{leg(id, 3, 0)}}
		if err := books.Journal(&b, e); err != nil || !strings.Contains(b.String(), fmt.Sprintf("    %s  0.000003", want)) {
			t.Errorf("%s: %v\n%s", id, err, b.String())
		}
	}
}

func TestEntriesWithoutMoneyAreNotInTheJournal(t *testing.T) {
	var b strings.Builder
	if err := books.Journal(&b, ledger.Entry{Number: 1, Time: start, Kind: ledger.KindReserve, Legs: []ledger.Leg{leg("ann", 0, 9)}}); err != nil || b.Len() > 0 {
		t.Errorf("%v: %q", err, b.String())
	}
}
