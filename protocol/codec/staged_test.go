package codec_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// Files of versions without a second hash keep their meaning and their bytes.
func TestFilesWithoutABLAKE3AreReadAsBefore(t *testing.T) {
	m := newMarket(t)
	old, err := os.ReadFile("testdata/unblaked.golden")
	must(t, err)
	for _, line := range strings.Split(strings.TrimSpace(string(old)), "\n") {
		kind, text, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(text)
		must(t, err)
		sender := m.user.ID
		if kind == (message.LaunchStatus{}).Kind() {
			sender = m.seller.ID
		}
		got, err := codec.Opener{Trust: m.trust}.Open(b, sender, now)
		must(t, err)
		files := stagedOf(got.Body)
		for _, f := range files {
			if f.SHA256 == "" || f.BLAKE3 != "" {
				t.Errorf("%s: file %+v, want a SHA-256 alone", kind, f)
			}
		}
		if again, err := codec.Encode(got); err != nil || !bytes.Equal(b, again) || len(files) == 0 {
			t.Errorf("%s with %d files is written otherwise: %v", kind, len(files), err)
		}
	}
}

func stagedOf(b protocol.Body) []protocol.StagedFile {
	switch b := b.(type) {
	case message.Launch:
		return b.Inputs
	case message.LaunchStatus:
		return b.Outputs
	}
	return nil
}
