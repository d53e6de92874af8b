package user

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/user"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

func newUserCancel() *cobra.Command {
	var unit int
	c := &cobra.Command{
		Use: "cancel ID", Short: "Stop a purchase, or return units that are settled", Args: cobra.ExactArgs(1), GroupID: "buy",
		Long: `Stop a purchase in progress, so that nothing is bought, or ask the sellers to take settled units
back. Each offer states until when its seller does so, and for which fee. The command waits
about 90 s for the sellers. One that has not answered by then is asked until its slot ends; run
the same command to wait again. Ends with 3 if there is nothing to cancel, with 4 if a seller
refuses, and with 5 if one does not answer. To stop a purchase that a command makes without a
daemon, interrupt that command.`,
		Example:           "  ramp user cancel p23e5\n  ramp user cancel p23e5 --unit 2",
		ValidArgsFunction: cli.PurchaseID,
		RunE: func(c *cobra.Command, args []string) error {
			return withID(c, cli.OpenUser, wholePurchase, args[0], func(agent *control.Client, id string) error {
				p, err := cli.FollowPurchase(c, agent, control.Cancel, control.IDCall{ID: id, Unit: unit}, id)
				if err != nil {
					return err
				}
				return printCancelled(c, agent, p, unit)
			})
		},
	}
	cli.UnitVar(c.Flags(), &unit, "only unit `N`, counted from 1 (default: all)")
	return c
}

// printCancelled prints the purchase, and ends with 4 if a seller refused and with 5 if one has
// not answered.
func printCancelled(c *cobra.Command, agent *control.Client, p message.Purchase, unit int) error {
	if err := showPurchase(c, agent, p); err != nil {
		return err
	}
	var silence error
	for _, u := range p.Units {
		if !p.Settled || unit != 0 && u.Unit != unit-1 {
			continue
		}
		switch u.State {
		case user.StateCancelled:
		case user.StateCancelling:
			silence = exit.Silent(exit.Unreachable)
		default:
			return exit.Silent(exit.Refused)
		}
	}
	return silence
}

func newUserResources() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "resources", Short: "List the resources in the market", Args: cobra.NoArgs, GroupID: "buy",
		Long: `List the resources that the agent knows now: their cores, the prices per core-hour at which they
open and below which they never go, their properties, which currencies they take at which
banks, and how often they kept silent instead of holding or signing what they had offered. This
count halves every six hours. After one silence the seller's runners-up are asked with it; from
two on, it is bought from only if no other set is offered.`,
		Example: "  ramp user resources\n  ramp user resources --watch=10s",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []control.ResourceLine
			agent, done, err := cli.OpenUser(c)
			if err != nil {
				return err
			}
			defer done()
			defer cli.Awaiting(c, "looking for the market", node.JoinTime)()
			if err := control.Resources.Ask(c.Context(), agent, struct{}{}, &list); err != nil {
				return err
			}
			rows := [][]string{{"resource", "cores", "list price", "minimum", "os", "arch", "takes", "failures"}}
			for _, r := range list {
				rows = append(rows, []string{r.Name, fmt.Sprint(r.Cores), r.Start.Cents(), r.Min.Cents(), r.Props.OS, r.Props.Arch, takes(r.Terms), fmt.Sprint(r.Failures)})
			}
			return cli.ShowTable(c, list, rows)
		},
	})
}

// takes lists the currencies and banks in which a resource is paid: "CPU at bank".
func takes(terms []protocol.Terms) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		list[i] = t.Currency + " at " + t.Bank.Name()
	}
	return strings.Join(list, ", ")
}

func newUserServe() *cobra.Command {
	var log string
	c := &cobra.Command{
		Use: "serve", Short: "Run the user agent as a daemon", Args: cobra.NoArgs, GroupID: "join",
		Long: `Run the user agent as a daemon until SIGINT, SIGTERM or 'ramp user stop'. Commands talk to it
over a socket in its directory; unless the configuration says 'daemon: false', they start it
themselves, with its log in daemon.log. It completes purchases that were signed, brings jobs to
their sites, and buys again what a site has lost. SIGHUP reloads the configuration.`,
		Example: "  ramp user serve",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := cli.DirOf(c, "user")
			if err != nil {
				return err
			}
			if err := config.Meant(filepath.Join(dir, config.Name), "user"); err != nil {
				return err
			}
			to := cli.Stderr(c)
			if log != "" {
				if to, err = background.OpenLog(log); err != nil {
					return err
				}
			}
			return node.ServeUser(c.Context(), dir, to)
		},
	}
	c.Flags().StringVar(&log, "log", "", "write the log to `FILE`, at most 4 MB and one older file (default: stderr)")
	return c
}

func newUserStop() *cobra.Command {
	return &cobra.Command{
		Use: "stop", Short: "Stop the user agent's daemon", Args: cobra.NoArgs, GroupID: "join",
		Long: `Stop the user agent's daemon, whoever started it, and wait until it has ended. Jobs continue at
their sites. The next command that needs the agent starts it again.`,
		Example: "  ramp user stop",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := cli.DirOf(c, "user")
			if err != nil {
				return err
			}
			pid, err := background.Stop(c.Context(), dir)
			if err != nil {
				return err
			}
			return cli.ShowLine(c, map[string]int{"pid": pid}, "%s", background.StoppedWords(pid))
		},
	}
}
