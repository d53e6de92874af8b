package contract_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol/contract"
)

func TestRememberedSaleIsTheSameAsAFreshOne(t *testing.T) {
	m := newMarket(t, "ann", "bob", "caro", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob", "caro"))
	o := contract.NewOpener(m.trust, 16)
	for _, seller := range []string{"bob", "caro", "bob"} {
		der := m.countersign(t, seller, inner)
		fresh, err := contract.OpenSale(der, m.trust, now)
		must(t, err)
		buffer := bytes.Clone(der)
		got, err := o.Sale(buffer, now)
		must(t, err)
		clear(buffer) // callers use their buffers again
		if got.ID != fresh.ID || got.Seller.ID != m.agent[seller].ID || !got.Checked() ||
			cmp.Diff(got.Bundle, fresh.Bundle) != "" || !bytes.Equal(got.DER, der) || !bytes.Equal(got.Verified.DER, inner) ||
			!got.Signed.Equal(now) || !got.Countersigned.Equal(now) || got.User.ID != m.agent["ann"].ID {
			t.Errorf("%s: got %+v, want %+v", seller, got, fresh)
		}
		got.Bundle.Units[0].Cost = 1 // a caller must not change the remembered bundle
	}
}

func TestRememberedBundleOutlivesTheCallersBuffer(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob"))
	o := contract.NewOpener(m.trust, 16)
	buffer := bytes.Clone(inner)
	_, err := o.Bundle(buffer, now)
	must(t, err)
	clear(buffer)
	v, err := o.Bundle(inner, now)
	must(t, err)
	if v.ID == "" || !bytes.Equal(v.DER, inner) {
		t.Errorf("contract %q", v.ID)
	}
}

// A signature that was verified counts for as long as its signer does.
func TestRememberedSaleIsJudgedAnew(t *testing.T) {
	m := newMarket(t, "ann", "bob", "caro", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob", "caro"))
	der := m.countersign(t, "bob", inner)
	o := contract.NewOpener(m.trust, 16)
	for _, at := range []time.Time{now, now} {
		_, err := o.Sale(der, at)
		must(t, err)
	}
	if _, err := o.Sale(der, now.AddDate(100, 0, 0)); err == nil {
		t.Error("a remembered sale counts although its certificates have expired")
	}
	other := m.countersign(t, "caro", inner)
	other[len(other)-1] ^= 1
	_, err := o.Sale(other, now)
	wantError(t, err, contract.ErrSignature)
	_, err = o.Sale(other, now) // a false one is not remembered
	wantError(t, err, contract.ErrSignature)
}

// The end of a signature is the key of a remembered document: another document with the
// same end is not found.
func TestWhatIsRememberedIsTheWholeDocument(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob"))
	receipt, err := contract.SignReceipt(m.agent["bank"], m.receipt(), now)
	must(t, err)
	o := contract.NewOpener(m.trust, 16)
	for name, doc := range map[string]struct {
		der  []byte
		open func(der []byte) error
	}{
		"bundle":  {inner, func(der []byte) error { _, err := o.Bundle(der, now); return err }},
		"sale":    {m.countersign(t, "bob", inner), func(der []byte) error { _, err := o.Sale(der, now); return err }},
		"receipt": {receipt, func(der []byte) error { _, err := o.Receipt(der, now); return err }},
	} {
		for i := 0; i < len(doc.der)-32; i += 31 {
			must(t, doc.open(doc.der))
			forged := bytes.Clone(doc.der)
			forged[i] ^= 1
			if doc.open(forged) == nil {
				t.Fatalf("%s: with another byte %d of %d it is taken for the one that is remembered", name, i, len(doc.der))
			}
		}
	}
}
