package command

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"ramp/protocol/identity"
)

// signActs signs the operator's acts with the bank's key: SHA-256, and ECDSA or
// RSA PKCS#1 v1.5. The same octets give the same signature.
func signActs(cred *identity.Credential) func(octets []byte) []byte {
	return func(octets []byte) []byte {
		sum := sha256.Sum256(octets)
		signature, err := cred.Signer().Sign(nil, sum[:], crypto.SHA256)
		if err != nil {
			panic(fmt.Sprintf("the bank's key does not sign: %s", err)) // it signed when it was read
		}
		return signature
	}
}

// errNotOwn is the fault of an act that somebody else signed, or nobody.
var (
	errNotOwn   = errors.New("it is not the bank's")
	errUnsigned = errors.New("there is none, and acts before it had one")
)

// verifyActs verifies acts in order of entry, with the bank's own key: an agent
// ID stands for one key. Ledgers from before acts were signed begin without.
func verifyActs(cred *identity.Credential) func(octets, signature []byte) error {
	signed := false
	return func(octets, signature []byte) error {
		if len(signature) == 0 && !signed {
			return nil
		}
		if len(signature) == 0 {
			return errUnsigned
		}
		signed = true
		sum := sha256.Sum256(octets)
		if !verifies(cred.Signer().Public(), sum[:], signature) {
			return errNotOwn
		}
		return nil
	}
}

// signatureRate is how fast signatures are verified. One goroutine verifies them, so
// that the rate is that of a core.
type signatureRate struct {
	n    int
	took time.Duration
}

func (r *signatureRate) timed(verify func(octets, signature []byte) error) func(octets, signature []byte) error {
	return func(octets, signature []byte) error {
		began := time.Now()
		err := verify(octets, signature)
		if len(signature) > 0 {
			r.n++
			r.took += time.Since(began)
		}
		return err
	}
}

// perCore is the rate in a second; zero: nothing was verified.
func (r *signatureRate) perCore() float64 {
	if r.n == 0 || r.took <= 0 {
		return 0
	}
	return math.Round(float64(r.n) / r.took.Seconds())
}

func verifies(key crypto.PublicKey, sum, signature []byte) bool {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		return ecdsa.VerifyASN1(k, sum, signature)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(k, crypto.SHA256, sum, signature) == nil
	}
	return false
}
