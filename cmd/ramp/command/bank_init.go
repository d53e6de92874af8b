package command

import (
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

	"ramp/agents/mesh"
	"ramp/bank/ledger"
	"ramp/bank/ledgeretcd"
	"ramp/protocol"
)

// founding is what init makes a bank of.
type founding struct {
	dir, ca, name, policy, decay string
	store                        string
	etcd                         etcdConfig // how the cluster of store is spoken to
	currencies, listen           []string
	enrol                        bool
	invite                       inviteFlags
}

// initAnswer is what init made, in JSON.
type initAnswer struct {
	Bank     protocol.AgentID `json:"bank"`
	Dir      string           `json:"dir"`
	CA       string           `json:"ca,omitempty"` // directory of the authority that it was certified by
	Policies []policyCall     `json:"policies"`

	Invitation string    `json:"invitation"` // file
	Invited    int       `json:"invited"`    // how many it lets in
	Expires    time.Time `json:"expires,omitzero"`
	Local      bool      `json:"local"`             // nobody on another machine can reach it
	Again      bool      `json:"again,omitempty"`   // it was made before
	Follows    bool      `json:"follows,omitempty"` // its ledger is in the cluster already: another agent of the bank made it
}

func newBankInit() *cobra.Command {
	var f founding
	c := &cobra.Command{
		Use: "init --currency CUR", Short: "Make a bank: authority, credential, configuration, ledger and invitation", Args: cobra.NoArgs,
		Long: `Makes all that 'ramp bank serve' needs: a credential (agent.pem, agent.key and ca.pem),
unless one is in the directory already, config.yaml with comments, the ledger with the
policy of each currency as its first entries, and invitation.ramp, by which others join.
--ca is the directory of the authority that certifies the bank and, by invitations,
newcomers (--enrol=false: nobody); it is made if it is not there.

The bank listens on a free port of this machine alone, unless --listen says more. With
--store the ledger is in an etcd cluster; given with the bank's credential on another
machine, the same makes another agent of that bank (docs/CLUSTER.md). Nothing
is overwritten, and the same command goes on where it was interrupted.`,
		Example: "  ramp bank init --currency CPU --credit 100 --dir bank\n  ramp bank serve --dir bank\n\n" +
			"  ramp bank init --currency CPU --listen /ip4/0.0.0.0/tcp/4101 --dir bank\n  ramp bank init --currency CPU --store etcd:10.0.1.1,10.0.1.2,10.0.1.3 --dir bank",
		RunE: func(c *cobra.Command, _ []string) error {
			var err error
			if f.dir, err = dirOf(c, "bank"); err != nil {
				return err
			}
			a, err := f.found(c)
			if err != nil {
				return err
			}
			return said(c, a, "%s", f.words(c, a))
		},
	}
	c.Flags().StringArrayVar(&f.currencies, "currency", nil, "a currency that it keeps accounts in; may be given many times")
	c.Flags().StringVar(&f.policy, "policy", "plain", "plain, barter or allowance, of every currency")
	c.Flags().StringVar(&f.decay, "decay", "0", "of an allowance: the part of a balance that decays per day, such as 0.01")
	c.Flags().StringVar(&f.name, "name", "bank", "the bank's name")
	c.Flags().StringVar(&f.ca, "ca", "", "directory of the authority (default: ca in the bank's directory)")
	c.Flags().StringArrayVar(&f.listen, "listen", nil, "address to listen on (default: a free port of 127.0.0.1); may be given many times")
	c.Flags().BoolVar(&f.enrol, "enrol", true, "let the bank certify newcomers that show an invitation's token")
	c.Flags().StringVar(&f.store, "store", "", "where the ledger is: etcd:HOST,HOST,… or bbolt:PATH (default: ledger.db in the bank's directory)")
	c.Flags().StringVar(&f.etcd.Anchors, "etcd-anchors", "", "trust anchors of an etcd cluster that speaks TLS")
	c.Flags().StringVar(&f.etcd.Certificate, "etcd-certificate", "", "the bank's certificate for the cluster, if that asks for one")
	c.Flags().StringVar(&f.etcd.Key, "etcd-key", "", "its key")
	f.invite.register(c, initUses)
	_ = c.MarkFlagRequired("currency") // the flag is there: it was made above
	return c
}

// initUses is how many the first invitation lets in.
const initUses = 10

// words say what was made.
func (f founding) words(c *cobra.Command, a initAnswer) string {
	if a.Again {
		return fmt.Sprintf("bank %s is made in %s already\n  next: %s bank serve%s", a.Bank, f.dir, self(), dirWords(c))
	}
	if a.Follows {
		return fmt.Sprintf("made another agent of bank %s in %s; policies, accounts and invitations are in the cluster already\n  next: %s bank serve%s", a.Bank, f.dir, self(), dirWords(c))
	}
	s := fmt.Sprintf("made bank %s in %s, with policy %s in %s\n", a.Bank, f.dir, f.policy, f.currencies)
	if a.Invited > 0 {
		s += fmt.Sprintf("  %s lets %d newcomers in until %s: hand it over as you would a key\n", a.Invitation, a.Invited, a.Expires.Format(time.RFC3339))
	} else {
		s += fmt.Sprintf("  %s says how to join it\n", a.Invitation)
	}
	if a.Local {
		s += "  it listens on this machine alone; 'listen' in config.yaml says where, and 'ramp bank invite' writes a new invitation then\n"
	}
	return s + "  next: " + self() + " bank serve" + dirWords(c)
}

// found makes the bank once everything that was asked for makes sense.
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
	if err := mesh.CheckAddresses(append(slices.Clone(f.listen), f.invite.addresses...), nil); err != nil {
		return a, fail(exitUsage, "", "--listen or --address: %w", err)
	}
	leave, err := f.alone()
	if err != nil {
		return a, err
	}
	defer leave()
	if f.finished() {
		return f.made(a)
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
	return a, os.Rename(filepath.Join(f.dir, unfinishedName), filepath.Join(f.dir, finishedName))
}

// checkWords refuses what would be refused only when half of the bank is made.
func (f founding) checkWords(q inviteCall) error {
	_, err := protocol.NewAgentID(f.name, strings.Repeat("a", protocol.FingerprintLen))
	switch {
	case err != nil:
		return fail(exitUsage, "", "--name: %w", err)
	case q.Credit > 0 && f.policy == ledger.PolicyBarter.String():
		return fail(exitUsage, "", "--credit %s with policy barter: nobody issues what is bartered", q.Credit)
	case time.Until(q.Expires) > ledger.MaxInvited:
		return fail(exitUsage, "", "--expires %s: want at most %d days", f.invite.expires, ledger.MaxInvited/(24*time.Hour))
	}
	return nil
}

// made tells of a bank that is there already.
func (f founding) made(a initAnswer) (initAnswer, error) {
	cfg, err := readConfig(filepath.Join(f.dir, configName))
	if err != nil {
		return a, err
	}
	cred, err := cfg.credential()
	if err != nil {
		return a, err
	}
	a.Bank, a.Again, a.Local = cred.ID, true, onlyLocal(cfg.Listen)
	a.Invitation = filepath.Join(f.dir, invitationName)
	return a, nil
}

// open makes the ledger and the invitation.
func (f founding) open(c *cobra.Command, call inviteCall, a *initAnswer) error {
	b, err := newBankNode(c.Context(), filepath.Join(f.dir, configName), "", commandLog(stderr(c)), false)
	if errors.Is(err, ledgeretcd.ErrLed) {
		return f.follows(a)
	}
	if err != nil {
		return err
	}
	b.run(context.WithoutCancel(c.Context()))
	err = f.enter(c.Context(), b, call, a)
	return errors.Join(err, b.stop())
}

func (f founding) enter(ctx context.Context, b *bankNode, call inviteCall, a *initAnswer) error {
	a.Bank = b.cred.ID
	there, err := b.policies(ctx, struct{}{})
	if err != nil {
		return err
	}
	begun := false
	if err := b.read(ctx, func(_ time.Time, l *ledger.Ledger) { begun = l.LastEntry() > 0 }); err != nil {
		return err
	}
	switch founded, err := f.founds(begun); {
	case err != nil:
		return err
	case !founded:
		return f.follows(a)
	}
	for _, p := range a.Policies {
		if !begun || !slices.Contains(there.Policies, policyView(p)) {
			if _, err := b.setPolicy(ctx, p); err != nil {
				return err
			}
		}
	}
	return f.invitation(ctx, b, call, a)
}

// invitation writes the file by which others join, unless it is there. A token
// whose file was lost to a crash is withdrawn: nobody has it.
func (f founding) invitation(ctx context.Context, b *bankNode, call inviteCall, a *initAnswer) error {
	a.Invitation = filepath.Join(f.dir, invitationName)
	if b.cfg.Bank.Enrol == nil {
		call.Uses = 0
	}
	a.Invited, a.Local = call.Uses, onlyLocal(b.cfg.Listen)
	if call.Uses > 0 {
		a.Expires = call.Expires
	}
	if isThere(a.Invitation) {
		return nil
	}
	lost, err := b.invitations(ctx, struct{}{})
	if err != nil {
		return err
	}
	for _, v := range lost {
		if _, err := b.withdraw(ctx, withdrawCall{ID: v.ID, Ref: "init was interrupted"}); err != nil {
			return err
		}
	}
	got, err := b.invite(ctx, call)
	if err != nil {
		return err
	}
	return putFile(a.Invitation, []byte(got.Invitation), 0o600)
}

// onlyLocal reports whether nobody on another machine can reach the addresses.
func onlyLocal(listen []string) bool {
	for _, a := range listen {
		if !strings.HasPrefix(a, "/ip4/127.") && !strings.HasPrefix(a, "/ip6/::1/") {
			return false
		}
	}
	return true
}

// writeConfig writes the configuration, unless it is there from a try before.
func (f founding) writeConfig(ca string) error {
	path := filepath.Join(f.dir, configName)
	if isThere(path) {
		return nil
	}
	if len(f.listen) == 0 {
		port, err := freePort()
		if err != nil {
			return fail(exitFailed, "give --listen", "no free port: %w", err)
		}
		f.listen = []string{fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", port)}
	}
	return putFile(path, []byte(f.configText(ca)), 0o600)
}

// freePort is a port of this machine that nobody listens on now, below those that
// systems give to outgoing connections: the bank must find it free at every start.
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
	b.WriteString("# Its credential is in agent.pem and agent.key, whom it trusts in ca.pem.\n\n")
	b.WriteString("# Where others reach it. /ip4/0.0.0.0/tcp/PORT is every IPv4 address of this machine.\nlisten:\n")
	for _, a := range f.listen {
		fmt.Fprintf(&b, "  - %s\n", a)
	}
	b.WriteString("\nbank:\n  # The first one is meant where a command names none.\n")
	fmt.Fprintf(&b, "  currencies: [%s]\n", strings.Join(f.currencies, ", "))
	b.WriteString(f.storeText())
	b.WriteString("  # After a restart nothing expires for so long.\n  # grace: 60s\n")
	b.WriteString("  # How long after its slot a job that is paid after the fact may be reported.\n  # report_within: 24h\n")
	b.WriteString("  # The authority that certifies newcomers with an invitation's token. Without this section nobody is\n  # certified, and the authority's key need not be on this machine.\n")
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

// policies are those of the currencies, which are checked before anything is made.
func (f founding) policies() ([]policyCall, error) {
	var list []policyCall
	seen := map[string]bool{}
	for _, currency := range f.currencies {
		if !regexp.MustCompile(currencyPattern).MatchString(currency) || seen[currency] {
			return nil, fail(exitUsage, "", "--currency %q: want 3..8 capital letters, each currency once", currency)
		}
		seen[currency] = true
		p, err := policyOf(currency, f.policy, f.decay)
		if err != nil {
			return nil, err
		}
		if (p.Policy == "allowance") != (p.Decay > 0) {
			return nil, fail(exitUsage, "", "--decay %s with policy %s: an allowance has one above zero, the others none", f.decay, f.policy)
		}
		list = append(list, p)
	}
	return list, nil
}
