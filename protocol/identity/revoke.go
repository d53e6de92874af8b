package identity

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"slices"
	"time"
)

// maxLists bounds the bytes of all revocation lists together.
const maxLists = 64 << 20

// revocations maps issuer and serial to the time of revocation.
type revocations map[[32]byte]time.Time

func revocationKey(rawIssuer []byte, serial []byte) [32]byte {
	name := sha256.Sum256(rawIssuer)
	return sha256.Sum256(append(name[:], serial...))
}

// earliest is the certificate of a chain that was revoked first, and when. Without a
// revoked one the time is zero.
func (r revocations) earliest(chain []*x509.Certificate) (*x509.Certificate, time.Time) {
	first, since := chain[0], time.Time{}
	for _, cert := range chain {
		at, ok := r[revocationKey(cert.RawIssuer, cert.SerialNumber.Bytes())]
		if ok && (since.IsZero() || at.Before(since)) {
			first, since = cert, at
		}
	}
	return first, since
}

// parseLists reads revocation lists in PEM, or in DER one after another.
func parseLists(crls []byte) ([]*x509.RevocationList, error) {
	if len(crls) > maxLists {
		return nil, fmt.Errorf("%d bytes, at most %d: %w", len(crls), maxLists, ErrMalformed)
	}
	var lists []*x509.RevocationList
	for len(bytes.TrimSpace(crls)) > 0 {
		der, rest, err := nextList(crls)
		if err != nil {
			return nil, fmt.Errorf("list %d: %w: %w", len(lists)+1, ErrMalformed, err)
		}
		list, err := x509.ParseRevocationList(der)
		if err != nil {
			return nil, fmt.Errorf("list %d: %w: %w", len(lists)+1, ErrMalformed, err)
		}
		if err := checkList(list); err != nil {
			return nil, fmt.Errorf("list %d of %q: %w", len(lists)+1, list.Issuer, err)
		}
		lists, crls = append(lists, list), rest
	}
	return lists, nil
}

func nextList(crls []byte) (der, rest []byte, err error) {
	if block, rest := pem.Decode(crls); block != nil {
		if block.Type != "X509 CRL" {
			return nil, nil, fmt.Errorf("PEM block %q, want X509 CRL", block.Type)
		}
		return block.Bytes, rest, nil
	}
	var list asn1.RawValue
	rest, err = asn1.Unmarshal(crls, &list)
	return list.FullBytes, rest, err
}

// checkList refuses all but full lists of one issuer: delta lists, and lists of a part
// of the certificates or of several issuers, which have critical extensions.
func checkList(list *x509.RevocationList) error {
	if err := noCritical(list.Extensions); err != nil {
		return err
	}
	for _, e := range list.RevokedCertificateEntries {
		if err := noCritical(e.Extensions); err != nil {
			return fmt.Errorf("serial %x: %w", e.SerialNumber, err)
		}
	}
	return nil
}

func noCritical(extensions []pkix.Extension) error {
	for _, e := range extensions {
		if e.Critical {
			return fmt.Errorf("critical extension %s, want a full list of one issuer: %w", e.Id, ErrMalformed)
		}
	}
	return nil
}

// gather joins lists, which the authorities must have signed. If two lists have the
// same certificate, the earlier time counts.
func gather(lists []*x509.RevocationList, authorities []*x509.Certificate) (revocations, error) {
	revoked := revocations{}
	for _, list := range lists {
		if err := checkSigned(list, authorities); err != nil {
			return nil, err
		}
		for _, e := range list.RevokedCertificateEntries {
			key := revocationKey(list.RawIssuer, e.SerialNumber.Bytes())
			if at, ok := revoked[key]; !ok || e.RevocationTime.Before(at) {
				revoked[key] = e.RevocationTime
			}
		}
	}
	return revoked, nil
}

func checkSigned(list *x509.RevocationList, authorities []*x509.Certificate) error {
	for _, a := range authorities {
		if bytes.Equal(a.RawSubject, list.RawIssuer) && list.CheckSignatureFrom(a) == nil {
			return nil
		}
	}
	return fmt.Errorf("list of %q: none of the %d given authorities has signed it; add its issuer's certificate to the anchors: %w",
		list.Issuer, len(authorities), ErrForeign)
}

// MaxPassedOn bounds a revocation list that agents pass on, in bytes.
const MaxPassedOn = 64 << 10

// newest returns for each issuer the list that was issued last.
func (t *rules) newest() []*x509.RevocationList {
	var last []*x509.RevocationList
	for _, l := range t.lists {
		i := slices.IndexFunc(last, func(x *x509.RevocationList) bool { return bytes.Equal(x.RawIssuer, l.RawIssuer) })
		switch {
		case i < 0:
			last = append(last, l)
		case l.ThisUpdate.After(last[i].ThisUpdate):
			last[i] = l
		}
	}
	slices.SortFunc(last, func(x, y *x509.RevocationList) int { return bytes.Compare(x.RawIssuer, y.RawIssuer) })
	return last
}

// Newest returns the last list of each issuer in DER, except those that are too long to pass on.
func (t *Trust) Newest() [][]byte {
	var all [][]byte
	for _, l := range t.current().newest() {
		if len(l.Raw) <= MaxPassedOn {
			all = append(all, l.Raw)
		}
	}
	return all
}

// Newer reports whether a list in DER was issued after the one of its issuer here, and revokes
// something that this one does not. It returns an error if no authority here has signed the list.
func (t *Trust) Newer(der []byte) (bool, error) {
	if len(der) > MaxPassedOn {
		return false, fmt.Errorf("revocation list of %d bytes, at most %d: %w", len(der), MaxPassedOn, ErrMalformed)
	}
	lists, err := parseLists(der)
	if err != nil {
		return false, err
	}
	if len(lists) != 1 {
		return false, fmt.Errorf("%d revocation lists, want 1: %w", len(lists), ErrMalformed)
	}
	r := t.current()
	given, err := gather(lists, slices.Concat(r.anchors, r.between))
	if err != nil {
		return false, err
	}
	for _, l := range r.newest() {
		if bytes.Equal(l.RawIssuer, lists[0].RawIssuer) && !lists[0].ThisUpdate.After(l.ThisUpdate) {
			return false, nil
		}
	}
	for key := range given {
		if _, known := r.revoked[key]; !known {
			return true, nil
		}
	}
	return false, nil
}
