package identity

import "errors"

// The reasons to refuse a certificate, chain or key. Every such error of this package
// wraps exactly one of them.
var (
	ErrExpired     = errors.New("certificate has expired")
	ErrNotYetValid = errors.New("certificate is not yet valid")
	ErrRevoked     = errors.New("certificate is revoked")
	ErrForeign     = errors.New("certificate does not lead to a trust anchor")
	ErrProxy       = errors.New("RFC 3820 proxy certificate: sign with the certificate of the agent itself")
	ErrWeak        = errors.New("key or signature of a kind or strength that is not accepted")
	ErrUsage       = errors.New("certificate does not allow an agent to sign")
	ErrMalformed   = errors.New("not a readable certificate, key or revocation list")
	ErrMismatch    = errors.New("key does not belong to the certificate")
)
