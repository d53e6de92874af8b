package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Three real processes, each killed once at a random moment of a purchase: what
// was bought is bought once and paid once, or not at all; the signatures are
// good. The first slice of the trunk.
func TestEachOfThreeProcessesIsKilledOnce(t *testing.T) {
	t.Parallel()
	m := startMarket(t, "atlas")
	for _, victim := range []string{"user", "atlas", "bank"} {
		t.Run(victim, func(t *testing.T) {
			moment := time.Duration(rand.IntN(60)) * time.Millisecond
			t.Logf("killed after %s", moment)
			id := m.begin(t, "job.xml")
			watching, stop := context.WithTimeout(context.Background(), moment)
			defer stop()
			m.watch(watching, id, nil)
			m.daemons[victim].kill()
			m.restart(t, victim)
			m.settleDown(t)
			m.verify(t)
		})
	}
	// Whatever the kills left undone: the market that they leave behind sells.
	m.sells(t)
	verifyWithOpenSSL(t, m)
}

// sells buys until something is bought: on a slow machine a vote may come too late.
func (m *market) sells(t *testing.T) {
	t.Helper()
	m.sellsBeyond(t, 0)
}

// sellsBeyond is sells in a market where some purchases are settled.
func (m *market) sellsBeyond(t *testing.T, settled int) {
	t.Helper()
	for range mostTries {
		watching, stop := context.WithTimeout(context.Background(), untilTime)
		m.watch(watching, m.begin(t, "job.xml"), nil)
		stop()
		if m.settleDown(t); m.count(t) > settled {
			return
		}
	}
	t.Fatalf("nothing was bought in %d tries", mostTries)
}

// Three units of three sellers: every party is killed at every step that the
// buyer can see.
func TestKilledAtEveryStepOfThreeUnits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("kills twelve processes; TestEachOfThreeProcessesIsKilledOnce kills three")
	}
	m := startMarket(t, "atlas", "boreas", "castor")
	for _, step := range []string{"bidding", "voting", "confirming", "deciding"} {
		for _, victim := range []string{"user", "bank", "boreas"} {
			t.Run(step+"/"+victim, func(t *testing.T) {
				id := m.begin(t, "three.xml")
				watching, stop := context.WithTimeout(context.Background(), untilTime)
				defer stop()
				m.watch(watching, id, func(p message.Purchase) {
					if p.State == step {
						stop()
					}
				})
				m.daemons[victim].kill() // late, if the step went by unseen
				m.restart(t, victim)
				m.decided(t)
			})
		}
	}
	m.settleDown(t) // a hold whose buyer has forgotten it ends by itself
	m.verify(t)
	verifyWithOpenSSL(t, m)
}

// startMarket is a market of daemons with money in it, all of whom know another.
func startMarket(t *testing.T, sellers ...string) *market {
	t.Helper()
	return openMarket(t, func(*market) {}, sellers...)
}

// openMarket is startMarket with a change of the agents' files.
func openMarket(t *testing.T, change func(*market), sellers ...string) *market {
	t.Helper()
	dir, err := os.MkdirTemp("", "ramp-test-") // short: sockets are in it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	m, err := newMarket(dir, nil, sellers...)
	must(t, err)
	t.Cleanup(func() { m.endOf(t) })
	m.sellers = sellers
	change(m)
	must(t, m.serve("bank"))
	for _, name := range append([]string{"user"}, sellers...) {
		must(t, m.bank("/v1/account", map[string]any{"account": m.ids[name], "name": name, "limit": 0}))
	}
	must(t, m.bank("/v1/credit", map[string]any{"account": "user", "amount": 1000000}))
	for _, name := range append([]string{"user"}, sellers...) {
		must(t, m.serve(name))
	}
	m.meet(t)
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *market) bank(path string, body any) error {
	return call(context.Background(), m.path("bank"), path, body, new(any))
}

// meet waits until the user agent knows every seller.
func (m *market) meet(t *testing.T) {
	t.Helper()
	must(t, until(untilTime, func() (bool, error) {
		var known []struct{ ID string }
		err := call(context.Background(), m.path("user"), "/v1/resources", nil, &known)
		return len(known) == len(m.sellers), err
	}))
}

// restart starts a daemon again, and waits until the market is whole.
func (m *market) restart(t *testing.T, name string) {
	t.Helper()
	must(t, m.serve(name))
	m.meet(t)
}

// begin is the ID of the next purchase of a request.
func (m *market) begin(t *testing.T, request string) string {
	t.Helper()
	b, err := os.ReadFile(m.path(request))
	must(t, err)
	m.document = string(b)
	m.bought++
	return fmt.Sprintf("p%d", m.bought)
}

// watch orders a purchase and tells f of every state, until the purchase is
// over, nobody answers any more, or ctx is done.
func (m *market) watch(ctx context.Context, id string, f func(message.Purchase)) {
	order := map[string]any{"id": id, "name": id, "document": m.document}
	resp, err := post(ctx, m.path("user"), "/v1/buy", order)
	if err != nil {
		return // nobody looks any more
	}
	defer resp.Body.Close()
	d := json.NewDecoder(io.LimitReader(resp.Body, 16<<20))
	for {
		var line struct {
			Done     bool
			Purchase message.Purchase
		}
		if d.Decode(&line) != nil || line.Done {
			return
		}
		if f != nil {
			f(line.Purchase)
		}
	}
}

// decided waits until every purchase is over.
func (m *market) decided(t *testing.T) {
	t.Helper()
	must(t, until(untilTime, func() (bool, error) {
		purchases, err := m.purchases()
		for _, p := range purchases {
			switch p.State {
			case "settled", "void", "failed", "interrupted":
			default:
				return false, fmt.Errorf("%s is %s", p.ID, p.State)
			}
		}
		return err == nil, err
	}))
}

// settleDown waits until nothing is undecided or held.
func (m *market) settleDown(t *testing.T) {
	t.Helper()
	m.decided(t)
	must(t, until(untilTime, func() (bool, error) {
		for _, name := range m.sellers {
			lines, err := m.reservations(name)
			if err != nil {
				return false, err
			}
			for _, l := range lines {
				if !bought(l) && l.State != "freed" {
					return false, fmt.Errorf("%s of %s is %s", l.ID, name, l.State)
				}
			}
		}
		return true, nil
	}))
}

func (m *market) purchases() (list []message.Purchase, err error) {
	err = call(context.Background(), m.path("user"), "/v1/purchases", nil, &list)
	return list, err
}

func (m *market) reservations(seller string) (list []message.ReservationLine, err error) {
	err = call(context.Background(), m.path(seller), "/v1/reservations", nil, &list)
	return list, err
}

// verify compares the books of all: every purchase has all units sold and paid
// once, or none sold and nothing paid.
func (m *market) verify(t *testing.T) {
	t.Helper()
	purchases, err := m.purchases()
	must(t, err)
	sold := m.sold(t)
	paid := m.paid(t)
	for _, p := range purchases {
		want := 0
		if p.Settled {
			want = len(p.Units)
		}
		if len(sold[p.ID]) != want {
			t.Errorf("%s is %s with %d units, but %d are sold", p.ID, p.State, len(p.Units), len(sold[p.ID]))
		}
		for _, u := range p.Units {
			if l, ok := sold[p.ID][u.Unit]; p.Settled && (!ok || l.ID != u.Reservation || l.Cost != u.Cost) {
				t.Errorf("%s unit %d: the user has %+v, the seller %+v", p.ID, u.Unit, u, l)
			}
		}
		if p.Settled && paid[p.Contract] != -p.Total {
			t.Errorf("%s cost %s, and the user's account has %s", p.ID, p.Total, paid[p.Contract])
		}
		if p.Settled {
			delete(paid, p.Contract)
		}
		delete(sold, p.ID)
	}
	if len(sold) > 0 || len(paid) > 0 {
		t.Errorf("sold to nobody: %v; paid for nothing: %v", sold, paid)
	}
	m.audit(t)
}

// bought reports whether a unit is paid for, whether its job has ended early or not.
func bought(l message.ReservationLine) bool { return l.State == "sold" || l.State == "given back" }

// sold are the units that sellers have sold, by purchase and unit.
func (m *market) sold(t *testing.T) map[string]map[int]message.ReservationLine {
	t.Helper()
	sold := map[string]map[int]message.ReservationLine{}
	for _, name := range m.sellers {
		lines, err := m.reservations(name)
		must(t, err)
		for _, l := range lines {
			if !bought(l) {
				continue
			}
			if sold[l.Conversation] == nil {
				sold[l.Conversation] = map[int]message.ReservationLine{}
			}
			if other, twice := sold[l.Conversation][l.Unit]; twice {
				t.Errorf("unit %d of %s is sold twice: %s and %s", l.Unit, l.Conversation, l.ID, other.ID)
			}
			sold[l.Conversation][l.Unit] = l
		}
	}
	return sold
}

// paid is what the user's account has of each contract.
func (m *market) paid(t *testing.T) map[protocol.ContractID]protocol.Credits {
	t.Helper()
	paid := map[protocol.ContractID]protocol.Credits{}
	const page = 1000
	for after, n := uint64(0), page; n == page; {
		var s message.Statement
		must(t, call(context.Background(), m.path("bank"), "/v1/statement", map[string]any{"account": "user", "after": after, "limit": page}, &s))
		for _, l := range s.Lines {
			after = l.Entry
			if l.Contract != "" && l.Amount != 0 {
				paid[l.Contract] += l.Amount
			}
		}
		n = len(s.Lines)
	}
	return paid
}

// audit asks the bank, which also knows whether anything is held.
func (m *market) audit(t *testing.T) {
	t.Helper()
	var a struct {
		Sum map[string]string
		Bad []string
	}
	must(t, call(context.Background(), m.path("bank"), "/v1/audit", nil, &a))
	if len(a.Bad) > 0 || a.Sum["CPU"] != "0" {
		t.Errorf("audit: %v, sum %v", a.Bad, a.Sum)
	}
	must(t, until(untilTime, func() (bool, error) { // a voucher whose purchase failed ends by itself
		var balances []message.Balance
		err := call(context.Background(), m.path("bank"), "/v1/balances", map[string]any{"account": "user"}, &balances)
		return len(balances) == 1 && balances[0].Held == 0, errors.Join(err, fmt.Errorf("the user's account: %+v", balances))
	}))
}

// verifyWithOpenSSL takes the receipt of every settled purchase and runs the
// commands that ramp prints.
func verifyWithOpenSSL(t *testing.T, m *market) {
	t.Helper()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	purchases, err := m.purchases()
	must(t, err)
	n := 0
	for _, p := range purchases {
		if p.Settled {
			verifyReceipt(t, m, p)
			n++
		}
	}
	if n == 0 {
		t.Error("nothing was bought at all")
	}
}

func verifyReceipt(t *testing.T, m *market, p message.Purchase) {
	t.Helper()
	out := filepath.Join(m.dir, "receipt-"+p.ID)
	said, err := exec.Command("ramp", "user", "receipt", p.ID, "--dir", m.path("user"), "--out", out, "--json").Output()
	must(t, err)
	var r struct {
		Verify  []string
		Missing int
	}
	must(t, json.Unmarshal(said, &r))
	// A user that was down when the sellers countersigned has only the receipt.
	signed := 0
	for _, command := range r.Verify {
		if strings.HasPrefix(command, "openssl ") {
			signed++ // the others are of the proof, which may not be there yet
		}
	}
	if want := 1 + len(sellersOf(p)); signed+r.Missing != want {
		t.Errorf("%s: %d commands and %d missing, want %d", p.ID, signed, r.Missing, want)
	}
	for _, command := range r.Verify {
		cmd := exec.Command("sh", "-ec", command)
		cmd.Dir = out
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %s: %v\n%s", p.ID, command, err, said)
		}
	}
	b, err := os.ReadFile(filepath.Join(out, "receipt.json"))
	if err != nil || !strings.Contains(string(b), string(p.Contract)) {
		t.Errorf("%s: the receipt is not of contract %s: %v", p.ID, p.Contract, errors.Join(err))
	}
}

func sellersOf(p message.Purchase) map[protocol.AgentID]bool {
	sellers := map[protocol.AgentID]bool{}
	for _, u := range p.Units {
		sellers[u.Seller] = true
	}
	return sellers
}
