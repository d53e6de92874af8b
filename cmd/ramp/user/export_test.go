package user

import (
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/message"
)

// RunwayRows is the table of one account.
func RunwayRows(l control.RunwayLine) [][]string { return runwayRows([]control.RunwayLine{l}) }

// CancelledCode is how 'user cancel' of a unit (from 1; 0: all) ends.
func CancelledCode(p message.Purchase, unit int) int {
	c := &cobra.Command{}
	c.Flags().Bool("json", false, "")
	c.SetOut(io.Discard)
	return cli.Report(io.Discard, printCancelled(c, control.Local(http.NewServeMux()), p, unit))
}

// PurchaseCode is the exit code of a purchase that is over, and whether 'user buy
// --wait' tries again after it.
func PurchaseCode(p message.Purchase) (code int, again bool) {
	return cli.PurchaseCode(p, false), worthTrying(p)
}
