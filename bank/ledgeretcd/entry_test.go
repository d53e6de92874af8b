package ledgeretcd_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/bank/ledgeretcd"
	"ramp/protocol"
)

func TestEveryEntryComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ledgeretcd.Entry{Head: rapid.SliceOfN(rapid.Byte(), 1, 2000).Draw(t, "head")}
		if rapid.Bool().Draw(t, "no head") {
			e.Head = nil
		}
		for range rapid.IntRange(0, 20).Draw(t, "records") {
			r := protocol.Record{Table: rapid.String().Draw(t, "table"), Key: rapid.String().Draw(t, "key")}
			if rapid.Bool().Draw(t, "a value") {
				r.Value = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(t, "value")...)
			}
			e.Records = append(e.Records, r)
		}
		b, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := ledgeretcd.DecodeEntry(b)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAnEntryTooLargeIsRefused(t *testing.T) {
	e := ledgeretcd.Entry{Records: []protocol.Record{{Table: "a", Key: "k", Value: make([]byte, 61<<20)}}}
	if _, err := e.Encode(); err == nil {
		t.Fatal("it was taken")
	}
}

// fuzzRecords bounds the entries that are written again.
const fuzzRecords = 1000

// FuzzEntry: whatever stands in the journal is read or refused, and what is read
// can be written.
func FuzzEntry(f *testing.F) {
	long := make([]byte, 4000)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(long[:2000])
	for _, e := range []ledgeretcd.Entry{
		{},
		{Head: []byte("head"), Records: []protocol.Record{{Table: "a", Key: "k", Value: []byte{}}, {Table: "b", Key: "l"}}},
		{Records: []protocol.Record{{Table: "a", Key: "k", Value: long}}},
	} {
		b, err := e.Encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := ledgeretcd.DecodeEntry(b)
		if err != nil {
			if !errors.Is(err, ledgeretcd.ErrDamaged) {
				t.Fatal(err)
			}
			return
		}
		if len(e.Records) > fuzzRecords {
			return // a small input can be many; to compare them takes minutes
		}
		again, err := e.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ledgeretcd.DecodeEntry(again); err != nil || !cmp.Equal(e, got) {
			t.Fatalf("%v: %v, want %v", err, got, e)
		}
	})
}

// noise does not become smaller when it is compressed.
func noise(seed, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b) // it never fails
	return b
}
