package contract

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// HeadVersion is the version of heads that is written and read.
const HeadVersion = 1

// hashDigits is the length of a SHA-256 in hex.
const hashDigits = 64

// Head is a bank's signed statement about its log: the hash of all entries up to Size. Two heads of
// a bank that no single log can have prove that the bank shows different logs to different people.
type Head struct {
	Version  int              `json:"head"`     // HeadVersion; the name identifies the kind of document
	Bank     protocol.AgentID `json:"bank"`     // who signs
	Size     uint64           `json:"size"`     // entries
	Root     string           `json:"root"`     // of their Merkle tree (RFC 6962), in hex
	Time     time.Time        `json:"time"`     // in UTC; never before that of the previous head
	Previous string           `json:"previous"` // ID of the previous head; 64 zeros in the first
}

// VerifiedHead is a head whose bank's signature was verified.
type VerifiedHead struct {
	Head
	ID     string        // SHA-256 of its octets, in hex: Previous of the next head
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

// OpenHead verifies a head as of its signing time: a head outlives its signer's certificate.
func OpenHead(der []byte, trust *identity.Trust) (VerifiedHead, error) {
	h, id, err := ReadHead(der)
	if err != nil {
		return VerifiedHead{}, err
	}
	_, s, bank, err := openDocument[Head](der, trust, h.Time)
	if err != nil {
		return VerifiedHead{}, fmt.Errorf("head: %w", err)
	}
	return VerifiedHead{Head: h, ID: id, Signer: bank, DER: s.der, checked: true}, nil
}

// ReadHead reads a signed head, and its ID, from own records without verifying it.
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
