package contract_test

import (
	"bytes"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/smallstep/pkcs7"

	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// rebuilt is a SignedData from another program, which signs anything.
func rebuilt(t *testing.T, octets []byte, build func(*pkcs7.SignedData) error) []byte {
	t.Helper()
	sd, err := pkcs7.NewSignedData(octets)
	must(t, err)
	sd.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA256)
	must(t, build(sd))
	der, err := sd.Finish()
	must(t, err)
	return der
}

// signed signs any octets as c.
func signed(t *testing.T, c *identity.Credential, octets []byte) []byte {
	t.Helper()
	return rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
		return sd.AddSigner(c.Chain[0], c.PrivateKey(), pkcs7.SignerInfoConfig{})
	})
}

func TestAnotherLibraryVerifiesBothLayers(t *testing.T) {
	m := newMarket(t, "ann", "rsa-bob", "bank")
	sale := m.countersign(t, "rsa-bob", m.sign(t, "ann", m.bundle("ann", "rsa-bob")))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(m.ca.CertPEM())
	for der, layer := sale, 1; layer <= 2; layer++ {
		p, err := pkcs7.Parse(der)
		must(t, err)
		must(t, p.VerifyWithChainAtTime(pool, now))
		der = p.Content
	}
}

// A signature can be made again and again over one bundle, and be written in more
// than one way; the contract stays the same.
func TestAnotherSignatureIsTheSameContract(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	b := m.bundle("ann", "bob")
	octets, err := contract.Encode(b)
	must(t, err)
	ours := m.sign(t, "ann", b)
	for name, der := range map[string][]byte{
		"signed again at random":       signed(t, m.agent["ann"], octets),
		"signed with SHA-384":          rebuilt(t, octets, sha384(m.agent["ann"])),
		"with the mirrored signature":  mirrored(t, ours),
		"with NULL algorithm settings": withNull(t, ours),
	} {
		t.Run(name, func(t *testing.T) {
			if bytes.Equal(der, ours) {
				t.Fatal("the signature is the same")
			}
			v, err := contract.OpenBundle(der, m.trust, now)
			must(t, err)
			s, err := contract.OpenSale(m.countersign(t, "bob", der), m.trust, now)
			must(t, err)
			if v.ID != contract.ID(octets) || s.ID != v.ID {
				t.Errorf("contract %s and %s, want %s", v.ID, s.ID, contract.ID(octets))
			}
		})
	}
}

func sha384(c *identity.Credential) func(*pkcs7.SignedData) error {
	return func(sd *pkcs7.SignedData) error {
		sd.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA384)
		return sd.AddSigner(c.Chain[0], c.PrivateKey(), pkcs7.SignerInfoConfig{})
	}
}

// tree is a DER value whose members can be changed.
type tree struct {
	tag     byte
	value   []byte // of a primitive
	members []*tree
}

func parseTree(t *testing.T, der []byte) *tree {
	t.Helper()
	var v asn1.RawValue
	rest, err := asn1.Unmarshal(der, &v)
	must(t, err)
	if len(rest) > 0 {
		t.Fatal("trailing bytes")
	}
	n := &tree{tag: der[0], value: bytes.Clone(v.Bytes)}
	for b := v.Bytes; v.IsCompound && len(b) > 0; {
		var m asn1.RawValue
		b, err = asn1.Unmarshal(b, &m)
		must(t, err)
		n.members = append(n.members, parseTree(t, m.FullBytes))
	}
	return n
}

func (n *tree) der() []byte {
	b := n.value
	if n.members != nil {
		b = nil
		for _, m := range n.members {
			b = append(b, m.der()...)
		}
	}
	return append(header(n.tag, len(b)), b...)
}

func header(tag byte, length int) []byte {
	if length < 128 {
		return []byte{tag, byte(length)}
	}
	size := big.NewInt(int64(length)).Bytes()
	return append([]byte{tag, 0x80 | byte(len(size))}, size...)
}

// The members of SignedData, by their place.
func signedDataOf(n *tree) *tree { return n.members[1].members[0] }
func signerOf(n *tree) *tree     { return signedDataOf(n).members[4].members[0] }

func change(t *testing.T, der []byte, f func(*tree)) []byte {
	t.Helper()
	n := parseTree(t, der)
	if !bytes.Equal(n.der(), der) {
		t.Fatal("the tree is not the document")
	}
	f(n)
	return n.der()
}

// mirrored turns an ECDSA signature (r, s) into (r, n-s), which is as good.
func mirrored(t *testing.T, der []byte) []byte {
	return change(t, der, func(n *tree) {
		var sig struct{ R, S *big.Int }
		_, err := asn1.Unmarshal(signerOf(n).members[5].value, &sig)
		must(t, err)
		sig.S.Sub(elliptic.P256().Params().N, sig.S)
		signerOf(n).members[5].value, err = asn1.Marshal(sig)
		must(t, err)
	})
}

func withNull(t *testing.T, der []byte) []byte {
	return change(t, der, func(n *tree) {
		signerOf(n).members[2].members = append(signerOf(n).members[2].members, &tree{tag: 5})
	})
}

func TestRebuiltSignaturesAreRefused(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	ann, bob := m.agent["ann"], m.agent["bob"]
	b := m.bundle("ann", "bob")
	octets, err := contract.Encode(b)
	must(t, err)
	good := m.sign(t, "ann", b)
	none := pkcs7.SignerInfoConfig{}
	extra := pkcs7.Attribute{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: "x"}
	again := func(f func(*tree)) []byte { return change(t, good, f) }
	integer := func(v byte) *tree { return &tree{tag: 2, value: []byte{v}} }
	twice := newKey(t, "eve")
	double := m.issue(t, "ann", twice)
	for _, tc := range []struct {
		name string
		der  []byte
		want error
	}{
		{"two signers", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			must(t, sd.AddSigner(ann.Chain[0], ann.PrivateKey(), none))
			return sd.AddSigner(bob.Chain[0], bob.PrivateKey(), none)
		}), contract.ErrMalformed},
		{"the same signer twice", again(func(n *tree) {
			set := signedDataOf(n).members[4]
			set.members = append(set.members, set.members[0])
		}), contract.ErrMalformed},
		{"no signer", again(func(n *tree) { signedDataOf(n).members[4].members = []*tree{} }), contract.ErrMalformed},
		{"detached content", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			must(t, sd.AddSigner(ann.Chain[0], ann.PrivateKey(), none))
			sd.Detach()
			return nil
		}), contract.ErrMalformed},
		{"empty content", signed(t, ann, nil), contract.ErrMalformed},
		{"no signed attributes", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			return sd.SignWithoutAttr(ann.Chain[0], ann.PrivateKey(), none)
		}), contract.ErrMalformed},
		{"an unsigned attribute", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			return sd.AddSigner(ann.Chain[0], ann.PrivateKey(), pkcs7.SignerInfoConfig{ExtraUnsignedAttributes: []pkcs7.Attribute{extra}})
		}), contract.ErrMalformed},
		{"a digest attribute twice", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			digest := pkcs7.Attribute{Type: pkcs7.OIDAttributeMessageDigest, Value: make([]byte, 32)}
			return sd.AddSigner(ann.Chain[0], ann.PrivateKey(), pkcs7.SignerInfoConfig{ExtraSignedAttributes: []pkcs7.Attribute{digest}})
		}), contract.ErrMalformed},
		{"SHA-1", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			sd.SetDigestAlgorithm(pkcs7.OIDDigestAlgorithmSHA1)
			return sd.AddSigner(ann.Chain[0], ann.PrivateKey(), none)
		}), identity.ErrWeak},
		{"the signature of another bundle", again(func(n *tree) {
			other := b
			other.Nonce = "fedcba9876543210"
			signerOf(n).members[5] = signerOf(parseTree(t, m.sign(t, "ann", other))).members[5]
		}), contract.ErrSignature},
		{"the attributes and signature of another bundle", again(func(n *tree) {
			other := b
			other.Nonce = "fedcba9876543210"
			signedDataOf(n).members[4] = signedDataOf(parseTree(t, m.sign(t, "ann", other))).members[4]
		}), contract.ErrSignature},
		{"the signature of zeros", again(func(n *tree) { signerOf(n).members[5].value = []byte{0x30, 6, 2, 1, 0, 2, 1, 0} }), contract.ErrSignature},
		{"no signature", again(func(n *tree) { signerOf(n).members[5].value = nil }), contract.ErrSignature},
		{"the certificate of another", again(func(n *tree) {
			signedDataOf(n).members[3].members = []*tree{parseTree(t, bob.Chain[0].Raw)}
		}), contract.ErrMalformed},
		{"no certificate", again(func(n *tree) { signedDataOf(n).members[3].members = []*tree{} }), contract.ErrMalformed},
		{"no certificates at all", again(func(n *tree) {
			signedDataOf(n).members = slices.Delete(signedDataOf(n).members, 3, 4)
		}), contract.ErrMalformed},
		{"nine certificates", again(func(n *tree) {
			certs := []*tree{}
			for i := range 9 {
				certs = append(certs, parseTree(t, m.issue(t, fmt.Sprint("a", i), twice).Chain[0].Raw))
			}
			slices.SortFunc(certs, func(a, b *tree) int { return bytes.Compare(a.der(), b.der()) })
			signedDataOf(n).members[3].members = certs
		}), contract.ErrMalformed},
		{"the signer's certificate twice", again(func(n *tree) {
			set := signedDataOf(n).members[3]
			set.members = append(set.members, set.members[0])
		}), contract.ErrMalformed},
		{"another key under the signer's name", again(func(n *tree) {
			signedDataOf(n).members[3].members = []*tree{parseTree(t, double.Chain[0].Raw)}
			signerOf(n).members[1].members[1].value = double.Chain[0].SerialNumber.Bytes()
		}), contract.ErrSignature},
		{"the name of another signer", again(func(n *tree) {
			signerOf(n).members[1].members[1].value = bob.Chain[0].SerialNumber.Bytes()
		}), contract.ErrMalformed},
		{"another version of SignedData", again(func(n *tree) { signedDataOf(n).members[0] = integer(3) }), contract.ErrMalformed},
		{"another version of the signer", again(func(n *tree) { signerOf(n).members[0] = integer(3) }), contract.ErrMalformed},
		{"no digest algorithm", again(func(n *tree) { signedDataOf(n).members[1].members = []*tree{} }), contract.ErrMalformed},
		{"another digest algorithm than the signer's", again(func(n *tree) {
			signedDataOf(n).members[1].members[0].members[0].value[8] = 3
		}), contract.ErrMalformed},
		{"enveloped data", again(func(n *tree) { n.members[0].value[8] = 3 }), contract.ErrMalformed},
		{"signed content of another type", again(func(n *tree) { signedDataOf(n).members[2].members[0].value[8] = 2 }), contract.ErrMalformed},
		{"RSA with an ECDSA key", again(func(n *tree) { signerOf(n).members[4].members[0].value = []byte{42, 134, 72, 134, 247, 13, 1, 1, 1} }), identity.ErrWeak},
		{"bytes after the end", append(slices.Clone(good), 0), contract.ErrMalformed},
		{"a member more at the end", again(func(n *tree) { n.members = append(n.members, integer(1)) }), contract.ErrMalformed},
		{"a member more in SignedData", again(func(n *tree) { signedDataOf(n).members = append(signedDataOf(n).members, integer(1)) }), contract.ErrMalformed},
		{"a member more in the signer", again(func(n *tree) { signerOf(n).members = append(signerOf(n).members, integer(1)) }), contract.ErrMalformed},
		{"a length in more bytes than needed", slices.Concat([]byte{0x30, 0x83, 0}, good[2:]), contract.ErrMalformed},
		{"indefinite length", slices.Concat([]byte{0x30, 0x80}, good[4:], []byte{0, 0}), contract.ErrMalformed},
		{"deep nesting of indefinite lengths", bytes.Repeat([]byte{0x30, 0x80}, 400_000), contract.ErrMalformed},
		{"a signed attribute of two values", again(func(n *tree) {
			values := signerOf(n).members[3].members[0].members[1]
			values.members = append(values.members, values.members[0])
		}), contract.ErrMalformed},
		{"a signed attribute without value", again(func(n *tree) {
			signerOf(n).members[3].members[0].members[1].members = []*tree{}
		}), contract.ErrMalformed},
		{"a signing time without value", again(func(n *tree) {
			signerOf(n).members[3].members[1].members[1].members = []*tree{}
		}), contract.ErrMalformed},
		{"no content type among the signed attributes", again(func(n *tree) {
			signerOf(n).members[3].members = signerOf(n).members[3].members[1:]
		}), contract.ErrMalformed},
		{"another content type among the signed attributes", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			sd.GetSignedData().ContentInfo.ContentType = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 5}
			err := sd.AddSigner(ann.Chain[0], ann.PrivateKey(), none)
			sd.GetSignedData().ContentInfo.ContentType = pkcs7.OIDData
			return err
		}), contract.ErrMalformed},
		{"seventeen signed attributes", rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			var config pkcs7.SignerInfoConfig
			for i := range 14 {
				config.ExtraSignedAttributes = append(config.ExtraSignedAttributes, pkcs7.Attribute{Type: asn1.ObjectIdentifier{1, 2, i}, Value: i})
			}
			return sd.AddSigner(ann.Chain[0], ann.PrivateKey(), config)
		}), contract.ErrMalformed},
		{"settings of an algorithm", again(func(n *tree) {
			signerOf(n).members[4].members = append(signerOf(n).members[4].members, integer(1))
		}), contract.ErrMalformed},
		{"content in pieces", again(func(n *tree) {
			octets := signedDataOf(n).members[2].members[1].members[0]
			*octets = tree{tag: 0x24, members: []*tree{{tag: 4, value: octets.value}}}
		}), contract.ErrMalformed},
		{"attributes out of order", again(func(n *tree) { slices.Reverse(signerOf(n).members[3].members) }), contract.ErrMalformed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v, err := contract.OpenBundle(tc.der, m.trust, now)
			wantError(t, err, tc.want)
			if v.Checked() || v.ID != "" {
				t.Error("a refused bundle is marked as checked")
			}
		})
	}
}

// A signature must cover everything: after any flipped bit the document is refused, or
// has the same content and signer.
func TestNoTurnedBitChangesWhatIsSigned(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	inner := m.sign(t, "ann", m.bundle("ann", "bob"))
	want, err := contract.OpenBundle(inner, m.trust, now)
	must(t, err)
	for i := range inner {
		der := bytes.Clone(inner)
		der[i] ^= 1 << (i % 8)
		v, err := contract.OpenBundle(der, m.trust, now)
		if err == nil && (v.ID != want.ID || v.User.ID != want.User.ID || !v.Signed.Equal(want.Signed)) {
			t.Errorf("byte %d: contract %s of %s", i, v.ID, v.User.ID)
		}
	}
}

func TestWhatOpenSSLSignsIsOpened(t *testing.T) {
	for _, user := range []string{"ann", "rsa-ann"} {
		t.Run(user, func(t *testing.T) {
			m := newMarket(t, user, "bob", "bank")
			b := m.bundle(user, "bob")
			octets, err := contract.Encode(b)
			must(t, err)
			key, err := identity.KeyPEM(m.agent[user].PrivateKey())
			must(t, err)
			cert, err := m.ca.Issue(user, m.agent[user].PrivateKey().Public(), start, 80*year)
			must(t, err)
			dir := openssl(t, map[string][]byte{"bundle": octets, "key.pem": key, "cert.pem": cert},
				[]string{"cms", "-sign", "-binary", "-nodetach", "-md", "sha256", "-in", "bundle", "-signer", "cert.pem", "-inkey", "key.pem", "-outform", "DER", "-out", "p7m"})
			der, err := os.ReadFile(filepath.Join(dir, "p7m"))
			must(t, err)
			v, err := contract.OpenBundle(der, m.trust, now)
			must(t, err)
			if v.ID != contract.ID(octets) || v.Signed.IsZero() {
				t.Errorf("contract %s, signed %s", v.ID, v.Signed)
			}
		})
	}
}

func fuzzMarket(f *testing.F) (m *market, inner, sale []byte) {
	m = newMarket(f, "ann", "bob", "bank")
	inner = m.sign(f, "ann", m.bundle("ann", "bob"))
	return m, inner, m.countersign(f, "bob", inner)
}

func FuzzOpenBundle(f *testing.F) {
	m, inner, _ := fuzzMarket(f)
	f.Add(inner)
	f.Fuzz(func(t *testing.T, der []byte) {
		v, err := contract.OpenBundle(der, m.trust, now)
		if err != nil {
			return
		}
		// Nobody but ann has her key, and she signed one bundle.
		want, err := contract.OpenBundle(inner, m.trust, now)
		must(t, err)
		if v.ID != want.ID || v.User.ID != want.User.ID {
			t.Errorf("contract %s of %s", v.ID, v.User.ID)
		}
	})
}

func FuzzOpenSale(f *testing.F) {
	m, inner, sale := fuzzMarket(f)
	f.Add(sale)
	f.Fuzz(func(t *testing.T, der []byte) {
		s, err := contract.OpenSale(der, m.trust, now)
		if err == nil && (!bytes.Equal(s.Verified.DER, inner) || s.Seller.ID != m.agent["bob"].ID) {
			t.Errorf("contract %s sold by %s", s.ID, s.Seller.ID)
		}
	})
}

// Certificates are not signed, so anybody may add some to a document. What is opened, and
// so kept and passed on, has those of the verified path only.
func TestCertificatesOffThePathAreDropped(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	pad := func(der []byte) []byte {
		return change(t, der, func(n *tree) {
			set := signedDataOf(n).members[3]
			for i := range 6 {
				set.members = append(set.members, parseTree(t, m.issue(t, fmt.Sprint("pad", i), newKey(t, "eve")).Chain[0].Raw))
			}
			slices.SortFunc(set.members, func(a, b *tree) int { return bytes.Compare(a.der(), b.der()) })
		})
	}
	opener := contract.NewOpener(m.trust, 8)
	lean := m.sign(t, "ann", m.bundle("ann", "bob"))
	for range 2 { // the second may be remembered
		v, err := opener.Bundle(pad(lean), now)
		must(t, err)
		if !bytes.Equal(v.DER, lean) {
			t.Fatalf("a bundle of %d bytes is kept in %d", len(lean), len(v.DER))
		}
	}
	sale := m.countersign(t, "bob", lean)
	s, err := opener.Sale(pad(sale), now)
	must(t, err)
	if !bytes.Equal(s.DER, sale) || !bytes.Equal(s.Verified.DER, lean) {
		t.Errorf("a sale of %d bytes is kept in %d", len(sale), len(s.DER))
	}
	cancel, err := contract.SignNote(m.agent["ann"], contract.Cancel{
		Version: contract.NoteVersion, Contract: s.ID, User: m.agent["ann"].ID, At: now, Nonce: "0123456789abcdef",
	}, now)
	must(t, err)
	n, err := contract.OpenNote[contract.Cancel](pad(cancel), m.trust, now)
	must(t, err)
	if !bytes.Equal(n.DER, cancel) {
		t.Errorf("a note of %d bytes is kept in %d", len(cancel), len(n.DER))
	}
}

// Signed attributes cannot be dropped, so large ones are refused.
func TestLargeAttributesAreRefused(t *testing.T) {
	m := newMarket(t, "ann", "bob", "bank")
	octets, err := contract.Encode(m.bundle("ann", "bob"))
	must(t, err)
	for size, want := range map[int]error{200: nil, 4 << 10: contract.ErrMalformed} {
		der := rebuilt(t, octets, func(sd *pkcs7.SignedData) error {
			extra := pkcs7.Attribute{Type: asn1.ObjectIdentifier{1, 2, 3, 4}, Value: make([]byte, size)}
			return sd.AddSigner(m.agent["ann"].Chain[0], m.agent["ann"].PrivateKey(), pkcs7.SignerInfoConfig{ExtraSignedAttributes: []pkcs7.Attribute{extra}})
		})
		if _, err := contract.OpenBundle(der, m.trust, now); !errors.Is(err, want) {
			t.Errorf("an attribute of %d bytes: %v, want %v", size, err, want)
		}
	}
}
