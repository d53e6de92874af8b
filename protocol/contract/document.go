package contract

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// signable is a document that names the only agent that may sign it.
type signable interface {
	document
	by() protocol.AgentID
}

func signDocument(c *identity.Credential, d signable, now time.Time) ([]byte, error) {
	octets, err := encode(d)
	if err != nil {
		return nil, err
	}
	return SignEncoded(c, d.by(), octets, now)
}

// SignEncoded signs the canonical octets of a document of by, such as EncodeReceipt writes.
func SignEncoded(c *identity.Credential, by protocol.AgentID, octets []byte, now time.Time) ([]byte, error) {
	if c.ID != by {
		return nil, fmt.Errorf("document of %s signed by %s: %w", by, c.ID, ErrSigner)
	}
	return seal(c, octets, now)
}

// openDocument also returns the signed data. Callers should keep only its sealed.der and its chain.
func openDocument[D signable](der []byte, trust *identity.Trust, at time.Time) (d D, s sealed, by identity.Peer, err error) {
	if s, by, _, err = unseal(slices.Clip(bytes.Clone(der)), trust, at); err != nil {
		return d, s, by, err
	}
	if d, err = decode[D](s.octets); err != nil {
		return d, s, by, err
	}
	if by.ID != d.by() {
		return d, s, by, fmt.Errorf("document of %s is signed by %s: %w", d.by(), by.ID, ErrSigner)
	}
	return d, s, by, nil
}
