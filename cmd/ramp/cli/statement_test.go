package cli

import (
	"maps"
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
	"ramp/protocol/message"
)

// A statement stays a table on a terminal of 80 columns, and nothing of it is cut.
func TestAStatementFitsInto80Columns(t *testing.T) {
	t.Parallel()
	w := &window{width: 80}
	(&StatementFlags{}).print(w, message.Statement{Lines: []message.StatementLine{{
		Entry: 123456, Time: time.Now(), What: "transfer", Amount: -123_456_780_000, Held: 1_234_560_000, Balance: 123_456_780_000,
		Currency: "CPU", Other: "bob@rpsf5cakse4f6vceec552jaqhugajvn3", Ref: "lent for the long calculation of somebody else",
	}}}, nil)
	if got := w.String(); !strings.Contains(got, "  currency  what\n") || !strings.Contains(got, "transfer to\n") || !strings.Contains(got, " else\n") {
		t.Errorf("not a table with all its words:\n%s", got)
	}
}

// A later attempt at a purchase has the name of the first, so its number distinguishes it.
func TestAStatementDistinguishesAttempts(t *testing.T) {
	t.Parallel()
	got := namesOf(control.BankStatement{
		Purchases: map[protocol.ContractID]string{"a": "p17a9b87ccdd", "b": "p17a9b87ccdd.retry1", "c": "mine"},
		Names:     map[protocol.ContractID]string{"a": "arr", "b": "arr", "c": "mine"},
	})
	if want := map[protocol.ContractID]string{"a": "arr (p17a9b87)", "b": "arr (p17a9b87.retry1)", "c": "mine"}; !maps.Equal(got, want) {
		t.Errorf("the purchases are %v, want %v", got, want)
	}
}
