package ledgerdb

import (
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
// or later, without units that were refunded or have ended: at most MaxPage
// contracts, behind the one that after names, if it names one. It takes time in
// proportion to what it returns.
func (db *DB) Sold(seller protocol.AgentID, ends time.Time, after protocol.ContractID) (SoldPage, error) {
	var s SoldPage
	from, err := ledger.SoldKey(seller, ends, after)
	if err != nil {
		return s, err
	}
	err = db.view(func(h history) error {
		if s.Complete, err = h.soldComplete(); err != nil {
			return err
		}
		return h.sold(&s, ledger.SoldPrefix(seller), from, after != "")
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

func (h history) sold(s *SoldPage, prefix, from string, after bool) error {
	ended := func(key string) bool { return h.get(ledger.TableRefunds, key) != nil }
	units := 0
	return h.scan(ledger.TableSold, from, func(k string, v []byte) (bool, error) {
		switch {
		case !strings.HasPrefix(k, prefix):
			return false, nil
		case after && k == from:
			return true, nil
		case units >= maxSoldUnits || len(s.Sold) >= MaxPage:
			s.More = true
			return false, nil
		}
		row, err := ledger.DecodeSold(k, v)
		if err != nil {
			return false, err
		}
		units += len(row.Units)
		s.Sold = append(s.Sold, row.Live(ended))
		return true, nil
	})
}

// maxSoldUnits are the units after which a page takes no more contracts.
const maxSoldUnits = 4000
