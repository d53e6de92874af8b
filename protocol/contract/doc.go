// Package contract writes and checks what is signed: the bundle that a user
// buys, its countersignature by each seller, the bank's receipt, and the notes by
// which a unit is cancelled and refunded.
//
// A document is canonical JSON: fields in a fixed order, no space, UTC times,
// exact decimals. What does not re-encode to the very same octets is refused, so
// two readers cannot understand one document differently. A contract is known by
// the SHA-256 of these octets, never of a signature, because a signature can be
// re-encoded.
//
//	bundle --Sign by the user--> SignedData --Countersign by a seller--> SignedData of a SignedData
//
// Signatures are CMS SignedData in DER that stock OpenSSL verifies (cms -verify
// -purpose any), with one signer, its chain, SHA-256 or better, and no unsigned
// attributes. Signing is deterministic: the signing time is a parameter.
//
// Only a function that has verified the signature, the chain and the signer's
// part in the document makes a Verified, a Sale or a VerifiedReceipt.
//
// An Opener remembers signatures that it has verified and may be used by several
// workers at once; whether the signer counts at a given time is asked of
// identity.Trust each time.
package contract
