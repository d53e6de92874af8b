package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/bank/ledger"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// openAccountCall and creditCall are an operator's orders.
type openAccountCall struct {
	Account protocol.AgentID `json:"account"`
	Name    string           `json:"name"`
	Limit   protocol.Credits `json:"limit"`
}

type creditCall struct {
	Account  string           `json:"account"` // name or agent ID
	Currency string           `json:"currency"`
	Amount   protocol.Credits `json:"amount"`
	Ref      string           `json:"ref"`
	noted
}

// noted says of an order that moves money whether it may have been carried out already.
type noted struct {
	After uint64 `json:"after,omitempty"` // an entry behind which it stands then; 0: it was not noted
	First bool   `json:"first,omitempty"` // it was noted just now: one like it there is another's
}

// statementCall asks for an account's lines.
type statementCall struct {
	Account string    `json:"account"`
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	After   uint64    `json:"after"`
	Limit   int       `json:"limit"`
}

// operatorEntry is what an order came to.
type operatorEntry struct {
	Entry   uint64           `json:"entry"`
	Account protocol.AgentID `json:"account"`
	Time    time.Time        `json:"time"`
	// Again is said by a command that found what an interrupted one had ordered.
	Again bool `json:"again,omitempty"`
}

// auditCall asks for an audit.
type auditCall struct {
	Signatures bool `json:"signatures"`
}

// auditReport is the audit in JSON; the names are fixed.
type auditReport struct {
	Entries  uint64            `json:"entries"`
	Accounts int               `json:"accounts"`
	Sum      map[string]string `json:"sum"`
	Bad      []string          `json:"bad"`
	Signed   uint64            `json:"signed"` // acts whose signature was verified
	Log      uint64            `json:"log"`    // entries in the Merkle log
	Root     string            `json:"root"`   // of the log
	Heads    int               `json:"heads"`  // signed heads that are kept
	// PerCore is how many signatures of acts one core verifies in a second; 0: none was.
	PerCore float64 `json:"signatures_per_second_per_core,omitempty"`
}

func (b *bankNode) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/account", handler(b.openAccount))
	mux.HandleFunc("POST /v1/credit", handler(b.credit))
	mux.HandleFunc("POST /v1/last", handler(b.last))
	mux.HandleFunc("POST /v1/balances", handler(b.balances))
	mux.HandleFunc("POST /v1/statement", handler(b.accountStatement))
	mux.HandleFunc("POST /v1/audit", handler(b.audit))
	mux.HandleFunc("POST /v1/proof", handler(b.proof))
	b.actRoutes(mux)
	b.readRoutes(mux)
	b.inviteRoutes(mux)
	b.disputeRoutes(mux)
}

// do runs an operator's act in the role and waits until it is durable.
func (b *bankNode) do(ctx context.Context, act func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error)) (ledger.Entry, error) {
	var entry ledger.Entry
	var refused error
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		var out protocol.Output
		entry, out, refused = act(now, r.(*bank.Role))
		return out
	})
	if refused != nil {
		return entry, bankRefusal(refused)
	}
	return entry, orderFault(err)
}

// orderFault gives an order of which nobody knows whether it was carried out the exit
// code of one without an answer: the same command asks again, and finds it.
func orderFault(err error) error {
	if errors.Is(err, agents.ErrUncertain) {
		return fail(exitUnreachable, "give the same command here again: what moves money is found if it was done, and not done twice", "%w", err)
	}
	return err
}

// bankRefusal gives a refusal of the ledger its exit code.
func bankRefusal(err error) error {
	var r *ledger.Refusal
	if !errors.As(err, &r) {
		return err
	}
	if r.Code == protocol.CodeMalformed || r.Code == protocol.CodeOverflow {
		return fail(exitUsage, "", "%s", r.Note)
	}
	return fail(exitRefused, "", "%s", r.Note)
}

func (b *bankNode) openAccount(ctx context.Context, q openAccountCall) (operatorEntry, error) {
	e, err := b.do(ctx, func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
		if by, taken := nameTaken(r.Ledger(), q.Name, q.Account); taken {
			return ledger.Entry{}, protocol.Output{}, &ledger.Refusal{Code: protocol.CodeMismatch, Note: "the name " + q.Name + " is taken by " + string(by)}
		}
		return r.OpenAccount(now, q.Account, q.Name, q.Limit)
	})
	return operatorEntry{Entry: e.Number, Account: q.Account, Time: e.Time}, err
}

// nameTaken says which other account has a name. A closed one has given it up.
func nameTaken(l *ledger.Ledger, name string, id protocol.AgentID) (by protocol.AgentID, taken bool) {
	for _, a := range l.Accounts() {
		if a.Name == name && a.ID != id && a.Standing != ledger.StandingClosed {
			return a.ID, true
		}
	}
	return "", false
}

func (b *bankNode) credit(ctx context.Context, q creditCall) (operatorEntry, error) {
	ctx, done := b.beginOrder(ctx, q.noted)
	defer done()
	id, err := b.account(ctx, q.Account)
	if err != nil {
		return operatorEntry{}, err
	}
	leg := ledger.Leg{Account: id, Currency: b.currency(q.Currency), Amount: q.Amount}
	e, err := b.once(ctx, q.noted, ledger.Entry{Kind: ledger.KindCredit, Ref: q.Ref, Legs: []ledger.Leg{leg}},
		func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error) {
			return r.Credit(now, leg.Account, leg.Currency, leg.Amount, q.Ref)
		})
	return operatorEntry{Entry: e.Number, Account: id, Time: e.Time}, err
}

// account is the ID of the account that is meant by an agent ID, a name or group:NAME.
func (b *bankNode) account(ctx context.Context, who string) (protocol.AgentID, error) {
	var a ledger.Account
	var failed error
	err := b.runner.Do(ctx, func(_ time.Time, r agents.Role) protocol.Output {
		a, failed = findAccount(r.(*bank.Role).Ledger(), who)
		return protocol.Output{}
	})
	return a.ID, errors.Join(failed, err)
}

// last is the number of the last entry; 0: there is none.
func (b *bankNode) last(ctx context.Context, _ struct{}) (e operatorEntry, err error) {
	err = b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		e = operatorEntry{Entry: r.(*bank.Role).Ledger().LastEntry(), Time: now}
		return protocol.Output{}
	})
	return e, err
}

// beginOrder lets one order that may have been given before go on at a time, until it
// is durable even if its client has left: the next one must see it.
func (b *bankNode) beginOrder(ctx context.Context, n noted) (context.Context, func()) {
	if n.After == 0 {
		return ctx, func() {}
	}
	b.orders.Lock()
	return context.WithoutCancel(ctx), b.orders.Unlock
}

// once does an act of the operator, unless it was ordered before and one like it stands
// behind an entry: then the order was carried out, and its answer lost. The caller has
// begun the order.
func (b *bankNode) once(ctx context.Context, n noted, like ledger.Entry, act func(now time.Time, r *bank.Role) (ledger.Entry, protocol.Output, error)) (ledger.Entry, error) {
	if n.First {
		n.After = 0
	}
	if e, ok, err := b.ordered(n.After, like); ok || err != nil {
		return e, err
	}
	return b.do(ctx, act)
}

// ordered finds an entry behind another, of the kind, words and job of like, with all
// its legs. With after 0 there is none.
func (b *bankNode) ordered(after uint64, like ledger.Entry) (ledger.Entry, bool, error) {
	for from := after + 1; after > 0; {
		page, err := b.db.Entries(from, ledgerdb.MaxPage)
		if err != nil || len(page) == 0 {
			return ledger.Entry{}, false, err
		}
		for _, e := range page {
			if e.Kind == like.Kind && e.Ref == like.Ref && e.Contract == like.Contract && e.Unit == like.Unit && hasLegs(e, like.Legs) {
				return e, true, nil
			}
		}
		from = page[len(page)-1].Number + 1
	}
	return ledger.Entry{}, false, nil
}

func hasLegs(e ledger.Entry, legs []ledger.Leg) bool {
	for _, want := range legs {
		if !slices.ContainsFunc(e.Legs, func(l ledger.Leg) bool {
			return l.Account == want.Account && l.Currency == want.Currency && l.Amount == want.Amount
		}) {
			return false
		}
	}
	return true
}

// findAccount finds an account by agent ID, name, or group:NAME; the issuer, which
// nobody opened, and a closed one by its name only if no other has that now.
func findAccount(l *ledger.Ledger, who string) (ledger.Account, error) {
	asked := protocol.AgentID(who)
	if id, ok := groupName(who); ok {
		asked = id
	}
	if a, ok := l.Account(asked); ok {
		return a, nil
	}
	hint := "'ramp bank balance' lists the accounts"
	var last ledger.Account
	for _, a := range l.Accounts() {
		switch {
		case a.Name != who:
		case a.ID == ledger.Issuer:
			last = a
		case a.ID.Local():
			hint = fmt.Sprintf("it may be %q", accountWords(a.ID, a.Name))
		case a.Standing == ledger.StandingClosed:
			last = a
		default:
			return a, nil
		}
	}
	if last.ID != "" {
		return last, nil
	}
	return ledger.Account{}, fail(exitUsage, hint, "no account %q", who)
}

// balances are the accounts asked for, or all of them, the issuer included.
func (b *bankNode) balances(ctx context.Context, q statementCall) ([]message.Balance, error) {
	list := []message.Balance{}
	var failed error
	err := b.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		l := r.(*bank.Role).Ledger()
		accounts := l.Accounts()
		if q.Account != "" {
			a, err := findAccount(l, q.Account)
			accounts, failed = []ledger.Account{a}, err
		}
		for _, a := range accounts {
			a, _ = l.AccountAt(now, a.ID) // with incomes until now
			list = append(list, bank.Balances(a)...)
		}
		return protocol.Output{}
	})
	return list, errors.Join(failed, err)
}

func (b *bankNode) accountStatement(ctx context.Context, q statementCall) (message.Statement, error) {
	id, err := b.account(ctx, q.Account)
	if err != nil {
		return message.Statement{}, err
	}
	return b.statement(message.StatementQuery{Account: id, From: q.From, To: q.To, After: q.After, Limit: q.Limit})
}

// audit recomputes everything from the entries in the store, as they are at one
// moment: settlements go on meanwhile.
func (b *bankNode) audit(_ context.Context, q auditCall) (auditReport, error) {
	a, err := auditLedger(b.db, b.cred, b.trust, b.mesh == nil, q.Signatures)
	for _, c := range b.cfg.Bank.Currencies {
		if a.Sum[c] == "" && err == nil {
			a.Sum[c] = "0"
		}
	}
	return a, err
}

// auditLedger audits a bank's ledger, with the pages of its file and with the
// signatures of its acts if asked for.
func auditLedger(db *ledgerdb.DB, cred *identity.Credential, trust *identity.Trust, pages, signatures bool) (auditReport, error) {
	var verify func(octets, signature []byte) error
	var rate signatureRate
	if signatures {
		verify = rate.timed(verifyActs(cred))
	}
	r, log, err := db.AuditAll(pages, openOwnHead(trust), verify)
	a := auditReport{
		Entries: r.Entries, Accounts: r.Accounts, Sum: r.Sum, Bad: append(r.Bad, log.Bad...),
		Signed: r.Signed, Log: log.Size, Root: log.Root, Heads: log.Heads, PerCore: rate.perCore(),
	}
	if a.Bad == nil {
		a.Bad = []string{}
	}
	return a, err
}

// problems are the lines of a report that are wrong, in one.
func (a auditReport) problems() string { return strings.Join(a.Bad, "; ") }
