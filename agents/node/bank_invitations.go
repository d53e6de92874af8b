package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/mesh"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/invitation"
)

// InvitationName is the file that 'bank init' and the demo write.
const InvitationName = "invitation.ramp"

type invitations struct {
	node     *Node
	operator *operator
}

func (i invitations) routes(mux *http.ServeMux) {
	control.Invite.Answer(mux, i.Make)
	control.Invitations.Answer(mux, i.List)
	control.Withdraw.Answer(mux, i.Withdraw)
}

// Make makes an invitation. The ledger keeps only the hash of its token.
func (i invitations) Make(ctx context.Context, q control.InviteCall) (control.InviteAnswer, error) {
	v, err := i.plain(q)
	if err != nil || q.Uses == 0 {
		return control.InviteAnswer{Invitation: string(v.Text())}, err
	}
	if i.node.Cfg.Bank.Enrol == nil {
		return control.InviteAnswer{}, exit.Fail(exit.Refused, "write 'enrol: {authority: ca}' under 'bank:' in config.yaml, with the directory of the authority, and restart; or --uses 0",
			"the bank issues no certificates, so an invitation cannot let anybody in")
	}
	token, err := invitation.NewToken(rand.Reader)
	if err != nil {
		return control.InviteAnswer{}, err
	}
	currency := i.operator.books.currency(q.Currency)
	e, err := i.operator.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.Invite(now, ledger.Invitation{Token: token.Hash(), Uses: q.Uses, Expires: q.Expires, Credit: q.Credit, Currency: currency}, q.Ref)
	})
	if err != nil {
		return control.InviteAnswer{}, err
	}
	v.Enrol = &invitation.Enrol{Bank: i.node.Cred.ID, Token: token, Expires: q.Expires.UTC().Truncate(time.Second), Credit: q.Credit}
	if q.Credit > 0 {
		v.Enrol.Currency = currency
	}
	return control.InviteAnswer{
		Invitation: string(v.Text()), ID: ledger.TokenHash(token.Hash()).Short(), Uses: q.Uses, Expires: v.Enrol.Expires,
		Credit: q.Credit, Currency: v.Enrol.Currency, Entry: e.Number,
	}, v.Validate()
}

func (i invitations) plain(q control.InviteCall) (invitation.Invitation, error) {
	v := invitation.Invitation{Market: q.Market, Banks: []invitation.Bank{{ID: i.node.Cred.ID, Currencies: i.node.Cfg.Bank.Currencies}}}
	var err error
	if v.Anchors, err = os.ReadFile(i.node.Cfg.Path(i.node.Cfg.Trust)); err != nil {
		return v, exit.Fail(exit.Usage, "", "trust anchors: %w", err)
	}
	if v.Bootstrap, err = i.node.addressesFor(q.Addresses); err != nil {
		return v, err
	}
	if err := v.Validate(); err != nil {
		return v, exit.Fail(exit.Usage, "", "invitation: %w", err)
	}
	return v, nil
}

// addressesFor returns the addresses by which others join: the given ones, each completed
// with this agent's /p2p/ID, or the agent's own.
func (n *Node) addressesFor(given []string) ([]string, error) {
	listen := given
	if len(given) == 0 {
		if n.Mesh != nil {
			return config.Elsewhere(n.Mesh.Addresses()), nil
		}
		listen = n.Cfg.Listen
	}
	var whole, bare []string
	for _, a := range listen {
		if strings.Contains(a, "/p2p/") {
			whole = append(whole, a)
		} else {
			bare = append(bare, a)
		}
	}
	own, err := mesh.AddressesAt(bare, n.Cred.PrivateKey())
	if err = cmp.Or(mesh.CheckJoin(given), err); err != nil {
		return nil, exit.Fail(exit.Usage, "", "%w", err)
	}
	if whole = append(whole, own...); len(whole) > 0 {
		return config.Elsewhere(whole), nil
	}
	b, err := os.ReadFile(filepath.Join(n.Cfg.Dir, addressesName)) // its addresses when it last ran
	if err != nil {
		return nil, exit.Fail(exit.Usage, "start it, or give --address, or write a fixed port under 'listen'", "the agent has no address yet by which others could join")
	}
	return strings.Fields(string(b)), nil
}

func (i invitations) List(ctx context.Context, _ struct{}) ([]control.InvitationView, error) {
	return agents.Read(ctx, i.node.Runner, func(now time.Time, r *bank.Role) []control.InvitationView {
		list := []control.InvitationView{}
		for _, v := range r.Ledger().Invitations.All() {
			view := control.InvitationView{ID: v.Token.Short(), State: invitationState(now, v), Uses: v.Uses, Used: v.Used, Expires: v.Expires, Credit: v.Credit}
			if v.Credit > 0 {
				view.Currency = v.Currency
			}
			list = append(list, view)
		}
		return list
	})
}

// invitationState reports whether an invitation still lets anybody in.
func invitationState(now time.Time, v ledger.Invitation) string {
	switch {
	case v.Used >= v.Uses:
		return "used up"
	case !now.Before(v.Expires):
		return "over"
	}
	return "open"
}

func (i invitations) Withdraw(ctx context.Context, q control.WithdrawCall) (control.OperatorEntry, error) {
	e, err := i.operator.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		token, err := findInvitation(r.Ledger(), q.ID)
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		return r.Withdraw(now, token, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Time: e.Time}, err
}

func findInvitation(l *ledger.Ledger, id string) (ledger.TokenHash, error) {
	var found []ledger.TokenHash
	for _, v := range l.Invitations.All() {
		if id != "" && strings.HasPrefix(hex.EncodeToString(v.Token[:]), id) {
			found = append(found, v.Token)
		}
	}
	if len(found) != 1 {
		return ledger.TokenHash{}, exit.Fail(exit.Usage, "'ramp bank invite list' lists those that are not withdrawn", "%d invitations have an ID that begins with %q, want one", len(found), id)
	}
	return found[0], nil
}
