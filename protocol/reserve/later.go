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

// TableLater has what banks said of a user's contracts after they had decided them: the
// receipts with refunds and with ends of units, as DER. The key is the conversation, and
// how many of these a receipt has: it only ever gets more, and messages may overtake.
const TableLater = "later-receipts"

// LaterRecords keep a verified receipt of a conversation's contract. The one that it goes
// on from is of no use any more: of many units the receipts would fill the journal.
func LaterRecords(conversation string, v contract.VerifiedReceipt) []protocol.Record {
	n := events(v.Receipt)
	return []protocol.Record{{Table: TableLater, Key: laterKey(conversation, n), Value: v.DER}, {Table: TableLater, Key: laterKey(conversation, n-1)}}
}

func laterKey(conversation string, events int) string {
	return fmt.Sprintf("%s %d", conversation, events)
}

func events(r protocol.Receipt) int { return len(r.Refunds) + len(r.Ends) }

// entries are the numbers of those that a receipt names.
func entries(r protocol.Receipt) []uint64 {
	list := []uint64{r.Entry}
	for _, f := range r.Refunds {
		list = append(list, f.Entry)
	}
	for _, e := range r.Ends {
		list = append(list, e.Entry)
	}
	return list
}

// Confirms reports whether what a restored bank says of a contract is all that the receipt
// says which it was shown, or more. What the bank signed before is evidence otherwise.
func Confirms(given, shown protocol.Receipt) bool {
	return sameDecision(given, shown) && events(given) >= events(shown)
}

// Renumbered reports whether something of a receipt was entered again, or is new.
func Renumbered(given, shown protocol.Receipt) bool {
	return !slices.Equal(entries(given), entries(shown))
}

func sameDecision(a, b protocol.Receipt) bool {
	return a.Bank == b.Bank && a.Contract == b.Contract && a.Outcome == b.Outcome && a.Total == b.Total && a.Currency == b.Currency
}

// laterOnes are the receipts with the most refunds and ends, by conversation; of all, or of
// one.
func laterOnes(t protocol.Tables, one string) (map[string][]byte, error) {
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

// LatestReceipt is the last receipt that a user has of a conversation: the first one, of
// its record, or a later one of the same decision.
func LatestReceipt(t protocol.Tables, conversation string, first []byte) ([]byte, error) {
	list, err := laterOnes(t, conversation)
	if err != nil {
		return nil, err
	}
	_, latest, err := latestOf(first, list[conversation])
	return latest, err
}

// latestOf reads the receipt that stands: a later one, if it is of the same entry. A bank
// that was restored enters a contract again, and then its first receipt is the newer one.
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
