package bench

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"ramp/agents/journal"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// MaxAbuse is how many contracts a run has at most.
const MaxAbuse = 100_000

// Abuse is what void contracts leave at a seller once their holds are over, and at the bank.
type Abuse struct {
	Contracts int  `json:"contracts"`
	Plain     Kept `json:"plain"`
	Padded    Kept `json:"padded"`       // with certificates that prove nothing
	Buyer     int  `json:"buyer_bytes"`  // the most that is kept for one buyer
	All       int  `json:"seller_bytes"` // and for all

	Bank KeptAtBank `json:"bank"`
}

// Kept is in bytes for each contract.
type Kept struct {
	Sent    int `json:"sent_bytes"`    // the user's signed bundle
	Journal int `json:"journal_bytes"` // of records
	Memory  int `json:"memory_bytes"`
}

// MeasureAbuse has one buyer make n contracts that its bank voids.
func MeasureAbuse(n int) (a Abuse, err error) {
	a = Abuse{Contracts: n, Buyer: protocol.MaxBuyerVoids, All: protocol.MaxVoids}
	if a.Plain, err = measureVoids(n, nil); err != nil {
		return a, err
	}
	padding, err := fillers()
	if err != nil {
		return a, err
	}
	if a.Padded, err = measureVoids(n, padding); err != nil {
		return a, err
	}
	a.Bank, err = measureBank(n)
	return a, err
}

// fillers are certificates that fill a chain to its bounds.
func fillers() (list [][]byte, err error) {
	key, err := identity.NewKey(rand.Reader)
	for i := int64(2); i < identity.MaxChain && err == nil; i++ {
		name := pkix.Name{CommonName: "filler"}
		large := pkix.Extension{Id: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: make([]byte, identity.MaxCertificate-1<<10)}
		cert := x509.Certificate{SerialNumber: big.NewInt(i), Subject: name, NotBefore: time.Now(), NotAfter: time.Now().AddDate(1, 0, 0), ExtraExtensions: []pkix.Extension{large}}
		var der []byte
		der, err = x509.CreateCertificate(rand.Reader, &cert, &cert, key.Public(), key)
		list = append(list, der)
	}
	return list, err
}

// pad adds certificates to a SignedData; its signature stays valid.
func pad(der []byte, certificates [][]byte) ([]byte, error) {
	var outer struct {
		Type    asn1.ObjectIdentifier
		Content struct {
			Version     int
			Digests     asn1.RawValue
			Content     asn1.RawValue
			Certs       asn1.RawValue
			SignerInfos asn1.RawValue
		} `asn1:"explicit,tag:0"`
	}
	if _, err := asn1.Unmarshal(der, &outer); err != nil {
		return nil, err
	}
	c := &outer.Content.Certs
	for rest := c.Bytes; len(rest) > 0; {
		var one asn1.RawValue
		var err error
		if rest, err = asn1.Unmarshal(rest, &one); err != nil {
			return nil, err
		}
		certificates = append(slices.Clip(certificates), one.FullBytes)
	}
	slices.SortFunc(certificates, bytes.Compare)
	c.FullBytes, c.Bytes = nil, slices.Concat(certificates...)
	return asn1.Marshal(outer)
}

// abused is a seller, its journal, and who abuses it.
type abused struct {
	keys    *benchKeys
	padding [][]byte
	journal *journal.Journal
	role    *reserve.Participant
	now     time.Time
	sent    int
}

func measureVoids(n int, padding [][]byte) (k Kept, err error) {
	dir, err := os.MkdirTemp("", "ramp-bench-")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(dir)
	a := &abused{padding: padding, now: time.Now()}
	if a.keys, err = newBenchKeys(2, a.now); err != nil {
		return k, err
	}
	if a.journal, err = journal.Open(filepath.Join(dir, "journal.db"), 0); err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, a.journal.Close()) }()
	if err := a.begin(); err != nil {
		return k, err
	}
	stored, before := 0, heap()
	if stored, err = a.stored(); err != nil {
		return k, err
	}
	for range n {
		if err := a.void(); err != nil {
			return k, err
		}
	}
	a.now = a.now.Add(2 * reserve.MaxHold)
	if err := a.save(a.role.Wake(a.now)); err != nil {
		return k, err
	}
	after, err := a.stored()
	k = Kept{Sent: a.sent / n, Journal: (after - stored) / n, Memory: max(0, heap()-before) / n}
	runtime.KeepAlive(a)
	return k, err
}

func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one finalized
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// stored are the bytes of a seller's records.
func (a *abused) stored() (n int, err error) {
	for _, table := range []string{reserve.TableDeals, reserve.TableSales, reserve.TableReceipts, reserve.TableVoids, reserve.TablePast} {
		err = errors.Join(err, a.journal.Each(table, func(key string, value []byte) error { n += len(key) + len(value); return nil }))
	}
	return n, err
}

func (a *abused) begin() error {
	cfg := reserve.ParticipantConfig{
		Self: a.keys.agents[1].ID, Terms: []protocol.Terms{{Bank: a.keys.bank.ID, Currency: benchCurrency}}, Modes: []protocol.Mode{protocol.ModeOnReservation},
		Notary: abusedNotary{credential: a.keys.agents[1]}, Book: emptyBook{}, Hold: time.Minute,
		BuyerHolds: protocol.MaxUnits, BuyerReserves: protocol.MaxUnits, BuyerCoreSeconds: 1 << 60, TrustJournal: true,
	}
	p, out, err := reserve.NewParticipant(cfg, a.journal, a.now)
	if err != nil {
		return err
	}
	a.role = p
	return a.save(out)
}

func (a *abused) save(out protocol.Output) error { return a.journal.Append(out.Save) }

func (a *abused) tell(from protocol.AgentID, p protocol.Performative, conversation string, body protocol.Body) (protocol.Output, error) {
	out, _ := a.role.Receive(a.now, protocol.Message{Performative: p, Sender: from, Conversation: conversation, Body: body})
	return out, a.save(out)
}

// void makes one contract of one unit, which its bank voids at once.
func (a *abused) void() error {
	user, seller := a.keys.agents[0], a.keys.agents[1]
	a.now = a.now.Add(50 * time.Millisecond)
	b := a.keys.draft(a.now, user.ID, seller.ID, 1)
	u := &b.Units[0]
	b.SettleBy = a.now.Add(20 * time.Second).UTC()
	o := protocol.Offer{ID: "o", Cost: u.Cost, ValidUntil: a.now.Add(time.Hour), Items: []protocol.Item{{Slot: u.Slot, Price: u.Price, Cost: u.Cost}}}
	m := protocol.Message{Performative: protocol.AcceptProposal, Sender: user.ID, Conversation: b.Conversation}
	out := a.role.Accept(a.now, m, message.Acceptance{Offer: o}, &reserve.Offered{Offer: o, Document: strings.Repeat("0", 64)})
	asked, ok := out.Send[0].Body.(message.Reserve)
	if !ok {
		return fmt.Errorf("bench: the seller refuses: %+v", out.Send[0].Body)
	}
	u.Reservation = asked.ID
	v, err := a.sign(user, b)
	if err = errors.Join(err, a.save(out)); err != nil {
		return err
	}
	r := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: b.Bank, Contract: v.ID, Outcome: protocol.OutcomeVoid, Reason: protocol.CodeFunds, Entry: 1, Time: a.now, User: user.ID, Currency: b.Currency,
	}
	der, err := contract.SignReceipt(a.keys.bank, r, a.now)
	if err != nil {
		return err
	}
	receipt, err := contract.OpenReceipt(der, a.keys.trust, a.now)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		from protocol.AgentID
		p    protocol.Performative
		body protocol.Body
	}{
		{protocol.LocalQueue, protocol.Inform, message.Reserved{ID: asked.ID, OK: true, Slot: u.Slot}},
		{user.ID, protocol.Confirm, message.Confirmation{Bundle: v}},
		{protocol.LocalQueue, protocol.Inform, message.Reserved{ID: asked.ID, OK: true, Kept: true, Slot: u.Slot}},
		{b.Bank, protocol.Agree, message.Decision{Contract: v.ID, Outcome: r.Outcome, Receipt: &receipt}},
		{protocol.LocalQueue, protocol.Inform, message.Released{ID: asked.ID, OK: true}},
	} {
		if _, err := a.tell(step.from, step.p, b.Conversation, step.body); err != nil {
			return err
		}
	}
	return nil
}

// sign signs a bundle as a hostile user does, and opens it as its seller does.
func (a *abused) sign(user *identity.Credential, b protocol.Bundle) (contract.Verified, error) {
	der, err := contract.Sign(user, b, a.now)
	if err == nil && len(a.padding) > 0 {
		der, err = pad(der, a.padding)
	}
	a.sent += len(der)
	if err != nil {
		return contract.Verified{}, err
	}
	return contract.OpenBundle(der, a.keys.trust, a.now)
}

// emptyBook is a machine on which everything is free.
type emptyBook struct{}

func (emptyBook) Room(protocol.Slot) int    { return protocol.MaxCores }
func (emptyBook) Add(string, protocol.Slot) {}
func (emptyBook) Remove(string)             {}

// abusedNotary signs contracts; a void one needs no other signature.
type abusedNotary struct {
	reserve.Notary
	credential *identity.Credential
}

func (n abusedNotary) Countersign(v contract.Verified, now time.Time) (contract.Sale, error) {
	der, err := contract.Countersign(n.credential, v, now)
	sale := contract.Sale{Verified: v, Countersigned: now, DER: der}
	sale.Seller = identity.Peer{ID: n.credential.ID, Chain: n.credential.Chain}
	return sale, err
}
