package reserve_test

import (
	"errors"
	mathrand "math/rand/v2"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The transcripts in testdata/participant are conversations of one seller with buyers,
// banks and its batch system, who only send what the transcript contains. The
// transcripts print each Output: records, then messages.
func TestParticipantTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/participant", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

var dawn = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// world is a seller and everything around it.
type world struct {
	trust   *identity.Trust
	agents  map[string]*identity.Credential
	now     time.Time
	tables  tables
	book    *book
	cfg     reserve.ParticipantConfig
	p       *reserve.Participant
	offers  map[string]protocol.Offer
	names   map[string]string // reservation ID by short name, r1, r2 …
	bundles map[string]contract.Verified
	older   tables // a copy of the journal
	asked   string // the last question to a bank about what it settled
}

func newWorld(t *testing.T) *world {
	ca, err := identity.NewCA("Test CA", dawn.AddDate(-1, 0, 0), 10*365*24*time.Hour, mathrand.NewChaCha8([32]byte{1}))
	must(t, err)
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	must(t, err)
	w := &world{
		trust: trust, agents: map[string]*identity.Credential{}, now: dawn, tables: tables{},
		offers: map[string]protocol.Offer{}, names: map[string]string{}, bundles: map[string]contract.Verified{},
	}
	for _, name := range []string{"ann", "bob", "atlas", "bank", "mint"} {
		seed := [32]byte{2}
		copy(seed[1:], name)
		key, err := identity.NewKey(mathrand.NewChaCha8(seed))
		must(t, err)
		cert, err := ca.Issue(name, key.Public(), dawn.AddDate(-1, 0, 0), 9*365*24*time.Hour)
		must(t, err)
		pem, err := identity.KeyPEM(key)
		must(t, err)
		w.agents[name], err = identity.Parse(cert, pem)
		must(t, err)
	}
	w.cfg = reserve.ParticipantConfig{
		TrustJournal: true, // unless a transcript says: start asks=yes
		Self:         w.id("atlas"),
		Terms:        []protocol.Terms{{Bank: w.id("bank"), Currency: "CRD"}},
		Modes:        []protocol.Mode{protocol.ModeOnReservation, protocol.ModeOnCompletion, protocol.ModeMetered}, Notary: w,
		Hold: time.Minute, BuyerHolds: 4, BuyerReserves: 4, BuyerCoreSeconds: 100 * 3600,
		Cancellation: reserve.CancelPolicy{Allowed: true, Before: time.Minute, FeePerMille: 100},
	}
	must(t, w.cfg.Validate())
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) id(name string) protocol.AgentID { return w.agents[name].ID }

func (w *world) name(id protocol.AgentID) string {
	if id.Local() {
		return string(id)
	}
	return id.Name()
}

// Countersign and Refund make the world the seller's notary.
func (w *world) Countersign(v contract.Verified, now time.Time) (contract.Sale, error) {
	der, err := contract.Countersign(w.agents["atlas"], v, now)
	if err != nil {
		return contract.Sale{}, err
	}
	return contract.OpenSale(der, w.trust, now)
}

func (w *world) Refund(r contract.Refund, now time.Time) (contract.VerifiedNote[contract.Refund], error) {
	der, err := contract.SignNote(w.agents["atlas"], r, now)
	if err != nil {
		return contract.VerifiedNote[contract.Refund]{}, err
	}
	return contract.OpenNote[contract.Refund](der, w.trust, now)
}

func (w *world) Job(r contract.JobRecord, now time.Time) (contract.VerifiedNote[contract.JobRecord], error) {
	der, err := contract.SignNote(w.agents["atlas"], r, now)
	if err != nil {
		return contract.VerifiedNote[contract.JobRecord]{}, err
	}
	return contract.OpenNote[contract.JobRecord](der, w.trust, now)
}

// tables is a store in memory.
type tables map[string]map[string][]byte

func (s tables) Get(table, key string) ([]byte, error) { return s[table][key], nil }

func (s tables) Each(table string, f func(key string, value []byte) error) error {
	keys := make([]string, 0, len(s[table]))
	for k := range s[table] {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		if err := f(k, s[table][k]); err != nil {
			return err
		}
	}
	return nil
}

func (s tables) apply(records []protocol.Record) {
	for _, r := range records {
		if s[r.Table] == nil {
			s[r.Table] = map[string][]byte{}
		}
		if r.Value == nil {
			delete(s[r.Table], r.Key)
		} else {
			s[r.Table][r.Key] = r.Value
		}
	}
}

// book is a machine of so many cores, slot by slot.
type book struct {
	cores int
	slots map[string]protocol.Slot
}

func (b *book) Room(slot protocol.Slot) int {
	start, end := slot.Start, slot.End
	least := b.cores
	for _, at := range append(b.starts(), start) {
		if at.Before(start) || !at.Before(end) {
			continue
		}
		free := b.cores
		for _, s := range b.slots {
			if !at.Before(s.Start) && at.Before(s.End) {
				free -= s.Cores
			}
		}
		least = min(least, free)
	}
	return least
}

func (b *book) starts() []time.Time {
	var list []time.Time
	for _, s := range b.slots {
		list = append(list, s.Start)
	}
	return list
}

func (b *book) Add(id string, slot protocol.Slot) {
	if _, ok := b.slots[id]; ok {
		panic(errors.New(id + " is promised twice"))
	}
	b.slots[id] = slot
}

func (b *book) Remove(id string) { delete(b.slots, id) }

// args are the key=value words of a command.
type args map[string]string

func (a args) text(key, otherwise string) string {
	if v, ok := a[key]; ok {
		return v
	}
	return otherwise
}

func (a args) number(key string, otherwise int) int {
	n, err := strconv.Atoi(a.text(key, strconv.Itoa(otherwise)))
	if err != nil {
		panic(err)
	}
	return n
}

func (a args) wait(key, otherwise string) time.Duration {
	d, err := time.ParseDuration(a.text(key, otherwise))
	if err != nil {
		panic(err)
	}
	return d
}

func (w *world) run(t *testing.T, d *datadriven.TestData) string {
	a := args{}
	for _, arg := range d.CmdArgs {
		a[arg.Key] = strings.Join(arg.Vals, ",")
	}
	w.now = w.now.Add(a.wait("after", "0s"))
	defer func() {
		if err := w.p.Alarms(); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
	}()
	switch d.Cmd {
	case "start":
		w.cfg.BuyerHolds = a.number("holds", w.cfg.BuyerHolds)
		w.cfg.BuyerReserves = a.number("reserves", w.cfg.BuyerReserves)
		w.cfg.TrustJournal = a.text("asks", "no") == "no"
		w.cfg.Cancellation.Allowed = a.text("cancel", "yes") == "yes"
		return w.start(t, a.number("cores", 100))
	case "crash":
		return w.start(t, w.book.cores)
	case "offer":
		return w.offer(a)
	case "accept":
		return w.accept(a)
	case "wake":
		out := w.p.Wake(w.now)
		if !out.WakeAt.IsZero() && !out.WakeAt.After(w.now) {
			t.Fatalf("%s: what was due is still due, and would be for ever", d.Pos)
		}
		return w.show(out)
	case "confirm":
		return w.confirm(t, a)
	case "cancel":
		return w.receive(t, a, protocol.Cancel, message.Cancellation{Reservations: w.list(a["r"])})
	case "reserved", "kept":
		return w.reserved(t, d.Cmd == "kept", a)
	case "released":
		return w.receive(t, args{"from": ".queue"}, protocol.Inform, message.Released{ID: w.full(a["r"]), OK: a.text("ok", "yes") == "yes"})
	case "changed":
		return w.changed(t, a)
	case "decide":
		return w.decide(t, a)
	case "giveback":
		return w.giveBack(t, a)
	case "bank-refuses":
		return w.receive(t, args{"from": "bank", "re": a["re"], "conv": a.text("conv", "c1")}, protocol.Refuse,
			message.Refused(protocol.Code(a.text("code", "funds")), "no"))
	case "used":
		return w.used(t, a)
	case "reservations":
		return w.reservations()
	}
	if out, ok := w.lose(t, d.Cmd, a); ok {
		return out
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}
