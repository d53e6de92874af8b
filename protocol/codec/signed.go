package codec

import (
	"errors"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// documents opens signed documents for a coder that reads.
type documents struct {
	opener Opener
	at     time.Time // signatures must be valid at this time
	own    bool      // own records, which were verified before they were stored
}

// document copies a signed document, whose DER is part of m. A writer does not
// verify it: it was signed or verified here.
func document[D any](c *coder, field string, m *D, der, w *[]byte, open func([]byte) (D, error)) {
	if c.writes {
		*w = *der
	}
	if n := len(*w); n == 0 || n > protocol.MaxSignature {
		c.malformed("%s of %d bytes, want 1..%d", field, n, protocol.MaxSignature)
	}
	if !c.reading() {
		return
	}
	var err error
	if *m, err = open(*w); err != nil {
		c.fail(codeOf(err), "%s: %w", field, err)
	}
}

// note copies a signed note.
func note[N contract.Note](c *coder, field string, m *contract.VerifiedNote[N], w *[]byte) {
	document(c, field, m, &m.DER, w, func(der []byte) (contract.VerifiedNote[N], error) {
		if d := c.documents; !d.own {
			return contract.OpenNote[N](der, d.opener.Trust, d.at)
		}
		return contract.ReadNote[N](der)
	})
}

func (c *coder) bundle(m *contract.Verified, w *[]byte) {
	document(c, "bundle", m, &m.DER, w, c.documents.bundle)
}

func (c *coder) pastBundle(m *contract.Verified, w *[]byte) {
	document(c, "bundle", m, &m.DER, w, c.documents.pastBundle)
}

// codeOf distinguishes a malformed document from an invalid signature.
func codeOf(err error) protocol.Code {
	if errors.Is(err, contract.ErrMalformed) || errors.Is(err, contract.ErrTerms) {
		return protocol.CodeMalformed
	}
	return protocol.CodeSignature
}

func (d documents) contracts() *contract.Opener {
	if d.opener.Contracts != nil {
		return d.opener.Contracts
	}
	return contract.NewOpener(d.opener.Trust, 0)
}

func (d documents) bundle(der []byte) (contract.Verified, error) {
	if d.own {
		return ownBundle(der)
	}
	return d.contracts().Bundle(der, d.at)
}

// pastBundle opens a bundle that was decided before.
func (d documents) pastBundle(der []byte) (contract.Verified, error) {
	if d.own {
		return ownBundle(der)
	}
	return d.contracts().PastBundle(der, d.at)
}

func (d documents) sale(der []byte) (contract.Sale, error) {
	if d.own {
		return ownSale(der)
	}
	return d.contracts().Sale(der, d.at)
}

func (d documents) receipt(der []byte) (contract.VerifiedReceipt, error) {
	if !d.own {
		return d.contracts().Receipt(der, d.at)
	}
	r, err := contract.ReadReceipt(der)
	v := contract.VerifiedReceipt{Receipt: r, DER: der}
	v.Signer.ID = r.Bank
	return v, err
}

// pastReceipt opens a receipt as of the time that it names, if its certificate is not valid any more.
func (d documents) pastReceipt(der []byte) (contract.VerifiedReceipt, error) {
	v, err := d.receipt(der)
	if r, e := contract.ReadReceipt(der); err != nil && e == nil && r.Time.Before(d.at) {
		d.at = r.Time
		return d.receipt(der)
	}
	return v, err
}

func ownBundle(der []byte) (contract.Verified, error) {
	octets, err := contract.Content(der)
	if err != nil {
		return contract.Verified{}, err
	}
	b, err := contract.Decode(octets)
	v := contract.Verified{ID: contract.ID(octets), Bundle: b, DER: der}
	v.User.ID = b.User
	return v, err
}

// ownSale reads a sale without its seller, which the document does not name.
func ownSale(der []byte) (contract.Sale, error) {
	inner, err := contract.Content(der)
	if err != nil {
		return contract.Sale{}, err
	}
	v, err := ownBundle(inner)
	return contract.Sale{Verified: v, DER: der}, err
}
