package ledgerdb

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// SoldPage is some of the contracts in which a seller sold something.
type SoldPage struct {
	Sold     []protocol.Sold
	More     bool // there are more behind the last one
	Complete bool // the ledger has all contracts of the seller since its first entry
}

// Sold lists what a seller promised in settled contracts that end at an instant
// or later, without units that were refunded or have ended, in order of end, then
// of entry: at most MaxPage contracts, behind the one that after names, if it names
// one. It takes time in proportion to what it returns, and to a look into each
// 8,192 entries of the ledger.
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

// soldComplete reports whether all contracts that were ever settled are in the
// table: a ledger of an older program has decided others before.
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

// decidedBy is the entry that decided a contract; zero: there is none.
func (h history) decidedBy(contractKey string) (uint64, error) {
	v := h.get(ledger.TableContracts, contractKey)
	if v == nil {
		return 0, nil
	}
	return ledger.DecodeNumber(v)
}

// soldAt is a sale that was found: its end, its entry, and of a row of an older
// program all of it.
type soldAt struct {
	ends  time.Time
	entry uint64
	old   *protocol.Sold
}

func (s soldAt) compare(t soldAt) int {
	return cmp.Or(s.ends.Compare(t.ends), cmp.Compare(s.entry, t.entry))
}

// soldFound are the first sales behind one, of which a page is made.
type soldFound struct {
	from soldAt
	list []soldAt
	full bool // those beyond the last of the list do not matter
}

// soldMost are the sales that decide what is on a page, and whether others follow.
const soldMost = MaxPage + 1

// take takes a sale; false: no later one of the same block is wanted.
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

// findSold looks into every block of entries, and at the rows of an older program.
func (h history) findSold(f *soldFound, seller protocol.AgentID) error {
	state, err := h.state()
	if err != nil {
		return err
	}
	for block := range ledger.SoldBlock(state.Entry) + 1 {
		prefix := ledger.SoldByPrefix(block, seller)
		from := ledger.SoldByKey(block, seller, f.from.ends, f.from.entry)
		err := h.scan(ledger.TableSoldBy, from, func(k string, _ []byte) (bool, error) {
			if !strings.HasPrefix(k, prefix) {
				return false, nil
			}
			ends, entry, err := ledger.DecodeSoldBy(k)
			return err == nil && f.take(soldAt{ends: ends, entry: entry}), err
		})
		if err != nil {
			return err
		}
	}
	return h.findOldSold(f, seller)
}

func (h history) findOldSold(f *soldFound, seller protocol.AgentID) error {
	prefix := ledger.OldSoldPrefix(seller)
	return h.scan(ledger.TableSold, ledger.OldSoldKey(seller, f.from.ends), func(k string, v []byte) (bool, error) {
		if !strings.HasPrefix(k, prefix) {
			return false, nil
		}
		row, err := ledger.DecodeOldSold(k, v)
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

// soldPage reads the sales that were found.
func (h history) soldPage(s *SoldPage, seller protocol.AgentID, found []soldAt) error {
	ended := func(key string) bool { return h.get(ledger.TableRefunds, key) != nil }
	units := 0
	for _, at := range found {
		if units >= maxSoldUnits || len(s.Sold) >= MaxPage {
			s.More = true
			return nil
		}
		sold, ok, err := h.soldOf(at, seller)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		units += len(sold.Units)
		if sold, err = ledger.Live(sold, ended); err != nil {
			return err
		}
		s.Sold = append(s.Sold, sold)
	}
	return nil
}

func (h history) soldOf(at soldAt, seller protocol.AgentID) (protocol.Sold, bool, error) {
	if at.old != nil {
		return *at.old, true, nil
	}
	key := ledger.NumberKey(at.entry)
	_, sale, err := ledger.DecodeSale(key, h.get(ledger.TableSales, key))
	if err != nil {
		return protocol.Sold{}, false, err
	}
	e, err := h.entry(at.entry)
	if err != nil {
		return protocol.Sold{}, false, err
	}
	return sale.Of(seller, e)
}

// maxSoldUnits are the units after which a page takes no more contracts.
const maxSoldUnits = 4000
