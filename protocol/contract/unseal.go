package contract

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
)

// sealed is a SignedData that was read but not verified.
type sealed struct {
	octets     []byte
	chain      [][]byte // certificates in DER, the signer's first
	signer     signer
	der        []byte
	head, tail []byte // the members of the SignedData before and after its certificates
}

type signer struct {
	issuer     []byte // the name, in DER
	serial     *big.Int
	digest     objectID
	attributes []byte // the set that is signed, in DER
	algorithm  objectID
	signature  []byte
}

// parse reads a SignedData: DER, exactly one signer, named by issuer and serial, with
// the content inside and no unsigned attributes. The result shares memory with der.
func parse(der []byte) (sealed, error) {
	if len(der) > protocol.MaxSignature {
		return sealed{}, fmt.Errorf("signed document of %d bytes, at most %d: %w", len(der), protocol.MaxSignature, ErrMalformed)
	}
	s := sealed{der: der}
	var certificates [][]byte
	f := fields{rest: der}
	f.within(tagSequence, func(f *fields) {
		f.want(oidSignedData)
		f.within(tagContext0, func(f *fields) {
			f.within(tagSequence, func(f *fields) { certificates = s.readSignedData(f) })
		})
	})
	err := f.end()
	if err == nil {
		s.chain, err = signerFirst(certificates, s.signer)
	}
	if err != nil {
		return sealed{}, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return s, nil
}

func (s *sealed) readSignedData(f *fields) (certificates [][]byte) {
	var digest objectID
	all := f.rest
	f.version()
	f.within(tagSet, func(f *fields) { digest = f.algorithm() })
	f.within(tagSequence, func(f *fields) {
		f.want(oidData)
		f.within(tagContext0, func(f *fields) { _, s.octets = f.next(tagOctets) })
	})
	s.head = all[:len(all)-len(f.rest)]
	certificates = f.set(tagContext0, identity.MaxChain)
	s.tail = f.rest
	f.within(tagSet, func(f *fields) { f.within(tagSequence, s.signer.read) })
	switch {
	case f.err != nil:
	case len(s.octets) == 0:
		f.err = errors.New("the content is empty")
	case digest != s.signer.digest:
		f.err = errors.New("the digest algorithm is not the signer's")
	}
	return certificates
}

func (s *signer) read(f *fields) {
	f.version()
	f.within(tagSequence, func(f *fields) {
		s.issuer, _ = f.next(tagSequence)
		s.serial = f.integer()
	})
	s.digest = f.algorithm()
	if full, _ := f.next(tagContext0); f.err == nil {
		// The signature is of the set itself; in the message it has another tag.
		s.attributes = append([]byte{tagSet}, full[1:]...)
	}
	s.algorithm = f.algorithm()
	_, s.signature = f.next(tagOctets)
}

// want reads an object identifier, which must equal id.
func (f *fields) want(id objectID) {
	if got := f.oid(); f.err == nil && got != id {
		f.err = fmt.Errorf("content of type %s, want %s", got, id)
	}
}

func signerFirst(certificates [][]byte, by signer) ([][]byte, error) {
	chain := [][]byte{nil}
	for _, der := range certificates {
		issuer, serial, err := certificateName(der)
		named := err == nil && bytes.Equal(issuer, by.issuer) && serial.Cmp(by.serial) == 0
		switch {
		case err != nil:
			return nil, fmt.Errorf("certificate: %w", err)
		case named && chain[0] != nil:
			return nil, errors.New("two certificates with the signer's issuer and serial")
		case named:
			chain[0] = der
		default:
			chain = append(chain, der)
		}
	}
	if chain[0] == nil {
		return nil, errors.New("the signer's certificate is missing")
	}
	return chain, nil
}

// certificateName reads only the issuer and serial of a certificate. Reading all of it
// with crypto/x509 for every signature would be expensive.
func certificateName(der []byte) (issuer []byte, serial *big.Int, err error) {
	f := fields{rest: der}
	f.within(tagSequence, func(f *fields) {
		_, body := f.next(tagSequence)
		b := fields{rest: body, err: f.err}
		if b.is(tagContext0) {
			b.next(tagContext0) // the version
		}
		serial = b.integer()
		b.next(tagSequence) // the algorithm
		issuer, _ = b.next(tagSequence)
		f.err, f.rest = b.err, nil
	})
	return issuer, serial, f.end()
}

// prune drops the certificates that are not on the verified path. The signature does not cover
// them, so anybody could add some, and they would be kept as long as the document.
func (s *sealed) prune(path []*x509.Certificate) error {
	on := func(der []byte) bool {
		return slices.ContainsFunc(path, func(c *x509.Certificate) bool { return bytes.Equal(c.Raw, der) })
	}
	lean := make([][]byte, 0, len(s.chain))
	for _, der := range s.chain {
		if on(der) {
			lean = append(lean, der)
		}
	}
	if len(lean) == len(s.chain) {
		return nil
	}
	var w writer
	w.signedData(func() {
		w.raw(s.tail)
		w.certificates(lean)
		w.raw(s.head)
	})
	var err error
	*s, err = parse(w.bytes())
	return err
}

// verify checks the signature with the certificate of the signer, whose chain the caller
// has verified. It returns the signing time according to the signer, or zero.
func (s sealed) verify(leaf *x509.Certificate) (time.Time, error) {
	if !bytes.Equal(leaf.RawIssuer, s.signer.issuer) || leaf.SerialNumber.Cmp(s.signer.serial) != 0 {
		return time.Time{}, fmt.Errorf("%w: issuer and serial of the signer are not those of its certificate", ErrMalformed)
	}
	a, signature, err := algorithmOf(s.signer, leaf)
	if err != nil {
		return time.Time{}, err
	}
	signed, err := checkAttributes(s.signer.attributes, a.sum(s.octets))
	if err != nil {
		return time.Time{}, err
	}
	if err := leaf.CheckSignature(signature, s.signer.attributes, s.signer.signature); err != nil {
		return time.Time{}, fmt.Errorf("by %q: %w: %w", leaf.Subject, ErrSignature, err)
	}
	return signed, nil
}

// algorithmOf is the signer's algorithm, which must fit its key.
func algorithmOf(s signer, leaf *x509.Certificate) (algorithm, x509.SignatureAlgorithm, error) {
	_, isEC := leaf.PublicKey.(*ecdsa.PublicKey)
	_, isRSA := leaf.PublicKey.(*rsa.PublicKey)
	for _, a := range algorithms() {
		switch {
		case s.digest != a.digest:
		case isEC && s.algorithm == a.ecdsa:
			return a, a.withECDSA, nil
		case isRSA && (s.algorithm == oidRSA || s.algorithm == a.rsa):
			return a, a.withRSA, nil
		}
	}
	return algorithm{}, 0, fmt.Errorf("digest %s and signature %s with a key of type %T: %w",
		s.digest, s.algorithm, leaf.PublicKey, identity.ErrWeak)
}
