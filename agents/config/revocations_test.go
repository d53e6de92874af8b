package config_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ramp/agents/config"
	"ramp/protocol/identity"
)

// Lists of several authorities come together, and some have one name. Each revokes what its own has
// issued, also after a restart; one of an authority that is not trusted here stops no other, and one
// of the future keeps out no later one.
func TestListsOfOtherAuthoritiesChangeNothing(t *testing.T) {
	now := time.Now()
	key, err := identity.NewKey(rand.Reader)
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(err)
	var cas []*identity.CA
	var chains [][][]byte
	var anchors []byte
	for range 3 {
		ca, err := identity.NewCA("ramp-ca", now, time.Hour, rand.Reader)
		check(err)
		cert, err := ca.Issue("ann", key.Public(), now, time.Hour)
		check(err)
		block, _ := pem.Decode(cert)
		cas, chains = append(cas, ca), append(chains, [][]byte{block.Bytes})
	}
	anchors = slices.Concat(cas[0].CertPEM(), cas[1].CertPEM()) // the third is trusted by others only
	mine, err := cas[0].Issue("me", key.Public(), now, time.Hour)
	check(err)
	keyPEM, err := identity.KeyPEM(key)
	check(err)
	cfg := &config.Config{Dir: t.TempDir(), Certificate: "agent.pem", Key: "agent.key", Trust: "ca.pem", Revoked: "revoked.pem"}
	for name, b := range map[string][]byte{"agent.pem": mine, "agent.key": keyPEM, "ca.pem": anchors} {
		check(os.WriteFile(filepath.Join(cfg.Dir, name), b, 0o600))
	}
	cred, err := cfg.Credential()
	check(err)
	trust, err := cfg.TrustAnchors()
	check(err)
	list := func(ca int, at time.Time, more ...*big.Int) []byte {
		leaf, err := x509.ParseCertificate(chains[ca][0])
		check(err)
		crl, err := cas[ca].Revoke(nil, append(more, leaf.SerialNumber), at)
		check(err)
		block, _ := pem.Decode(crl)
		return block.Bytes
	}
	revoked := func(trust *identity.Trust) (all [3]bool) {
		for i, chain := range chains {
			_, err := trust.Verify(chain, now.Add(time.Minute))
			all[i] = err != nil
		}
		return all
	}
	r := cfg.Revocations(cred, trust)
	for _, step := range []struct {
		name  string
		lists [][]byte
		want  [3]bool
	}{
		{"one of tomorrow", [][]byte{list(0, now.Add(24*time.Hour))}, [3]bool{false, false, true}},
		{"one of tomorrow beside one of the second", [][]byte{list(0, now.Add(24*time.Hour)), list(1, now)}, [3]bool{false, true, true}},
		{"a foreign one before one of the first", [][]byte{list(2, now), list(0, now)}, [3]bool{true, true, true}},
		{"a later one of the second", [][]byte{list(1, now.Add(time.Second), serialOf(t, chains[0]))}, [3]bool{true, true, true}},
	} {
		if _, err := r.Adopt(step.lists); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
		again, err := cfg.TrustAnchors()
		check(err)
		if got, later := revoked(trust), revoked(again); got != step.want || later != step.want {
			t.Errorf("%s: %v, after a restart %v, want %v", step.name, got, later, step.want)
		}
	}
	check(os.WriteFile(filepath.Join(cfg.Dir, "ca.pem"), cas[0].CertPEM(), 0o600)) // the second is trusted no more
	if again, err := cfg.TrustAnchors(); err != nil || revoked(again) != [3]bool{true, true, true} {
		t.Errorf("without the second: %v", err)
	}

	// What cannot be kept counts, and is kept as soon as it can be.
	full := &config.Config{Dir: filepath.Join(cfg.Dir, "missing"), Trust: filepath.Join(cfg.Dir, "ca.pem"), Revoked: filepath.Join(cfg.Dir, "revoked.pem")}
	trust, err = full.TrustAnchors()
	check(err)
	r = full.Revocations(cred, trust)
	if changed, err := r.Adopt([][]byte{list(0, now)}); !changed || err == nil || !revoked(trust)[0] {
		t.Errorf("without a place for it: changed %v, %v, revoked %v", changed, err, revoked(trust))
	}
	check(os.Mkdir(full.Dir, 0o700))
	_, err = r.Refresh()
	check(err)
	if again, err := full.TrustAnchors(); err != nil || !revoked(again)[0] {
		t.Errorf("with a place for it: %v", err)
	}
}

func serialOf(t *testing.T, chain [][]byte) *big.Int {
	t.Helper()
	c, err := x509.ParseCertificate(chain[0])
	if err != nil {
		t.Fatal(err)
	}
	return c.SerialNumber
}
