// Package identity authenticates agents: it reads X.509 credentials, checks the
// certificates of others against trust anchors and revocation lists, and issues
// certificates for markets without an authority.
//
// A key identifies an agent. The agent's name is the common name of its certificate and
// a fingerprint of its public key, so a renewed certificate for the same key belongs to
// the same agent, and the same common name with another key to another agent.
//
// Keys are ECDSA P-256 or P-384, or RSA of 2048 to 8192 bits. Ed25519 is refused, because contracts
// must be provable with stock OpenSSL, which cannot verify it in CMS. Extended key usage is
// ignored: grid authorities write client-auth or nothing. RFC 3820 proxies are refused, because a
// proxy key could sign contracts that its owner never sees.
//
// Functions take and return bytes, and time is a parameter: the package never reads a
// file, a clock or a random source of its own. Signatures are deterministic (RFC 6979),
// so the same call gives the same bytes.
//
// Several workers may use a Trust at once; a mutex guards its memory of verified
// chains. All other values are immutable.
package identity
