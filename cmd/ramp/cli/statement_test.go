package cli

import (
	"strings"
	"testing"
	"time"

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
