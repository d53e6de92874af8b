package contract

import "errors"

// Why a document or signature is refused. Errors about certificates are those of
// package identity.
var (
	ErrMalformed = errors.New("not a signed document that can be read")
	ErrTerms     = errors.New("terms are not allowed")
	ErrSignature = errors.New("signature does not verify")
	ErrSigner    = errors.New("signer is not a party who may sign this")
)
