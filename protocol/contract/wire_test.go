package contract_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// docs/WIRE.md shows each note with all of its members in the canonical order.
func TestNotesAreDocumented(t *testing.T) {
	m := newMarket(t, "ann", "site", "bank")
	ann, site, bank := m.agent["ann"].ID, m.agent["site"].ID, m.agent["bank"].ID
	id, at := protocol.ContractID(strings.Repeat("5", 64)), now.UTC()
	record := contract.JobRecord{Version: 1, Contract: id, Seller: site, Success: true, Usage: protocol.Usage{CPU: time.Hour, Wall: time.Hour, Share: protocol.Core}, Due: 1, Ended: at, Measured: protocol.MeasuredAccounting}
	hash, err := contract.RecordHash(record)
	must(t, err)
	documented(t, m, "ann", contract.Cancel{Version: 1, Contract: id, User: ann, At: at, Nonce: strings.Repeat("a", 32)})
	documented(t, m, "site", contract.Refund{Version: 1, Contract: id, Seller: site, Amount: 2, Fee: 1})
	documented(t, m, "site", record)
	documented(t, m, "ann", contract.Verdict{Version: 1, Contract: id, User: ann, Record: hash, At: at, Why: "no output"})
	documented(t, m, "bank", contract.Voucher{Version: 1, Bank: bank, User: ann, Conversation: "p1", Currency: "CPU", Amount: 1, Until: at, Hold: 3})
	documented(t, m, "bank", contract.Quote{Version: 1, Bank: bank, ID: "q1", User: ann, From: "CPU", To: "EUR", Gives: 2, Gets: 1, Until: at, Entry: 9})
}

func documented[N contract.Note](t *testing.T, m *market, by string, n N) {
	t.Helper()
	der, err := contract.SignNote(m.agent[by], n, now)
	must(t, err)
	var octets json.RawMessage
	must(t, json.NewDecoder(bytes.NewReader(der[bytes.Index(der, []byte(`{"`)):])).Decode(&octets))
	text, err := os.ReadFile("../../docs/WIRE.md")
	must(t, err)
	names := members(octets)
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, `{"`+names[0]+`":`) {
			if got := members([]byte(line)); strings.Join(got, " ") != strings.Join(names, " ") {
				t.Errorf("docs/WIRE.md has %q, want %q", got, names)
			}
			return
		}
	}
	t.Errorf("docs/WIRE.md does not show %s", octets)
}

// members are the names of an object's members, and of those within them, in order.
func members(object []byte) (names []string) {
	for d, name := json.NewDecoder(bytes.NewReader(object)), true; ; {
		switch token, err := d.Token(); x := token.(type) {
		case json.Delim:
			name = true
		case string:
			if name {
				names = append(names, x)
			}
			name = !name
		case nil:
			if err != nil {
				return names
			}
		default:
			name = true
		}
	}
}
