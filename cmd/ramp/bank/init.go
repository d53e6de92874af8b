package bank

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/join"
	"ramp/agents/mesh"
	"ramp/agents/node"
	"ramp/agents/words"
	"ramp/bank/ledger"
	"ramp/bank/ledgeretcd"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
)

// founding is what init needs to make a bank.
type founding struct {
	dir, ca, name, policy, decay string
	store                        string
	etcd                         config.Etcd // how to connect to the cluster of store
	currencies, listen           []string
	enrol                        bool
	invite                       inviteFlags
}

type initAnswer struct {
	Bank     protocol.AgentID     `json:"bank"`
	Dir      string               `json:"dir"`
	CA       string               `json:"ca,omitempty"` // directory of the authority that certified it
	Policies []control.PolicyCall `json:"policies"`

	Invitation string    `json:"invitation"` // file
	Invited    int       `json:"invited"`    // how many may use it
	Expires    time.Time `json:"expires,omitzero"`
	Local      bool      `json:"local"`             // no other machine can reach it
	Again      bool      `json:"again,omitempty"`   // it was made before
	Follows    bool      `json:"follows,omitempty"` // another agent of the bank made the ledger in the cluster
}

func newBankInit() *cobra.Command {
	var f founding
	c := &cobra.Command{
		Use: "init --currency CUR", Short: "Create a bank: credential, configuration, ledger and invitation", Args: cobra.NoArgs, GroupID: "join",
		Long: `Create all that 'ramp bank serve' needs: a credential (agent.pem, agent.key and ca.pem) unless
the directory has one, a commented config.yaml, the ledger with the policy of each currency as
its first entries, and invitation.ramp, by which others join. --ca is the directory of the
authority that certifies the bank and, through invitations, newcomers; it is created if missing.

The bank listens on a free port of 127.0.0.1 unless --listen is given. With --store the ledger
is in an etcd cluster; the same command on another machine, with the bank's credential, creates
another agent of that bank (docs/CLUSTER.md). Nothing is overwritten, and the same command
continues where it was interrupted.`,
		Example: "  ramp bank init --currency CPU --credit 100 --dir bank\n" +
			"  ramp bank init --currency CPU --listen /ip4/0.0.0.0/tcp/4101 --dir bank\n" +
			"  ramp bank init --currency CPU --store etcd:10.0.1.1,10.0.1.2,10.0.1.3 --dir bank",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.dir, err = cli.DirOf(c, "bank"); err != nil {
				return err
			}
			a, err := f.found(c)
			if err != nil {
				return err
			}
			return cli.ShowLine(c, a, "%s", f.words(c, a))
		},
	}
	c.Flags().StringArrayVar(&f.currencies, "currency", nil, "keep accounts in currency `CUR`; repeatable")
	c.Flags().StringVar(&f.policy, "policy", "plain", "`POLICY` of every currency: plain, barter or allowance")
	cli.Choices(c, "policy", "plain", "barter", "allowance")
	c.Flags().StringVar(&f.decay, "decay", "0", "allowance: the `SHARE` of a balance that decays per day, such as 0.01")
	c.Flags().StringVar(&f.name, "name", "bank", "the bank's `NAME`")
	c.Flags().StringVar(&f.ca, "ca", "", "`DIR` of the authority (default: ca in the bank's directory)")
	c.Flags().StringArrayVar(&f.listen, "listen", nil, "listen on `ADDR`; repeatable (default: a free port of 127.0.0.1, which then stays)")
	c.Flags().BoolVar(&f.enrol, "enrol", true, "let the bank certify newcomers who present an invitation's token")
	c.Flags().StringVar(&f.store, "store", "", "where the ledger is, `STORE`: etcd:HOST,HOST,… or bbolt:PATH (default: ledger.db in the bank's directory)")
	c.Flags().StringVar(&f.etcd.Anchors, "etcd-anchors", "", "`FILE` with the trust anchors of an etcd cluster that uses TLS")
	c.Flags().StringVar(&f.etcd.Certificate, "etcd-certificate", "", "`FILE` with the bank's certificate for the cluster, if it requires one")
	c.Flags().StringVar(&f.etcd.Key, "etcd-key", "", "`FILE` with its key")
	f.invite.register(c, initUses)
	_ = c.MarkFlagRequired("currency") // the flag is there: it was made above
	return c
}

// initUses is how many newcomers the first invitation admits.
const initUses = 10

func (f founding) words(c *cobra.Command, a initAnswer) string {
	next := "\n  next: " + cli.Self() + " bank serve" + cli.DirWords(c)
	if a.Again {
		return fmt.Sprintf("bank %s exists already in %s", a.Bank, f.dir) + next
	}
	if a.Follows {
		return fmt.Sprintf("made another agent of bank %s in %s; policies, accounts and invitations are already in the cluster", a.Bank, f.dir) + next
	}
	s := fmt.Sprintf("made bank %s in %s, with policy %s in %s", a.Bank, f.dir, f.policy, strings.Join(f.currencies, ", "))
	if a.Invited > 0 {
		s += fmt.Sprintf("\n  %s admits %d newcomers until %s: pass it on as carefully as a key", a.Invitation, a.Invited, words.AtMinute(a.Expires))
	} else {
		s += fmt.Sprintf("\n  %s has the addresses, but admits nobody by itself", a.Invitation)
	}
	if a.Local {
		s += "\n  it listens on this machine only; to change that, set 'listen' in config.yaml and write a new invitation with 'ramp bank invite'"
	}
	return s + next
}

// found makes the bank once all flags were checked.
func (f founding) found(c *cobra.Command) (initAnswer, error) {
	a := initAnswer{Dir: f.dir}
	var err error
	if a.Policies, err = f.policies(); err != nil {
		return a, err
	}
	if err := f.checkStore(); err != nil {
		return a, err
	}
	call, err := f.invite.call()
	if err != nil {
		return a, err
	}
	if err := f.checkWords(call); err != nil {
		return a, err
	}
	if err := cmp.Or(mesh.CheckAddresses(f.listen, nil), mesh.CheckJoin(f.invite.addresses)); err != nil {
		return a, exit.Fail(exit.Usage, "", "--%w", err)
	}
	leave, err := f.alone()
	if err != nil {
		return a, err
	}
	defer leave()
	if f.finished() {
		a.Again, a.Invitation = true, filepath.Join(f.dir, node.InvitationName)
		return a, f.describe(&a)
	}
	if err := f.begin(); err != nil {
		return a, err
	}
	if a.CA, err = f.credential(); err != nil {
		return a, err
	}
	if err := f.writeConfig(a.CA); err != nil {
		return a, err
	}
	if err := f.open(c, call, &a); err != nil {
		return a, err
	}
	return a, os.Rename(filepath.Join(f.dir, unfinishedName), filepath.Join(f.dir, config.FoundedName))
}

// checkWords rejects flags that would otherwise fail when half of the bank is made.
func (f founding) checkWords(q control.InviteCall) error {
	_, err := protocol.NewAgentID(f.name, strings.Repeat("a", protocol.FingerprintLen))
	switch {
	case err != nil:
		return exit.Fail(exit.Usage, "", "--name: %w", err)
	case q.Credit > 0 && f.policy == ledger.PolicyBarter.String():
		return exit.Fail(exit.Usage, "", "--credit %s with policy barter: nobody issues a bartered currency", q.Credit)
	}
	return nil
}

// describe fills in the identity of the bank whose configuration and credential are in the directory.
func (f founding) describe(a *initAnswer) error {
	cfg, err := config.Read(filepath.Join(f.dir, config.Name))
	if err != nil {
		return err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return err
	}
	a.Bank, a.Local = cred.ID, config.OnlyLocal(cfg.Listen)
	return nil
}

func (f founding) open(c *cobra.Command, call control.InviteCall, a *initAnswer) error {
	b, err := node.NewBank(c.Context(), filepath.Join(f.dir, config.Name), "", node.CommandLog(cli.Stderr(c)), false)
	if errors.Is(err, ledgeretcd.ErrLed) {
		return f.follows(a)
	}
	if err != nil {
		return err
	}
	b.Run(context.WithoutCancel(c.Context()))
	err = f.enter(c.Context(), b, call, a)
	return errors.Join(err, b.Stop())
}

func (f founding) enter(ctx context.Context, b *node.Bank, call control.InviteCall, a *initAnswer) error {
	a.Bank = b.Cred.ID
	there, err := b.Books.Policies(ctx, struct{}{})
	if err != nil {
		return err
	}
	last, err := b.Books.Last(ctx, struct{}{})
	if err != nil {
		return err
	}
	begun := last.Entry > 0
	switch founded, err := f.founds(begun); {
	case err != nil:
		return err
	case !founded:
		return f.follows(a)
	}
	for _, p := range a.Policies {
		if !begun || !slices.Contains(there.Policies, control.PolicyView(p)) {
			if _, err := b.Operator.SetPolicy(ctx, p); err != nil {
				return err
			}
		}
	}
	return f.invitation(ctx, b, call, a)
}

// invitation writes the file by which others join, unless it exists. It withdraws a token whose
// file a crash has lost, as nobody has it.
func (f founding) invitation(ctx context.Context, b *node.Bank, call control.InviteCall, a *initAnswer) error {
	a.Invitation = filepath.Join(f.dir, node.InvitationName)
	if b.Cfg.Bank.Enrol == nil {
		call.Uses = 0
	}
	a.Invited, a.Local = call.Uses, config.OnlyLocal(b.Cfg.Listen)
	if call.Uses > 0 {
		a.Expires = call.Expires
	}
	if config.IsThere(a.Invitation) {
		return nil
	}
	lost, err := b.Invitations.List(ctx, struct{}{})
	if err != nil {
		return err
	}
	for _, v := range lost {
		if _, err := b.Invitations.Withdraw(ctx, control.WithdrawCall{ID: v.ID, Ref: "init was interrupted"}); err != nil {
			return err
		}
	}
	got, err := b.Invitations.Make(ctx, call)
	if err != nil {
		return err
	}
	return join.PutFile(a.Invitation, []byte(got.Invitation), 0o600)
}

// writeConfig writes the configuration, unless an earlier attempt has.
func (f founding) writeConfig(ca string) error {
	path := filepath.Join(f.dir, config.Name)
	if config.IsThere(path) {
		return nil
	}
	if len(f.listen) == 0 {
		port, err := freePort()
		if err != nil {
			return exit.Fail(exit.Failed, "give --listen", "no free port: %w", err)
		}
		f.listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)}
	}
	return join.PutFile(path, []byte(f.configText(ca)), 0o600)
}

// freePort is a free port of this machine, below those that systems use for outgoing connections:
// it must be free at every start of the bank.
func freePort() (int, error) {
	var last error
	for range 100 {
		port := 4101 + rand.IntN(12000-4101)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			return port, l.Close()
		}
		last = err
	}
	return 0, last
}

// configText is the configuration of a new bank, with comments.
func (f founding) configText(ca string) string {
	var b strings.Builder
	b.WriteString("# Configuration of a bank, made by 'ramp bank init'. docs/OPERATIONS.md lists every key.\n")
	b.WriteString("# Its credential is in agent.pem and agent.key, the authorities that it trusts in ca.pem.\n\n")
	b.WriteString("# Where others reach it. /ip4/0.0.0.0/tcp/PORT is every IPv4 address of this machine.\nlisten:\n")
	for _, a := range f.listen {
		fmt.Fprintf(&b, "  - %s\n", a)
	}
	b.WriteString("\nbank:\n  # The first one is the default of commands.\n")
	fmt.Fprintf(&b, "  currencies: [%s]\n", strings.Join(f.currencies, ", "))
	b.WriteString(f.storeText())
	b.WriteString("  # How long nothing expires after a restart.\n  # grace: 60s\n")
	b.WriteString("  # How long after its slot a job that is paid on completion may be reported.\n  # report_within: 24h\n")
	b.WriteString("  # The authority that certifies newcomers who have the token of an invitation. Without this section\n  # nobody is certified, and the authority's key need not be on this machine.\n")
	if f.enrol && ca != "" {
		if rel, err := filepath.Rel(f.dir, ca); err == nil && !filepath.IsAbs(f.ca) {
			ca = rel
		}
		fmt.Fprintf(&b, "  enrol: {authority: %q}\n", ca)
	} else {
		b.WriteString("  # enrol: {authority: ca}\n")
	}
	return b.String()
}

// policies checks the flags and makes the policies of the currencies.
func (f founding) policies() ([]control.PolicyCall, error) {
	var list []control.PolicyCall
	seen := map[string]bool{}
	for _, currency := range f.currencies {
		if !regexp.MustCompile(config.CurrencyPattern).MatchString(currency) || seen[currency] {
			return nil, exit.Fail(exit.Usage, "", "--currency %q: want 3..8 capital letters, each currency once", currency)
		}
		seen[currency] = true
		p, err := policyOf(currency, f.policy, f.decay)
		if err != nil {
			return nil, err
		}
		if (p.Policy == "allowance") != (p.Decay > 0) {
			return nil, exit.Fail(exit.Usage, "", "--decay %s with policy %s: an allowance needs one above zero, other policies have none", f.decay, f.policy)
		}
		list = append(list, p)
	}
	return list, nil
}
