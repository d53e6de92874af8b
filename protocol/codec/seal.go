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
