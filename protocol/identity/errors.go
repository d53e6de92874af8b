package identity

import "errors"

// Why a certificate, chain or key is refused. Every error of this package that
// judges one wraps exactly one of these.
var (
	ErrExpired     = errors.New("certificate has expired")
	ErrNotYetValid = errors.New("certificate is not yet valid")
	ErrRevoked     = errors.New("certificate is revoked")
	ErrForeign     = errors.New("certificate does not lead to a trust anchor")
	ErrProxy       = errors.New("RFC 3820 proxy certificate: sign with the certificate of the agent itself")
	ErrWeak        = errors.New("key or signature is of a kind or strength that is not accepted")
	ErrUsage       = errors.New("certificate is not one by which an agent may sign")
	ErrMalformed   = errors.New("not a certificate, key or list that can be read")
	ErrMismatch    = errors.New("key does not belong to the certificate")
)
