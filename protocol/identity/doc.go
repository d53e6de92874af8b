// Package identity says who an agent is: it reads X.509 credentials, checks the
// certificates of others against trust anchors and revocation lists, and issues
// certificates for markets that have no authority of their own.
//
// An agent is its key. Its name is the common name of its certificate and a
// fingerprint of its public key, so a renewed certificate over the same key is
// the same agent, and the same name over another key is another agent.
//
// Keys are ECDSA P-256 or P-384, or RSA of 2048 to 8192 bits. Ed25519 is
// refused, because stock OpenSSL cannot verify it in CMS and a contract must be
// provable with stock OpenSSL. Extended key usage is ignored: grid authorities
// write client-auth or nothing. RFC 3820 proxies are refused, because a proxy
// key could sign contracts that its owner never sees.
//
// Everything is bytes in and bytes out, and time is a parameter: nothing here
// reads a file, a clock or a random source of its own. Signatures are
// deterministic (RFC 6979), so the same call gives the same bytes.
//
// A Trust may be used by several workers at once; the memory of what it has
// verified is behind a mutex. Everything else here is immutable once made.
package identity
