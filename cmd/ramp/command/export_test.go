package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents"
	"ramp/agents/journal"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// EchoControl is the control socket's front with calls that answer what they
// read: everything between the socket and the roles.
func EchoControl() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/buy", handler(func(_ context.Context, q buyCall) (buyCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/cancel", handler(func(_ context.Context, q idCall) (idCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/check", handler(func(_ context.Context, q checkCall) (checkCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/offers", handler(func(_ context.Context, q lastCall) (lastCall, error) { return q, nil }))
	return versioned(mux)
}

// Root is the tree of commands.
func Root() *cobra.Command { return newRoot() }

// ProgressOf is what is printed of a purchase that goes on, where there is no terminal.
func ProgressOf(w io.Writer, states ...message.Purchase) {
	p := newProgress(w)
	for _, v := range states {
		p.purchase(v)
	}
}

// Awaiting is what is said of a wait for something until an instant, where there is no
// terminal, that lasts for longer than a while, or not.
func Awaiting(w io.Writer, what string, until time.Time, long bool) {
	while := make(chan time.Time)
	stop := awaitingAfter(newProgress(w), while, what, until)
	if long {
		while <- time.Time{}
	}
	stop()
}

// Within is a question that nobody answers, to which the agent gives up.
func Within(most time.Duration) error {
	_, err := within(most, func(ctx context.Context, _ struct{}) (struct{}, error) {
		<-ctx.Done()
		return struct{}{}, ctx.Err()
	})(context.Background(), struct{}{})
	return err
}

// CancelledCode is how 'user cancel' of a unit (from 1; 0: all) ends.
func CancelledCode(p message.Purchase, unit int) int {
	c := newRoot()
	c.SetOut(io.Discard)
	return report(io.Discard, printCancelled(c, p, unit))
}

// Unanswered is what 'user kill' or another word on a run says of sites that have not
// done it.
func Unanswered(verb message.LaunchVerb, units ...message.RunUnit) string {
	return silentSites(verb, message.Run{Units: units}, time.Time{})
}

// Distance is how many letters make one word of another.
func Distance(a, b string) int { return distance(a, b) }

// Desk is a bank as an exchange needs it.
type Desk struct {
	// Quoted carries a request out.
	Quoted func(body protocol.Body) (ledger.Quote, error)
	// Lines are a page of the account's entries.
	Lines func(from time.Time, after uint64, limit int) message.Statement
}

func (d Desk) quoted(_ context.Context, body protocol.Body) (exchanged, error) {
	q, err := d.Quoted(body)
	var r *ledger.Refusal
	if errors.As(err, &r) && lapsed(message.Refused(r.Code, r.Note)) {
		err = errLapsed
	}
	return exchanged{ID: q.ID, Bank: "bank", From: q.From, To: q.To, Gives: q.Gives, Gets: q.Gets, Entry: q.Entry}, err
}

func (d Desk) statement(_ context.Context, q statementCall) (message.Statement, error) {
	return d.Lines(q.From, q.After, q.Limit), nil
}

// Exchange is an order of 10 CPU for at least one GPU.
type Exchange struct{ n exchangeNote }

// NewExchange makes one; its note outlasts what is killed.
func NewExchange() *Exchange {
	return &Exchange{exchangeNote{Order: exchangeCall{From: "CPU", To: "GPU", Gives: 10 * protocol.Credit, Least: protocol.Credit}}}
}

// Run is one command, until it is told the entry or killed. It also returns the names
// of the quotes that may have been carried out.
func (e *Exchange) Run(now func() time.Time, d Desk) (entry uint64, gives, gets protocol.Credits, tries []string, err error) {
	x, err := e.n.exchange(now, func(q exchangeCall) (exchanged, error) {
		if q.Carry {
			return carryOut(context.Background(), d, q)
		}
		return d.quoted(context.Background(), message.QuoteRequest{ID: q.ID, From: q.From, To: q.To, Gives: q.Gives})
	})
	for _, t := range e.n.Tries {
		tries = append(tries, t.ID)
	}
	return x.Entry, x.Gives, x.Gets, tries, err
}

// Controls are the fronts of the control sockets of a bank, a user and a resource agent
// that run in this process, each in the directory of its name, without a market.
func Controls(dir string) (fronts []http.Handler, stop func(), err error) {
	ctx, log := context.Background(), slog.New(slog.DiscardHandler)
	b, err := newBankNode(ctx, filepath.Join(dir, "bank", configName), "", log, false)
	if err != nil {
		return nil, nil, err
	}
	u, err := newUserNode(filepath.Join(dir, "user"), log)
	if err != nil {
		return nil, nil, err
	}
	r, err := newResourceNode(filepath.Join(dir, "site", configName), log, false, false)
	if err != nil {
		return nil, nil, err
	}
	b.run(ctx)
	u.run(ctx)
	r.run(ctx)
	for _, routes := range []func(*http.ServeMux){b.routes, u.userRoutes, r.routes} {
		mux := http.NewServeMux()
		routes(mux)
		fronts = append(fronts, versioned(mux))
	}
	return fronts, func() {
		for _, c := range []interface{ stop() error }{b, u, r} {
			_ = c.stop()
		}
	}, nil
}

// NotedTries is what a note has after it was written twice and cut off at a size: the
// names of the quotes that may have been carried out, and whether it has the answer.
// It also tells the sizes of the first writing and of both.
func NotedTries(dir string, size int64) (tries []string, answered bool, first, both int64, err error) {
	q := exchangeCall{ID: "mine", From: "CPU", To: "GPU", Gives: protocol.Credit, Least: 1}
	n, err := noteExchange(dir, q)
	if err != nil {
		return nil, false, 0, 0, err
	}
	n.Tries = []exchangeTry{{ID: "mine.1"}}
	err = n.write()
	first = n.size
	n.Answer = &exchanged{ID: "mine.1", Entry: 7}
	err = errors.Join(err, n.write())
	both = n.size
	if size >= 0 {
		err = errors.Join(err, n.file.Truncate(size))
	}
	n.close(false)
	again, failed := noteExchange(dir, q)
	if err = errors.Join(err, failed); err != nil {
		return nil, false, 0, 0, err
	}
	defer again.close(true)
	for _, t := range again.Tries {
		tries = append(tries, t.ID)
	}
	return tries, again.Answer != nil, first, both, nil
}

// UnitLine is what is printed of a unit that is paid after the fact.
func UnitLine(u message.PurchasedUnit) string { return endLine(u) }

// PurchaseCode is the exit code of a purchase that is over, and whether 'user buy
// --wait' tries again after it.
func PurchaseCode(p message.Purchase) (code int, again bool) {
	return purchaseCode(p, false), worthTrying(p)
}

// SocketPath is where the control socket of a directory is, and DaemonListens whether a
// daemon is taken to be there.
func SocketPath(dir string) string { return socketPath(dir) }

// DaemonListens is said with SocketPath.
func DaemonListens(dir string) bool { return daemonListens(dir) }

// Patiently is how an agent's file is opened that somebody else may have.
func Patiently(open func() error) error {
	_, err := patiently(func() (struct{}, error) { return struct{}{}, open() })
	return err
}

// PapersFor are the keys of those papers that a bank is shown which says that it recovers.
func PapersFor(bank protocol.AgentID, since time.Time, list ...reserve.Papers) (keys []string, err error) {
	p := papers{node: &node{}, each: func(_ protocol.Tables, f func(reserve.Papers) error) error {
		for _, one := range list {
			if err := f(one); err != nil {
				return err
			}
		}
		return nil
	}}
	s := newRecovery(since)
	for {
		page, err := p.next(bank, s)
		if err != nil || len(page) == 0 {
			return keys, err
		}
		for _, one := range page {
			s.shown[one.Key] = true
			keys = append(keys, one.Key)
		}
	}
}

// TakeProof is how an agent takes what a bank shows as the proof of a receipt; unproved:
// it holds that against the bank.
func TakeProof(trust *identity.Trust, decided protocol.Receipt, doc []byte) (unproved bool, err error) {
	p := &proofs{node: &node{trust: trust}}
	err = p.take(context.Background(), reserve.Papers{Decided: decided}, doc)
	return errors.Is(err, errUnproved), err
}

// Follow follows a purchase that an agent tells of so, and nothing more, since a time.
func Follow(ctx context.Context, begun time.Time, wait time.Duration, told message.Purchase) (code int, err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/buy", func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(progressLine{Event: "deciding", Purchase: told}) // who follows reads it
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	c := &cobra.Command{}
	c.SetContext(ctx)
	c.SetErr(io.Discard)
	c.Flags().Duration("wait", wait, "")
	c.Flags().Bool("quiet", true, "")
	f := following{c: c, agent: localCaller(mux), show: progressOf(c), id: told.ID, begun: begun}
	_, err = f.follow("/v1/buy", buyCall{})
	return report(io.Discard, err), err
}

// Unsold is why partitions get no agent.
var Unsold = unsold

// Meet is how an agent whose role runs there waits for its market, before it buys.
func Meet(ctx context.Context, runner *agents.Runner, joined func(ctx context.Context) error) error {
	u := userAgent{holder: holder{runner: runner}, joined: joined}
	return u.meet(ctx, protocol.KindResource, protocol.KindBank)
}

// Earlier is the purchase that an order with an ID is gone on with, by an agent whose role
// runs there and which waits for its market with joined.
func Earlier(ctx context.Context, j *journal.Journal, runner *agents.Runner, id, document string, joined func(ctx context.Context) error) (string, error) {
	u := userAgent{userRecords: userRecords{journal: j}, holder: holder{runner: runner}, joined: joined}
	return u.earlier(ctx, buyCall{ID: id, Document: document, Resume: true, Named: true})
}

// AskForProofs is how many proofs an agent asks each bank for, in rounds that begin one
// after the other, if a bank takes so long.
func AskForProofs(j *journal.Journal, list []reserve.Papers, rounds int, takes func(protocol.AgentID) (time.Duration, error)) (asked []map[protocol.AgentID]int) {
	n := &node{journal: j, log: slog.New(slog.DiscardHandler)}
	n.keepsProofs(func(_ protocol.Tables, f func(reserve.Papers) error) error {
		for _, one := range list {
			if err := f(one); err != nil {
				return err
			}
		}
		return nil
	})
	p := n.proofs
	for range rounds {
		count := map[protocol.AgentID]int{}
		p.ask = func(_ context.Context, one reserve.Papers) error {
			count[one.Decided.Bank]++
			d, err := takes(one.Decided.Bank)
			<-time.After(d)
			if err == nil {
				p.kept[one.Decided.Contract] = digestOf(one.Receipt)
			}
			return err
		}
		_, _, _ = p.round(context.Background()) // a bank that is silent is told, and noted
		asked = append(asked, count)
	}
	return asked
}

// OrderAgain notes an order that moves money, gives it to a bank agent which does not
// answer, and notes it again with one that follows.
func OrderAgain(dir string) (first, again string) {
	note := func(answer http.HandlerFunc) string {
		mux := http.NewServeMux()
		mux.HandleFunc("POST /v1/last", answer)
		p, err := noteAct(context.Background(), localCaller(mux), dir, "/v1/credit", creditCall{Account: "ann"})
		if err == nil {
			p.close(false)
		}
		var words strings.Builder
		report(&words, err)
		return words.String()
	}
	follows := func(w http.ResponseWriter, _ *http.Request) { refuseCall(w, (&standby{leader: "b"}).refusal()) }
	first = note(follows)
	_ = note(handler(func(context.Context, struct{}) (operatorEntry, error) { return operatorEntry{Entry: 7}, nil }))
	return first, note(follows)
}

// Decided reports whether an answer with an exit code tells if an order was carried out.
func Decided(code int) bool { return decided(fail(code, "", "refused")) }
