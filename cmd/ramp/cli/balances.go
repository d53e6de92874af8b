package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol/message"
)

// NewBalance shows the balances of the agent that ask reaches, of a kind: user or resource.
func NewBalance(kind string, ask func(c *cobra.Command, list *[]message.Balance) error) *cobra.Command {
	return Watched(&cobra.Command{
		Use: "balance", Short: "Show the agent's own balances", Args: cobra.NoArgs, GroupID: "money",
		Long: `Ask the banks for the agent's own balances, in credits: the balance, how much of it is held for
purchases and jobs that are not decided or finished, and how much can be spent. A resource agent
needs its running daemon for this. Ends with 5 if a bank has not answered within 30 s.`,
		Example: "  ramp " + kind + " balance --watch",
		RunE: func(c *cobra.Command, _ []string) error {
			var list []message.Balance
			if err := ask(c, &list); err != nil {
				return err
			}
			return ShowTable(c, list, BalanceRows(list))
		},
	})
}

// BalanceRows are balances as a table. If an account is in a group, two columns show the group
// and what the account may spend together with it.
func BalanceRows(list []message.Balance) [][]string {
	grouped := slices.ContainsFunc(list, func(b message.Balance) bool { return b.Group != "" })
	rows := [][]string{{"account", "currency", "balance", "held", "available"}}
	if grouped {
		rows[0] = append(rows[0], "group", "may spend")
	}
	for _, b := range list {
		row := []string{words.AccountWords(b.Account, b.Name), b.Currency, b.Balance.String(), b.Held.String(), b.Available.String()}
		switch {
		case grouped && b.Group == "":
			row = append(row, "-", "-")
		case grouped:
			row = append(row, b.Group, b.Spendable.String())
		}
		rows = append(rows, row)
	}
	return rows
}

// NewStatement shows the entries of the agent that ask reaches.
func NewStatement(kind string, ask func(c *cobra.Command, q control.StatementCall, list *[]control.BankStatement) error) *cobra.Command {
	var f StatementFlags
	c := &cobra.Command{
		Use: "statement", Short: "Show the entries of the agent's own accounts", Args: cobra.NoArgs, GroupID: "money",
		Long: `Ask the banks for the entries of the agent's own accounts, oldest first: by how many credits
each moved the balance, how much it held, and for which contract. A resource agent needs its
running daemon for this. Ends with 5 if a bank has not answered within 30 s.`,
		Example: "  ramp " + kind + " statement --from 2026-11-01T00:00:00Z --json",
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := f.Call("")
			if err != nil {
				return err
			}
			var list []control.BankStatement
			if err := ask(c, q, &list); err != nil {
				return err
			}
			return Show(c, list, func(w io.Writer) {
				for _, s := range list {
					fmt.Fprintf(w, "%s:\n", s.Bank.Name())
					printStatement(w, s.Statement)
				}
			})
		},
	}
	f.Register(c, "show at most `N` entries of each bank")
	return c
}

// StatementFlags select entries of a statement.
type StatementFlags struct {
	from, to string
	after    uint64
	limit    int
}

// Register adds the flags to a command.
func (f *StatementFlags) Register(c *cobra.Command, limit string) {
	c.Flags().StringVar(&f.from, "from", "", "show entries from `TIME` on: 2026-11-01, 2026-11-01T09:30 (UTC) or RFC 3339")
	c.Flags().StringVar(&f.to, "to", "", "show entries before `TIME`")
	c.Flags().Uint64Var(&f.after, "after", 0, "show entries after entry `N`")
	c.Flags().IntVar(&f.limit, "limit", 100, limit)
}

// Call checks the flags and makes the call for an account.
func (f *StatementFlags) Call(account string) (control.StatementCall, error) {
	from, to, err := ParseTimes(f.from, f.to)
	if err == nil && (f.limit < 1 || f.limit > message.MaxStatement) {
		err = exit.Fail(exit.Usage, "", "--limit %d: want 1..%d", f.limit, message.MaxStatement)
	}
	return control.StatementCall{Account: account, From: from, To: to, After: f.after, Limit: f.limit}, err
}

// PrintStatement prints one statement.
func PrintStatement(c *cobra.Command, s message.Statement) error {
	return Show(c, s, func(w io.Writer) { printStatement(w, s) })
}

func printStatement(w io.Writer, s message.Statement) {
	rows := [][]string{{"entry", "time (UTC)", "what", "amount", "held", "balance", "currency", "contract or reference"}}
	for _, l := range s.Lines {
		about := cmp.Or(string(l.Contract), l.Ref)
		rows = append(rows, []string{fmt.Sprint(l.Entry), l.Time.UTC().Format("2006-01-02 15:04:05"), l.What, l.Amount.String(), l.Held.String(), l.Balance.String(), l.Currency, about})
	}
	Table(w, rows...)
	if s.More {
		fmt.Fprintf(w, "  more: --after %d\n", s.Lines[len(s.Lines)-1].Entry)
	}
}
