package reserve

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// TableLater has the later receipts of a user's contracts, with refunds and ends of
// units, as DER. The key is the conversation and the number of these events: it only
// grows, and messages may overtake each other.
const TableLater = "later-receipts"

// LaterRecords saves a verified receipt of a conversation's contract, and deletes its
// predecessor. Otherwise the receipts of many units would fill the journal.
func LaterRecords(conversation string, v contract.VerifiedReceipt) []protocol.Record {
	n := events(v.Receipt)
	return []protocol.Record{{Table: TableLater, Key: laterKey(conversation, n), Value: v.DER}, {Table: TableLater, Key: laterKey(conversation, n-1)}}
}

func laterKey(conversation string, events int) string {
	return fmt.Sprintf("%s %d", conversation, events)
}

func events(r protocol.Receipt) int { return len(r.Refunds) + len(r.Ends) }

// entry names an entry of the ledger. A restored bank may give the number of one that it
// lost to a later one of the same kind.
type entry struct {
	number uint64
	time   int64 // Unix, in ns
}

// entries returns the ledger entries that a receipt names.
func entries(r protocol.Receipt) []entry {
	list := []entry{{r.Entry, r.Time.UnixNano()}}
	for _, f := range r.Refunds {
		list = append(list, entry{f.Entry, f.Time.UnixNano()})
	}
	for _, e := range r.Ends {
		list = append(list, entry{e.Entry, e.Time.UnixNano()})
	}
	return list
}

// Confirms reports whether a restored bank's receipt repeats everything in the receipt
// that it was shown. Otherwise the bank's earlier signature is evidence against it.
func Confirms(given, shown protocol.Receipt) bool {
	return sameDecision(given, shown) && events(given) >= events(shown)
}

// Renumbered reports whether a receipt names other ledger entries than the one shown, by
// number or by time.
func Renumbered(given, shown protocol.Receipt) bool {
	return !slices.Equal(entries(given), entries(shown))
}

func sameDecision(a, b protocol.Receipt) bool {
	return a.Bank == b.Bank && a.Contract == b.Contract && a.Outcome == b.Outcome && a.Total == b.Total && a.Currency == b.Currency
}

// laterReceipts returns the receipt with the most events by conversation, of all or of one.
func laterReceipts(t protocol.Tables, one string) (map[string][]byte, error) {
	list, most := map[string][]byte{}, map[string]int{}
	err := t.Each(TableLater, func(key string, value []byte) error {
		i := strings.LastIndexByte(key, ' ')
		n, err := strconv.Atoi(key[i+1:])
		if i < 0 || err != nil {
			return fmt.Errorf("later receipt %.64q: want a conversation and a number", key)
		}
		if id := key[:i]; (one == "" || one == id) && n > most[id] {
			list[id], most[id] = bytes.Clone(value), n
		}
		return nil
	})
	return list, err
}

// LatestReceipt returns a user's last receipt of a conversation: the first one, from its
// record, or a later one of the same decision.
func LatestReceipt(t protocol.Tables, conversation string, first []byte) ([]byte, error) {
	list, err := laterReceipts(t, conversation)
	if err != nil {
		return nil, err
	}
	_, latest, err := latestOf(first, list[conversation])
	return latest, err
}

// latestOf reads the valid receipt: the later one, if it is about the same entry. A
// restored bank enters a contract again, and then its first receipt is the newer one.
func latestOf(first, later []byte) (protocol.Receipt, []byte, error) {
	if len(first) == 0 {
		return protocol.Receipt{}, nil, nil
	}
	r, err := contract.ReadReceipt(first)
	if err != nil || later == nil {
		return r, first, err
	}
	l, err := contract.ReadReceipt(later)
	if err != nil {
		return r, first, err
	}
	if l.Entry == r.Entry && l.Time.Equal(r.Time) && events(l) > events(r) {
		return l, later, nil
	}
	return r, first, nil
}
