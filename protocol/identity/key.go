package identity

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
)

// Bounds of RSA keys, in bits. Longer keys would make the verification of a stranger's
// signature too expensive.
const (
	MinRSA = 2048
	MaxRSA = 8192
)

// maxDraws bounds the attempts of NewKey. One attempt in 2³² fails, so a random source
// that fails this often is broken.
const maxDraws = 8

// NewKey makes a P-256 key from 32 bytes of random, very rarely more. The same bytes
// give the same key, for simulations; all other callers pass crypto/rand.Reader.
func NewKey(random io.Reader) (crypto.Signer, error) {
	b := make([]byte, 32)
	for range maxDraws {
		if _, err := io.ReadFull(random, b); err != nil {
			return nil, fmt.Errorf("new key: %w", err)
		}
		// It refuses only zero and values from the order of the curve on.
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), b); err == nil {
			return key, nil
		}
	}
	return nil, errors.New("new key: the random source returns no usable bytes")
}

// KeyPEM writes a private key as PKCS#8.
func KeyPEM(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), nil
}

// ParseKey reads the first private key of keyPEM: PKCS#8, SEC 1 or PKCS#1,
// not encrypted, of an accepted kind (ErrWeak otherwise).
func ParseKey(keyPEM []byte) (crypto.Signer, error) {
	for block, rest := pem.Decode(keyPEM); block != nil; block, rest = pem.Decode(rest) {
		key, err := parseKeyBlock(block)
		if key == nil && err == nil {
			continue // a certificate or EC PARAMETERS
		}
		if err != nil {
			return nil, err
		}
		return key, checkKey(key.Public())
	}
	return nil, fmt.Errorf("private key: no PEM block of a private key: %w", ErrMalformed)
}

// parseKeyBlock returns nil and no error for a block that holds no key.
func parseKeyBlock(block *pem.Block) (crypto.Signer, error) {
	if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
		return nil, fmt.Errorf("private key is encrypted; decrypt it with openssl pkey: %w", ErrMalformed)
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("private key: %w: %w", ErrMalformed, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("private key of type %T cannot sign: %w", key, ErrWeak)
	}
	return signer, nil
}

// checkKey reports whether a public key is of an accepted kind and strength.
func checkKey(pub crypto.PublicKey) error {
	const want = "want ECDSA P-256 or P-384, or RSA of 2048 to 8192 bits"
	switch k := pub.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() || k.Curve == elliptic.P384() {
			return nil
		}
		return fmt.Errorf("ECDSA key on %s, %s: %w", k.Curve.Params().Name, want, ErrWeak)
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < MinRSA || n > MaxRSA {
			return fmt.Errorf("RSA key of %d bits, %s: %w", n, want, ErrWeak)
		}
		return nil
	case ed25519.PublicKey:
		return fmt.Errorf("Ed25519 key, which stock OpenSSL cannot verify in CMS; %s: %w", want, ErrWeak)
	}
	if pub == nil { // such as RSA-PSS, which crypto/x509 does not parse
		return fmt.Errorf("key of an unknown kind, %s: %w", want, ErrWeak)
	}
	return fmt.Errorf("key of type %T, %s: %w", pub, want, ErrWeak)
}

// signer signs without randomness: ECDSA by RFC 6979, RSA by PKCS#1 v1.5.
type signer struct{ key crypto.Signer }

func (s signer) Public() crypto.PublicKey { return s.key.Public() }

// Sign ignores the random source of crypto.Signer.
func (s signer) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	if _, salted := opts.(*rsa.PSSOptions); salted {
		return nil, errors.New("sign: RSA-PSS is salted, and signatures here are deterministic")
	}
	return s.key.Sign(nil, digest, opts)
}
