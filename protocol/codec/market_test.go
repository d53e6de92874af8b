package codec_test

import (
	mathrand "math/rand/v2"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

var (
	now   = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	start = now.Add(-24 * time.Hour)
)

// market is an authority, its agents, and their signed documents.
type market struct {
	ca                 *identity.CA
	trust              *identity.Trust
	user, seller, bank *identity.Credential
	bundle             contract.Verified
	sale               contract.Sale
	receipt            contract.VerifiedReceipt
	cancel             contract.VerifiedNote[contract.Cancel]
	refund             contract.VerifiedNote[contract.Refund]
	job                contract.VerifiedNote[contract.JobRecord]
	verdict            contract.VerifiedNote[contract.Verdict]
	voucher            contract.VerifiedNote[contract.Voucher]
	quote              contract.VerifiedNote[contract.Quote]
}

func newMarket(tb testing.TB) *market {
	tb.Helper()
	ca, err := identity.NewCA("Test CA", start, 48*time.Hour, mathrand.NewChaCha8([32]byte{1}))
	must(tb, err)
	m := &market{ca: ca, user: issue(tb, ca, "ann"), seller: issue(tb, ca, "site"), bank: issue(tb, ca, "bank")}
	m.trust, err = identity.NewTrust(ca.CertPEM(), nil)
	must(tb, err)
	m.sign(tb)
	return m
}

func issue(tb testing.TB, ca *identity.CA, name string) *identity.Credential {
	tb.Helper()
	seed := [32]byte{2}
	copy(seed[1:], name)
	key, err := identity.NewKey(mathrand.NewChaCha8(seed))
	must(tb, err)
	keyPEM, err := identity.KeyPEM(key)
	must(tb, err)
	certPEM, err := ca.Issue(name, key.Public(), start, 36*time.Hour)
	must(tb, err)
	c, err := identity.Parse(certPEM, keyPEM)
	must(tb, err)
	return c
}

func (m *market) sign(tb testing.TB) {
	tb.Helper()
	der, err := contract.Sign(m.user, m.terms(), now)
	must(tb, err)
	m.bundle, err = contract.OpenBundle(der, m.trust, now)
	must(tb, err)
	der, err = contract.Countersign(m.seller, m.bundle, now)
	must(tb, err)
	m.sale, err = contract.OpenSale(der, m.trust, now)
	must(tb, err)
	der, err = contract.SignReceipt(m.bank, protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: m.bank.ID, Contract: m.bundle.ID, Outcome: protocol.OutcomeSettled,
		Entry: 7, Time: now, User: m.user.ID, Total: m.bundle.Bundle.Total, Currency: "CUR",
	}, now)
	must(tb, err)
	m.receipt, err = contract.OpenReceipt(der, m.trust, now)
	must(tb, err)
	der, err = contract.SignNote(m.user, contract.Cancel{
		Version: contract.NoteVersion, Contract: m.bundle.ID, User: m.user.ID, At: now, Nonce: "0123456789abcdef",
	}, now)
	must(tb, err)
	m.cancel, err = contract.OpenNote[contract.Cancel](der, m.trust, now)
	must(tb, err)
	der, err = contract.SignNote(m.seller, contract.Refund{
		Version: contract.NoteVersion, Contract: m.bundle.ID, Seller: m.seller.ID, Amount: 5, Fee: 1,
	}, now)
	must(tb, err)
	m.refund, err = contract.OpenNote[contract.Refund](der, m.trust, now)
	must(tb, err)
	m.signBank(tb)
}

// signBank signs the documents for and from banks.
func (m *market) signBank(tb testing.TB) {
	tb.Helper()
	m.job = note(tb, m, m.seller, contract.JobRecord{
		Version: contract.NoteVersion, Contract: m.bundle.ID, Seller: m.seller.ID, Success: true,
		Usage: protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: protocol.Core}, Due: 5, Ended: now,
	})
	hash, err := contract.RecordHash(m.job.Note)
	must(tb, err)
	m.verdict = note(tb, m, m.user, contract.Verdict{
		Version: contract.NoteVersion, Contract: m.bundle.ID, User: m.user.ID, Record: hash, Agree: true, At: now,
	})
	m.voucher = note(tb, m, m.bank, contract.Voucher{
		Version: contract.NoteVersion, Bank: m.bank.ID, User: m.user.ID, Conversation: "c1", Currency: "CUR", Amount: 5, Until: now, Hold: 7,
	})
	m.quote = note(tb, m, m.bank, contract.Quote{
		Version: contract.NoteVersion, Bank: m.bank.ID, ID: "q1", User: m.user.ID, From: "CUR", To: "CRD", Gives: 5, Gets: 6, Until: now, Entry: 7,
	})
}

func note[N contract.Note](tb testing.TB, m *market, by *identity.Credential, n N) contract.VerifiedNote[N] {
	tb.Helper()
	der, err := contract.SignNote(by, n, now)
	must(tb, err)
	v, err := contract.OpenNote[N](der, m.trust, now)
	must(tb, err)
	return v
}

// terms are a bundle of one unit.
func (m *market) terms() protocol.Bundle {
	slot := protocol.Slot{Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Cores: 4}
	return protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: "c1", User: m.user.ID, Bank: m.bank.ID, Currency: "CUR",
		Mode: protocol.ModeOnReservation, RFQ: hex64, Nonce: "0123456789abcdef", SettleBy: now.Add(30 * time.Second),
		Units: []protocol.BundleUnit{{Seller: m.seller.ID, Reservation: "r1", Slot: slot, Price: protocol.Credit, Cost: 4 * protocol.Credit}},
		Total: 4 * protocol.Credit,
	}
}

const hex64 = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
