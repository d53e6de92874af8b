package identity_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base32"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol/identity"
)

func TestCommonNameBecomesTheNameOfTheAgent(t *testing.T) {
	for _, tc := range []struct{ name, cn, want string }{
		{"a plain name stays", "ann", "ann"},
		{"every allowed character stays", "a.B_c-9", "a.B_c-9"},
		{"a grid name has its spaces joined", "John Smith 1234", "John-Smith-1234"},
		{"a run of other characters is one hyphen", "host/ce (01)", "host-ce-01"},
		{"letters beyond ASCII are not kept", "Jörg Müller", "J-rg-M-ller"},
		{"hyphens at the ends go", "--ann--", "ann"},
		{"a leading digit gets a letter before it", "1234", "x-1234"},
		{"a leading dot gets a letter before it", ".queue", "x-.queue"},
		{"nothing left is x", "李雷", "x"},
		{"a long name is cut", strings.Repeat("a", 70), strings.Repeat("a", 63)},
		{"a long name is not cut at a hyphen", strings.Repeat("a", 62) + " b", strings.Repeat("a", 62)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id, err := identity.ID(&x509.Certificate{Subject: pkix.Name{CommonName: tc.cn}})
			must(t, err)
			if id.Name() != tc.want {
				t.Errorf("%q is called %q, want %q", tc.cn, id.Name(), tc.want)
			}
		})
	}
}

func TestAnyCommonNameGivesAValidID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cn := rapid.StringN(1, 80, -1).Draw(t, "cn")
		spki := rapid.SliceOf(rapid.Byte()).Draw(t, "spki")
		id, err := identity.ID(&x509.Certificate{Subject: pkix.Name{CommonName: cn}, RawSubjectPublicKeyInfo: spki})
		if err != nil || id.Validate() != nil || id.Local() {
			t.Fatalf("%q: %q, %v", cn, id, err)
		}
	})
}

func TestCertificateWithoutCommonNameIsRefused(t *testing.T) {
	_, err := identity.ID(&x509.Certificate{})
	wantError(t, err, identity.ErrUsage)
}

func TestOneKeyUnderTwoNamesIsTwoAgentsWithOneFingerprint(t *testing.T) {
	ca := newCA(t, "CA")
	key := newKey(t, "k")
	var ids []string
	for _, name := range []string{"ann", "bob"} {
		cert, err := ca.Issue(name, key.Public(), now, year)
		must(t, err)
		c, err := identity.Parse(cert, keyPEM(t, key))
		must(t, err)
		ids = append(ids, string(c.ID))
	}
	if ids[0] == ids[1] || ids[0][4:] != ids[1][4:] {
		t.Errorf("ids %v", ids)
	}
}

// The fingerprint is what anybody can compute with stock tools.
func TestFingerprintIsWhatOpenSSLComputes(t *testing.T) {
	c := credential(t, newCA(t, "CA"), "ann")
	dir := openssl(t, map[string][]byte{"key.pem": keyPEM(t, c.PrivateKey())},
		[]string{"pkey", "-in", "key.pem", "-pubout", "-outform", "DER", "-out", "spki"},
		[]string{"dgst", "-sha256", "-binary", "-out", "sum", "spki"})
	sum, err := os.ReadFile(filepath.Join(dir, "sum"))
	must(t, err)
	fp, err := base32.StdEncoding.DecodeString(strings.ToUpper(c.ID.Fingerprint()))
	must(t, err)
	if hex.EncodeToString(fp) != hex.EncodeToString(sum[:20]) {
		t.Errorf("fingerprint %x, openssl has %x", fp, sum[:20])
	}
}

// openssl runs a stock openssl in a new directory that holds files, and returns
// the directory.
func openssl(t *testing.T, files map[string][]byte, commands ...[]string) string {
	t.Helper()
	program, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	for _, args := range commands {
		cmd := exec.Command(program, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("openssl %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func credential(t *testing.T, ca *identity.CA, name string) *identity.Credential {
	t.Helper()
	c, err := identity.Parse(issue(t, ca, name), keyPEM(t, newKey(t, name)))
	must(t, err)
	return c
}
