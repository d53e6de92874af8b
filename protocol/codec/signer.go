package codec

import (
	"crypto/sha256"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// Signer is Sign for one bank. It remembers recent receipts, so that a decision for a user and k
// sellers costs one signature. It is safe for use by several workers; two workers may sign the same
// receipt at the same time, which wastes work but gives equivalent receipts.
type Signer struct {
	credential *identity.Credential
	receipts   *identity.Memory[*contract.VerifiedReceipt]
}

// NewSigner returns a Signer that remembers at most n receipts, of about 2 KB.
func NewSigner(c *identity.Credential, n int) *Signer {
	return &Signer{credential: c, receipts: identity.NewMemory[*contract.VerifiedReceipt](n)}
}

// Sign is the function Sign; a remembered receipt has the time of its first signature.
func (s *Signer) Sign(m protocol.Message, now time.Time) (protocol.Message, error) {
	d, ok := m.Body.(message.Decision)
	if !ok || d.Receipt == nil || len(d.Receipt.DER) > 0 {
		return Sign(s.credential, m, now)
	}
	octets, err := contract.EncodeReceipt(d.Receipt.Receipt)
	if err != nil {
		return Sign(s.credential, m, now) // its error names the fault
	}
	key := sha256.Sum256(octets)
	r, there := s.receipts.Recall(key)
	if !there {
		if r, err = signReceipt(s.credential, d.Receipt.Receipt, octets, now); err != nil {
			return m, fmt.Errorf("%s: %w", subject(m), err)
		}
		s.receipts.Remember(key, r)
	}
	d.Receipt = r
	m.Body = d
	return m, nil
}
