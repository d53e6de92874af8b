// Package contract writes and verifies signed documents: the bundle that a user
// buys, its countersignature by each seller, the bank's receipt, and notes such as
// those that cancel and refund a unit.
//
// A document is canonical JSON: fields in a fixed order, no space, UTC times, exact
// decimals. Reading refuses all that does not re-encode to the same octets, so two
// readers cannot understand one document differently. The ID of a contract is the
// SHA-256 of these octets, never of a signature, which can be re-encoded.
//
//	bundle --Sign by the user--> SignedData --Countersign by a seller--> SignedData of a SignedData
//
// Signatures are CMS SignedData in DER that stock OpenSSL verifies (cms -verify
// -purpose any), with one signer, its chain, SHA-256 or better, and no unsigned
// attributes. Signing is deterministic: the signing time is a parameter.
//
// A Verified, a Sale or a VerifiedReceipt is made only after its signature, its chain
// and the signer's role in the document have been verified.
//
// An Opener remembers verified signatures and may be used by several workers at once.
// It asks identity.Trust each time whether the signer is valid.
package contract
