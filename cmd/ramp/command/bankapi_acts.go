package command

import (
	"context"
	"net/http"
	"strings"
	"time"

	"ramp/agents/bank"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// The orders of an operator that are acts: each makes one signed entry.
type (
	policyCall struct {
		Currency string           `json:"currency"`
		Policy   string           `json:"policy"`
		Decay    protocol.Credits `json:"decay"` // part of a balance, per day
	}
	limitCall struct {
		Account  string           `json:"account"`
		Currency string           `json:"currency"`
		Limit    protocol.Credits `json:"limit"`
	}
	standingCall struct {
		Account  string `json:"account"`
		Standing string `json:"standing"`
		Ref      string `json:"ref"`
	}
	allowanceCall struct {
		Account  string           `json:"account"`
		Currency string           `json:"currency"`
		PerDay   protocol.Credits `json:"per_day"`
		Ref      string           `json:"ref"`
	}
	rateCall struct {
		From string           `json:"from"`
		To   string           `json:"to"`
		Rate protocol.Credits `json:"rate"`
		Ref  string           `json:"ref"`
	}
	transferCall struct {
		From     string              `json:"from"`
		To       string              `json:"to"`
		Currency string              `json:"currency"`
		Amount   protocol.Credits    `json:"amount"`
		Contract protocol.ContractID `json:"contract,omitempty"` // disputed
		Unit     int                 `json:"unit,omitempty"`
		Ref      string              `json:"ref"`
		noted
	}
	recoveryCall struct {
		On  bool   `json:"on"`
		Ref string `json:"ref"`
	}
	// groupView is a group, in calls and answers; shares are parts per million.
	groupView struct {
		Group    string       `json:"group"`
		Shared   int64        `json:"shared"`
		Members  []memberView `json:"members"`
		Clusters []string     `json:"clusters"`
		Ref      string       `json:"ref,omitempty"` // of a call
	}
	memberView struct {
		User  string `json:"user"`
		Share int64  `json:"share"`
		Pays  string `json:"pays"`
	}
	nameCall struct {
		Name string `json:"name"`
	}
)

func (b *bankNode) actRoutes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/policy", handler(b.setPolicy))
	mux.HandleFunc("POST /v1/limit", handler(b.setLimit))
	mux.HandleFunc("POST /v1/standing", handler(b.setStanding))
	mux.HandleFunc("POST /v1/allowance", handler(b.setAllowance))
	mux.HandleFunc("POST /v1/rate", handler(b.setRate))
	mux.HandleFunc("POST /v1/transfer", handler(b.transfer))
	mux.HandleFunc("POST /v1/recovery", handler(b.setRecovery))
	mux.HandleFunc("POST /v1/opengroup", handler(b.openGroup))
	mux.HandleFunc("POST /v1/group", handler(b.setGroup))
}

// act carries out an act on one account.
func (b *bankNode) act(ctx context.Context, who string, f func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error)) (operatorEntry, error) {
	var id protocol.AgentID
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		a, err := findAccount(r.Ledger(), who)
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		id = a.ID
		return f(now, r, id)
	})
	return operatorEntry{Entry: e.Number, Account: id, Time: e.Time}, err
}

// currency is the one that a call means: the bank's first without one.
func (b *bankNode) currency(asked string) string {
	if asked == "" {
		return b.cfg.Bank.Currencies[0]
	}
	return asked
}

// policyKind reads the name of a policy.
func policyKind(name string) (ledger.PolicyKind, error) {
	for _, k := range []ledger.PolicyKind{ledger.PolicyPlain, ledger.PolicyBarter, ledger.PolicyAllowance} {
		if name == k.String() {
			return k, nil
		}
	}
	return 0, fail(exitUsage, "", "policy %q: want plain, barter or allowance", name)
}

func (b *bankNode) setPolicy(ctx context.Context, q policyCall) (operatorEntry, error) {
	kind, err := policyKind(q.Policy)
	if err != nil {
		return operatorEntry{}, err
	}
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetPolicy(now, q.Currency, ledger.Policy{Kind: kind, Decay: int64(q.Decay)}) // micro-credits, as parts per million
	})
	return operatorEntry{Entry: e.Number, Time: e.Time}, err
}

func (b *bankNode) setLimit(ctx context.Context, q limitCall) (operatorEntry, error) {
	return b.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetLimit(now, id, b.currency(q.Currency), q.Limit)
	})
}

func (b *bankNode) setStanding(ctx context.Context, q standingCall) (operatorEntry, error) {
	standings := map[string]ledger.Standing{"open": ledger.StandingOpen, "frozen": ledger.StandingFrozen, "closed": ledger.StandingClosed}
	s, ok := standings[q.Standing]
	if !ok {
		return operatorEntry{}, fail(exitUsage, "", "standing %q: want open, frozen or closed", q.Standing)
	}
	return b.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetStanding(now, id, s, q.Ref)
	})
}

func (b *bankNode) setAllowance(ctx context.Context, q allowanceCall) (operatorEntry, error) {
	return b.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetAllowance(now, id, b.currency(q.Currency), q.PerDay, q.Ref)
	})
}

func (b *bankNode) setRate(ctx context.Context, q rateCall) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetRate(now, q.From, q.To, q.Rate, q.Ref)
	})
	return operatorEntry{Entry: e.Number, Account: ledger.House, Time: e.Time}, err
}

func (b *bankNode) transfer(ctx context.Context, q transferCall) (operatorEntry, error) {
	ctx, done := b.beginOrder(ctx, q.noted)
	defer done()
	from, err := b.account(ctx, q.From)
	if err != nil {
		return operatorEntry{}, err
	}
	to, err := b.account(ctx, q.To)
	if err != nil {
		return operatorEntry{}, err
	}
	currency := b.currency(q.Currency)
	like := ledger.Entry{Kind: ledger.KindTransfer, Ref: q.Ref, Contract: q.Contract, Unit: q.Unit, Legs: []ledger.Leg{
		{Account: from, Currency: currency, Amount: -q.Amount}, {Account: to, Currency: currency, Amount: q.Amount},
	}}
	e, err := b.once(ctx, q.noted, like, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.Transfer(now, from, to, currency, q.Amount, ledger.Disputed{Contract: q.Contract, Unit: q.Unit}, q.Ref)
	})
	return operatorEntry{Entry: e.Number, Account: from, Time: e.Time}, err
}

func (b *bankNode) setRecovery(ctx context.Context, q recoveryCall) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetRecovery(now, q.On, q.Ref)
	})
	return operatorEntry{Entry: e.Number, Time: e.Time}, err
}

func (b *bankNode) openGroup(ctx context.Context, q nameCall) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.OpenGroup(now, q.Name)
	})
	return operatorEntry{Entry: e.Number, Account: ledger.GroupID(q.Name), Time: e.Time}, err
}

func (b *bankNode) setGroup(ctx context.Context, q groupView) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		g, err := q.group(r.Ledger())
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		return r.SetGroup(now, g, q.Ref)
	})
	return operatorEntry{Entry: e.Number, Account: ledger.GroupID(q.Group), Time: e.Time}, err
}

// group finds the accounts that a call names.
func (q groupView) group(l *ledger.Ledger) (ledger.Group, error) {
	ways := map[string]ledger.Pays{"": ledger.PaysUserThenGroup}
	for _, p := range []ledger.Pays{ledger.PaysUserThenGroup, ledger.PaysUser, ledger.PaysGroup} {
		ways[p.String()] = p
	}
	g := ledger.Group{Name: q.Group, Shared: q.Shared}
	for _, m := range q.Members {
		a, err := findAccount(l, m.User)
		if err != nil {
			return g, err
		}
		pays, ok := ways[m.Pays]
		if !ok {
			return g, fail(exitUsage, "", "%s pays by %q: want user-then-group, user or group", m.User, m.Pays)
		}
		g.Members = append(g.Members, ledger.Member{User: a.ID, Share: m.Share, Pays: pays})
	}
	for _, c := range q.Clusters {
		a, err := findAccount(l, c)
		if err != nil {
			return g, err
		}
		g.Clusters = append(g.Clusters, a.ID)
	}
	return g, nil
}

// groupWord begins the name of a group's account in commands.
const groupWord = "group:"

// groupName is the group that an operator means by 'group:NAME'.
func groupName(who string) (protocol.AgentID, bool) {
	name, ok := strings.CutPrefix(who, groupWord)
	return ledger.GroupID(name), ok
}
