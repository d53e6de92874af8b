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

// Balances of versions without groups, and statements without holds, keep their meaning
// and their bytes.
func TestBalancesWithoutAGroupAreReadAsBefore(t *testing.T) {
	m := newMarket(t)
	old, err := os.ReadFile("testdata/ungrouped.golden")
	must(t, err)
	read := 0
	for _, line := range strings.Split(strings.TrimSpace(string(old)), "\n") {
		kind, text, _ := strings.Cut(line, " ")
		b, err := hex.DecodeString(text)
		must(t, err)
		got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
		must(t, err)
		switch told := got.Body.(type) {
		case message.Balances:
			for _, a := range told.Accounts {
				read++
				if a.Group != "" || a.Spends() != a.Available {
					t.Errorf("read as %+v", a)
				}
			}
		case message.Statement:
			for _, l := range told.Lines {
				read++
				if l.Held != 0 {
					t.Errorf("read as %+v", l)
				}
			}
		}
		if again, err := codec.Encode(got); err != nil || !bytes.Equal(b, again) {
			t.Errorf("%s is written otherwise: %v", kind, err)
		}
	}
	if read != 4 {
		t.Errorf("%d balances and lines are read, want 4", read)
	}
}

// Calls of versions without launches keep their meaning and their bytes.
func TestCallsWithoutALaunchAreReadAsBefore(t *testing.T) {
	body := readAsBefore(t, "testdata/unlaunched.golden")
	if call, ok := body.(message.CallForProposals); !ok || call.Launch != nil || len(call.Document) == 0 {
		t.Errorf("read as %+v", body)
	}
}

// Presences of banks of versions without payment after the fact and without recovery keep
// their meaning and their bytes.
func TestPresencesWithoutWhatIsPaidAfterAreReadAsBefore(t *testing.T) {
	body := readAsBefore(t, "testdata/unafter.golden")
	if p, ok := body.(message.Presence); !ok || len(p.After) > 0 || !p.Recovering.IsZero() || !p.Issued.IsZero() || len(p.Terms) == 0 || len(p.Modes) == 0 {
		t.Errorf("read as %+v", body)
	}
}

// readAsBefore reads the message of a file and checks that writing gives its bytes.
func readAsBefore(t *testing.T, file string) protocol.Body {
	t.Helper()
	m := newMarket(t)
	old, err := os.ReadFile(file)
	must(t, err)
	_, text, _ := strings.Cut(strings.TrimSpace(string(old)), " ")
	b, err := hex.DecodeString(text)
	must(t, err)
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.user.ID, now)
	must(t, err)
	if again, err := codec.Encode(got); err != nil || !bytes.Equal(b, again) {
		t.Errorf("it is written otherwise: %v", err)
	}
	return got.Body
}
