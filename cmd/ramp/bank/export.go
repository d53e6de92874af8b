package bank

import (
	"bufio"
	"io"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/words"
	bankbooks "ramp/bank/books"
	"ramp/bank/ledgerdb"
	"ramp/cmd/ramp/cli"
)

func newBankExport() *cobra.Command {
	var after uint64
	c := &cobra.Command{
		Use: "export", Short: "Write the books as a journal for hledger and ledger", Args: cobra.NoArgs, GroupID: "books",
		Long: `Write every entry that moved money as a transaction in plain-text accounting, with the balance
of each account as an assertion that hledger and ledger check. Accounts and currencies are
declared, so both may be strict. With --json: every entry, one JSON value per line.`,
		Example: "  ramp bank export >bank.journal && hledger -f bank.journal check --strict && hledger -f bank.journal balance",
		RunE: func(c *cobra.Command, _ []string) error {
			agent, done, err := cli.OpenBank(c)
			if err != nil {
				return err
			}
			defer done()
			if cli.WantsJSON(c) {
				return export(c, agent, after, printLine)
			}
			names, err := writePreamble(c)
			if err != nil {
				return err
			}
			return export(c, agent, after, func(w io.Writer, e control.EntryView) error {
				for _, l := range e.Legs {
					if err := names.Declare(w, l.Account, l.Currency, l.Amount); err != nil {
						return err
					}
				}
				_, err := io.WriteString(w, e.Journal)
				return err
			})
		},
	}
	c.Flags().Uint64Var(&after, "after", 0, "write entries after entry `N`, without assertions, since earlier balances are missing")
	return c
}

func printLine(w io.Writer, e control.EntryView) error {
	e.Journal = ""
	return words.PrintJSON(w, e, "")
}

func writePreamble(c *cobra.Command) (*bankbooks.Names, error) {
	_, cfg, err := cli.ConfigOf(c, "bank")
	if err != nil {
		return nil, err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return nil, err
	}
	return bankbooks.Preamble(cli.Stdout(c), cred.ID, cfg.Bank.Currencies)
}

func export(c *cobra.Command, agent *control.Client, after uint64, write func(io.Writer, control.EntryView) error) error {
	out := bufio.NewWriter(cli.Stdout(c))
	for {
		var page []control.EntryView
		if err := control.Entries.Ask(c.Context(), agent, control.EntriesCall{From: after + 1, Limit: ledgerdb.MaxPage}, &page); err != nil {
			return err
		}
		if len(page) == 0 {
			return out.Flush()
		}
		for _, e := range page {
			if err := write(out, e); err != nil {
				return err
			}
		}
		after = page[len(page)-1].Entry
	}
}
