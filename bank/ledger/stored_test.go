package ledger_test

import (
	"bufio"
	"encoding/hex"
	"os"
	"strings"
	"testing"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// stored reads tables as an earlier version wrote them.
func stored(t *testing.T, path string) memory {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m := memory{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) != 3 || words[0] == "#" {
			continue
		}
		key, err1 := hex.DecodeString(words[1])
		value, err2 := hex.DecodeString(words[2])
		if err1 != nil || err2 != nil {
			t.Fatal(err1, err2)
		}
		m.append([]protocol.Record{{Table: words[0], Key: string(key), Value: value}})
	}
	return m
}

func TestTheFirstVersionsTablesAreReadAndGoOn(t *testing.T) {
	b := &bank{store: stored(t, "testdata/stored/version1.txt"), now: start().Add(11 * time.Minute)}
	if err := b.reload(); err != nil {
		t.Fatal(err)
	}
	if r := sound(t, b); r.Entries != 36 {
		t.Errorf("%d entries, want 36", r.Entries)
	}
	s := &script{bank: b}
	const want = "issuer=-0.00012 ann=0.000089(0.00002 held) bob=0.000002 eve=0.000029"
	if got := s.balances(); got != want {
		t.Errorf("balances %s, want %s", got, want)
	}
	if r, err := b.Outcome(contractID("settled")); err != nil || r.Outcome != protocol.OutcomeSettled || len(r.Refunds) != 1 || r.Mode != "" {
		t.Errorf("outcome %+v, %v", r, err)
	}
	if _, err := saved[ledger.Entry](b)(b.PostHold(b.now, 1, []ledger.Payment{{To: agent("eve"), Amount: 20}}, "")); err != nil {
		t.Error(err)
	}
	half := newContract("half", agent("ann"), start().Add(30*time.Minute), ledger.Payment{To: agent("bob"), Amount: 1}, ledger.Payment{To: agent("eve"), Amount: 2})
	if r, err := b.copy(half, agent("eve")); err != nil || r.Outcome != protocol.OutcomeSettled {
		t.Errorf("the last copy of a stored bundle: %+v, %v", r, err)
	}
	sound(t, b)
}
