package cli

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
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
			WarnNoAccount(c, len(list))
			return ShowTable(c, list, BalanceRows(list))
		},
	})
}

// WarnNoAccount tells an agent without accounts how it gets one.
func WarnNoAccount(c *cobra.Command, accounts int) {
	if accounts == 0 && !c.Flags().Changed("watch") {
		fmt.Fprintf(Notes(c), "%s; hint: %s\n", words.NoAccount, words.NoAccountHelp)
	}
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
		row := []string{words.AccountWords(b.Account, b.Name), b.Currency, b.Balance.Cents(), b.Held.Cents(), b.Available.Cents()}
		switch {
		case grouped && b.Group == "":
			row = append(row, "-", "-")
		case grouped:
			row = append(row, b.Group, b.Spendable.Cents())
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
		Long: `Ask the banks for the last entries of the agent's own accounts, newest last: by how many credits
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
					f.print(w, s.Statement, namesOf(s))
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
	before   uint64
	limit    int
}

// Register adds the flags to a command.
func (f *StatementFlags) Register(c *cobra.Command, limit string) {
	c.Flags().StringVar(&f.from, "from", "", "show entries from `TIME` on: 2026-11-01, 2026-11-01T09:30 or RFC 3339")
	c.Flags().StringVar(&f.to, "to", "", "show entries before `TIME`")
	c.Flags().Uint64Var(&f.after, "after", 0, "show the first entries after entry `N`, not the last ones")
	c.Flags().Uint64Var(&f.before, "before", 0, "show the last entries before entry `N`")
	c.Flags().IntVar(&f.limit, "limit", 100, limit)
}

// Call checks the flags and makes the call for an account.
func (f *StatementFlags) Call(account string) (control.StatementCall, error) {
	from, to, err := ParseTimes(f.from, f.to)
	if err == nil && (f.limit < 1 || f.limit > message.MaxStatement) {
		err = exit.Fail(exit.Usage, "", "--limit %d: want 1..%d", f.limit, message.MaxStatement)
	}
	if f.after == 0 && f.before == 0 {
		f.before = math.MaxUint64
	}
	return control.StatementCall{Account: account, From: from, To: to, After: f.after, Before: f.before, Limit: f.limit}, err
}

// Print prints one statement.
func (f *StatementFlags) Print(c *cobra.Command, s message.Statement) error {
	return Show(c, s, func(w io.Writer) { f.print(w, s, nil) })
}

// namesOf are a user's purchases as people know them: the name, and the short ID.
func namesOf(s control.BankStatement) map[protocol.ContractID]string {
	list := map[protocol.ContractID]string{}
	for c, id := range s.Purchases {
		list[c] = id
		if name := s.Names[c]; name != "" && name != id {
			base, _, _ := strings.Cut(id, ".")
			list[c] = fmt.Sprintf("%s (%.8s%s)", name, base, id[len(base):])
		}
	}
	return list
}

// print prints a statement; purchases are the user's names of its contracts.
func (f *StatementFlags) print(w io.Writer, s message.Statement, purchases map[protocol.ContractID]string) {
	rows := [][]string{{"entry", "time (" + words.Zone() + ")", "amount", "held", "balance", "currency", "what"}}
	for _, l := range s.Lines {
		about := cmp.Or(purchases[l.Contract], fmt.Sprintf("%.8s", l.Contract), l.Ref)
		if id, ok := strings.CutPrefix(about, "voucher "); ok {
			about = fmt.Sprintf("voucher %.8s", id)
		}
		if l.Other != "" {
			about = strings.TrimSuffix(words.Counterparty(l.Other, l.Amount)+": "+l.Ref, ": ")
		}
		rows = append(rows, []string{fmt.Sprint(l.Entry), words.ClockTime(l.Time), l.Amount.Cents(), l.Held.Cents(), l.Balance.Cents(), l.Currency, strings.TrimSpace(l.What + " " + about)})
	}
	Table(w, rows...)
	switch {
	case s.More && f.before > 0:
		fmt.Fprintf(w, "  earlier ones: --before %d\n", s.Lines[0].Entry)
	case s.More:
		fmt.Fprintf(w, "  more: --after %d\n", s.Lines[len(s.Lines)-1].Entry)
	}
}
