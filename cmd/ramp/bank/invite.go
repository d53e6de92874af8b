package bank

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/bank/ledger"
	"ramp/cmd/ramp/cli"
	"ramp/rfql/compose"
)

// inviteUses is the default of an invitation.
const inviteUses = 1

type inviteFlags struct {
	uses      int
	expires   string
	credit    string
	currency  string
	market    string
	addresses []string
	out       string
}

func (f *inviteFlags) register(c *cobra.Command, uses int) {
	c.Flags().IntVar(&f.uses, "uses", uses, "admit `N` newcomers; 0: no token, so the invitation admits nobody by itself")
	c.Flags().StringVar(&f.expires, "expires", "7d", "expire after `D`: 36h, 7d, at most 366 days")
	c.Flags().StringVar(&f.credit, "credit", "0", "give each newcomer `C` credits")
	c.Flags().StringVar(&f.market, "market", "", "`NAME` of the market")
	c.Flags().StringArrayVar(&f.addresses, "address", nil, "`ADDR` to join by, instead of the bank's own: /dns4/bank.example.org/tcp/4101; repeatable")
}

func (f inviteFlags) call() (q control.InviteCall, err error) {
	q = control.InviteCall{Uses: f.uses, Currency: f.currency, Market: f.market, Addresses: f.addresses}
	life, err := compose.Duration(f.expires)
	switch {
	case err != nil || life > ledger.MaxInvited:
		return q, exit.Fail(exit.Usage, "", "--expires %s: want a time such as 36h or 7d, at most %d days", f.expires, ledger.MaxInvited/(24*time.Hour))
	case f.uses < 0 || f.uses > ledger.MaxUses:
		return q, exit.Fail(exit.Usage, "", "--uses %d: want 0..%d", f.uses, ledger.MaxUses)
	}
	q.Expires = time.Now().Add(life).UTC().Truncate(time.Second)
	q.Credit, err = cli.AmountOrZero("--credit", f.credit)
	if err == nil && q.Credit > 0 && q.Uses == 0 {
		return q, exit.Fail(exit.Usage, "'ramp bank credit' gives it to an account", "--credit %s with --uses 0: nobody can join to get it", q.Credit)
	}
	return q, err
}

func newBankInvite() *cobra.Command {
	var f inviteFlags
	c := &cobra.Command{
		Use: "invite", Short: "Write an invitation, which lets its holder join with an account", Args: cobra.NoArgs, GroupID: "join",
		Long: `Write an invitation to a file: the addresses, trust anchors and banks from which
'ramp user init --join FILE' and 'ramp resource init --join FILE' create an agent. Its token
admits --uses newcomers until it expires: each gets a certificate and an account with --credit
over the market. Whoever has the file can join, so hand it over like a key. The bank stores only
a hash of the token. It must be configured to certify (bank.enrol; 'ramp bank init' does that);
otherwise the command ends with 4.`,
		Example: "  ramp bank invite --uses 25 --expires 14d --credit 100 --out course.ramp",
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := f.call()
			if err != nil {
				return err
			}
			if config.IsThere(f.out) {
				return exit.Fail(exit.Usage, "choose another name with --out", "%s exists already", f.out)
			}
			var a control.InviteAnswer
			if err := askBank(c, control.Invite, q, &a); err != nil {
				return err
			}
			err = join.WriteNew(f.out, []byte(a.Invitation), 0o600)
			if err != nil && a.ID != "" { // nobody has its token
				err = errors.Join(err, askBank(c, control.Withdraw, control.WithdrawCall{ID: a.ID}, &control.OperatorEntry{}))
			}
			if err != nil {
				return err
			}
			a.File = f.out
			return cli.ShowLine(c, a, "%s", a.Words())
		},
	}
	f.register(c, inviteUses)
	c.Flags().StringVar(&f.currency, "currency", "", "currency `CUR` of the credit (default: the bank's first)")
	c.Flags().StringVar(&f.out, "out", node.InvitationName, "write to `FILE`, which must not exist")
	c.AddCommand(newBankInviteList(), newBankInviteWithdraw())
	return c
}

func newBankInviteList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the invitations that are not withdrawn", Args: cobra.NoArgs,
		Long: `List the invitations that are not withdrawn: how many newcomers each admits, how many came, when
it expires, and the credit it gives.`,
		Example: "  ramp bank invite list",
		RunE: func(c *cobra.Command, _ []string) error {
			return showBank(c, control.Invitations, struct{}{}, invitationRows)
		},
	}
}

func invitationRows(list []control.InvitationView) [][]string {
	rows := [][]string{{"invitation", "state", "used", "of", "until (" + words.Zone() + ")", "credit"}}
	for _, v := range list {
		rows = append(rows, []string{v.ID, v.State, fmt.Sprint(v.Used), fmt.Sprint(v.Uses), words.Timestamp(v.Expires), strings.TrimSpace(v.Credit.Cents() + " " + v.Currency)})
	}
	return rows
}

func newBankInviteWithdraw() *cobra.Command {
	var q control.WithdrawCall
	c := &cobra.Command{
		Use: "withdraw ID", Short: "Withdraw an invitation; those admitted stay", Args: cobra.ExactArgs(1),
		Example: "  ramp bank invite withdraw 5b6cfa1c --ref 'course is over'",
		RunE: func(c *cobra.Command, args []string) error {
			q.ID = args[0]
			return operate(c, control.Withdraw, q, "withdrew invitation %s; nobody can join with it any more", q.ID)
		},
	}
	flagRef(c, &q.Ref)
	return c
}
