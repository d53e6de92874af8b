package resource

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/order"
	"ramp/cmd/ramp/cli"
)

func newResourceFederation() *cobra.Command {
	c := &cobra.Command{
		Use: "federation", Short: "Share cores with other sites by priority", GroupID: "sales",
		Long: `Sites that belong together can share cores by priority, without money and without a centre: see
docs/FEDERATION.md. All of them have the same rules file, and each gives cores to the federation
with 'resource.federation' in its configuration.`,
	}
	cli.Add(c, newFederationCheck())
	return c
}

// checkedRules is a rules file in JSON; the names are fixed.
type checkedRules struct {
	SHA256  string            `json:"sha256"`
	Levels  []string          `json:"levels"` // the least urgent one first
	Members map[string]string `json:"members"`
	Users   int               `json:"users"`
}

func newFederationCheck() *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Check a rules file, and which members have the same", Args: cobra.ExactArgs(1),
		Long: `Check a federation's rules file, and print its SHA-256, which must be the same at all members.
If the agent of --dir runs, also show which members were met with the same rules: 'mismatch'
means that a member has another file; the two do not bid for each other's jobs.`,
		Example: "  ramp resource federation check rules.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			r, err := config.ReadRules(args[0])
			if err != nil {
				return err
			}
			v := checkedRules{SHA256: r.Digest, Levels: r.Levels, Members: map[string]string{}, Users: len(r.Users)}
			for _, m := range r.Members() {
				v.Members[string(m)] = "unknown"
			}
			if q, ok := askQueue(c); ok && q.Rules != "" {
				for m := range v.Members {
					v.Members[m] = q.Members[m]
					if q.Rules != r.Digest {
						v.Members[m] = "mismatch"
					}
				}
			}
			return cli.Show(c, v, func(w io.Writer) { printRules(w, v) })
		},
	}
}

// askQueue asks the agent, if there is one that runs.
func askQueue(c *cobra.Command) (q control.SiteQueue, ok bool) {
	dir, err := cli.DirOf(c, "resource")
	if err != nil {
		return q, false
	}
	agent, ok := control.Meet(dir)
	if !ok {
		return q, false
	}
	return q, control.FederationQueue.Ask(c.Context(), agent, control.None{}, &q) == nil
}

func printRules(w io.Writer, v checkedRules) {
	rows := [][]string{{"sha256", v.SHA256}, {"levels", strings.Join(v.Levels, " < ")}, {"users", fmt.Sprint(v.Users)}}
	for _, m := range slices.Sorted(maps.Keys(v.Members)) {
		rows = append(rows, []string{"member", m, v.Members[m]})
	}
	cli.Table(w, rows...)
}

func newResourceQueue() *cobra.Command {
	return &cobra.Command{
		Use: "queue", Short: "Show the federation's jobs at this site", Args: cobra.NoArgs, GroupID: "sales",
		Long: `Show the jobs of the federation at this site that run, wait or are suspended, the most urgent
ones first.`,
		Example: "  ramp resource queue",
		RunE: func(c *cobra.Command, _ []string) error {
			var q control.SiteQueue
			if err := askResource(c, control.FederationQueue, control.None{}, &q); err != nil {
				return err
			}
			return cli.Show(c, q, func(w io.Writer) { order.WriteQueue(w, q, cli.Table) })
		},
	}
}
