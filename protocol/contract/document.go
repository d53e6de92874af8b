package contract

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// signable is a document that exactly one agent, which it names, may sign.
type signable interface {
	document
	by() protocol.AgentID
}

func signDocument(c *identity.Credential, d signable, now time.Time) ([]byte, error) {
	if c.ID != d.by() {
		return nil, fmt.Errorf("document of %s signed by %s: %w", d.by(), c.ID, ErrSigner)
	}
	octets, err := encode(d)
	if err != nil {
		return nil, err
	}
	return seal(c, octets, now)
}

func openDocument[D signable](der []byte, trust *identity.Trust, at time.Time) (D, identity.Peer, error) {
	d, _, by, err := readDocument[D](der, trust, at)
	return d, by, err
}

// readDocument is openDocument that also tells the signer's chain, as der has it.
func readDocument[D signable](der []byte, trust *identity.Trust, at time.Time) (d D, chain [][]byte, by identity.Peer, err error) {
	s, by, _, err := unseal(der, trust, at)
	if err != nil {
		return d, nil, by, err
	}
	if d, err = decode[D](s.octets); err != nil {
		return d, nil, by, err
	}
	if by.ID != d.by() {
		return d, nil, by, fmt.Errorf("document of %s is signed by %s: %w", d.by(), by.ID, ErrSigner)
	}
	return d, s.chain, by, nil
}
