package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/user"
)

// maxFound bounds the IDs that are told of those that begin as asked.
const maxFound = 3

// findCall asks for the purchase, or run, whose ID begins as given.
type findCall struct {
	ID  string `json:"id"`
	Run bool   `json:"run,omitempty"` // only those in which a program runs, or ran
}

// idsFound are the IDs that begin so.
type idsFound struct {
	IDs []string `json:"ids"` // the first few of them; one that is the ID given is alone
	All int      `json:"all"`
}

// find answers the IDs that begin as asked.
func (u userRecords) find(_ context.Context, q findCall) (idsFound, error) {
	table := user.TablePurchases
	if q.Run {
		table = user.TableRuns
	}
	f, same := idsFound{IDs: []string{}}, false
	err := u.journal.Each(table, func(id string, _ []byte) error {
		same = same || id == q.ID
		if !strings.HasPrefix(id, q.ID) {
			return nil
		}
		if f.All++; len(f.IDs) < maxFound {
			f.IDs = append(f.IDs, id)
		}
		return nil
	})
	if same {
		f = idsFound{IDs: []string{q.ID}, All: 1}
	}
	return f, err
}

// wholePurchase is the ID of the purchase that is meant by its first letters.
func wholePurchase(c *cobra.Command, agent *caller, begin string) (string, error) {
	return whole(c, agent, findCall{ID: begin}, "purchases", "ramp user list")
}

// wholeRun is the same among the purchases in which a program runs, or ran.
func wholeRun(c *cobra.Command, agent *caller, begin string) (string, error) {
	return whole(c, agent, findCall{ID: begin, Run: true}, "runs", "ramp user jobs")
}

// whole completes an ID. One that nothing begins with is left as it is: the call that
// it is for says that there is none.
func whole(c *cobra.Command, agent *caller, q findCall, what, list string) (string, error) {
	if q.ID == "" {
		return "", fail(exitUsage, "'"+list+"' lists them", "ID \"\": want the first letters of one of the %s", what)
	}
	var f idsFound
	if err := agent.call(c.Context(), "POST", "/v1/find", q, &f); err != nil || f.All == 0 {
		return q.ID, nil //nolint:nilerr // a daemon that was not restarted since an upgrade takes whole IDs
	}
	if f.All == 1 {
		return f.IDs[0], nil
	}
	words := strings.Join(f.IDs, ", ")
	if f.All > len(f.IDs) {
		words += ", …"
	}
	return "", fail(exitUsage, "give more of it; '"+list+"' lists them", "%s", fmt.Sprintf("ID %q begins %d %s: %s", q.ID, f.All, what, words))
}
