package identity_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ramp/protocol/identity"
)

// The end of a leaf is the key of a remembered chain: another chain with the same end is
// verified again.
func TestAnotherChainWithTheSameEndIsNotRemembered(t *testing.T) {
	root := newCA(t, "Root")
	sub := subordinate(t, root, "Sub", year)
	trust := newTrust(t, root.CertPEM(), nil)
	whole := ders(issue(t, sub, "ann"))
	must2(trust.Verify(whole, now))(t)
	bent := slices.Clone(whole[0])
	bent[len(bent)/2] ^= 1
	for _, c := range []struct {
		name  string
		chain [][]byte
	}{
		{"without the authority between", whole[:1]},
		{"with another authority between", [][]byte{whole[0], ders(subordinate(t, newCA(t, "Other"), "Sub", year).CertPEM())[0]}},
		{"with another leaf before the same signature", [][]byte{bent, whole[1]}},
	} {
		if peer, err := trust.Verify(c.chain, now); err == nil {
			t.Errorf("%s: %s is verified", c.name, peer.ID)
		}
	}
	must2(trust.Verify(append(slices.Clone(whole), whole[1]), now))(t) // one that counts, by itself
	must2(trust.Verify(whole, now))(t)
}

// A Memory may forget, but never what was used among the last n/2 keys, and what
// it recalls is always what was last remembered.
func TestMemoryRecallsWhatWasLastRemembered(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		m := identity.NewMemory[int](n)
		model, recent := map[byte]int{}, []byte{}
		for step := range rapid.IntRange(1, 200).Draw(t, "steps") {
			key := rapid.ByteRange(0, 30).Draw(t, "key")
			if rapid.Bool().Draw(t, "remember") {
				m.Remember([32]byte{key}, step)
				model[key] = step
			} else if v, ok := m.Recall([32]byte{key}); ok && v != model[key] {
				t.Fatalf("recalled %d, want %d", v, model[key])
			} else if !ok {
				if _, known := model[key]; known && distinctSince(recent, key) < n/2 {
					t.Fatalf("forgot a key used %d keys ago, with room for %d", distinctSince(recent, key), n)
				}
				continue
			}
			recent = append(recent, key)
		}
	})
}

// distinctSince counts the other keys that were used since key was.
func distinctSince(recent []byte, key byte) int {
	seen := map[byte]bool{}
	for i := len(recent) - 1; i >= 0 && recent[i] != key; i-- {
		seen[recent[i]] = true
	}
	return len(seen)
}

func TestMemoryIsBounded(t *testing.T) {
	m := identity.NewMemory[int](10)
	kept := 0
	for i := range 1000 {
		m.Remember([32]byte{byte(i), byte(i >> 8)}, i)
	}
	for i := range 1000 {
		if _, ok := m.Recall([32]byte{byte(i), byte(i >> 8)}); ok {
			kept++
		}
	}
	if kept == 0 || kept > 10 {
		t.Errorf("kept %d of 1000, want 1..10", kept)
	}
}
