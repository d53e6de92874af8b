package codec_test

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// Balances that were told before they could name a group are read as they were
// meant, and written again byte for byte.
func TestBalancesWithoutAGroupAreReadAsBefore(t *testing.T) {
	m := newMarket(t)
	old, err := os.ReadFile("testdata/ungrouped.golden")
	must(t, err)
	_, text, _ := strings.Cut(strings.TrimSpace(string(old)), " ")
	b, err := hex.DecodeString(text)
	must(t, err)
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	must(t, err)
	told := got.Body.(message.Balances).Accounts
	for _, a := range told {
		if a.Group != "" || a.Spends() != a.Available {
			t.Errorf("read as %+v", a)
		}
	}
	if again, err := codec.Encode(got); err != nil || !bytes.Equal(b, again) || len(told) != 2 {
		t.Errorf("%d balances are written otherwise: %v", len(told), err)
	}
}
