package node

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// operator carries out the acts of a bank's operator in its role. An act returns when it is
// durable.
type operator struct {
	books books
}

func (o *operator) routes(mux *http.ServeMux) {
	control.OpenAccount.Answer(mux, o.openAccount)
	control.Credit.Answer(mux, o.credit)
	control.Confirm.Answer(mux, o.confirm)
	control.SetPolicy.Answer(mux, o.SetPolicy)
	control.SetLimit.Answer(mux, o.setLimit)
	control.SetStanding.Answer(mux, o.setStanding)
	control.SetAllowance.Answer(mux, o.setAllowance)
	control.SetRate.Answer(mux, o.setRate)
	control.Transfer.Answer(mux, o.transfer)
	control.SetRecovery.Answer(mux, o.setRecovery)
	control.OpenGroup.Answer(mux, o.openGroup)
	control.SetGroup.Answer(mux, o.setGroup)
	control.Arbitrate.Answer(mux, o.arbitrate)
}

// do runs an act in the role and waits until it is durable.
func (o *operator) do(ctx context.Context, act func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error)) (ledger.Entry, error) {
	var entry ledger.Entry
	var refused error
	err := o.books.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		entry, out, refused = act(now, r.(*bank.Role))
		return out
	})
	if refused != nil {
		return entry, bankRefusal(refused)
	}
	return entry, orderFault(err)
}

// orderFault gives an order whose outcome is unknown the exit code of an unanswered call:
// repeating the command finds out, and does not repeat the order.
func orderFault(err error) error {
	if errors.Is(err, agents.ErrUncertain) {
		return exit.Fail(exit.Unreachable, "repeat the same command here: it finds an order that was carried out, and moves no money twice", "%w", err)
	}
	return err
}

func bankRefusal(err error) error {
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		return err
	}
	if r.Code == protocol.CodeMalformed || r.Code == protocol.CodeOverflow {
		return exit.Fail(exit.Usage, "", "%s", r.Note)
	}
	return exit.Fail(exit.Refused, "", "%s", r.Note)
}

func (o *operator) openAccount(ctx context.Context, q control.OpenAccountCall) (control.OperatorEntry, error) {
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		if by, taken := nameTaken(r.Ledger(), q.Name, q.Account); taken {
			return ledger.Entry{}, protocol.Output{}, &ledger.Refusal{Code: protocol.CodeMismatch, Note: "the name " + q.Name + " is taken by " + string(by)}
		}
		return r.OpenAccount(now, q.Account, q.Name, q.Limit)
	})
	return control.OperatorEntry{Entry: e.Number, Account: q.Account, Time: e.Time}, err
}

// nameTaken returns the other account that has a name. Closed accounts do not count.
func nameTaken(l *ledger.Ledger, name string, id protocol.AgentID) (by protocol.AgentID, taken bool) {
	for _, a := range l.Accounts() {
		if a.Name == name && a.ID != id && a.Standing != ledger.StandingClosed {
			return a.ID, true
		}
	}
	return "", false
}

func (o *operator) credit(ctx context.Context, q control.CreditCall) (control.OperatorEntry, error) {
	id, err := o.books.account(ctx, q.Account)
	if err != nil {
		return control.OperatorEntry{}, err
	}
	call := q
	call.Key = ""
	e, again, err := o.once(ctx, q.Key, call, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.Credit(now, id, o.books.currency(q.Currency), q.Amount, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Account: id, Time: e.Time, Again: again}, err
}

// once carries out an order that moves money, once for each key; see bank.Orders. Once
// begun, it does not depend on its caller.
func (o *operator) once(ctx context.Context, key string, call any, act func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error)) (e ledger.Entry, again bool, err error) {
	order, err := json.Marshal(call)
	if err != nil {
		return e, false, err
	}
	e, err = o.do(context.WithoutCancel(ctx), func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		if err := ctx.Err(); err != nil { // the caller has left, and may have given the same order again
			return ledger.Entry{}, protocol.Output{}, err
		}
		ended := func(old string) bool { return !control.CommandLives(old) }
		done, repeated, out, err := r.Orders.Once(now, key, string(order), ended, func() (ledger.Entry, protocol.Output, error) { return act(now, r) })
		again = repeated
		return done, out, err
	})
	return e, again, err
}

// confirm forgets an order whose answer its command has printed.
func (o *operator) confirm(ctx context.Context, q control.KeyCall) (control.None, error) {
	return control.None{}, o.books.runner.Do(context.WithoutCancel(ctx), func(_ time.Time, r agents.Role) protocol.Output {
		return r.(*bank.Role).Orders.Confirm(q.Key)
	})
}

// act carries out an act on one account, found as findAccount does.
func (o *operator) act(ctx context.Context, who string, f func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error)) (control.OperatorEntry, error) {
	var id protocol.AgentID
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		a, err := findAccount(r.Ledger(), who)
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		id = a.ID
		return f(now, r, id)
	})
	return control.OperatorEntry{Entry: e.Number, Account: id, Time: e.Time}, err
}

// PolicyKind parses the name of a policy.
func PolicyKind(name string) (ledger.PolicyKind, error) {
	for _, k := range []ledger.PolicyKind{ledger.PolicyPlain, ledger.PolicyBarter, ledger.PolicyAllowance} {
		if name == k.String() {
			return k, nil
		}
	}
	return 0, exit.Fail(exit.Usage, "", "policy %q: want plain, barter or allowance", name)
}

func (o *operator) SetPolicy(ctx context.Context, q control.PolicyCall) (control.OperatorEntry, error) {
	kind, err := PolicyKind(q.Policy)
	if err != nil {
		return control.OperatorEntry{}, err
	}
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetPolicy(now, q.Currency, ledger.Policy{Kind: kind, Decay: int64(q.Decay)}) // micro-credits, as parts per million
	})
	return control.OperatorEntry{Entry: e.Number, Time: e.Time}, err
}

func (o *operator) setLimit(ctx context.Context, q control.LimitCall) (control.OperatorEntry, error) {
	return o.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetLimit(now, id, o.books.currency(q.Currency), q.Limit)
	})
}

func (o *operator) setStanding(ctx context.Context, q control.StandingCall) (control.OperatorEntry, error) {
	standings := map[string]ledger.Standing{"open": ledger.StandingOpen, "frozen": ledger.StandingFrozen, "closed": ledger.StandingClosed}
	s, ok := standings[q.Standing]
	if !ok {
		return control.OperatorEntry{}, exit.Fail(exit.Usage, "", "standing %q: want open, frozen or closed", q.Standing)
	}
	return o.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetStanding(now, id, s, q.Ref)
	})
}

func (o *operator) setAllowance(ctx context.Context, q control.AllowanceCall) (control.OperatorEntry, error) {
	return o.act(ctx, q.Account, func(now time.Time, r *bank.Role, id protocol.AgentID) (ledger.Entry, protocol.Output, error) {
		return r.SetAllowance(now, id, o.books.currency(q.Currency), q.PerDay, q.Ref)
	})
}

func (o *operator) setRate(ctx context.Context, q control.RateCall) (control.OperatorEntry, error) {
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetRate(now, q.From, q.To, q.Rate, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Account: ledger.House, Time: e.Time}, err
}

func (o *operator) transfer(ctx context.Context, q control.TransferCall) (control.OperatorEntry, error) {
	from, err := o.books.account(ctx, q.From)
	if err != nil {
		return control.OperatorEntry{}, err
	}
	to, err := o.books.account(ctx, q.To)
	if err != nil {
		return control.OperatorEntry{}, err
	}
	currency := o.books.currency(q.Currency)
	call := q
	call.Key = ""
	e, again, err := o.once(ctx, q.Key, call, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.Transfer(now, from, to, currency, q.Amount, ledger.Disputed{Contract: q.Contract, Unit: q.Unit}, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Account: from, Time: e.Time, Again: again}, err
}

func (o *operator) setRecovery(ctx context.Context, q control.RecoveryCall) (control.OperatorEntry, error) {
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.SetRecovery(now, q.On, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Time: e.Time}, err
}

func (o *operator) openGroup(ctx context.Context, q control.NameCall) (control.OperatorEntry, error) {
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		return r.OpenGroup(now, q.Name)
	})
	return control.OperatorEntry{Entry: e.Number, Account: ledger.GroupID(q.Name), Time: e.Time}, err
}

func (o *operator) setGroup(ctx context.Context, q control.GroupView) (control.OperatorEntry, error) {
	e, err := o.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		g, err := groupOf(q, r.Ledger())
		if err != nil {
			return ledger.Entry{}, protocol.Output{}, err
		}
		return r.SetGroup(now, g, q.Ref)
	})
	return control.OperatorEntry{Entry: e.Number, Account: ledger.GroupID(q.Group), Time: e.Time}, err
}

// groupOf finds the accounts of a group's members and clusters.
func groupOf(q control.GroupView, l *ledger.Ledger) (ledger.Group, error) {
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
			return g, exit.Fail(exit.Usage, "", "%s pays by %q: want user-then-group, user or group", m.User, m.Pays)
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

// arbitrate decides what a unit is paid. The store supplies a contract that the ledger
// keeps in memory no longer.
func (o *operator) arbitrate(ctx context.Context, q control.ArbitrateCall) (control.Arbitrated, error) {
	done, err := o.tryArbitrate(ctx, &q)
	if errors.Is(err, ledger.ErrAskStore) {
		found, asked := o.books.db.Outcome(q.Contract)
		if asked != nil {
			return done, asked
		}
		err = o.books.runner.Do(ctx, func(_ time.Time, r agents.Role) protocol.Output {
			asked = r.(*bank.Role).Recall(q.Contract, found)
			return protocol.Output{}
		})
		if err = errors.Join(err, asked); err == nil {
			done, err = o.tryArbitrate(ctx, &q)
		}
	}
	return done, err
}

func (o *operator) tryArbitrate(ctx context.Context, q *control.ArbitrateCall) (control.Arbitrated, error) {
	done := control.Arbitrated{Unit: q.Unit, Paid: q.Paid}
	var refused error
	err := o.books.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		role := r.(*bank.Role)
		if q.Contract, refused = claimed(role.Ledger(), q.Contract); refused != nil {
			return protocol.Output{}
		}
		var receipt protocol.Receipt
		var out protocol.Output
		receipt, out, refused = role.Arbitrate(now, q.Contract, q.Unit, q.Paid, q.Ref)
		for _, e := range receipt.Ends {
			if e.Unit == q.Unit {
				done.Entry, done.Time = e.Entry, e.Time
			}
		}
		return out
	})
	done.Contract = q.Contract
	if refused != nil {
		return done, bankRefusal(refused)
	}
	return done, err
}

// claimed completes the prefix of a contract that has a claim.
func claimed(l *ledger.Ledger, id protocol.ContractID) (protocol.ContractID, error) {
	const whole = 64
	if len(id) == whole {
		return id, nil
	}
	found := protocol.ContractID("")
	for _, c := range l.Claims() {
		if !strings.HasPrefix(string(c.Contract), string(id)) || c.Contract == found {
			continue
		}
		if found != "" || id == "" {
			return "", exit.Fail(exit.Usage, "give more of it; 'ramp bank dispute list --json' prints whole IDs", "several contracts with unpaid usage records begin with %q", id)
		}
		found = c.Contract
	}
	if found == "" {
		return "", exit.Fail(exit.Usage, "'ramp bank dispute list' lists them", "no contract with an unpaid usage record begins with %q", id)
	}
	return found, nil
}
