package real_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents/journal"
	"ramp/agents/markettest"
	"ramp/agents/sim/real"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

const sellers = 3

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

var contractName = regexp.MustCompile(`"contract":"[0-9a-f]{64}",`)

// market is a simulated market in which three purchases were settled, and one
// signed and voided.
func market(tb testing.TB) (*markettest.Market, *markettest.Cast) {
	tb.Helper()
	cast := markettest.NewCast(tb, sellers)
	m := markettest.New(tb, cast, markettest.Config{Seed: 5})
	for i := range 3 {
		m.Buy(fmt.Sprintf("p%d", i), i+1, message.Options{})
		m.Run(5 * time.Second)
	}
	m.Fate = func(p markettest.Packet) markettest.Fate {
		return markettest.Fate{Drop: p.To == markettest.Bank} // no copy comes in time
	}
	m.Buy("p3", 3, message.Options{})
	m.Run(2 * protocol.DefaultSettle)
	m.Fate = nil
	m.Run(5 * time.Minute)
	must(tb, m.Check())
	return m, cast
}

// damage is done to books before they are written.
type damage struct {
	stores map[string]markettest.Store
	batch  map[string]map[string]protocol.Slot
	told   map[string]string
}

// write writes everybody's books as a soak leaves them, with some damage.
func write(t *testing.T, m *markettest.Market, cast *markettest.Cast, harm func(*damage)) string {
	t.Helper()
	d := damage{stores: map[string]markettest.Store{}, batch: map[string]map[string]protocol.Slot{}, told: map[string]string{"p0": "settled", "p3": "void"}}
	all := []string{markettest.Bank, markettest.User}
	for i := range sellers {
		all = append(all, markettest.Seller(i+1))
		d.batch[all[i+2]] = maps.Clone(m.Batch(all[i+2]).Slots)
	}
	for _, name := range all {
		d.stores[name] = markettest.Store{}
		for table, rows := range m.Store(name) {
			d.stores[name][table] = maps.Clone(rows)
		}
	}
	if harm != nil {
		harm(&d)
	}
	dir := t.TempDir()
	for _, name := range all {
		at := filepath.Join(dir, "books", name)
		must(t, os.MkdirAll(at, 0o700))
		writeCredential(t, cast, name, at)
		writeStore(t, name, d.stores[name], at)
		if slots, ok := d.batch[name]; ok {
			writeJSON(t, filepath.Join(at, "swf-reservations.json"), map[string]any{"reservations": reservations(slots)})
		}
	}
	writeJSON(t, filepath.Join(dir, "books", "market.json"), map[string]any{
		"users": all[1:2], "sites": all[2:], "currency": cast.Terms().Currency, "credit": 1_000_000 * protocol.Credit, "cores": 256,
		"told": map[string]any{markettest.User: d.told},
	})
	return dir
}

func reservations(slots map[string]protocol.Slot) []any {
	list := []any{}
	for _, id := range slices.Sorted(maps.Keys(slots)) {
		list = append(list, map[string]any{"id": id, "slot": slots[id]})
	}
	return list
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, errors.Join(err, os.WriteFile(path, b, 0o600)))
}

func writeCredential(t *testing.T, cast *markettest.Cast, name, dir string) {
	t.Helper()
	cred := cast.Credential(name)
	key, err := identity.KeyPEM(cred.PrivateKey())
	must(t, err)
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cred.ChainDER()[0]})
	for file, b := range map[string][]byte{"agent.pem": cert, "agent.key": key, "ca.pem": cast.CA.CertPEM()} {
		must(t, os.WriteFile(filepath.Join(dir, file), b, 0o600))
	}
}

// writeStore writes the file that a party's process would have written.
func writeStore(t *testing.T, name string, s markettest.Store, dir string) {
	t.Helper()
	var records []protocol.Record
	for _, table := range slices.Sorted(maps.Keys(s)) {
		for _, key := range slices.Sorted(maps.Keys(s[table])) {
			records = append(records, protocol.Record{Table: table, Key: key, Value: s[table][key]})
		}
	}
	if name == markettest.Bank {
		db, err := ledgerdb.Open(filepath.Join(dir, "ledger.db"))
		must(t, err)
		must(t, errors.Join(db.Append(records), db.Close()))
		return
	}
	j, err := journal.Open(filepath.Join(dir, "journal.db"), 0)
	must(t, err)
	must(t, errors.Join(j.Append(records), j.Close()))
}

// selling returns a seller that has sold something.
func selling(t *testing.T, m *markettest.Market) string {
	t.Helper()
	for i := range sellers {
		if name := markettest.Seller(i + 1); len(m.Batch(name).Slots) > 0 {
			return name
		}
	}
	t.Fatal("nobody has sold anything")
	return ""
}

// The comparison finds nothing where nothing is wrong, and whatever is.
func TestDamageIsReported(t *testing.T) {
	m, cast := market(t)
	s1 := selling(t, m)
	for name, c := range map[string]struct {
		harm func(d *damage)
		want string // in a difference; empty: there is none
	}{
		"nothing is wrong": {nil, ""},
		"a user forgets a settled purchase": {func(d *damage) {
			delete(d.stores[markettest.User][user.TablePurchases], "p0")
			delete(d.stores[markettest.User][reserve.TableBundles], "p0")
		}, "in no user's journal"},
		"a user forgets only the purchase": {func(d *damage) {
			delete(d.stores[markettest.User][user.TablePurchases], "p1")
		}, "has no such purchase"},
		"a user forgets only the contract": {func(d *damage) {
			delete(d.stores[markettest.User][reserve.TableBundles], "p1")
		}, "not by a contract of its own"},
		"a purchase goes on for ever": {func(d *damage) {
			change(d, user.TablePurchases, "p0", `"state":"settled"`, `"state":"deciding"`)
		}, "purchase p0 is still deciding"},
		"a user's daemon reported another outcome": {func(d *damage) { d.told["p3"] = "settled" }, "reported that p3 is settled"},
		"a user takes void for settled": {func(d *damage) {
			change(d, user.TablePurchases, "p3", `"settled":false`, `"settled":true`)
		}, "settled=false at the bank"},
		"a seller forgets what it sold": {func(d *damage) {
			d.stores[s1][reserve.TableDeals] = nil
		}, "settled=true at the bank"},
		"a seller is in doubt for ever": {func(d *damage) {
			for name, store := range d.stores {
				store[reserve.TableReceipts] = nil
				for key, value := range store[reserve.TableDeals] {
					d.stores[name][reserve.TableDeals][key] = bytes.ReplaceAll(value, []byte(`"sold"`), []byte(`"countersigned"`))
				}
			}
		}, "countersigned when everything is over"},
		"a seller has sold what no contract names": {func(d *damage) {
			for name, store := range d.stores {
				for key, value := range store[reserve.TableDeals] {
					d.stores[name][reserve.TableDeals][key] = contractName.ReplaceAll(value, nil)
				}
			}
		}, "but no settled contract names it"},
		"the bank forgets a decision": {func(d *damage) {
			forgetSettlement(d.stores[markettest.Bank])
		}, "unknown at the bank"},
		"the bank leaves a contract undecided": {func(d *damage) {
			undecided(t, cast, d.stores[markettest.Bank])
		}, "is undecided at the bank"},
		"a balance is off by one": {func(d *damage) { misbalance(t, d.stores[markettest.Bank]) }, "the ledger is wrong"},
		"the batch system loses a reservation": {func(d *damage) {
			for id := range d.batch[s1] {
				delete(d.batch[s1], id)
				return
			}
		}, "the batch system does not have it"},
		"the batch system keeps what was freed": {func(d *damage) {
			d.batch[s1]["orphan"] = protocol.Slot{Start: m.Now(), End: m.Now().Add(time.Hour), Cores: 1}
		}, "which is not sold"},
		"the batch system has another slot": {func(d *damage) {
			for id, slot := range d.batch[s1] {
				slot.Cores++
				d.batch[s1][id] = slot
			}
		}, "but the batch system has"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := real.CompareAt(write(t, m, cast, c.harm), m.Now())
			must(t, err)
			all := strings.Join(r.Differences, "\n")
			switch {
			case c.want == "" && (all != "" || r.Settled != 3 || r.Void != 1 || r.Purchases != 4):
				t.Errorf("%+v", r)
			case !strings.Contains(all, c.want):
				t.Errorf("no difference says %q:\n%s", c.want, all)
			}
		})
	}
}

// change changes a user's row; what is not there is not changed.
func change(d *damage, table, key, old, with string) {
	rows := d.stores[markettest.User][table]
	rows[key] = bytes.ReplaceAll(rows[key], []byte(old), []byte(with))
}

// forgetSettlement removes the newest entry that settled a contract, and all
// that came after it: a ledger with a gap is not even written.
func forgetSettlement(s markettest.Store) {
	newest := ""
	for key, value := range s[ledger.TableEntries] {
		if e, err := ledger.DecodeEntry(key, value); err == nil && e.Kind == ledger.KindSettle && key > newest {
			newest = key
		}
	}
	maps.DeleteFunc(s[ledger.TableEntries], func(key string, _ []byte) bool { return key >= newest })
}

// undecided puts a bundle into the ledger of which one copy has come.
func undecided(t *testing.T, cast *markettest.Cast, s markettest.Store) {
	t.Helper()
	now := markettest.Dawn.Add(time.Hour)
	l, err := ledger.Load(ledger.Config{Bank: cast.ID(markettest.Bank), Currencies: []string{cast.Terms().Currency}}, now, s)
	must(t, err)
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: "x", User: cast.ID(markettest.User), Bank: cast.ID(markettest.Bank),
		Currency: cast.Terms().Currency, Mode: protocol.ModeOnReservation, Total: 2, SettleBy: now.Add(time.Minute),
		Units: []protocol.BundleUnit{{Seller: cast.ID(markettest.Seller(1)), Cost: 1}, {Unit: 1, Seller: cast.ID(markettest.Seller(2)), Cost: 1}},
	}
	_, records, err := l.Copy(now, protocol.ContractID(strings.Repeat("ab", 32)), b, cast.ID(markettest.Seller(1)))
	must(t, errors.Join(err, s.Append(records)))
}

// misbalance moves one micro-credit from one line to another, in the balances
// alone.
func misbalance(t *testing.T, s markettest.Store) {
	t.Helper()
	for key, value := range s[ledger.TableBalances] {
		changed := slices.Clone(value)
		for i := range changed {
			changed[i] ^= 2
			if was, _, _, err := ledger.DecodeBalance(value); err == nil {
				if is, _, _, err := ledger.DecodeBalance(changed); err == nil && is != was {
					s[ledger.TableBalances][key] = changed
					return
				}
			}
			changed[i] ^= 2
		}
	}
	t.Fatal("no balance can be changed")
}

func TestUnreadableBooksAreAnError(t *testing.T) {
	m, cast := market(t)
	for _, lost := range []string{"market.json", "bank/ledger.db", "user/journal.db", "s01/journal.db", "s02/swf-reservations.json", "s03/agent.key"} {
		dir := write(t, m, cast, nil)
		path := filepath.Join(dir, "books", lost)
		must(t, os.WriteFile(path, []byte("damaged"), 0o600))
		if _, err := real.CompareAt(dir, m.Now()); err == nil {
			t.Errorf("with a damaged %s nothing is said", lost)
		}
	}
}
