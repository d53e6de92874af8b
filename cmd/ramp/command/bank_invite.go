package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/mesh"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/invitation"
	"ramp/rfql/compose"
)

// invitationName is the file that init and the demonstration write.
const invitationName = "invitation.ramp"

// Defaults of an invitation.
const (
	inviteUses    = 1
	inviteExpires = 7 * 24 * time.Hour
)

// Invitations over the control socket.
type (
	inviteCall struct {
		Uses      int              `json:"uses"`    // 0: an invitation without a token
		Expires   time.Time        `json:"expires"` // of the token
		Credit    protocol.Credits `json:"credit"`
		Currency  string           `json:"currency,omitempty"`
		Market    string           `json:"market,omitempty"`
		Addresses []string         `json:"addresses,omitempty"` // in place of the bank's own
		Ref       string           `json:"ref,omitempty"`
	}
	inviteAnswer struct {
		Invitation string           `json:"invitation"` // the file's text
		ID         string           `json:"id,omitempty"`
		Uses       int              `json:"uses,omitempty"`
		Expires    time.Time        `json:"expires,omitzero"`
		Credit     protocol.Credits `json:"credit,omitempty"`
		Currency   string           `json:"currency,omitempty"`
		Entry      uint64           `json:"entry,omitempty"`
		File       string           `json:"file,omitempty"` // that the command wrote
	}
	invitationView struct {
		ID       string           `json:"id"`
		State    string           `json:"state"` // open, used up or over
		Uses     int              `json:"uses"`
		Used     int              `json:"used"`
		Expires  time.Time        `json:"expires"`
		Credit   protocol.Credits `json:"credit,omitempty"`
		Currency string           `json:"currency,omitempty"`
	}
	withdrawCall struct {
		ID  string `json:"id"`
		Ref string `json:"ref,omitempty"`
	}
)

func (b *bankNode) inviteRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/invite", handler(b.invite))
	mux.HandleFunc("POST /v1/invitations", handler(b.invitations))
	mux.HandleFunc("POST /v1/withdraw", handler(b.withdraw))
}

// inviteFlags are what an invitation offers.
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
	c.Flags().IntVar(&f.uses, "uses", uses, "how many it lets in; 0: it has no token, and lets nobody in by itself")
	c.Flags().StringVar(&f.expires, "expires", "7d", "how long its token is good: 36h, 7d")
	c.Flags().StringVar(&f.credit, "credit", "0", "credits that each starts with")
	c.Flags().StringVar(&f.market, "market", "", "what to call the market")
	c.Flags().StringArrayVar(&f.addresses, "address", nil, "address to join by, in place of the bank's own: /dns4/bank.example.org/tcp/4101; may be given many times")
}

// call checks the flags.
func (f inviteFlags) call() (q inviteCall, err error) {
	q = inviteCall{Uses: f.uses, Currency: f.currency, Market: f.market, Addresses: f.addresses}
	life, err := compose.Duration(f.expires)
	switch {
	case err != nil:
		return q, fail(exitUsage, "", "--expires %w", err)
	case f.uses < 0 || f.uses > ledger.MaxUses:
		return q, fail(exitUsage, "", "--uses %d: want 0..%d", f.uses, ledger.MaxUses)
	}
	q.Expires = time.Now().Add(life).UTC().Truncate(time.Second)
	q.Credit, err = amountOrZero("--credit", f.credit)
	if err == nil && q.Credit > 0 && q.Uses == 0 {
		return q, fail(exitUsage, "'ramp bank credit' gives it to an account", "--credit %s with --uses 0: nobody is let in who would get it", q.Credit)
	}
	return q, err
}

func newBankInvite() *cobra.Command {
	var f inviteFlags
	c := &cobra.Command{
		Use: "invite", Short: "Write an invitation: who has it can join the market, with an account", Args: cobra.NoArgs,
		Long: `Writes an invitation to a file: the addresses, trust anchors and banks by which
'ramp user init --join FILE' and 'ramp resource init --join FILE' make an agent. Its
token lets --uses newcomers in until --expires: each gets a certificate and an account
with --credit, over the market. The bank keeps only a hash of the token. It must be
configured to certify (bank.enrol; 'ramp bank init' does that).`,
		Example: "  ramp bank invite --uses 25 --expires 14d --credit 100 --out course.ramp",
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := f.call()
			if err != nil {
				return err
			}
			if isThere(f.out) {
				return fail(exitUsage, "choose another name with --out", "%s is there already", f.out)
			}
			var a inviteAnswer
			if err := askBank(c, "/v1/invite", q, &a); err != nil {
				return err
			}
			if err := writeNew(f.out, []byte(a.Invitation), 0o600); err != nil {
				return err
			}
			a.File = f.out
			return said(c, a, "%s", a.words())
		},
	}
	f.register(c, inviteUses)
	c.Flags().StringVar(&f.currency, "currency", "", "currency of the credit (default: the bank's first)")
	c.Flags().StringVar(&f.out, "out", invitationName, "file to write")
	c.AddCommand(newBankInviteList(), newBankInviteWithdraw())
	return c
}

// words say what an invitation is good for.
func (a inviteAnswer) words() string {
	if a.ID == "" {
		return fmt.Sprintf("wrote %s; it has no token: newcomers need a certificate and an account by other means", a.File)
	}
	credit := ""
	if a.Credit > 0 {
		credit = fmt.Sprintf(", each with %s %s", a.Credit, a.Currency)
	}
	return fmt.Sprintf("wrote %s: invitation %s lets %d in until %s%s\n  whoever has the file can join: hand it over as you would a key\n  they: ramp user init --join %s",
		a.File, a.ID, a.Uses, a.Expires.Format(time.RFC3339), credit, filepath.Base(a.File))
}

func newBankInviteList() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the invitations that are not withdrawn", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var list []invitationView
			if err := askBank(c, "/v1/invitations", nil, &list); err != nil {
				return err
			}
			if wantsJSON(c) {
				return printJSON(stdout(c), list)
			}
			rows := [][]string{{"invitation", "state", "used", "of", "until (UTC)", "credit"}}
			for _, v := range list {
				rows = append(rows, []string{v.ID, v.State, fmt.Sprint(v.Used), fmt.Sprint(v.Uses), secondTime(v.Expires), strings.TrimSpace(v.Credit.String() + " " + v.Currency)})
			}
			table(stdout(c), rows...)
			return nil
		},
	}
}

func newBankInviteWithdraw() *cobra.Command {
	var q withdrawCall
	c := &cobra.Command{
		Use: "withdraw ID", Short: "End an invitation; who was let in stays", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			q.ID = args[0]
			var e operatorEntry
			if err := askBank(c, "/v1/withdraw", q, &e); err != nil {
				return err
			}
			return said(c, e, "invitation %s lets nobody in any more (entry %d)", q.ID, e.Entry)
		},
	}
	flagRef(c, &q.Ref)
	return c
}

// invite makes an invitation: the token is drawn here, and only its hash is kept.
func (b *bankNode) invite(ctx context.Context, q inviteCall) (inviteAnswer, error) {
	v, err := b.plainInvitation(q)
	if err != nil || q.Uses == 0 {
		return inviteAnswer{Invitation: string(v.Text())}, err
	}
	if b.cfg.Bank.Enrol == nil {
		return inviteAnswer{}, fail(exitRefused, "write 'enrol: {authority: ca}' under 'bank:' in config.yaml, with the directory of the authority, and restart; or --uses 0",
			"the bank certifies nobody, so an invitation cannot let anybody in")
	}
	token, err := invitation.NewToken(rand.Reader)
	if err != nil {
		return inviteAnswer{}, err
	}
	currency := b.currency(q.Currency)
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.Invite(now, ledger.Invitation{Token: token.Hash(), Uses: q.Uses, Expires: q.Expires, Credit: q.Credit, Currency: currency}, q.Ref)
	})
	if err != nil {
		return inviteAnswer{}, err
	}
	v.Enrol = &invitation.Enrol{Bank: b.cred.ID, Token: token, Expires: q.Expires.UTC().Truncate(time.Second), Credit: q.Credit}
	if q.Credit > 0 {
		v.Enrol.Currency = currency
	}
	return inviteAnswer{
		Invitation: string(v.Text()), ID: ledger.TokenHash(token.Hash()).Short(), Uses: q.Uses, Expires: v.Enrol.Expires,
		Credit: q.Credit, Currency: v.Enrol.Currency, Entry: e.Number,
	}, v.Validate()
}

// plainInvitation is one without a token.
func (b *bankNode) plainInvitation(q inviteCall) (invitation.Invitation, error) {
	v := invitation.Invitation{Market: q.Market, Banks: []invitation.Bank{{ID: b.cred.ID, Currencies: b.cfg.Bank.Currencies}}}
	var err error
	if v.Anchors, err = os.ReadFile(b.cfg.path(b.cfg.Trust)); err != nil {
		return v, fail(exitUsage, "", "trust anchors: %w", err)
	}
	if v.Bootstrap, err = b.addressesFor(q.Addresses); err != nil {
		return v, err
	}
	if err := v.Validate(); err != nil {
		return v, fail(exitUsage, "", "invitation: %w", err)
	}
	return v, nil
}

// addressesFor are the addresses by which others join: the given ones, each with
// this agent's /p2p/ID, or its own.
func (n *node) addressesFor(given []string) ([]string, error) {
	listen := given
	if len(given) == 0 {
		if n.mesh != nil {
			return n.mesh.Addresses(), nil
		}
		listen = n.cfg.Listen
	}
	var whole, bare []string
	for _, a := range listen {
		if strings.Contains(a, "/p2p/") {
			whole = append(whole, a)
		} else {
			bare = append(bare, a)
		}
	}
	own, err := mesh.AddressesAt(bare, n.cred.PrivateKey())
	if err != nil {
		return nil, fail(exitUsage, "", "address: %w", err)
	}
	if whole = append(whole, own...); len(whole) > 0 {
		return whole, nil
	}
	b, err := os.ReadFile(filepath.Join(n.cfg.dir, addressesName)) // where it was when it ran last
	if err != nil {
		return nil, fail(exitUsage, "start it, or give --address, or write a fixed port under 'listen'", "the agent has no address yet by which others could join")
	}
	return strings.Fields(string(b)), nil
}

func (b *bankNode) invitations(ctx context.Context, _ struct{}) ([]invitationView, error) {
	list := []invitationView{}
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		for _, v := range r.(*bank.Role).Ledger().Invitations() {
			view := invitationView{ID: v.Token.Short(), State: invitationState(now, v), Uses: v.Uses, Used: v.Used, Expires: v.Expires, Credit: v.Credit}
			if v.Credit > 0 {
				view.Currency = v.Currency
			}
			list = append(list, view)
		}
		return protocol.Output{}
	})
	return list, err
}

// invitationState says whether an invitation still lets anybody in.
func invitationState(now time.Time, v ledger.Invitation) string {
	switch {
	case v.Used >= v.Uses:
		return "used up"
	case !now.Before(v.Expires):
		return "over"
	}
	return "open"
}

func (b *bankNode) withdraw(ctx context.Context, q withdrawCall) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		token, err := findInvitation(r.Ledger(), q.ID)
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		return r.Withdraw(now, token, q.Ref)
	})
	return operatorEntry{Entry: e.Number, Time: e.Time}, err
}

// findInvitation finds the one whose ID begins as told.
func findInvitation(l *ledger.Ledger, id string) (ledger.TokenHash, error) {
	var found []ledger.TokenHash
	for _, v := range l.Invitations() {
		if id != "" && strings.HasPrefix(hex.EncodeToString(v.Token[:]), id) {
			found = append(found, v.Token)
		}
	}
	if len(found) != 1 {
		return ledger.TokenHash{}, fail(exitUsage, "'ramp bank invite list' shows them", "%d invitations are called %q, want one", len(found), id)
	}
	return found[0], nil
}
