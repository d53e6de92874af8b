package audit_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"
	"testing"

	"pgregory.net/rapid"

	"ramp/bank/audit"
	"ramp/protocol/contract"
)

// shelf keeps tiles as a store does.
type shelf map[string][]byte

func (s shelf) keep(t audit.Tile) error {
	s[fmt.Sprint(t.Row, t.Number)] = t.Hashes
	return nil
}

func (s shelf) Tile(row int, number uint64) ([]byte, error) {
	b, ok := s[fmt.Sprint(row, number)]
	if !ok {
		return nil, fmt.Errorf("no tile %d of row %d", number, row)
	}
	return b, nil
}

func record(n uint64) ([]byte, error) { return fmt.Appendf(nil, "entry %d", n), nil }

func grown(t testing.TB, n uint64) (*audit.Tree, shelf) {
	t.Helper()
	tree, tiles := audit.NewTree(), shelf{}
	for i := range n {
		r, _ := record(i + 1)
		if err := tree.Append(r, tiles.keep); err != nil {
			t.Fatal(err)
		}
	}
	return tree, tiles
}

// oracle is the hash of RFC 6962, section 2.1, word by word.
func oracle(from, to uint64) [32]byte {
	switch n := to - from; n {
	case 0:
		return sha256.Sum256(nil)
	case 1:
		r, _ := record(from + 1)
		return sha256.Sum256(append(binary.BigEndian.AppendUint64([]byte{0}, from+1), r...))
	default:
		k := uint64(1) << (bits.Len64(n-1) - 1)
		l, r := oracle(from, from+k), oracle(from+k, to)
		return sha256.Sum256(append(append([]byte{1}, l[:]...), r[:]...))
	}
}

func headAt(n uint64) contract.Head {
	root := oracle(0, n)
	return contract.Head{Size: n, Root: hex.EncodeToString(root[:])}
}

func TestRootIsThatOfRFC6962(t *testing.T) {
	for _, n := range []uint64{0, 1, 2, 3, 63, 64, 65, 127, 128, 1000, 4095, 4096, 4097, 4200} {
		tree, _ := grown(t, n)
		if tree.Root() != oracle(0, n) {
			t.Errorf("%d entries: another root", n)
		}
	}
}

func TestRestoredTreeGoesOnAsTheOneThatGrew(t *testing.T) {
	for _, n := range []uint64{0, 1, 63, 64, 65, 4095, 4096, 4160, 5000} {
		tree, tiles := grown(t, n)
		again, err := audit.Restore(n, tiles, record)
		if err != nil {
			t.Fatal(err)
		}
		clone := again.Clone()
		for i := n; i < n+200; i++ {
			r, _ := record(i + 1)
			if tree.Root() != again.Root() {
				t.Fatalf("restored at %d, at %d: another root", n, i)
			}
			if tree.Append(r, tiles.keep) != nil || again.Append(r, tiles.keep) != nil {
				t.Fatal("append")
			}
		}
		if clone.Size() != n || clone.Root() != oracle(0, n) {
			t.Errorf("the clone grew with its original")
		}
	}
}

func TestProofsHoldForEveryEntryAndSize(t *testing.T) {
	tree, tiles := grown(t, 4500)
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1, 4500).Draw(t, "size")
		number := rapid.Uint64Range(1, size).Draw(t, "number")
		from := rapid.Uint64Range(0, size).Draw(t, "from")
		head := headAt(size)
		if root, err := tree.RootAt(size, tiles); err != nil || root != oracle(0, size) {
			t.Fatalf("root at %d: %v", size, err)
		}
		path, err := tree.Inclusion(number, size, tiles)
		if err != nil {
			t.Fatal(err)
		}
		r, _ := record(number)
		if err := audit.VerifyInclusion(head, number, r, path); err != nil {
			t.Fatal(err)
		}
		growth, err := tree.Growth(from, size, tiles)
		if err != nil {
			t.Fatal(err)
		}
		if err := audit.VerifyGrowth(headAt(from), head, growth); err != nil {
			t.Fatal(err)
		}
		spoil(t, head, number, r, path)
	})
}

// spoil changes one thing of a proof that holds, and it must not hold any more.
func spoil(t *rapid.T, head contract.Head, number uint64, r []byte, path [][]byte) {
	other := rapid.Uint64Range(0, head.Size+1).Draw(t, "other number")
	if other != number && audit.VerifyInclusion(head, other, r, path) == nil {
		t.Fatalf("the proof of entry %d holds for entry %d", number, other)
	}
	bad := append([]byte(nil), r...)
	bad[rapid.IntRange(0, len(bad)-1).Draw(t, "byte")] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
	if audit.VerifyInclusion(head, number, bad, path) == nil {
		t.Fatal("the proof holds for another record")
	}
	if len(path) == 0 {
		return
	}
	i := rapid.IntRange(0, len(path)-1).Draw(t, "hash")
	at := rapid.IntRange(0, 31).Draw(t, "octet")
	path[i] = append([]byte(nil), path[i]...)
	path[i][at] ^= 1
	if audit.VerifyInclusion(head, number, r, path) == nil {
		t.Fatal("the proof holds with another path")
	}
	if audit.VerifyInclusion(head, number, r, path[1:]) == nil {
		t.Fatal("the proof holds with a shorter path")
	}
}

func BenchmarkAppend(b *testing.B) {
	tree, rec := audit.NewTree(), make([]byte, 90)
	b.ReportAllocs()
	for range b.N {
		_ = tree.Append(rec, func(audit.Tile) error { return nil })
	}
}

func BenchmarkInclusion(b *testing.B) {
	const size = 1 << 17
	tree, tiles := grown(b, size-3)
	b.ResetTimer()
	for i := range b.N {
		if _, err := tree.Inclusion(uint64(i%(size-3))+1, size-3, tiles); err != nil {
			b.Fatal(err)
		}
	}
}
