package codec

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Seal signs a message and encodes it.
func Seal(c *identity.Credential, m protocol.Message, now time.Time) ([]byte, error) {
	m, err := Sign(c, m, now)
	if err != nil {
		return nil, err
	}
	return Encode(m)
}

// Sign signs a bank's receipt, voucher or quote that has no DER yet, and returns any other message
// unchanged. It does not modify m. now is the signing time; the same arguments give the same bytes.
func Sign(c *identity.Credential, m protocol.Message, now time.Time) (protocol.Message, error) {
	var err error
	switch b := m.Body.(type) {
	case message.Decision:
		if b.Receipt != nil && len(b.Receipt.DER) == 0 {
			var octets []byte
			if octets, err = contract.EncodeReceipt(b.Receipt.Receipt); err == nil {
				b.Receipt, err = signReceipt(c, b.Receipt.Receipt, octets, now)
			}
			m.Body = b
		}
	case message.Vouched:
		b.Signed, err = signNote(c, b.Signed, now)
		m.Body = b
	case message.Quoted:
		b.Signed, err = signNote(c, b.Signed, now)
		m.Body = b
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w", subject(m), err)
	}
	return m, nil
}

func signReceipt(c *identity.Credential, r protocol.Receipt, octets []byte, now time.Time) (*contract.VerifiedReceipt, error) {
	der, err := contract.SignEncoded(c, r.Bank, octets, now)
	v := contract.VerifiedReceipt{Receipt: r, DER: der}
	v.Signer.ID, v.Signer.Chain = c.ID, c.Chain
	return &v, err
}

// signNote signs a note that has no DER yet.
func signNote[N contract.Note](c *identity.Credential, v contract.VerifiedNote[N], now time.Time) (contract.VerifiedNote[N], error) {
	if len(v.DER) > 0 {
		return v, nil
	}
	der, err := contract.SignNote(c, v.Note, now)
	v.DER = der
	v.Signer.ID, v.Signer.Chain = c.ID, c.Chain
	return v, err
}
