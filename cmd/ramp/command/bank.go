package command

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/message"
)

func newBank() *cobra.Command {
	c := &cobra.Command{
		Use:   "bank",
		Short: "Run a bank, and keep its accounts",
		Long: `A bank keeps accounts and decides every contract once: all of it paid, or none. Its
directory has its credential, its configuration (config.yaml) and its ledger. Commands
talk to the bank's daemon when it runs, and otherwise open the ledger themselves.`,
	}
	c.PersistentFlags().String("dir", "", "the bank's directory (default $RAMP_DIR, or ramp/bank below the data directory)")
	c.AddCommand(newBankInit(), newBankServe(), newConfig("bank", configsIn("bank")), newBankPolicy(), newBankAccount(), newBankGroup(), newBankCredit(), newBankTransfer(),
		newBankAllowance(), newBankRate(), newBankInvite(), newBankHold(), newBankDispute(), newBankBalance(), newBankStatement(), newBankReport(), newBankExport(),
		newBankAudit(), newBankVerify(), newBankWitness(), newBankBackup(), newBankRestore(), newBankRecovery(), newBankCompact())
	return c
}

// askBank makes one call to the bank.
func askBank(c *cobra.Command, path string, body, v any) error {
	dir, err := dirOf(c, "bank")
	if err != nil {
		return err
	}
	agent, done, err := openBank(c, dir)
	if err != nil {
		return err
	}
	defer done()
	return agent.call(c.Context(), "POST", path, body, v)
}

func newBankServe() *cobra.Command {
	var file, store string
	c := &cobra.Command{
		Use: "serve", Short: "Run the bank as a daemon", Args: cobra.NoArgs,
		Long: `Runs the bank. With its ledger in an etcd cluster, several agents with the bank's
credential may run, each on its own machine: one leads, the others follow and take
over. Only who leads joins the market and has a control socket.`,
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := configPath(c, file, "bank")
			if err != nil {
				return err
			}
			return serveBank(c.Context(), path, store, stderr(c))
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration file (default: config.yaml in the directory)")
	c.Flags().StringVar(&store, "store", "", "where the ledger is: bbolt:PATH or etcd:HOST,HOST (default: bank.store of the configuration, or bbolt:ledger.db)")
	return c
}

// configPath is the configuration that a daemon is to use.
func configPath(c *cobra.Command, file, kind string) (string, error) {
	if file != "" {
		return file, nil
	}
	dir, err := dirOf(c, kind)
	return filepath.Join(dir, configName), err
}

func newBankAccount() *cobra.Command {
	c := &cobra.Command{Use: "account", Short: "Open, list, limit, freeze and close accounts"}
	c.AddCommand(newBankAccountOpen(), newBankAccountList(), newBankAccountLimit(),
		newBankStanding("freeze", "frozen", "Let an account spend nothing; it may earn, and what it has held is paid"),
		newBankStanding("unfreeze", "open", "Let a frozen account spend again"),
		newBankStanding("close", "closed", "Close an account for ever: with nothing in it, and in no group"))
	return c
}

func newBankAccountOpen() *cobra.Command {
	var cert, limit string
	c := &cobra.Command{
		Use: "open NAME --cert FILE", Short: "Open an account for the agent of a certificate", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := owner(c, cert)
			if err != nil {
				return err
			}
			q := openAccountCall{Account: id, Name: args[0]}
			if q.Limit, err = protocol.ParseCredits(limit); err != nil || q.Limit < 0 {
				return fail(exitUsage, "", "--overdraft %q: want zero or more credits", limit)
			}
			var e operatorEntry
			if err := askBank(c, "/v1/account", q, &e); err != nil {
				return err
			}
			return said(c, e, "opened %s for %s (entry %d)", args[0], id, e.Entry)
		},
	}
	c.Flags().StringVar(&cert, "cert", "", "certificate (PEM) of the agent that owns the account")
	c.Flags().StringVar(&limit, "overdraft", "0", "how far below zero the balance may go")
	_ = c.MarkFlagRequired("cert") // the flag is there: it was made above
	return c
}

// owner is the agent of a certificate, if the bank would hear it: money on the
// account of one that it does not hear could never be spent.
func owner(c *cobra.Command, cert string) (protocol.AgentID, error) {
	b, err := os.ReadFile(cert)
	if err != nil {
		return "", fail(exitUsage, "", "%w", err)
	}
	if _, err := parseCertificate(b); err != nil {
		return "", fmt.Errorf("%s: %w", cert, err)
	}
	dir, err := dirOf(c, "bank")
	if err != nil {
		return "", err
	}
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return "", err
	}
	trust, err := cfg.trust()
	if err != nil {
		return "", err
	}
	peer, err := trust.VerifyPEM(b, time.Now())
	if err != nil {
		return "", certificateFault(cert, err)
	}
	return peer.ID, nil
}

func newBankCredit() *cobra.Command {
	var currency, ref string
	c := &cobra.Command{
		Use: "credit ACCOUNT AMOUNT", Short: "Issue money to an account", Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			amount, err := protocol.ParseCredits(args[1])
			if err != nil || amount <= 0 {
				return fail(exitUsage, "", "AMOUNT %q: want a positive number of credits, at most %s, at most six decimals", args[1], protocol.MaxCredits)
			}
			q := creditCall{Account: args[0], Currency: currency, Amount: amount, Ref: ref}
			return orderMoney(c, "/v1/credit", q, func(n noted) any { q.noted = n; return q }, func(e operatorEntry) error {
				return said(c, e, "credited %s to %s (entry %d)", amount, args[0], e.Entry)
			})
		},
	}
	c.Flags().StringVar(&currency, "currency", "", "currency (default: the bank's first)")
	c.Flags().StringVar(&ref, "ref", "", "a reference for the books")
	return c
}

func newBankBalance() *cobra.Command {
	return &cobra.Command{
		Use: "balance [ACCOUNT]", Short: "Show one account, or all", Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			var q statementCall
			if len(args) == 1 {
				q.Account = args[0]
			}
			var list []message.Balance
			if err := askBank(c, "/v1/balances", q, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			table(stdout(c), balanceRows(list)...)
			return nil
		},
	}
}

func newBankStatement() *cobra.Command {
	var q statementCall
	var from, to string
	c := &cobra.Command{
		Use: "statement ACCOUNT", Short: "Show the entries of an account", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.Account = args[0]
			var err error
			if q.From, q.To, err = parseTimes(from, to); err != nil {
				return err
			}
			if q.Limit < 1 || q.Limit > message.MaxStatement {
				return fail(exitUsage, "", "--limit %d: want 1..%d", q.Limit, message.MaxStatement)
			}
			var s message.Statement
			if err := askBank(c, "/v1/statement", q, &s); err != nil {
				return err
			}
			return printStatement(c, s)
		},
	}
	c.Flags().StringVar(&from, "from", "", "first time: 2026-11-01, or RFC 3339")
	c.Flags().StringVar(&to, "to", "", "time to end before, likewise")
	c.Flags().Uint64Var(&q.After, "after", 0, "only entries behind this number")
	c.Flags().IntVar(&q.Limit, "limit", 100, "at most this many entries")
	return c
}

// parseTimes reads --from and --to.
func parseTimes(from, to string) (begin, end time.Time, err error) {
	if begin, err = parseTime("--from", from); err != nil {
		return begin, end, err
	}
	if end, err = parseTime("--to", to); err != nil {
		return begin, end, err
	}
	if !end.IsZero() && !begin.Before(end) {
		return begin, end, fail(exitUsage, "", "--from %q, --to %q: want a first time and a later one to end before", from, to)
	}
	return begin, end, nil
}

func parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.Parse(form, s); err == nil && t.Unix() >= 0 {
			return t, nil
		}
	}
	return time.Time{}, fail(exitUsage, "", "%s %q: want a time from 1970 on, such as 2026-01-31T12:00:00Z or 2026-01-31 (UTC)", flag, s)
}

func printStatement(c *cobra.Command, s message.Statement) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), s)
	}
	rows := [][]string{{"entry", "time (UTC)", "what", "amount", "held", "balance", "currency", "contract or reference"}}
	for _, l := range s.Lines {
		about := string(l.Contract)
		if about == "" {
			about = l.Ref
		}
		rows = append(rows, []string{fmt.Sprint(l.Entry), l.Time.UTC().Format("2006-01-02 15:04:05"), l.What, l.Amount.String(), l.Held.String(), l.Balance.String(), l.Currency, about})
	}
	table(stdout(c), rows...)
	if s.More {
		fmt.Fprintf(stdout(c), "  more: --after %d\n", s.Lines[len(s.Lines)-1].Entry)
	}
	return nil
}

func newBankAudit() *cobra.Command {
	var q auditCall
	c := &cobra.Command{
		Use: "audit", Short: "Recompute every balance from the entries, and the sum of each currency", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := auditBank(c, q)
			if err != nil {
				return err
			}
			if err := printAudit(c, a, q.Signatures); err != nil {
				return err
			}
			if len(a.Bad) > 0 {
				return fail(exitFailed, "restore the last backup and compare", "the ledger is damaged: %s", a.problems())
			}
			return nil
		},
	}
	c.Flags().BoolVar(&q.Signatures, "signatures", false, "verify the bank's signature on every act of its operator as well")
	return c
}

// auditBank has a bank audited by its daemon, or else here, before anything is written:
// what a command writes first would cover what is damaged.
func auditBank(c *cobra.Command, q auditCall) (a auditReport, err error) {
	dir, err := dirOf(c, "bank")
	if err != nil {
		return a, err
	}
	daemon, b, err := reachBank(c, dir)
	if err != nil {
		return a, err
	}
	if daemon != nil {
		return a, daemon.call(c.Context(), "POST", "/v1/audit", q, &a)
	}
	defer b.end()
	return b.audit(c.Context(), q)
}

// verifiedWords say how fast signatures were verified, if any were.
func verifiedWords(perCore float64) string {
	if perCore == 0 {
		return ""
	}
	return fmt.Sprintf("; verified at %.0f signatures per second and core", perCore)
}

func printAudit(c *cobra.Command, a auditReport, signatures bool) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), a)
	}
	w := stdout(c)
	fmt.Fprintf(w, "%d entries, %d accounts\n", a.Entries, a.Accounts)
	for _, cur := range slices.Sorted(maps.Keys(a.Sum)) {
		fmt.Fprintf(w, "  sum of %s: %s\n", cur, a.Sum[cur])
	}
	fmt.Fprintf(w, "  log of %d entries, %d heads; root %s\n", a.Log, a.Heads, a.Root)
	if signatures {
		fmt.Fprintf(w, "  %d acts of the operator, signed by the bank%s\n", a.Signed, verifiedWords(a.PerCore))
	}
	return nil
}
