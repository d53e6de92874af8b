package receipts_test

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/agents/receipts"
	"ramp/bank/audit"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// The transcripts in testdata/transcripts are conversations of ann's Keeper with her
// journal and with banks, each of whom says only what the transcript says. Every Output
// is printed: what is saved, then what is sent, then the alarm.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/transcripts", func(t *testing.T, path string) {
		w := newWorld(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(d) })
	})
}

var dawn = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

// tables is a journal in memory.
type tables map[string]map[string][]byte

func (s tables) Each(table string, f func(key string, value []byte) error) error {
	for _, k := range slices.Sorted(maps.Keys(s[table])) {
		if err := f(k, s[table][k]); err != nil {
			return err
		}
	}
	return nil
}

func (s tables) Get(table, key string) ([]byte, error) { return s[table][key], nil }

func (s tables) apply(records []protocol.Record) {
	for _, r := range records {
		if s[r.Table] == nil {
			s[r.Table] = map[string][]byte{}
		}
		s[r.Table][r.Key] = r.Value
	}
}

// bank has a ledger and a log of it.
type bank struct {
	cred    *identity.Credential
	ledger  *ledger.Ledger
	entries []audit.Proven
	asked   protocol.Message // what the Keeper asked last
}

type world struct {
	*testing.T
	ca       *identity.CA
	trust    *identity.Trust
	ann      *identity.Credential
	now      time.Time
	journal  tables
	keeper   receipts.Keeper
	banks    map[string]*bank
	bundles  map[string]contract.Verified // by conversation
	receipts map[string]protocol.Receipt
	lookup   protocol.Message
	alarm    time.Time
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, now: dawn, journal: tables{}, banks: map[string]*bank{}, bundles: map[string]contract.Verified{}, receipts: map[string]protocol.Receipt{}}
	var err error
	w.ca, err = identity.NewCA("Test CA", dawn.AddDate(-1, 0, 0), 10*365*24*time.Hour, mathrand.NewChaCha8([32]byte{1}))
	w.must(err)
	w.trust, err = identity.NewTrust(w.ca.CertPEM(), nil)
	w.must(err)
	w.ann = w.issue("ann")
	for _, name := range []string{"bank", "mint"} {
		w.banks[name] = w.open(w.issue(name))
	}
	return w
}

func (w *world) issue(name string) *identity.Credential {
	seed := [32]byte{2}
	copy(seed[1:], name)
	key, err := identity.NewKey(mathrand.NewChaCha8(seed))
	w.must(err)
	cert, err := w.ca.Issue(name, key.Public(), dawn.AddDate(-1, 0, 0), 9*365*24*time.Hour)
	w.must(err)
	pem, err := identity.KeyPEM(key)
	w.must(err)
	c, err := identity.Parse(cert, pem)
	w.must(err)
	return c
}

// open opens a bank with an account for ann, who is her own seller.
func (w *world) open(c *identity.Credential) *bank {
	l, err := ledger.Load(ledger.Config{Bank: c.ID, Currencies: []string{"CRD"}}, w.now, tables{})
	w.must(err)
	b := &bank{cred: c, ledger: l}
	for _, name := range []string{"ann", "bob"} {
		_, records, err := l.Open(w.now, w.issue(name).ID, name)
		b.enter(records)
		w.must(err)
	}
	_, records, err := l.Credit(w.now, w.ann.ID, "CRD", 1000*protocol.Credit, "")
	b.enter(records)
	w.must(err)
	return b
}

func (b *bank) enter(records []protocol.Record) {
	for _, r := range records {
		if r.Table == ledger.TableEntries {
			b.entries = append(b.entries, audit.Proven{Number: binary.BigEndian.Uint64([]byte(r.Key)), Record: r.Value})
		}
	}
}

func (w *world) run(d *datadriven.TestData) string {
	a := map[string]string{}
	for _, arg := range d.CmdArgs {
		a[arg.Key] = strings.Join(arg.Vals, ",")
	}
	b := w.banks[a["bank"]]
	switch d.Cmd {
	case "start":
		_, sells := a["seller"]
		w.keeper, w.alarm = receipts.New(w.ann.ID, w.trust, sells), time.Time{}
		return w.show(w.keeper.Begin(w.now))
	case "buy":
		return w.buy(b, a)
	case "void":
		return w.void(b, a["id"])
	case "hear": // the bank announces itself, recovering=30s ago
		p := message.Presence{Agent: protocol.KindBank, TTL: time.Minute}
		if ago, err := time.ParseDuration(a["recovering"]); err == nil {
			p.Recovering = w.now.Add(-ago)
		}
		return w.receive(protocol.Message{Performative: protocol.Inform, Sender: b.cred.ID, Body: p})
	case "journal":
		found := receipts.Search(w.journal, w.lookup.Body.(receipts.Lookup))
		if _, broken := a["broken"]; broken {
			found.Err = errors.New("the disk is broken")
		}
		return w.receive(w.lookup.Reply(protocol.LocalHistory, protocol.Inform, found))
	case "prove":
		return w.receive(b.asked.Reply(b.cred.ID, protocol.Inform, message.Proof{Document: w.document(b, a)}))
	case "prove-all":
		n := 0
		for ; b.asked.Body != nil; n++ {
			m := b.asked.Reply(b.cred.ID, protocol.Inform, message.Proof{Document: w.document(b, a)})
			b.asked = protocol.Message{}
			w.receive(m)
		}
		return fmt.Sprintf("%d proofs\n", n)
	case "refuse":
		return w.receive(b.asked.Reply(b.cred.ID, protocol.Refuse, message.Refused(protocol.Code(a["code"]), "no")))
	case "lose":
		m := b.asked
		return w.receive(protocol.Message{Performative: protocol.Failure, Sender: protocol.LocalMesh, ReplyWith: m.ReplyWith, Body: message.Undeliverable{To: b.cred.ID}})
	case "readmit":
		return w.readmit(b, a)
	case "hurry":
		out, untried := w.keeper.Hurry(w.now)
		return w.show(out) + fmt.Sprintf("untried: %d\n", untried)
	case "pass":
		return w.pass(d)
	}
	return "unknown command " + d.Cmd
}

// pass lets time pass; alarms ring.
func (w *world) pass(d *datadriven.TestData) string {
	length, err := time.ParseDuration(d.CmdArgs[0].Key)
	w.must(err)
	text := ""
	for end := w.now.Add(length); ; {
		if w.alarm.IsZero() || w.alarm.After(end) {
			w.now = end
			return text
		}
		w.now, w.alarm = w.alarm, time.Time{}
		text += fmt.Sprintf("at %s\n", w.now.Format(time.TimeOnly)) + w.show(w.keeper.Wake(w.now, protocol.Output{}))
	}
}

func (w *world) receive(m protocol.Message) string {
	role := ""
	out := w.keeper.Receive(w.now, m, func(time.Time, protocol.Message) protocol.Output { role = "for the role\n"; return protocol.Output{} })
	return role + w.show(out)
}

// buy is a purchase of one unit that its bank has settled, as the journal has it.
func (w *world) buy(b *bank, a map[string]string) string {
	n := 1
	if a["times"] != "" {
		n, _ = strconv.Atoi(a["times"])
	}
	var out protocol.Output
	for i := range n {
		conversation := a["id"]
		if n > 1 {
			conversation = fmt.Sprintf("%s%03d", a["id"], i)
		}
		r := w.settle(b, conversation)
		der, err := contract.SignReceipt(b.cred, r, w.now)
		w.must(err)
		value, err := json.Marshal(map[string]any{"state": reserve.Settled, "bundle": w.bundles[conversation].DER, "signed_at": w.now, "receipt": der})
		w.must(err)
		records := []protocol.Record{{Table: reserve.TableBundles, Key: conversation, Value: value}}
		w.journal.apply(records)
		if a["before"] == "" {
			out = out.Join(w.keeper.Saved(w.now, records))
		}
	}
	return w.show(out)
}

func (w *world) settle(b *bank, conversation string) protocol.Receipt {
	v := w.sign(b, conversation)
	r, records, err := b.ledger.Copy(w.now, v.ID, v.Bundle, v.Bundle.Units[0].Seller)
	w.must(err)
	b.enter(records)
	w.receipts[conversation] = r
	return r
}

// void is a sale that its bank has voided, as a seller's journal has it.
func (w *world) void(b *bank, conversation string) string {
	v := w.sign(b, conversation)
	r, records, err := b.ledger.Void(w.now, v.ID, v.Bundle, w.ann.ID)
	w.must(err)
	b.enter(records)
	der, err := contract.SignReceipt(b.cred, r, w.now)
	w.must(err)
	w.journal.apply([]protocol.Record{{Table: reserve.TableVoids, Key: string(v.ID), Value: der}})
	return ""
}

func (w *world) sign(b *bank, conversation string) contract.Verified {
	bob := w.issue("bob").ID
	v, err := contract.SignVerified(w.ann, protocol.Bundle{
		Version: protocol.BundleVersion, User: w.ann.ID, Bank: b.cred.ID, Currency: "CRD", Mode: protocol.ModeOnReservation, Conversation: conversation,
		SettleBy: w.now.Add(time.Minute), Total: protocol.Credit, RFQ: strings.Repeat("d", 64), Nonce: strings.Repeat("0", 32),
		Units: []protocol.BundleUnit{{
			Unit: 0, Seller: bob, Reservation: "r", Cost: protocol.Credit, Price: protocol.Credit,
			Slot: protocol.Slot{Start: w.now.Add(time.Hour), End: w.now.Add(2 * time.Hour), Cores: 1},
		}},
	}, w.trust, w.now)
	w.must(err)
	w.bundles[conversation] = v
	return v
}

// readmit answers the receipt that was shown last: with=same, or the one that a bank
// gives which has lost it and enters it again.
func (w *world) readmit(b *bank, a map[string]string) string {
	r := b.asked.Body.(message.Readmission).Receipt.Receipt
	if a["with"] != "same" {
		r.Entry += 2
	}
	if a["with"] == "other" {
		r.Total++
	}
	der, err := contract.SignReceipt(b.cred, r, w.now)
	w.must(err)
	given, err := contract.OpenReceipt(der, w.trust, w.now)
	w.must(err)
	return w.receive(b.asked.Reply(b.cred.ID, protocol.Agree, message.Decision{Contract: r.Contract, Outcome: r.Outcome, Receipt: &given}))
}

// document proves the contract that the bank was asked about, or is something else.
func (w *world) document(b *bank, a map[string]string) []byte {
	if a["as"] == "garbage" {
		return []byte("{")
	}
	tree, tiles := audit.NewTree(), shelf{}
	for _, e := range b.entries {
		w.must(tree.Append(e.Record, tiles.keep))
	}
	root := tree.Root()
	signer := b.cred
	if a["as"] == "another's" {
		signer = w.banks["mint"].cred
	}
	zeros := strings.Repeat("0", 64)
	h := contract.Head{Version: contract.HeadVersion, Bank: signer.ID, Size: tree.Size(), Root: hex.EncodeToString(root[:]), Time: w.now, Previous: zeros}
	if a["as"] == "another root" {
		h.Root = zeros
	}
	der, err := contract.SignHead(signer, h)
	w.must(err)
	if a["as"] == "forged" {
		der[len(der)-1] ^= 1
	}
	q := b.asked.Body.(message.ProofQuery)
	d := audit.Document{Head: der, From: q.From}
	if a["as"] != "not grown" {
		d.Growth, err = tree.Growth(q.From, tree.Size(), tiles)
		w.must(err)
	}
	for _, r := range w.receipts {
		if r.Contract == q.Contract && a["as"] != "a head" {
			e := b.entries[r.Entry-1]
			e.Path, err = tree.Inclusion(r.Entry, tree.Size(), tiles)
			w.must(err)
			d.Entries = append(d.Entries, e)
		}
	}
	doc, err := d.Encode()
	w.must(err)
	return doc
}

// shelf keeps the tiles of a log.
type shelf map[string][]byte

func (s shelf) keep(t audit.Tile) error { s[fmt.Sprint(t.Row, t.Number)] = t.Hashes; return nil }

func (s shelf) Tile(row int, number uint64) ([]byte, error) {
	return s[fmt.Sprint(row, number)], nil
}

// show carries out an Output and prints it.
func (w *world) show(out protocol.Output) string {
	w.journal.apply(out.Save)
	var b strings.Builder
	for _, r := range out.Save {
		fmt.Fprintf(&b, "save %s %s\n", r.Table, w.named(r.Key))
	}
	for _, m := range out.Send {
		to := m.Receivers[0]
		switch body := m.Body.(type) {
		case receipts.Lookup:
			w.lookup = m
			if body.Bank == "" {
				fmt.Fprintf(&b, "journal: without a proof, but %d\n", len(body.Skip))
			} else {
				fmt.Fprintf(&b, "journal: of %s since %s, but %d\n", body.Bank.Name(), body.Since.Format(time.TimeOnly), len(body.Skip))
			}
		case receipts.Note:
			level := "info"
			if body.Warn {
				level = "warning"
			}
			fmt.Fprintf(&b, "%s: %s\n", level, body.Text)
		default:
			w.banks[to.Name()].asked = m
			without := ""
			if r, ok := body.(message.Readmission); ok && len(r.Bundle.DER) == 0 {
				without = " without its bundle"
			}
			fmt.Fprintf(&b, "%s: %s %s%s\n", to.Name(), m.Body.Kind(), w.named(m.ReplyWith), without)
		}
	}
	if w.alarm = protocol.Earlier(w.alarm, out.WakeAt); !out.WakeAt.IsZero() {
		fmt.Fprintf(&b, "alarm %s\n", out.WakeAt.Format(time.TimeOnly))
	}
	return b.String()
}

// named writes the conversation for the ID of its contract, and names for agents.
func (w *world) named(text string) string {
	for id, v := range w.bundles {
		text = strings.ReplaceAll(text, string(v.ID), id)
	}
	for name, b := range w.banks {
		text = strings.ReplaceAll(text, string(b.cred.ID), name)
	}
	return text
}
