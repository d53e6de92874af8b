package codec

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Seal is Encode of Sign.
func Seal(c *identity.Credential, m protocol.Message, now time.Time) ([]byte, error) {
	m, err := Sign(c, m, now)
	if err != nil {
		return nil, err
	}
	return Encode(m)
}

// Sign signs what a role leaves to be signed on the way out: a bank's receipt
// that has no DER yet. Every other message is returned as it is, and m itself is
// not changed. now is the signing time; the same arguments give the same bytes.
func Sign(c *identity.Credential, m protocol.Message, now time.Time) (protocol.Message, error) {
	d, ok := m.Body.(message.Decision)
	if !ok || d.Receipt == nil || len(d.Receipt.DER) > 0 {
		return m, nil
	}
	der, err := contract.SignReceipt(c, d.Receipt.Receipt, now)
	if err != nil {
		return m, fmt.Errorf("%s: %w", subject(m), err)
	}
	receipt := contract.VerifiedReceipt{Receipt: d.Receipt.Receipt, DER: der}
	receipt.Signer.ID, receipt.Signer.Chain = c.ID, c.Chain
	d.Receipt = &receipt
	m.Body = d
	return m, nil
}
