package contract_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"ramp/protocol/contract"
)

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

// verifyCommand is the command of specification section 8.
func verifyCommand(in, out string) []string {
	return []string{"cms", "-verify", "-inform", "DER", "-in", in, "-CAfile", "ca.pem", "-purpose", "any", "-out", out}
}

func TestStockOpenSSLVerifiesBothLayers(t *testing.T) {
	for _, tc := range []struct{ name, user, seller string }{
		{"P-256 signs both layers", "ann", "bob"},
		{"RSA signs both layers", "rsa-ann", "rsa-bob"},
		{"an RSA seller signs what a P-256 user signed", "ann", "rsa-bob"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newMarket(t, tc.user, tc.seller, "bank")
			b := m.bundle(tc.user, tc.seller)
			inner, err := contract.Sign(m.agent[tc.user], b, now)
			must(t, err)
			v, err := contract.OpenBundle(inner, m.trust, now)
			must(t, err)
			sale, err := contract.Countersign(m.agent[tc.seller], v, now)
			must(t, err)

			dir := openssl(t, map[string][]byte{"sale.p7m": sale, "ca.pem": m.ca.CertPEM()},
				verifyCommand("sale.p7m", "inner.p7"), verifyCommand("inner.p7", "bundle"))
			octets, err := os.ReadFile(filepath.Join(dir, "bundle"))
			must(t, err)
			want, err := contract.Encode(b)
			must(t, err)
			if !bytes.Equal(octets, want) {
				t.Errorf("openssl has %s\nwant %s", octets, want)
			}
			s, err := contract.OpenSale(sale, m.trust, now)
			must(t, err)
			if s.ID != contract.ID(octets) || s.Seller.ID != m.agent[tc.seller].ID {
				t.Errorf("sale %s by %s", s.ID, s.Seller.ID)
			}
		})
	}
}
