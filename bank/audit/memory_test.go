package audit_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"ramp/bank/audit"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// bank signs heads of a log, or of another one.
type bank struct {
	t     testing.TB
	cred  *identity.Credential
	trust *identity.Trust
	tree  *audit.Tree
	tiles shelf
}

func newBank(t testing.TB) *bank {
	t.Helper()
	const life = 50 * 365 * 24 * time.Hour
	ca, err1 := identity.NewCA("ca", begin, life, bytes.NewReader(bytes.Repeat([]byte{7}, 64)))
	key, err2 := identity.NewKey(bytes.NewReader(bytes.Repeat([]byte{8}, 64)))
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	cert, err1 := ca.Issue("bank", key.Public(), begin, life)
	pem, err2 := identity.KeyPEM(key)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	b := &bank{t: t}
	b.cred, err1 = identity.Parse(cert, pem)
	b.trust, err2 = identity.NewTrust(ca.CertPEM(), nil)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	b.tree, b.tiles = grown(t, 500)
	return b
}

// head is signed so many seconds after the beginning.
func (b *bank) head(size uint64, root [32]byte, seconds int) contract.VerifiedHead {
	b.t.Helper()
	der, err := contract.SignHead(b.cred, contract.Head{
		Version: contract.HeadVersion, Bank: b.cred.ID, Size: size, Root: hex.EncodeToString(root[:]),
		Time: begin.Add(time.Duration(seconds) * time.Second), Previous: hex.EncodeToString(make([]byte, 32)),
	})
	if err != nil {
		b.t.Fatal(err)
	}
	h, err := contract.OpenHead(der, b.trust)
	if err != nil {
		b.t.Fatal(err)
	}
	return h
}

func (b *bank) honest(size uint64, seconds int) contract.VerifiedHead {
	return b.head(size, oracle(0, size), seconds)
}

func (b *bank) growth(from, to uint64) [][]byte {
	g, err := b.tree.Growth(from, to, b.tiles)
	if err != nil {
		b.t.Fatal(err)
	}
	return g
}

func TestMemoryJudgesTheNextHead(t *testing.T) {
	b := newBank(t)
	other := oracle(1, 101) // the root of another history
	tests := []struct {
		name   string
		head   contract.VerifiedHead
		from   uint64
		growth [][]byte
		judge  error // of documents
		newest error // of what the bank gives as its newest
	}{
		{"the same head again", b.honest(100, 10), 100, nil, nil, nil},
		{"a log that grew", b.honest(300, 20), 100, b.growth(100, 300), nil, nil},
		{"a later head of the same log", b.honest(100, 20), 100, nil, nil, nil},
		{"a head seen earlier", b.honest(50, 5), 0, nil, nil, audit.ErrShrunk},
		{"an old head that was not seen", b.honest(70, 6), 0, nil, audit.ErrUnknown, audit.ErrShrunk},
		{"a shorter log, later", b.honest(70, 20), 0, nil, audit.ErrShrunk, audit.ErrShrunk},
		{"another root at the same size", b.head(100, other, 20), 100, nil, audit.ErrFork, audit.ErrFork},
		{"another root at a size seen earlier", b.head(50, other, 5), 0, nil, audit.ErrFork, audit.ErrShrunk},
		{"a longer log at an earlier time", b.honest(300, 7), 100, b.growth(100, 300), audit.ErrFork, audit.ErrShrunk},
		{"growth that does not lead there", b.head(300, other, 20), 100, b.growth(100, 300), audit.ErrProof, audit.ErrProof},
		{"growth from another size", b.honest(300, 20), 99, b.growth(99, 300), audit.ErrUnknown, audit.ErrUnknown},
		{"no growth where there should be", b.honest(300, 20), 100, nil, audit.ErrProof, audit.ErrProof},
		{"a head that nobody verified", contract.VerifiedHead{Head: b.honest(300, 20).Head}, 100, b.growth(100, 300), audit.ErrProof, audit.ErrProof},
	}
	for _, test := range tests {
		for _, strict := range []bool{false, true} {
			m := audit.NewMemory()
			if m.Judge(b.honest(50, 5), 0, nil) != nil || m.Judge(b.honest(100, 10), 50, b.growth(50, 100)) != nil {
				t.Fatal("an honest beginning is refused")
			}
			judge, want := m.Judge, test.judge
			if strict {
				judge, want = m.Newest, test.newest
			}
			err := judge(test.head, test.from, test.growth)
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s (newest %t): %v, want %v", test.name, strict, err, want)
			}
			var fork *audit.Fork
			if errors.Is(want, audit.ErrFork) && (!errors.As(err, &fork) || len(fork.Seen.DER) == 0 || len(fork.Shown.DER) == 0) {
				t.Errorf("%s: no evidence in %v", test.name, err)
			}
			if last, _ := m.Last(b.cred.ID); want != nil && last.Size != 100 {
				t.Errorf("%s: remembered, though it does not hold", test.name)
			}
		}
	}
}

func TestMemoryIsReadBack(t *testing.T) {
	b := newBank(t)
	m := audit.NewMemory()
	for i := range 100 { // more than are kept
		if err := m.Newest(b.honest(uint64(i+1), i), uint64(i), b.growth(uint64(i), uint64(i+1))); err != nil {
			t.Fatal(err)
		}
	}
	one, err := m.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := audit.DecodeMemory(one)
	if err != nil {
		t.Fatal(err)
	}
	two, err := again.Encode()
	if last, _ := again.Last(b.cred.ID); err != nil || !bytes.Equal(one, two) || last.Size != 100 {
		t.Errorf("other octets, or another last head: %d, %v", last.Size, err)
	}
}

// Who goes back to what was seen first goes on from there, and forgets no other bank.
func TestAMemoryGoesBackToItsFirstHeads(t *testing.T) {
	b := newBank(t)
	m := audit.NewMemory()
	if m.Judge(b.honest(50, 5), 0, nil) != nil || m.Judge(b.honest(100, 10), 50, b.growth(50, 100)) != nil {
		t.Fatal("an honest beginning is refused")
	}
	back := b.honest(70, 20)
	first := m.First(b.cred.ID, 1)
	if err := first.Newest(back, 50, b.growth(50, 70)); err != nil || first.Count(b.cred.ID) != 2 {
		t.Errorf("%v, %d heads", err, first.Count(b.cred.ID))
	}
	if err := m.First(b.cred.ID, 0).Newest(back, 0, nil); err != nil {
		t.Error(err)
	}
	if n := m.First("other", 0).Count(b.cred.ID); n != 2 || m.Count(b.cred.ID) != 2 {
		t.Errorf("%d of the heads are left", n)
	}
	if last, ok := m.Only(b.cred.ID).Last(b.cred.ID); !ok || last.Size != 100 {
		t.Error("what was put aside lacks the last head")
	}
}

func TestOldHeadIsStale(t *testing.T) {
	h := newBank(t).honest(1, 0).Head
	if err := audit.Fresh(h, begin.Add(time.Minute), time.Minute); err != nil {
		t.Error(err)
	}
	for _, far := range []time.Duration{time.Minute + 1, -time.Minute - 1} {
		if err := audit.Fresh(h, begin.Add(far), time.Minute); !errors.Is(err, audit.ErrStale) {
			t.Errorf("%s: %v", far, err)
		}
	}
}

func document(t testing.TB, b *bank) []byte {
	t.Helper()
	d := audit.Document{Head: b.honest(300, 1).DER, From: 100, Growth: b.growth(100, 300)}
	for _, n := range []uint64{1, 64, 300} {
		r, _ := record(n)
		path, err := b.tree.Inclusion(n, 300, b.tiles)
		if err != nil {
			t.Fatal(err)
		}
		d.Entries = append(d.Entries, audit.Proven{Number: n, Record: r, Path: path})
	}
	octets, err := d.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return octets
}

func TestDocumentIsReadBackAndHolds(t *testing.T) {
	b := newBank(t)
	d, err := audit.Decode(document(t, b))
	if err != nil {
		t.Fatal(err)
	}
	h, err := contract.OpenHead(d.Head, b.trust)
	if err != nil || d.VerifyEntries(h.Head) != nil {
		t.Fatal(err, d.VerifyEntries(h.Head))
	}
	bad := [][]byte{
		nil, []byte("{}"), []byte("[]"), make([]byte, audit.MaxDocument+1),
		bytes.Replace(document(t, b), []byte(`"proof":1`), []byte(`"proof":2`), 1),
		bytes.Replace(document(t, b), []byte(`"entry":64`), []byte(`"entry":1`), 1),
		bytes.Replace(document(t, b), []byte(`"from"`), []byte(`"form"`), 1),
		append(document(t, b), "{}"...),
	}
	for i, octets := range bad {
		if _, err := audit.Decode(octets); err == nil {
			t.Errorf("bad document %d is read", i)
		}
	}
}

func FuzzDocument(f *testing.F) {
	b := newBank(f)
	f.Add(document(f, b))
	f.Add([]byte(`{"proof":1,"head":"AA==","entries":[],"from":0,"growth":[]}`))
	whole, early := b.honest(300, 1).Head, b.honest(100, 0).Head
	f.Fuzz(func(t *testing.T, octets []byte) {
		d, err := audit.Decode(octets)
		if err != nil {
			return
		}
		one, err := d.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := audit.Decode(one)
		if err != nil {
			t.Fatal(err)
		}
		if two, err := again.Encode(); err != nil || !bytes.Equal(one, two) {
			t.Fatal("other octets the second time", err)
		}
		_ = d.VerifyEntries(whole) // must not panic
		_ = audit.VerifyGrowth(early, whole, d.Growth)
	})
}

func FuzzMemory(f *testing.F) {
	b := newBank(f)
	m := audit.NewMemory()
	_ = m.Judge(b.honest(50, 5), 0, nil)
	_ = m.Judge(b.honest(100, 10), 50, b.growth(50, 100))
	octets, _ := m.Encode()
	f.Add(octets)
	next, growth := b.honest(300, 20), b.growth(100, 300)
	f.Fuzz(func(t *testing.T, octets []byte) {
		m, err := audit.DecodeMemory(octets)
		if err != nil {
			return
		}
		if _, err := m.Encode(); err != nil {
			t.Fatal(err)
		}
		_ = m.Newest(next, 100, growth)
	})
}

func FuzzHead(f *testing.F) {
	b := newBank(f)
	whole := b.honest(300, 1)
	f.Add(whole.DER)
	f.Fuzz(func(t *testing.T, der []byte) {
		h, err := contract.OpenHead(der, b.trust)
		if err == nil && h.Head != whole.Head {
			t.Fatalf("a head that nobody signed: %+v", h.Head)
		}
	})
}
