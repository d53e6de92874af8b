package ledgerdb_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
)

// shop is a ledger in which sellers sell slots, and a plain list of them.
type shop struct {
	*diary
	mode protocol.Mode    // of its contracts; empty: on-reservation
	cost protocol.Credits // of each unit
	sold []protocol.Sold  // with Seller as the conversation
}

// sell settles a bundle of units of sellers, which all end after so many minutes.
func (s *shop) sell(t fataler, sellers []protocol.AgentID, minutes int, refund bool) {
	n := len(s.sold)
	id := protocol.ContractID(fmt.Sprintf("%064x", n+1))
	b := protocol.Bundle{
		Version: protocol.BundleVersion, User: s.agents[0], Bank: s.l.Bank(), Currency: "cr", Mode: cmp.Or(s.mode, protocol.ModeOnReservation),
		SettleBy: s.now.Add(time.Minute), Conversation: fmt.Sprint(n), Total: s.cost * protocol.Credits(len(sellers)),
	}
	for i, seller := range sellers {
		slot := protocol.Slot{Start: s.now, End: s.now.Add(time.Duration(minutes+i) * time.Minute), Cores: 1 + i}
		b.Units = append(b.Units, protocol.BundleUnit{Unit: i, Seller: seller, Reservation: fmt.Sprint("r", n, i), Slot: slot, Cost: s.cost})
	}
	for _, seller := range sellers {
		_, records, err := s.l.Copy(s.now, id, b, seller)
		if err != nil {
			t.Fatal(err)
		}
		s.pending = append(s.pending, records...)
	}
	for _, seller := range slices.Compact(slices.Sorted(slices.Values(sellers))) {
		x := protocol.Sold{Contract: id, User: b.User, Conversation: string(seller)}
		for _, u := range b.Units {
			if u.Seller == seller {
				x.Ends = u.Slot.End
				x.Units = append(x.Units, protocol.SoldUnit{Unit: u.Unit, Reservation: u.Reservation, Slot: u.Slot})
			}
		}
		s.sold = append(s.sold, x)
	}
	if refund {
		_, records, err := s.l.Refund(s.now, id, b, 0, 0, sellers[0])
		if err != nil {
			t.Fatal(err)
		}
		s.pending = append(s.pending, records...)
		s.forget(id)
	}
}

func (s *shop) forget(id protocol.ContractID) {
	for i := range s.sold {
		s.sold[i].Units = slices.DeleteFunc(s.sold[i].Units, func(u protocol.SoldUnit) bool { return s.sold[i].Contract == id && u.Unit == 0 })
	}
}

func (s *shop) expected(seller protocol.AgentID, ends time.Time) []string {
	var list []string
	for _, x := range s.sold {
		if x.Conversation == string(seller) && !x.Ends.Before(ends) {
			list = append(list, fmt.Sprint(x.Ends, x.Contract, x.Units))
		}
	}
	slices.Sort(list)
	return list
}

func (s *shop) found(t fataler, seller protocol.AgentID, ends time.Time) []string {
	var list []string
	after := protocol.ContractID("")
	for {
		page, err := s.db.Sold(seller, ends, after)
		if err != nil || !page.Complete {
			t.Fatal(err, page.Complete)
		}
		for _, x := range page.Sold {
			list = append(list, fmt.Sprint(x.Ends, x.Contract, x.Units))
			ends, after = x.Ends, x.Contract
		}
		if !page.More {
			break
		}
	}
	slices.Sort(list)
	return list
}

func TestWhatASellerSoldIsListed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := &shop{diary: newDiary(t)}
		for range rapid.IntRange(0, 12).Draw(rt, "contracts") {
			sellers := rapid.SliceOfN(rapid.SampledFrom(s.agents[1:]), 1, 4).Draw(rt, "sellers")
			s.sell(rt, sellers, rapid.IntRange(1, 5).Draw(rt, "minutes"), rapid.Bool().Draw(rt, "refund"))
			if rapid.IntRange(0, 5).Draw(rt, "restart") == 0 {
				s.load(rt)
			}
		}
		s.flush(rt)
		for _, seller := range s.agents {
			ends := s.now.Add(time.Duration(rapid.IntRange(0, 9).Draw(rt, "since")) * time.Minute)
			if got, want := s.found(rt, seller, ends), s.expected(seller, ends); !slices.Equal(got, want) {
				rt.Fatalf("%s since %s:\n%v\nwant\n%v", seller, ends, got, want)
			}
		}
		if r, err := ledger.Audit(s.db); err != nil || len(r.Bad) > 0 {
			rt.Fatal(err, r.Bad)
		}
	})
}

func TestALongListComesInPages(t *testing.T) {
	s := &shop{diary: newDiary(t)}
	for range ledgerdb.MaxPage + 10 {
		s.sell(t, []protocol.AgentID{s.agents[1]}, 5, false)
	}
	s.flush(t)
	page, err := s.db.Sold(s.agents[1], s.now, "")
	if err != nil || !page.More || len(page.Sold) != ledgerdb.MaxPage {
		t.Fatalf("a page of %d, more %t (%v)", len(page.Sold), page.More, err)
	}
	if got := s.found(t, s.agents[1], s.now); len(got) != ledgerdb.MaxPage+10 {
		t.Fatalf("%d contracts", len(got))
	}
}

// A ledger of an older program does not know what was reserved in its older
// contracts, and says so for ever; it can be read, and goes on.
func TestAnOlderLedgerSaysThatItsListIsNotComplete(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	unzip(t, "testdata/v1/ledger.db.gz", path)
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	page, err := db.Sold(benchAgent(1), time.Unix(0, 0), "")
	if err != nil || page.Complete || len(page.Sold) != 0 {
		t.Fatalf("%+v (%v)", page, err)
	}
}

// goldenSold are the contracts of testdata/v2/ledger.db.gz, in which a program of
// one day kept what each seller sold in rows of its own, as it listed them.
func goldenSold(t *testing.T) map[protocol.AgentID][]string {
	t.Helper()
	b, err := os.ReadFile("testdata/v2/sold.txt")
	if err != nil {
		t.Fatal(err)
	}
	lists, seller := map[protocol.AgentID][]string{}, protocol.AgentID("")
	for line := range strings.Lines(string(b)) {
		if line = strings.TrimSuffix(line, "\n"); strings.HasPrefix(line, "agent") {
			seller = protocol.AgentID(line)
		} else {
			lists[seller] = append(lists[seller], line)
		}
	}
	return lists
}

func TestWhatWasSoldInTheFormOfAnOlderProgramIsStillListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	unzip(t, "testdata/v2/ledger.db.gz", path)
	db, err := ledgerdb.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &shop{diary: &diary{db: db, now: time.Date(2026, 3, 1, 0, 1, 0, 0, time.UTC), decided: map[protocol.ContractID]protocol.Receipt{}}}
	for i := range 4 {
		s.agents = append(s.agents, benchAgent(i))
	}
	s.load(t)
	want := goldenSold(t)
	if len(want) != 3 {
		t.Fatalf("%d sellers", len(want))
	}
	for seller, list := range want {
		if got := s.found(t, seller, time.Unix(0, 0)); !slices.Equal(got, list) {
			t.Errorf("%s:\n%s\nwant\n%s", seller, strings.Join(got, "\n"), strings.Join(list, "\n"))
		}
	}
	for range 13 { // the numbers of the older contracts are taken
		s.sold = append(s.sold, protocol.Sold{})
	}
	for range ledgerdb.MaxPage { // so that pages begin and end among both
		s.sell(t, []protocol.AgentID{s.agents[1], s.agents[3]}, 5, false)
	}
	s.flush(t)
	for seller, list := range want {
		list = append(s.expected(seller, time.Unix(0, 0)), list...)
		slices.Sort(list)
		if got := s.found(t, seller, time.Unix(0, 0)); !slices.Equal(got, list) {
			t.Errorf("%s: %d contracts, want %d", seller, len(got), len(list))
		}
	}
	if r, err := ledger.Audit(db); err != nil || len(r.Bad) > 0 {
		t.Fatal(err, r.Bad)
	}
}

// The parties of a contract may ask for its proof, however it is paid; nobody else may.
func TestTheSellersOfAContractAreItsParties(t *testing.T) {
	for _, mode := range []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion} {
		s := &shop{diary: newDiary(t), mode: mode, cost: 2}
		e, records, err := s.l.Credit(s.now, s.agents[0], "cr", 4, "first")
		s.note(t, e, records, err)
		s.sell(t, s.agents[1:3], 5, false)
		s.flush(t)
		for i, who := range s.agents {
			is, err := s.db.Party(s.sold[0].Contract, who)
			if want := i < 3; err != nil || is != want {
				t.Errorf("%s: agent %d is a party: %t (%v), want %t", mode, i, is, err, want)
			}
		}
	}
}
