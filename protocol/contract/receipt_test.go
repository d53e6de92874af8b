package contract_test

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

func (m *market) receipt() protocol.Receipt {
	return protocol.Receipt{
		Version: 1, Bank: m.agent["bank"].ID, Contract: protocol.ContractID(strings.Repeat("cd", 32)),
		Outcome: protocol.OutcomeSettled, Entry: 42, Time: now, User: m.agent["ann"].ID,
		Total: 10 * protocol.Credit, Currency: "RMP",
		Refunds: []protocol.Refund{{Unit: 1, Amount: 3 * protocol.Credit, Entry: 50, Time: now.Add(time.Hour)}},
	}
}

func TestReceiptIsSignedByItsBank(t *testing.T) {
	m := newMarket(t, "ann", "bank", "rsa-bank")
	want := m.receipt()
	der, err := contract.SignReceipt(m.agent["bank"], want, now)
	must(t, err)
	again, err := contract.SignReceipt(m.agent["bank"], want, now)
	must(t, err)
	got, err := contract.NewOpener(m.trust, 0).Receipt(der, now)
	must(t, err)
	if d := cmp.Diff(want, got.Receipt); d != "" || !got.Checked() || got.Signer.ID != want.Bank || !bytes.Equal(got.DER, der) {
		t.Errorf("receipt of %s: %s", got.Signer.ID, d)
	}
	if !bytes.Equal(der, again) {
		t.Error("two signatures of one receipt differ")
	}
	_, err = contract.SignReceipt(m.agent["ann"], want, now)
	wantError(t, err, contract.ErrSigner)

	dir := openssl(t, map[string][]byte{"receipt.p7m": der, "ca.pem": m.ca.CertPEM()}, verifyCommand("receipt.p7m", "receipt"))
	octets, err := os.ReadFile(filepath.Join(dir, "receipt"))
	must(t, err)
	read, err := contract.DecodeReceipt(octets)
	must(t, err)
	if d := cmp.Diff(want, read); d != "" {
		t.Error(d)
	}
}

func TestRememberedReceiptIsTheSameAsAFreshOne(t *testing.T) {
	m := newMarket(t, "ann", "bank")
	want := m.receipt()
	der, err := contract.SignReceipt(m.agent["bank"], want, now)
	must(t, err)
	o := contract.NewOpener(m.trust, 16)
	for range 3 {
		buffer := bytes.Clone(der)
		got, err := o.Receipt(buffer, now)
		must(t, err)
		clear(buffer) // callers use their buffers again
		if d := cmp.Diff(want, got.Receipt); d != "" || !got.Checked() || got.Signer.ID != want.Bank || !bytes.Equal(got.DER, der) {
			t.Errorf("receipt of %s: %s", got.Signer.ID, d)
		}
		got.Refunds[0].Amount = 1 // a caller must not change the remembered receipt
	}
	_, err = o.Receipt(der, now.AddDate(100, 0, 0)) // remembered, but its bank's certificate has expired
	wantError(t, err, identity.ErrExpired)
	der[len(der)-1] ^= 1
	_, err = o.Receipt(der, now)
	wantError(t, err, contract.ErrSignature)
}

func TestReceiptsThatAreNot(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	der, err := contract.SignReceipt(m.agent["bank"], m.receipt(), now)
	must(t, err)
	octets, err := contract.Content(der)
	must(t, err)
	for _, tc := range []struct {
		name string
		der  []byte
		at   time.Time
		want error
	}{
		{"signed by somebody else", signed(t, m.agent["bob"], octets), now, contract.ErrSigner},
		{"another outcome", bytes.Replace(der, []byte("settled"), []byte("Settled"), 1), now, contract.ErrSignature},
		{"another entry", bytes.Replace(der, []byte(`"entry":42`), []byte(`"entry":43`), 1), now, contract.ErrSignature},
		{"not the canonical form", signed(t, m.agent["bank"], append(octets, ' ')), now, contract.ErrMalformed},
		{"a bundle that the bank signed", signed(t, m.agent["bank"], []byte(plainOctets)), now, contract.ErrMalformed},
		{"long after the bank's certificate", der, start.Add(100 * year), identity.ErrExpired},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := contract.OpenReceipt(tc.der, m.trust, tc.at)
			wantError(t, err, tc.want)
			if v.Checked() || v.Contract != "" {
				t.Error("a refused receipt is marked as checked")
			}
		})
	}
	_, err = contract.OpenBundle(der, m.trust, now)
	wantError(t, err, contract.ErrMalformed)
}

func TestReceiptsThatMayBeSigned(t *testing.T) {
	m := newMarket(t, "ann", "bank")
	void := func(r *protocol.Receipt) {
		r.Outcome, r.Total, r.Refunds, r.Reason = protocol.OutcomeVoid, 0, nil, protocol.CodeFunds
	}
	for _, tc := range []struct {
		name   string
		change func(*protocol.Receipt)
		want   error
	}{
		{"settled", func(*protocol.Receipt) {}, nil},
		{"settled, without refunds", func(r *protocol.Receipt) { r.Refunds = nil }, nil},
		{"settled, all refunded", func(r *protocol.Receipt) { r.Refunds[0].Amount = r.Total }, nil},
		{"settled, refunded at a fee of all", func(r *protocol.Receipt) { r.Refunds[0].Amount = 0 }, nil},
		{"void", void, nil},
		{"void without a reason", func(r *protocol.Receipt) { void(r); r.Reason = "" }, contract.ErrTerms},
		{"void that moves money", func(r *protocol.Receipt) { void(r); r.Total = 1 }, contract.ErrTerms},
		{"settled for nothing", func(r *protocol.Receipt) { r.Total, r.Refunds = 0, nil }, contract.ErrTerms},
		{"settled for less than nothing", func(r *protocol.Receipt) { r.Total, r.Refunds = -1, nil }, contract.ErrTerms},
		{"settled with a reason", func(r *protocol.Receipt) { r.Reason = protocol.CodeFunds }, contract.ErrTerms},
		{"gathering, which is no decision", func(r *protocol.Receipt) { r.Outcome = protocol.OutcomeGathering }, contract.ErrTerms},
		{"unknown, which is no decision", func(r *protocol.Receipt) { r.Outcome = protocol.OutcomeUnknown }, contract.ErrTerms},
		{"without a record", func(r *protocol.Receipt) { r.Entry = 0 }, contract.ErrTerms},
		{"another version", func(r *protocol.Receipt) { r.Version = 2 }, contract.ErrTerms},
		{"a contract that is no hash", func(r *protocol.Receipt) { r.Contract = "c" }, contract.ErrTerms},
		{"no user", func(r *protocol.Receipt) { r.User = "" }, contract.ErrTerms},
		{"no currency", func(r *protocol.Receipt) { r.Currency = "" }, contract.ErrTerms},
		{"no time", func(r *protocol.Receipt) { r.Time = time.Time{} }, contract.ErrTerms},
		{"a refund of more than was paid", func(r *protocol.Receipt) { r.Refunds[0].Amount = r.Total + 1 }, contract.ErrTerms},
		{"refunds that overflow", func(r *protocol.Receipt) {
			r.Total = math.MaxInt64
			r.Refunds = append(r.Refunds, protocol.Refund{Unit: 2, Amount: math.MaxInt64, Entry: 51, Time: now})
		}, contract.ErrTerms},
		{"a negative refund", func(r *protocol.Receipt) { r.Refunds[0].Amount = -1 }, contract.ErrTerms},
		{"a unit refunded twice", func(r *protocol.Receipt) { r.Refunds = append(r.Refunds, r.Refunds[0]) }, contract.ErrTerms},
		{"a unit beyond the bundle", func(r *protocol.Receipt) { r.Refunds[0].Unit = protocol.MaxUnits }, contract.ErrTerms},
		{"a refund without time", func(r *protocol.Receipt) { r.Refunds[0].Time = time.Time{} }, contract.ErrTerms},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := m.receipt()
			tc.change(&r)
			der, err := contract.SignReceipt(m.agent["bank"], r, now)
			if !errors.Is(err, tc.want) {
				t.Fatalf("error %v, want %v", err, tc.want)
			}
			if err == nil {
				_, err = contract.OpenReceipt(der, m.trust, now)
				must(t, err)
			}
		})
	}
}

func TestNotesAreSignedByWhomTheyName(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	id := protocol.ContractID(strings.Repeat("cd", 32))
	cancel := contract.Cancel{Version: contract.NoteVersion, Contract: id, Unit: 2, User: m.agent["ann"].ID, At: now, Nonce: "0123456789abcdef"}
	refund := contract.Refund{Version: contract.NoteVersion, Contract: id, Unit: 2, Seller: m.agent["bob"].ID, Amount: 3 * protocol.Credit, Fee: protocol.Credit}

	der, err := contract.SignNote(m.agent["ann"], cancel, now)
	must(t, err)
	c, err := contract.OpenNote[contract.Cancel](der, m.trust, now)
	must(t, err)
	if c.Note != cancel || c.Signer.ID != cancel.User || !c.Checked() || !bytes.Equal(c.DER, der) {
		t.Errorf("%+v of %s", c.Note, c.Signer.ID)
	}
	// One note is never taken for another, or for the same of somebody else.
	_, err = contract.OpenNote[contract.Refund](der, m.trust, now)
	wantError(t, err, contract.ErrMalformed)
	octets, err := contract.Content(der)
	must(t, err)
	_, err = contract.OpenNote[contract.Cancel](signed(t, m.agent["bob"], octets), m.trust, now)
	wantError(t, err, contract.ErrSigner)
	_, err = contract.SignNote(m.agent["ann"], refund, now)
	wantError(t, err, contract.ErrSigner)

	der, err = contract.SignNote(m.agent["bob"], refund, now)
	must(t, err)
	r, err := contract.OpenNote[contract.Refund](der, m.trust, now)
	must(t, err)
	if r.Note != refund || r.Signer.ID != refund.Seller || !r.Checked() {
		t.Errorf("%+v of %s", r.Note, r.Signer.ID)
	}
}

func TestNotesThatMayNotBeSigned(t *testing.T) {
	m := newMarket(t, "ann", "bank")
	ann := m.agent["ann"]
	id := protocol.ContractID(strings.Repeat("cd", 32))
	for name, change := range map[string]func(*contract.Cancel){
		"another version":  func(n *contract.Cancel) { n.Version = 0 },
		"no contract":      func(n *contract.Cancel) { n.Contract = "" },
		"a unit below 0":   func(n *contract.Cancel) { n.Unit = -1 },
		"a unit beyond":    func(n *contract.Cancel) { n.Unit = protocol.MaxUnits },
		"no time":          func(n *contract.Cancel) { n.At = time.Time{} },
		"a time with zone": func(n *contract.Cancel) { n.At = n.At.In(time.FixedZone("east", 7200)) },
		"no nonce":         func(n *contract.Cancel) { n.Nonce = "" },
	} {
		t.Run("cancel with "+name, func(t *testing.T) {
			n := contract.Cancel{Version: 1, Contract: id, User: ann.ID, At: now, Nonce: "0123456789abcdef"}
			change(&n)
			_, err := contract.SignNote(ann, n, now)
			wantError(t, err, contract.ErrTerms)
		})
	}
	for name, change := range map[string]func(*contract.Refund){
		"another version":   func(n *contract.Refund) { n.Version = 2 },
		"no contract":       func(n *contract.Refund) { n.Contract = "" },
		"a unit beyond":     func(n *contract.Refund) { n.Unit = protocol.MaxUnits },
		"a negative amount": func(n *contract.Refund) { n.Amount, n.Fee = -1, 5 },
		"a negative fee":    func(n *contract.Refund) { n.Amount, n.Fee = 5, -1 },
		"nothing at all":    func(n *contract.Refund) { n.Amount, n.Fee = 0, 0 },
		"an overflow":       func(n *contract.Refund) { n.Fee = math.MaxInt64 },
	} {
		t.Run("refund with "+name, func(t *testing.T) {
			n := contract.Refund{Version: 1, Contract: id, Seller: ann.ID, Amount: 1, Fee: 1}
			change(&n)
			_, err := contract.SignNote(ann, n, now)
			wantError(t, err, contract.ErrTerms)
		})
	}
}
