package command

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	bankbooks "ramp/bank/books"
	"ramp/bank/ledgerdb"
)

func newBankExport() *cobra.Command {
	var after uint64
	c := &cobra.Command{
		Use: "export", Short: "Write the books as a journal that hledger and ledger read", Args: cobra.NoArgs,
		Long: `Writes every entry that moved money as a transaction of plain-text accounting, with
the balance of each account as an assertion that hledger and ledger check. Accounts and
currencies are declared, so that both may be strict. With --json: every entry, one JSON
value per line.`,
		Example: "  ramp bank export >bank.journal && hledger -f bank.journal check --strict && hledger -f bank.journal balance",
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := dirOf(c, "bank")
			if err != nil {
				return err
			}
			agent, done, err := openBank(c, dir)
			if err != nil {
				return err
			}
			defer done()
			if wantsJSON(c) {
				return export(c, agent, after, printLine)
			}
			names, err := writePreamble(stdout(c), dir)
			if err != nil {
				return err
			}
			return export(c, agent, after, func(w io.Writer, e entryView) error {
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
	c.Flags().Uint64Var(&after, "after", 0, "only entries behind this number; balances are then asserted of whole books only")
	return c
}

func printLine(w io.Writer, e entryView) error {
	e.Journal = ""
	return json.NewEncoder(w).Encode(e)
}

func writePreamble(w io.Writer, dir string) (*bankbooks.Names, error) {
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return nil, err
	}
	cred, err := cfg.credential()
	if err != nil {
		return nil, err
	}
	return bankbooks.Preamble(w, cred.ID, cfg.Bank.Currencies)
}

// export asks for page after page and writes it.
func export(c *cobra.Command, agent *caller, after uint64, write func(io.Writer, entryView) error) error {
	out := bufio.NewWriter(stdout(c))
	for {
		var page []entryView
		if err := agent.call(c.Context(), "POST", "/v1/entries", entriesCall{From: after + 1, Limit: ledgerdb.MaxPage}, &page); err != nil {
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

// isThere reports whether there is something at a path.
func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
