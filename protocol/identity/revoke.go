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

// revocations maps an authority and a serial to the time of revocation.
type revocations map[[32]byte]time.Time

// revocationKey is of an authority by name and key: several may have one name.
func revocationKey(issuer *x509.Certificate, serial []byte) [32]byte {
	name, key := sha256.Sum256(issuer.RawSubject), sha256.Sum256(issuer.RawSubjectPublicKeyInfo)
	return sha256.Sum256(slices.Concat(name[:], key[:], serial))
}

// signedList is a list with the authority that has signed it.
type signedList struct {
	*x509.RevocationList
	by *x509.Certificate
}

func (l signedList) sameAuthority(x signedList) bool {
	return revocationKey(l.by, nil) == revocationKey(x.by, nil)
}

// earliest is the certificate of a path to an anchor that was revoked first, and when. Without a
// revoked one the time is zero.
func (r revocations) earliest(path []*x509.Certificate) (*x509.Certificate, time.Time) {
	first, since := path[0], time.Time{}
	for i, cert := range path[:len(path)-1] {
		at, ok := r[revocationKey(path[i+1], cert.SerialNumber.Bytes())]
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
func gather(lists []*x509.RevocationList, authorities []*x509.Certificate) (signed []signedList, _ revocations, _ error) {
	revoked := revocations{}
	for _, list := range lists {
		i := slices.IndexFunc(authorities, func(a *x509.Certificate) bool {
			return bytes.Equal(a.RawSubject, list.RawIssuer) && list.CheckSignatureFrom(a) == nil
		})
		if i < 0 {
			return nil, nil, fmt.Errorf("list of %q: none of the %d given authorities has signed it; add its issuer's certificate to the anchors: %w",
				list.Issuer, len(authorities), ErrForeign)
		}
		signed = append(signed, signedList{list, authorities[i]})
		for _, e := range list.RevokedCertificateEntries {
			key := revocationKey(authorities[i], e.SerialNumber.Bytes())
			if at, ok := revoked[key]; !ok || e.RevocationTime.Before(at) {
				revoked[key] = e.RevocationTime
			}
		}
	}
	return signed, revoked, nil
}

// MaxPassedOn bounds a revocation list that agents pass on, in bytes.
const MaxPassedOn = 64 << 10

// after reports whether a list was issued after another of its authority. Times are whole
// seconds; of two in one, the higher number is later.
func (l signedList) after(other signedList) bool {
	if c := l.ThisUpdate.Compare(other.ThisUpdate); c != 0 || l.Number == nil || other.Number == nil {
		return c > 0
	}
	return l.Number.Cmp(other.Number) > 0
}

// newest returns for each authority the list that was issued last.
func (t *rules) newest() (last []signedList) {
	for _, l := range t.lists {
		i := slices.IndexFunc(last, l.sameAuthority)
		switch {
		case i < 0:
			last = append(last, l)
		case l.after(last[i]):
			last[i] = l
		}
	}
	slices.SortFunc(last, func(x, y signedList) int { return bytes.Compare(x.Raw, y.Raw) })
	return last
}

// Newest returns the last list of each authority in DER, except those that are too long to pass on.
func (t *Trust) Newest() [][]byte {
	var all [][]byte
	for _, l := range t.current().newest() {
		if len(l.Raw) <= MaxPassedOn {
			all = append(all, l.Raw)
		}
	}
	return all
}

// Newer reports whether a list in DER was issued after the one of its authority here, not in the
// future, and revokes something that this one does not. It returns an error if no authority here
// has signed the list.
func (t *Trust) Newer(der []byte, now time.Time) (bool, error) {
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
	signed, given, err := gather(lists, slices.Concat(r.anchors, r.between))
	if err != nil || lists[0].ThisUpdate.After(now.Add(backdate)) {
		return false, err
	}
	for _, l := range r.newest() {
		if signed[0].sameAuthority(l) && !signed[0].after(l) {
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
