package ledgerdb

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ramp/bank/ledger"
	"ramp/bank/sold"
	"ramp/protocol"
)

// SoldPage is a page of the contracts in which a seller sold something.
type SoldPage struct {
	Sold     []protocol.Sold
	More     bool // further contracts follow
	Complete bool // the ledger has all contracts of the seller since its first entry
}

// Sold lists a seller's promises in settled contracts that end at an instant or later,
// without units that were refunded or have ended, in order of end, then of entry: at
// most MaxPage contracts, behind the contract after, if that is set. It takes time in
// proportion to the answer, and one look-up for each 8,192 entries of the ledger.
func (db *DB) Sold(seller protocol.AgentID, ends time.Time, after protocol.ContractID) (SoldPage, error) {
	var s SoldPage
	key := ""
	if after != "" {
		var err error
		if key, err = ledger.ContractKey(after); err != nil {
			return s, err
		}
	}
	err := db.view(func(h history) (err error) {
		if s.Complete, err = h.soldComplete(); err != nil {
			return err
		}
		found := soldFound{from: soldAt{ends: ends}}
		if found.from.entry, err = h.decidedBy(key); err != nil {
			return err
		}
		if err := h.findSold(&found, seller); err != nil {
			return err
		}
		return h.soldPage(&s, seller, found.all())
	})
	return s, err
}

// CoreSeconds is the size of the slots that an entry sold; 0: it sold none, or an early
// version did not keep them.
func (db *DB) CoreSeconds(entry uint64) (sum int64, err error) {
	err = db.view(func(h history) error {
		key := ledger.NumberKey(entry)
		v := h.get(ledger.TableSales, key)
		if v == nil {
			return nil
		}
		_, s, err := sold.Decode(key, v)
		for _, p := range s.Parts {
			for _, u := range p.Units {
				sum += int64(u.Slot.Cores) * int64(u.Slot.Wall()/time.Second)
			}
		}
		return err
	})
	return sum, err
}

// soldComplete reports whether the table has all contracts that were ever settled: an
// early version did not keep them.
func (h history) soldComplete() (bool, error) {
	complete, known := true, false
	err := h.scan(ledger.TableSoldFrom, "", func(_ string, v []byte) (bool, error) {
		from, err := ledger.DecodeNumber(v)
		complete, known = from == 0, true
		return false, err
	})
	if err != nil || known {
		return complete, err
	}
	err = h.scan(ledger.TableContracts, "", func(string, []byte) (bool, error) {
		complete = false
		return false, nil
	})
	return complete, err
}

// decidedBy is the entry that decided a contract, or zero.
func (h history) decidedBy(contractKey string) (uint64, error) {
	v := h.get(ledger.TableContracts, contractKey)
	if v == nil {
		return 0, nil
	}
	return ledger.DecodeNumber(v)
}

// soldAt is a sale that was found: its end and entry, or all of it if an early version wrote it.
type soldAt struct {
	ends  time.Time
	entry uint64
	old   *protocol.Sold
}

func (s soldAt) compare(t soldAt) int {
	return cmp.Or(s.ends.Compare(t.ends), cmp.Compare(s.entry, t.entry))
}

// soldFound gathers the first sales behind another one, for a page.
type soldFound struct {
	from soldAt
	list []soldAt
	full bool // sales beyond the last of the list do not matter
}

// soldMost is enough sales for a page, and to know whether others follow.
const soldMost = MaxPage + 1

// take takes a sale, and reports whether later ones of the same block can matter.
func (f *soldFound) take(s soldAt) bool {
	if f.from.entry != 0 && s.compare(f.from) <= 0 {
		return true
	}
	if f.full && s.compare(f.list[soldMost-1]) > 0 {
		return false
	}
	if f.list = append(f.list, s); len(f.list) >= 4*soldMost {
		f.list = f.all()
		f.full = true
	}
	return true
}

// all are the first soldMost, in order.
func (f *soldFound) all() []soldAt {
	slices.SortFunc(f.list, soldAt.compare)
	return f.list[:min(len(f.list), soldMost)]
}

// findSold searches every block of entries, and the rows of an early version.
func (h history) findSold(f *soldFound, seller protocol.AgentID) error {
	state, err := h.state()
	if err != nil {
		return err
	}
	for block := range sold.Block(state.Entry) + 1 {
		prefix := sold.Prefix(block, seller)
		from := sold.Key(block, seller, f.from.ends, f.from.entry)
		err := h.scan(ledger.TableSoldBy, from, func(k string, _ []byte) (bool, error) {
			if !strings.HasPrefix(k, prefix) {
				return false, nil
			}
			ends, entry, err := sold.DecodeKey(k)
			return err == nil && f.take(soldAt{ends: ends, entry: entry}), err
		})
		if err != nil {
			return err
		}
	}
	return h.findOldSold(f, seller)
}

func (h history) findOldSold(f *soldFound, seller protocol.AgentID) error {
	prefix := sold.OldPrefix(seller)
	return h.scan(ledger.TableSold, sold.OldKey(seller, f.from.ends), func(k string, v []byte) (bool, error) {
		if !strings.HasPrefix(k, prefix) {
			return false, nil
		}
		row, err := sold.DecodeOld(k, v)
		if err != nil {
			return false, err
		}
		key, err := ledger.ContractKey(row.Contract)
		if err != nil {
			return false, err
		}
		entry, err := h.decidedBy(key)
		return err == nil && f.take(soldAt{row.Ends, entry, &row.Sold}), err
	})
}

// soldPage reads the sales that findSold found.
func (h history) soldPage(s *SoldPage, seller protocol.AgentID, found []soldAt) error {
	ended := func(key string) bool { return h.get(ledger.TableRefunds, key) != nil }
	units := 0
	for _, at := range found {
		if units >= maxSoldUnits || len(s.Sold) >= MaxPage {
			s.More = true
			return nil
		}
		one, ok, err := h.soldOf(at, seller)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		units += len(one.Units)
		if one, err = ledger.Live(one, ended); err != nil {
			return err
		}
		s.Sold = append(s.Sold, one)
	}
	return nil
}

func (h history) soldOf(at soldAt, seller protocol.AgentID) (protocol.Sold, bool, error) {
	if at.old != nil {
		return *at.old, true, nil
	}
	key := ledger.NumberKey(at.entry)
	_, sale, err := sold.Decode(key, h.get(ledger.TableSales, key))
	if err != nil {
		return protocol.Sold{}, false, err
	}
	e, err := h.entry(at.entry)
	if err != nil {
		return protocol.Sold{}, false, err
	}
	return e.Sold(sale, seller)
}

// maxSoldUnits is the number of units after which a page takes no more contracts.
const maxSoldUnits = 4000
