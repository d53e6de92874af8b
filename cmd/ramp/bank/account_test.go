package bank

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/words"
	bankbooks "ramp/bank/books"
	"ramp/protocol"
)

// The operator's tables stay tables on a terminal of 80 columns, with names and amounts as they
// are in a year's books.
func TestTablesFitInto80Columns(t *testing.T) {
	t.Parallel()
	const much = 123_456_780_000
	site := protocol.AgentID("physics-department@rpsf5cakse4f6vceec552jaqhugajvn3")
	line := control.LineView{Currency: "CPU", Balance: -much, Held: much, Limit: much, Available: much, PerDay: much}
	for name, rows := range map[string][][]string{
		"accounts": accountRows([]control.AccountView{
			{Account: site, Name: "physics-department", Standing: "frozen", Group: "campus", Lines: []control.LineView{line}},
			{Account: "ann@rpsf5cakse4f6vceec552jaqhugajvn3", Name: "ann", Standing: "open"},
		}),
		"holds": holdRows([]control.HoldView{{Hold: 123456, Amount: much, Currency: "CPU", Until: time.Now(), Account: site, Ref: "a long calculation of somebody"}}),
		"claims": claimRows([]control.ClaimView{
			{Contract: "25a6514d71917e4f25a6514d71917e4f", Unit: 10, State: "disputed", Held: much, Due: much, Currency: "CPU", User: "ann@k", Seller: site, Why: "half of it did not run"},
			{Contract: "25a6514d71917e4f25a6514d71917e4f", State: "filed", Held: much, Due: much, Currency: "CPU", User: "ann@k", Seller: site, Until: time.Now()},
		}),
	} {
		lines := words.TableLines(rows, 80)
		if !strings.HasSuffix(lines[0], rows[0][len(rows[0])-1]) {
			t.Errorf("%s: listed, not a table:\n%s", name, strings.Join(lines, "\n"))
		}
	}
}

func TestTheSumsOfAReportFitInto80Columns(t *testing.T) {
	t.Parallel()
	const much = 12_345_678_000_000
	var b strings.Builder
	printCurrency(&b, bankbooks.Currency{Currency: "CPU", Sums: bankbooks.Sums{Contracts: 12345, Voided: 1234, Turnover: much, Refunded: much, Issued: much, Moved: much}})
	for _, line := range strings.Split(b.String(), "\n")[:2] { // a table adapts to its terminal
		if len(line) > 80 {
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}
