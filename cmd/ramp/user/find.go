package user

import (
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/cmd/ramp/cli"
)

// withID reaches an agent and calls do with the ID that find completes.
func withID(c *cobra.Command, open cli.Opener, find finder, prefix string, do func(agent *control.Client, id string) error) error {
	agent, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	id, err := find(c, agent, prefix)
	if err != nil {
		return err
	}
	return do(agent, id)
}

// finder completes the prefix of an ID.
type finder func(c *cobra.Command, agent *control.Client, prefix string) (string, error)

func wholePurchase(c *cobra.Command, agent *control.Client, word string) (string, error) {
	return whole(c, agent, control.FindCall{ID: word}, "purchases", "ramp user list")
}

// wholeRun completes the ID of a purchase in which a program runs or ran.
func wholeRun(c *cobra.Command, agent *control.Client, word string) (string, error) {
	return whole(c, agent, control.FindCall{ID: word, Run: true}, "jobs", "ramp jobs")
}

// whole completes an ID. A word without match is returned unchanged: the call that uses it
// reports that there is no such ID.
func whole(c *cobra.Command, agent *control.Client, q control.FindCall, what, list string) (string, error) {
	if q.ID == "" {
		return "", exit.Fail(exit.Usage, "'"+list+"' lists them", "ID \"\": want the first letters, or the name, of one of the %s", what)
	}
	var f control.IDsFound
	if err := control.Find.Ask(c.Context(), agent, q, &f); err != nil || f.All == 0 {
		return q.ID, nil //nolint:nilerr // a daemon from before an upgrade only takes whole IDs
	}
	if f.All == 1 {
		return f.IDs[0], nil
	}
	words := strings.Join(f.IDs, ", ")
	if f.All > len(f.IDs) {
		words += ", …"
	}
	if f.Named {
		return "", exit.Fail(exit.Usage, "give the ID of one; '"+list+"' lists them", "%d %s have the name %q: %s", f.All, what, q.ID, words)
	}
	return "", exit.Fail(exit.Usage, "give more of it; '"+list+"' lists them", "ID %q begins %d %s: %s", q.ID, f.All, what, words)
}
