// Package bank has the commands of a bank's operator.
package bank

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/node"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/message"
)

func New() *cobra.Command {
	c := &cobra.Command{
		Use: "bank", Short: "Run a bank and keep its accounts", GroupID: "trade",
		Long: `A bank keeps accounts and decides every contract once: it is paid as a whole or not at all. Its
directory holds its credential, its configuration (config.yaml) and its ledger. Commands talk to
the bank's daemon if it runs, and open the ledger themselves otherwise.

An ACCOUNT is a name or an agent ID; group:NAME is a group's account, .exchange the bank's own
for exchanges, .issuer the source of all credited money. Every change is an entry that the bank
signs.`,
	}
	c.PersistentFlags().String("dir", "", "`DIR` of the bank (default: $RAMP_DIR, or ramp/bank below the data directory)")
	c.AddGroup(
		&cobra.Group{ID: "join", Title: "Set up a bank and admit members"},
		&cobra.Group{ID: "money", Title: "Accounts and money"},
		&cobra.Group{ID: "rules", Title: "Rules"},
		&cobra.Group{ID: "books", Title: "Books"},
		&cobra.Group{ID: "recovery", Title: "Backup and recovery"},
		&cobra.Group{ID: "trust", Title: "Check a bank from outside"},
	)
	cli.Add(c, newBankInit(), newBankServe(), cli.NewConfig("bank", cli.ConfigsIn("bank")), newBankInvite(),
		newBankAccount(), newBankBalance(), newBankCredit(), newBankTransfer(), newBankHold(), newBankDispute(),
		newBankPolicy(), newBankAllowance(), newBankGroup(), newBankRate(),
		cli.NewWeb("bank", "books", cli.ConfigsIn("bank")), newBankStatement(), newBankReport(), newBankAudit(), newBankExport(),
		newBankBackup(), newBankRestore(), newBankRecovery(), newBankCompact(), newBankVerify(), newBankWitness())
	return c
}

// operate has the bank make an entry, and reports it.
func operate[Q any](c *cobra.Command, call control.Endpoint[Q, control.OperatorEntry], q Q, format string, args ...any) error {
	var e control.OperatorEntry
	if err := askBank(c, call, q, &e); err != nil {
		return err
	}
	return cli.ShowLine(c, e, format+" (entry %d)", append(args, e.Entry)...)
}

// showBank makes one call to the bank and prints the answer as a table.
func showBank[Q, A any](c *cobra.Command, call control.Endpoint[Q, A], q Q, rows func(A) [][]string) error {
	var a A
	if err := askBank(c, call, q, &a); err != nil {
		return err
	}
	return cli.ShowTable(c, a, rows(a))
}

func askBank[Q, A any](c *cobra.Command, call control.Endpoint[Q, A], q Q, a *A) error {
	return cli.Ask(c, cli.OpenBank, call, q, a)
}

func newBankServe() *cobra.Command {
	var file, store string
	c := &cobra.Command{
		Use: "serve", Short: "Run the bank as a daemon", Args: cobra.NoArgs, GroupID: "join",
		Long: `Run the bank as a daemon. If its ledger is in an etcd cluster, several agents with the bank's
credential may run, each on a machine of its own: one leads, and the others follow and take
over. Only the leader joins the market and has a control socket.`,
		Example: "  ramp bank serve --dir bank",
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := cli.ConfigPath(c, file, "bank")
			if err != nil {
				return err
			}
			return node.ServeBank(c.Context(), path, store, cli.Stderr(c))
		},
	}
	c.Flags().StringVar(&file, "config", "", "configuration `FILE` (default: config.yaml in --dir)")
	c.Flags().StringVar(&store, "store", "", "where the ledger is, `STORE`: bbolt:PATH or etcd:HOST,HOST (default: as configured, or bbolt:ledger.db)")
	return c
}

func newBankAccount() *cobra.Command {
	c := &cobra.Command{Use: "account", Short: "Open, list, limit, freeze and close accounts", GroupID: "money"}
	cli.Add(c, newBankAccountOpen(), newBankAccountList(), newBankAccountLimit(),
		newBankStanding("freeze", "frozen", "Stop an account from spending; it still earns, and its holds are still paid"),
		newBankStanding("unfreeze", "open", "Let a frozen account spend again"),
		newBankStanding("close", "closed", "Close an empty account, in no group and without income, for good"))
	return c
}

func newBankAccountOpen() *cobra.Command {
	var cert, limit string
	c := &cobra.Command{
		Use: "open NAME --cert FILE", Short: "Open an account for the owner of a certificate", Args: cobra.ExactArgs(1),
		Long: `Open account NAME for the agent of a certificate. NAME has at most 64 bytes, and must not look
like another account: it is no agent ID, and does not begin with '.' or 'group:'. A certificate
that does not lead to the bank's trust anchors, has expired or is revoked is rejected (exit code
2), since the bank would ignore its agent.`,
		Example: "  ramp bank account open ann --cert ann.pem",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := owner(c, cert)
			if err != nil {
				return err
			}
			q := control.OpenAccountCall{Account: id, Name: args[0]}
			if q.Limit, err = cli.AmountOrZero("--overdraft", limit); err != nil {
				return err
			}
			return operate(c, control.OpenAccount, q, "opened %s for %s", args[0], id)
		},
	}
	c.Flags().StringVar(&cert, "cert", "", "`FILE` with the certificate (PEM) of the account's owner")
	c.Flags().StringVar(&limit, "overdraft", "0", "let the balance go `C` credits below zero")
	_ = c.MarkFlagRequired("cert") // the flag is there: it was made above
	return c
}

// owner is the agent of a certificate that the bank trusts: an agent that the bank ignores could
// never spend the money on its account.
func owner(c *cobra.Command, cert string) (protocol.AgentID, error) {
	b, err := os.ReadFile(cert)
	if err != nil {
		return "", exit.Fail(exit.Usage, "", "%w", err)
	}
	if _, err := join.ParseCertificate(b); err != nil {
		return "", fmt.Errorf("%s: %w", cert, err)
	}
	_, cfg, err := cli.ConfigOf(c, "bank")
	if err != nil {
		return "", err
	}
	trust, err := cfg.TrustAnchors()
	if err != nil {
		return "", err
	}
	peer, err := trust.VerifyPEM(b, time.Now())
	if err != nil {
		return "", config.CertificateFault(cert, err)
	}
	return peer.ID, nil
}

func newBankCredit() *cobra.Command {
	var currency, ref string
	c := &cobra.Command{
		Use: "credit ACCOUNT AMOUNT", Short: "Issue money to an account", Args: cobra.ExactArgs(2), GroupID: "money",
		Long: `Issue AMOUNT credits, with at most six decimals, to an account. After a crash the same command
completes the same credit; once it has answered, it is a new one. If it ended with 5, the disk
or the etcd cluster was lost while the entry was written, and the entry may exist. In a currency
with an allowance, at most half of what the ledger can hold is issued: the rest is for incomes.`,
		Example: "  ramp bank credit ann 1000 --ref 'grant 12'", ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			amount, err := cli.AmountOf("AMOUNT", args[1])
			if err != nil {
				return err
			}
			q := control.CreditCall{Account: args[0], Currency: currency, Amount: amount, Ref: ref}
			return orderMoney(c, control.Credit, func(key string) control.CreditCall { q.Key = key; return q }, func(e control.OperatorEntry) error {
				return cli.ShowLine(c, e, "credited %s to %s (entry %d)", amount.Cents(), args[0], e.Entry)
			})
		},
	}
	c.Flags().StringVar(&currency, "currency", "", "currency `CUR` (default: the bank's first)")
	c.Flags().StringVar(&ref, "ref", "", "a reference for the books")
	return c
}

func newBankBalance() *cobra.Command {
	return cli.Watched(&cobra.Command{
		Use: "balance [ACCOUNT]", Short: "Show the balance of one account, or of all", Args: cobra.MaximumNArgs(1), GroupID: "money",
		Long: `Show one account or all, in credits: the balance, how much of it is held, and how much can be
spent.`,
		Example:           "  ramp bank balance\n  ramp bank balance ann --watch",
		ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			var q control.StatementCall
			if len(args) == 1 {
				q.Account = args[0]
			}
			return showBank(c, control.Balances, q, cli.BalanceRows)
		},
	})
}

func newBankStatement() *cobra.Command {
	var f cli.StatementFlags
	c := &cobra.Command{
		Use: "statement ACCOUNT", Short: "Show the entries of an account", Args: cobra.ExactArgs(1), GroupID: "books",
		Long: `Show the entries of an account, oldest first: by how many credits each moved the balance, and
how much it held.`,
		Example:           "  ramp bank statement ann\n  ramp bank statement ann --from 2026-11-01T00:00:00Z",
		ValidArgsFunction: cli.Accounts(1),
		RunE: func(c *cobra.Command, args []string) error {
			q, err := f.Call(args[0])
			if err != nil {
				return err
			}
			var s message.Statement
			if err := askBank(c, control.Statement, q, &s); err != nil {
				return err
			}
			return f.Print(c, s)
		},
	}
	f.Register(c, "show at most `N` entries, 1..1000")
	return cli.Watched(c)
}

func newBankAudit() *cobra.Command {
	var q control.AuditCall
	c := &cobra.Command{
		Use: "audit", Short: "Recompute every balance and hash of the ledger", Args: cobra.NoArgs, GroupID: "books",
		Long: `Recompute every balance and the sum of each currency from the entries, and the Merkle log with
every signed head that is stored. While no daemon runs, check all pages of the ledger's file
too. It changes nothing. Ends with 1 if something is wrong.`,
		Example: "  ramp bank audit\n  ramp bank audit --signatures",
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := auditBank(c, q)
			if err != nil {
				return err
			}
			if err := cli.Show(c, a, func(w io.Writer) { printAudit(w, a, q.Signatures) }); err != nil {
				return err
			}
			if len(a.Bad) > 0 {
				return exit.Fail(exit.Failed, "restore the last backup and compare", "the ledger is damaged: %s", a.Problems())
			}
			return nil
		},
	}
	c.Flags().BoolVar(&q.Signatures, "signatures", false, "also verify the bank's signature on every change by its operator")
	return c
}

// auditBank audits a bank in its daemon, or else here before anything is written: a write might
// hide the damage.
func auditBank(c *cobra.Command, q control.AuditCall) (a control.AuditReport, err error) {
	dir, err := cli.DirOf(c, "bank")
	if err != nil {
		return a, err
	}
	daemon, b, err := cli.ReachBank(c, dir)
	if err != nil {
		return a, err
	}
	if daemon != nil {
		err = control.Audit.Ask(c.Context(), daemon, q, &a)
		return a, err
	}
	defer b.End()
	return b.Audit(c.Context(), q)
}

// verifiedWords say how fast signatures were verified, if any were.
func verifiedWords(perCore float64) string {
	if perCore == 0 {
		return ""
	}
	return fmt.Sprintf("; verified at %.0f signatures per second and core", perCore)
}

func printAudit(w io.Writer, a control.AuditReport, signatures bool) {
	fmt.Fprintf(w, "%d entries, %d accounts\n", a.Entries, a.Accounts)
	for _, cur := range slices.Sorted(maps.Keys(a.Sum)) {
		fmt.Fprintf(w, "  sum of %s: %s\n", cur, a.Sum[cur])
	}
	fmt.Fprintf(w, "  log of %d entries, %d heads; root %s\n", a.Log, a.Heads, a.Root)
	if signatures {
		fmt.Fprintf(w, "  %d operator entries, signed by the bank%s\n", a.Signed, verifiedWords(a.PerCore))
	}
}
