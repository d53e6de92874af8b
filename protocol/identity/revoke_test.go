package identity_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
	"testing"
	"time"

	"ramp/protocol/identity"
)

func serialOf(t *testing.T, chain [][]byte) *big.Int {
	t.Helper()
	return must2(x509.ParseCertificate(chain[0]))(t).SerialNumber
}

func TestRevocationCountsFromItsTime(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", year)
	ann, bob := ders(issue(t, root, "ann")), ders(issue(t, sub, "bob"))
	ofAnn := must2(root.Revoke(nil, []*big.Int{serialOf(t, ann)}, now.Add(day)))(t)
	ofSub := must2(root.Revoke(nil, []*big.Int{serialOf(t, bob[1:])}, now.Add(day)))(t)
	bySub := must2(sub.Revoke(nil, []*big.Int{serialOf(t, bob)}, now.Add(day)))(t)
	for _, tc := range []struct {
		name          string
		anchors, list []byte
		chain         [][]byte
		at            time.Time
		want          error
	}{
		{"before it was revoked", root.CertPEM(), ofAnn, ann, now.Add(day - 1), nil},
		{"at the moment it was revoked", root.CertPEM(), ofAnn, ann, now.Add(day), identity.ErrRevoked},
		{"later", root.CertPEM(), ofAnn, ann, now.Add(100 * day), identity.ErrRevoked},
		{"another agent is not touched", root.CertPEM(), ofAnn, bob, now.Add(day), nil},
		{"the authority above was revoked", root.CertPEM(), ofSub, bob, now.Add(day), identity.ErrRevoked},
		{"the authority below the anchor revoked it", sub.CertPEM(), bySub, bob, now.Add(day), identity.ErrRevoked},
		{"one of two lists has it", sub.CertPEM(), slices.Concat(ofAnn, bySub), bob, now.Add(day), identity.ErrRevoked},
		{"one of two lists in DER has it", sub.CertPEM(), slices.Concat(crlDER(ofAnn), crlDER(bySub)), bob, now.Add(day), identity.ErrRevoked},
		{"it is revoked before the authority above", sub.CertPEM(), slices.Concat(bySub,
			must2(root.Revoke(nil, []*big.Int{serialOf(t, bob[1:])}, now.Add(9*day)))(t)), bob, now.Add(day), identity.ErrRevoked},
		{"it is revoked after the authority above", sub.CertPEM(), slices.Concat(ofSub,
			must2(sub.Revoke(nil, []*big.Int{serialOf(t, bob)}, now.Add(9*day)))(t)), bob, now.Add(day), identity.ErrRevoked},
		{"the earlier of two times stands", root.CertPEM(), slices.Concat(ofAnn,
			must2(root.Revoke(nil, []*big.Int{serialOf(t, ann)}, now.Add(9*day)))(t)), ann, now.Add(day), identity.ErrRevoked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := newTrust(t, tc.anchors, tc.list).Verify(tc.chain, tc.at)
			if tc.want == nil {
				must(t, err)
			} else {
				wantError(t, err, tc.want)
			}
		})
	}
}

func crlDER(crl []byte) []byte { return ders(crl)[0] }

// looseList is a list with what identity.CA would not write.
func looseList(t *testing.T, a authority, change func(*x509.RevocationList)) []byte {
	t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now, NextUpdate: now.Add(day)}
	change(list)
	return toPEM("X509 CRL", must2(x509.CreateRevocationList(random("crl"), list, a.cert, a.key))(t))
}

func TestBadListsAreRefused(t *testing.T) {
	root := newCA(t, "Root")
	a := loose(t, root)
	good := must2(root.Revoke(nil, []*big.Int{big.NewInt(5)}, now))(t)
	forged := bytes.Clone(crlDER(good))
	forged[len(forged)-1] ^= 1
	critical := []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
	impostor := must2(identity.NewCA("Root", now, year, random("impostor")))(t)
	for _, tc := range []struct {
		name string
		list []byte
		want error
	}{
		{"garbage", []byte("hello"), identity.ErrMalformed},
		{"a certificate", root.CertPEM(), identity.ErrMalformed},
		{"DER that is no list", []byte{0x30, 0}, identity.ErrMalformed},
		{"a good list, then garbage", slices.Concat(good, []byte("hello")), identity.ErrMalformed},
		{"a signature that does not verify", forged, identity.ErrForeign},
		{"a list of an authority that is not given", must2(newCA(t, "Other").Revoke(nil, nil, now))(t), identity.ErrForeign},
		{"a list of an impostor", must2(impostor.Revoke(nil, nil, now))(t), identity.ErrForeign},
		{"a delta list", looseList(t, a, func(l *x509.RevocationList) { l.ExtraExtensions = critical }), identity.ErrMalformed},
		{"an entry of another issuer", looseList(t, a, func(l *x509.RevocationList) {
			l.RevokedCertificateEntries = []x509.RevocationListEntry{{SerialNumber: big.NewInt(5), RevocationTime: now, ExtraExtensions: critical}}
		}), identity.ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := identity.NewTrust(root.CertPEM(), tc.list)
			wantError(t, err, tc.want)
		})
	}
}

func TestStaleListStillRevokesAndIsNamed(t *testing.T) {
	root := newCA(t, "Root")
	ann := ders(issue(t, root, "ann"))
	trust := newTrust(t, root.CertPEM(), must2(root.Revoke(nil, []*big.Int{serialOf(t, ann)}, now))(t))
	late := now.Add(200 * day)
	_, err := trust.Verify(ann, late)
	wantError(t, err, identity.ErrRevoked)
	if names := trust.Stale(late); !slices.Equal(names, []string{"CN=Root"}) {
		t.Errorf("stale lists %v", names)
	}
	if names := trust.Stale(now); names != nil {
		t.Errorf("stale lists %v on the day of issue", names)
	}
}

func TestListGrowsAndKeepsTimes(t *testing.T) {
	root := newCA(t, "Root")
	first := must2(root.Revoke(nil, []*big.Int{big.NewInt(5)}, now))(t)
	second := must2(root.Revoke(first, []*big.Int{big.NewInt(6), big.NewInt(5)}, now.Add(day)))(t)
	list := must2(x509.ParseRevocationList(crlDER(second)))(t)
	if list.Number.Int64() != 2 || len(list.RevokedCertificateEntries) != 2 {
		t.Fatalf("list %d of %d entries", list.Number, len(list.RevokedCertificateEntries))
	}
	for i, want := range []time.Time{now, now.Add(day)} {
		if e := list.RevokedCertificateEntries[i]; e.SerialNumber.Int64() != int64(5+i) || !e.RevocationTime.Equal(want) {
			t.Errorf("entry %d: serial %d since %s", i, e.SerialNumber, e.RevocationTime)
		}
	}
	_, err := root.Revoke(must2(newCA(t, "Other").Revoke(nil, nil, now))(t), nil, now)
	wantError(t, err, identity.ErrForeign)
}

// Lists say whole seconds, so two of one second are told apart by their numbers.
func TestTheSecondListOfASecondIsLater(t *testing.T) {
	root := newCA(t, "Root")
	first := must2(root.Revoke(nil, []*big.Int{big.NewInt(5)}, now))(t)
	second := must2(root.Revoke(first, []*big.Int{big.NewInt(6)}, now))(t)
	for _, c := range []struct{ held, offered []byte }{{first, second}, {second, first}} {
		newer := must2(newTrust(t, root.CertPEM(), c.held).Newer(crlDER(c.offered), now))(t)
		if want := bytes.Equal(c.offered, second); newer != want {
			t.Errorf("newer %v, want %v", newer, want)
		}
	}
	for _, both := range [][]byte{slices.Concat(first, second), slices.Concat(second, first)} {
		if got := newTrust(t, root.CertPEM(), both).Newest(); len(got) != 1 || !bytes.Equal(got[0], crlDER(second)) {
			t.Errorf("%d lists are passed on, want the second one", len(got))
		}
	}
}
