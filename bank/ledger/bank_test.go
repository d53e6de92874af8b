package ledger_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// agent is a valid agent ID with a name.
func agent(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", protocol.FingerprintLen))
}

var bankID = agent("bank")

// start is when the tests begin.
func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

// memory is a store in memory.
type memory map[string]map[string][]byte

func (m memory) append(records []protocol.Record) {
	for _, r := range records {
		if m[r.Table] == nil {
			m[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(m[r.Table], r.Key)
		} else {
			m[r.Table][r.Key] = r.Value
		}
	}
}

func (m memory) Get(table, key string) ([]byte, error) { return m[table][key], nil }

func (m memory) Each(table string, f func(key string, value []byte) error) error {
	for _, key := range slices.Sorted(maps.Keys(m[table])) {
		if err := f(key, m[table][key]); err != nil {
			return err
		}
	}
	return nil
}

func (m memory) clone() memory {
	c := memory{}
	for table, rows := range m {
		c[table] = maps.Clone(rows)
	}
	return c
}

// entry decodes an entry with its accounts.
func (m memory) entry(n uint64) (ledger.Entry, error) {
	key := ledger.NumberKey(n)
	e, err := ledger.DecodeEntry(key, m[ledger.TableEntries][key])
	for i := range e.Legs {
		leg := &e.Legs[i]
		leg.Account, leg.Currency, err = ledger.DecodeLine(m[ledger.TableLines][ledger.LineKey(leg.Line)])
	}
	return e, err
}

// outcome is what the store answers after ErrAskStore.
func (m memory) outcome(id protocol.ContractID) (ledger.Lookup, error) {
	s, err := ledger.DecodeState(m[ledger.TableState][ledger.StateKey])
	if err != nil {
		return ledger.Lookup{}, err
	}
	found := ledger.Lookup{AsOf: s.Entry}
	key, _ := ledger.ContractKey(id)
	v := m[ledger.TableContracts][key]
	if v == nil {
		return found, nil
	}
	n, _ := ledger.DecodeNumber(v)
	e, err := m.entry(n)
	if err != nil {
		return found, err
	}
	found.Found = true
	if found.Receipt, err = e.Receipt(s.Bank); err != nil {
		return found, err
	}
	for _, k := range slices.Sorted(maps.Keys(m[ledger.TableRefunds])) {
		if strings.HasPrefix(k, key) {
			n, _ := ledger.DecodeNumber(m[ledger.TableRefunds][k])
			e, err = m.entry(n)
			e.AddTo(&found.Receipt)
		}
	}
	return found, err
}

// bank is a ledger with its store and clock.
type bank struct {
	*ledger.Ledger
	store memory
	now   time.Time
	asked int // times that the ledger asked its store
}

func config() ledger.Config {
	return ledger.Config{Bank: bankID, Currencies: []string{"cr", "eur"}}
}

func newBank(t testing.TB) *bank {
	t.Helper()
	b := &bank{store: memory{}, now: start()}
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bank) reload() (err error) {
	b.Ledger, err = ledger.Load(config(), b.now, b.store)
	return err
}

// saved stores the records and passes the rest on.
func saved[T any](b *bank) func(v T, records []protocol.Record, err error) (T, error) {
	return func(v T, records []protocol.Record, err error) (T, error) {
		b.store.append(records)
		return v, err
	}
}

// asking repeats a request for which the ledger needs its store.
func (b *bank) asking(id protocol.ContractID, request func() (protocol.Receipt, error)) (protocol.Receipt, error) {
	r, err := request()
	if !errors.Is(err, ledger.ErrAskStore) {
		return r, err
	}
	b.asked++
	found, err := b.store.outcome(id)
	if err != nil {
		return r, err
	}
	if err := b.Recall(id, found); err != nil {
		return r, err
	}
	return request()
}

func (b *bank) copy(c contract, seller protocol.AgentID) (protocol.Receipt, error) {
	return b.asking(c.id, func() (protocol.Receipt, error) {
		return saved[protocol.Receipt](b)(b.Copy(b.now, c.id, c.Bundle, seller))
	})
}

func (b *bank) void(c contract, by protocol.AgentID) (protocol.Receipt, error) {
	return b.asking(c.id, func() (protocol.Receipt, error) {
		return saved[protocol.Receipt](b)(b.Void(b.now, c.id, c.Bundle, by))
	})
}

func (b *bank) refund(c contract, unit int, amount protocol.Credits, by protocol.AgentID) (protocol.Receipt, error) {
	return b.asking(c.id, func() (protocol.Receipt, error) {
		return saved[protocol.Receipt](b)(b.Refund(b.now, c.id, c.Bundle, unit, amount, by))
	})
}

func (b *bank) expire() ledger.Expired {
	done, records := b.Expire(b.now)
	b.store.append(records)
	return done
}

// contract is a bundle with its ID.
type contract struct {
	protocol.Bundle
	id protocol.ContractID
}

func contractID(seed string) protocol.ContractID {
	h := sha256.Sum256([]byte(seed))
	return protocol.ContractID(hex.EncodeToString(h[:]))
}

// newContract has a unit for each payment, in order.
func newContract(seed string, user protocol.AgentID, settleBy time.Time, pays ...ledger.Payment) contract {
	c := contract{id: contractID(seed), Bundle: protocol.Bundle{
		Version: protocol.BundleVersion, User: user, Bank: bankID, Currency: "cr",
		Mode: protocol.ModeOnReservation, Nonce: seed, SettleBy: settleBy,
	}}
	for i, p := range pays {
		c.Units = append(c.Units, protocol.BundleUnit{Unit: i, Seller: p.To, Cost: p.Amount, Reservation: fmt.Sprint(seed, i)})
		c.Total += p.Amount
	}
	return c
}

// code is the code of a refusal; "" for none.
func code(err error) protocol.Code {
	var r *ledger.Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	if err != nil {
		return protocol.Code("error: " + err.Error())
	}
	return ""
}

// sound fails the test unless the store and the ledger's sums are right.
func sound(t interface {
	Helper()
	Fatalf(string, ...any)
}, b *bank) ledger.Report {
	t.Helper()
	r, err := ledger.Audit(b.store)
	if err != nil || len(r.Bad) > 0 {
		t.Fatalf("audit: %v %q", err, r.Bad)
	}
	for currency, sum := range b.Sum() {
		if sum != 0 || r.Sum[currency] != "0" {
			t.Fatalf("%s sums to %s, audit says %s", currency, sum, r.Sum[currency])
		}
	}
	if r.Entries != b.LastEntry() {
		t.Fatalf("audit counts %d entries, the ledger %d", r.Entries, b.LastEntry())
	}
	return r
}
