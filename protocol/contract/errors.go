package contract

import "errors"

// The reasons to refuse a document or signature. Errors about certificates are those
// of package identity.
var (
	ErrMalformed = errors.New("not a readable signed document")
	ErrTerms     = errors.New("terms are not allowed")
	ErrSignature = errors.New("signature does not verify")
	ErrSigner    = errors.New("signer may not sign this document")
)
