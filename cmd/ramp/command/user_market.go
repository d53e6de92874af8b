package command

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/message"
)

func newUserCancel() *cobra.Command {
	var unit int
	c := &cobra.Command{
		Use: "cancel ID", Short: "Stop a purchase, or ask the sellers to take settled units back", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			agent, done, err := openUser(c)
			if err != nil {
				return err
			}
			defer done()
			id, err := wholePurchase(c, agent, args[0])
			if err != nil {
				return err
			}
			p, err := followPurchase(c, agent, "/v1/cancel", idCall{ID: id, Unit: unit}, id)
			if err != nil {
				return err
			}
			return printCancelled(c, p, unit)
		},
	}
	unitVar(c.Flags(), &unit, "only this unit, from 1 (default: all)")
	return c
}

// printCancelled shows the purchase and ends with 4 if a seller refused, and with 5 if
// one does not answer.
func printCancelled(c *cobra.Command, p message.Purchase, unit int) error {
	if wantsJSON(c) {
		if err := printJSON(stdout(c), asShown(p)); err != nil {
			return err
		}
	} else {
		printPurchase(stdout(c), p)
	}
	var silence error
	for _, u := range p.Units {
		if !p.Settled || unit != 0 && u.Unit != unit-1 {
			continue
		}
		switch u.State {
		case user.StateCancelled:
		case user.StateCancelling:
			silence = silent(exitUnreachable)
		default:
			return silent(exitRefused)
		}
	}
	return silence
}

func newUserResources() *cobra.Command {
	return &cobra.Command{
		Use: "resources", Short: "List the resources that are known now", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []resourceLine
			agent, done, err := openUser(c)
			if err != nil {
				return err
			}
			defer done()
			defer awaiting(c, "looking for the market", joinTime)()
			if err := agent.call(c.Context(), "POST", "/v1/resources", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"resource", "cores", "start price", "minimum", "os", "arch", "takes"}}
			for _, r := range list {
				rows = append(rows, []string{r.Name, fmt.Sprint(r.Cores), r.Start.String(), r.Min.String(), r.Props.OS, r.Props.Arch, takes(r.Terms)})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
}

// takes is in what a resource is paid, and by which banks: "CPU at bank".
func takes(terms []protocol.Terms) string {
	list := make([]string, len(terms))
	for i, t := range terms {
		list[i] = t.Currency + " at " + t.Bank.Name()
	}
	return strings.Join(list, ", ")
}

// accountWords name an account as commands take it.
func accountWords(id protocol.AgentID, name string) string {
	switch {
	case ledger.GroupID(name) == id:
		return groupWord + name
	case id == ledger.House, id == ledger.Issuer:
		return string(id)
	}
	return name
}

func newUserServe() *cobra.Command {
	return &cobra.Command{
		Use: "serve", Short: "Run the user agent as a daemon", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := dirOf(c, "user")
			if err != nil {
				return err
			}
			if err := meant(filepath.Join(dir, configName), "user"); err != nil {
				return err
			}
			return serveUser(c.Context(), dir, stderr(c))
		},
	}
}
