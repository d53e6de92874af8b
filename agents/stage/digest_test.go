package stage_test

import (
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"lukechampine.com/blake3"

	"ramp/protocol"
)

// The BLAKE3 of nothing and of bytes 0, 1, … 250, 0, 1, … as the test vectors of
// BLAKE3's authors have them.
func TestDescribeGivesTheHashesOfTheStandards(t *testing.T) {
	for _, c := range []struct {
		size         int
		sha256, blak string
	}{
		{0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
		{102400, "", "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
	} {
		content := make([]byte, c.size)
		for i := range content {
			content[i] = byte(i % 251)
		}
		f := source(t, t.TempDir(), "a", content).File
		if f.BLAKE3 != c.blak || c.sha256 != "" && f.SHA256 != c.sha256 || f.Validate() != nil {
			t.Errorf("%d bytes: described as %+v, want BLAKE3 %s", c.size, f, c.blak)
		}
	}
}

// Files of many sizes are hashed alike, whole and in the pieces in which they come.
func TestHashesDoNotDependOnPieces(t *testing.T) {
	for _, size := range []int{1, 1023, 1024, 1025, 256 << 10, 256<<10 + 1, 512<<10 - 1, 1 << 20, 1<<20 + 1025} {
		content := []byte(strings.Repeat("0123456789abcdef!", size/17+1)[:size])
		sum := blake3.Sum256(content)
		in := source(t, t.TempDir(), "a", content)
		if want := hex.EncodeToString(sum[:]); in.File.BLAKE3 != want {
			t.Fatalf("%d bytes: BLAKE3 %s, want %s", size, in.File.BLAKE3, want)
		}
		p := newPlace(t, in.File)
		if err := p.put(in); err != nil {
			t.Fatalf("%d bytes: %v", size, err)
		}
		same(t, p.work("a"), content)
	}
}

// Where BLAKE3 is announced it decides, on both ways: the right SHA-256 does not
// help.
func TestBLAKE3IsCheckedWhereItIsAnnounced(t *testing.T) {
	wrong := strings.Repeat("0", 64)
	in := source(t, t.TempDir(), "a", []byte("abc"))
	in.File.BLAKE3 = wrong
	p := newPlace(t, in.File)
	if err := p.put(in); err == nil {
		t.Error("a file with another BLAKE3 was taken")
	}
	onlyIn(t, p.work(""))
	out := t.TempDir()
	p.leave("a", "abc")
	p.grant.Outputs = []protocol.StagedFile{in.File}
	if err := p.get(in.File, out); err == nil || !strings.Contains(err.Error(), "announced BLAKE3") {
		t.Errorf("error %v", err)
	}
	onlyIn(t, out)
}

// Agents of before BLAKE3 announce SHA-256 alone, and go on with that.
func TestAgentsWithoutBLAKE3AreServed(t *testing.T) {
	in := source(t, t.TempDir(), "in", []byte("input"))
	in.File.BLAKE3 = ""
	p := newPlace(t, in.File)
	if err := p.put(in); err != nil {
		t.Fatal(err)
	}
	if got := p.collect(); len(got.Outputs) != 0 {
		t.Fatalf("an input as it was is an output: %+v", got.Outputs)
	}
	p.leave("out", "output")
	outputs := p.collect().Outputs
	if len(outputs) != 1 || outputs[0].BLAKE3 == "" || outputs[0].SHA256 == "" {
		t.Fatalf("outputs %+v, want one with both hashes", outputs)
	}
	outputs[0].BLAKE3 = "" // as an older site says it
	p.grant.Outputs = outputs
	dir := t.TempDir()
	if err := p.get(outputs[0], dir); err != nil {
		t.Fatal(err)
	}
	same(t, dir+"/out", []byte("output"))
	in.File.SHA256 = strings.Repeat("0", 64)
	p = newPlace(t, in.File)
	if err := p.put(in); err == nil {
		t.Fatal("a file with another SHA-256 was taken")
	}
	if _, err := os.Stat(p.work("in")); err == nil {
		t.Fatal("it is there")
	}
}
