package contract

import (
	"bytes"
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// HeadVersion is the version of heads that is written and read.
const HeadVersion = 1

// hashDigits is the length of a SHA-256 in hex.
const hashDigits = 64

// Head is what a bank signs of its log: all entries up to Size, in one hash. Who
// has two heads of one bank that no log can have grown through has proof that
// the bank tells different people different things.
type Head struct {
	Version  int              `json:"head"`     // HeadVersion; the name says what document this is
	Bank     protocol.AgentID `json:"bank"`     // who signs
	Size     uint64           `json:"size"`     // entries
	Root     string           `json:"root"`     // of their Merkle tree (RFC 6962), in hex
	Time     time.Time        `json:"time"`     // in UTC; never before the one of the head before it
	Previous string           `json:"previous"` // HeadID of the head before it; of the first: 64 zeros
}

// VerifiedHead is a head whose bank's signature was verified.
type VerifiedHead struct {
	Head
	ID     string        // SHA-256 of its octets, in hex: what the next head names as Previous
	Signer identity.Peer // the bank
	DER    []byte        // the bank's SignedData

	checked bool
}

// Checked reports whether this package verified v.
func (v VerifiedHead) Checked() bool { return v.checked }

// SignHead signs a head as its bank, in DER; its time is the signing time. The
// same arguments give the same bytes.
func SignHead(c *identity.Credential, h Head) ([]byte, error) {
	h.Time = h.Time.UTC()
	return signDocument(c, h, h.Time)
}

// OpenHead verifies a head as things stood when it was signed: a head outlives
// the certificate of the key that signed it.
func OpenHead(der []byte, trust *identity.Trust) (VerifiedHead, error) {
	h, id, err := ReadHead(der)
	if err != nil {
		return VerifiedHead{}, err
	}
	_, bank, err := openDocument[Head](der, trust, h.Time)
	if err != nil {
		return VerifiedHead{}, fmt.Errorf("head: %w", err)
	}
	return VerifiedHead{Head: h, ID: id, Signer: bank, DER: bytes.Clone(der), checked: true}, nil
}

// ReadHead reads a signed head from one's own records, and its ID; nobody's
// signature is verified.
func ReadHead(der []byte) (Head, string, error) {
	octets, err := Content(der)
	if err != nil {
		return Head{}, "", fmt.Errorf("head: %w", err)
	}
	h, err := decode[Head](octets)
	if err != nil {
		return Head{}, "", fmt.Errorf("head: %w", err)
	}
	return h, string(ID(octets)), nil
}

func (h Head) by() protocol.AgentID { return h.Bank }

func (h Head) validate() error {
	return first(
		func() error { return number("head", h.Version, HeadVersion) },
		func() error { return agent("bank", h.Bank) },
		func() error { return hexDigits("root", h.Root, hashDigits, hashDigits) },
		func() error { return instant("time", h.Time) },
		func() error { return hexDigits("previous", h.Previous, hashDigits, hashDigits) },
	)
}
