package node

import (
	"context"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/again"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/hub"
	"ramp/agents/journal"
	"ramp/agents/receipts"
	"ramp/agents/recent"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/codec"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// userRecords answers what the journal alone knows; it works with every agent gone.
type userRecords struct {
	journal *journal.Journal
	cfg     *config.Config
	owners  *again.Owners // the commands that follow orders

	purchases, runs *recent.Index
	contracts       *recent.Contracts
	live            *hub.Hub[message.Progress] // nil: no agent runs here
}

func (n *Node) userRecords() userRecords {
	return userRecords{n.journal, n.Cfg, &again.Owners{}, &recent.Index{}, &recent.Index{}, &recent.Contracts{}, n.News.Purchases}
}

func (u userRecords) routes(mux *http.ServeMux, signed func(context.Context, control.IDCall) (control.SignedFiles, error)) {
	control.Purchases.Answer(mux, u.list)
	control.Find.Answer(mux, again.Records{Journal: u.journal, Owners: u.owners}.Find)
	control.Purchase.Answer(mux, u.show)
	control.Rounds.Answer(mux, u.rounds)
	control.Order.Answer(mux, u.ordered)
	control.Trace.Answer(mux, u.trace)
	control.SignedParts.Answer(mux, signed)
	control.Runs.Answer(mux, func(_ context.Context, q control.LastCall) ([]message.Run, error) {
		return recent.Page(u.runs, u.journal, user.TableRuns, q, user.ReadRun)
	})
	control.Run.Answer(mux, u.showRun)
}

// list are the last purchases, the oldest of them first.
func (u userRecords) list(_ context.Context, q control.LastCall) ([]message.Purchase, error) {
	return recent.Page(u.purchases, u.journal, user.TablePurchases, q, u.view)
}

func (u userRecords) view(value []byte) (message.Purchase, error) {
	row, err := user.ReadRow(value)
	if err != nil || !row.Live() {
		return row.View(), err
	}
	bundle, err := u.journal.Get(reserve.TableBundles, row.ID)
	if now, ok := u.live.Latest(row.ID); ok && (bundle == nil || now.Purchase.Contract != "") { // the journal has less
		return now.Purchase, err
	}
	if err != nil || bundle == nil {
		return row.View(), err
	}
	return row.Signed(bundle)
}

var errFound = errors.New("found")

func (u userRecords) row(table, id string) ([]byte, error) {
	found, err := u.journal.Get(table, id)
	if err == nil && found == nil {
		err = exit.Fail(exit.Usage, "'ramp user list' shows the purchases; 'ramp kill' ends a federation's job", "no purchase %q", id)
	}
	return found, err
}

func (u userRecords) show(_ context.Context, q control.IDCall) (message.Purchase, error) {
	value, err := u.row(user.TablePurchases, q.ID)
	if err != nil {
		return message.Purchase{}, err
	}
	return u.view(value)
}

func (u userRecords) ordered(_ context.Context, q control.IDCall) (v control.OrderView, err error) {
	value, err := u.row(user.TablePurchases, q.ID)
	if err != nil {
		return v, err
	}
	row, err := user.ReadRow(value)
	o := row.Order
	return control.OrderView{ID: q.ID, Name: o.Name, Document: string(o.Document), Options: o.Options, Program: o.Program}, err
}

// rounds are those of a purchase, read from its trace.
func (u userRecords) rounds(_ context.Context, q control.IDCall) ([]control.RoundView, error) {
	messages, err := u.journal.Conversation(q.ID)
	if _, live := u.live.Latest(q.ID); err == nil && len(messages) == 0 && !live {
		_, err = u.row(user.TablePurchases, q.ID)
	}
	list := []control.RoundView{}
	for _, m := range messages {
		parsed, err := codec.DecodeTrace(m.Encoded)
		if err != nil {
			return nil, err
		}
		if v, ok := roundOf(m.Dir == "in", parsed); ok && parsed.Protocol == protocol.ProtocolAuction {
			list = append(list, v)
		}
	}
	return list, err
}

func (u userRecords) trace(_ context.Context, q control.IDCall) ([]control.Traced, error) {
	if _, err := u.row(user.TablePurchases, q.ID); err != nil {
		return nil, err
	}
	messages, err := u.journal.Conversation(q.ID)
	if err != nil {
		return nil, err
	}
	list := make([]control.Traced, 0, len(messages))
	for _, m := range messages {
		parsed, err := codec.DecodeTrace(m.Encoded)
		if err != nil {
			return nil, err
		}
		a := codec.ToACL(parsed)
		list = append(list, control.Traced{At: m.At, Dir: m.Dir, Message: a, Text: string(acl.Format(a))})
	}
	return list, nil
}

func (u userRecords) signed(_ context.Context, q control.IDCall) (control.SignedFiles, error) {
	p, err := u.show(context.Background(), q)
	if err != nil {
		return control.SignedFiles{}, err
	}
	value, err := u.row(reserve.TableBundles, q.ID)
	if err != nil {
		return control.SignedFiles{}, exit.Fail(exit.Nothing, "", "purchase %s was never signed", q.ID)
	}
	saved, err := reserve.ReadSaved(value)
	if err != nil {
		return control.SignedFiles{}, err
	}
	anchors, err := os.ReadFile(u.cfg.Path(u.cfg.Trust))
	if err != nil {
		return control.SignedFiles{}, err
	}
	sellers := map[protocol.AgentID]bool{}
	for _, unit := range p.Units {
		sellers[unit.Seller] = true
	}
	f := control.SignedFiles{Sales: saved.Sales, Anchors: anchors, Missing: max(0, len(sellers)-len(saved.Sales))}
	if f.Receipt, err = reserve.LatestReceipt(u.journal, q.ID, saved.Receipt); err != nil {
		return control.SignedFiles{}, err
	}
	f.Proof, err = receipts.ProofOf(u.journal, p.Contract, f.Receipt)
	return f, err
}

// userAgent answers what needs the running role.
type userAgent struct {
	userRecords
	ownAccounts
	hub    *hub.Hub[message.Progress]
	joined func(ctx context.Context) error // waits until the agent has met the market
}

func (n *Node) userAgent() userAgent {
	u := userAgent{n.userRecords(), ownAccounts{self: n.Cred.ID, runner: n.Runner, pending: n.pending}, n.News.Purchases, n.Mesh.Acquainted}
	u.ownAccounts.banks = u.knownBanks
	return u
}

func (u userAgent) routes(mux *http.ServeMux) {
	u.userRecords.routes(mux, u.provedParts)
	control.Buy.Stream(mux, u.buy)
	control.Approve.Answer(mux, u.approve)
	control.Cancel.Stream(mux, u.cancel)
	control.Exchange.Answer(mux, control.Within(control.AnswerTime, u.exchange))
	control.Confirm.Answer(mux, u.confirm)
	control.Usage.Answer(mux, u.usage)
	control.Resources.Answer(mux, u.resources)
	control.Balance.Answer(mux, control.Within(control.AnswerTime, u.balance))
	control.UserProof.Answer(mux, control.Within(control.AnswerTime, u.proof))
	control.Statements.Answer(mux, control.Within(control.AnswerTime, u.namedStatements))
	control.Runway.Answer(mux, control.Within(control.AnswerTime, u.runway))
}

// namedStatements are the statements of the user, with the IDs and names of its purchases.
func (u userAgent) namedStatements(ctx context.Context, q control.StatementCall) ([]control.BankStatement, error) {
	list, err := u.statements(ctx, q)
	if err != nil {
		return nil, err
	}
	return list, u.contracts.Name(u.journal, list)
}

// provedParts are the signed parts of a purchase, with the proof of its receipt if the bank
// sends it within ProofTime.
func (u userAgent) provedParts(ctx context.Context, q control.IDCall) (control.SignedFiles, error) {
	late, again := time.After(control.ProofTime), time.NewTicker(control.BusyPause)
	defer again.Stop()
	for {
		f, err := u.signed(ctx, q)
		if err != nil || len(f.Receipt) == 0 || len(f.Proof) > 0 {
			return f, err
		}
		_ = u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output { // it has stopped: so will the caller
			out, _ := r.(receiptsRole).Receipts().Hurry(now)
			return out
		})
		select {
		case <-again.C:
		case <-late:
			return f, nil
		case <-ctx.Done():
			return f, ctx.Err()
		}
	}
}

// order sends the role a message of its owner.
func (u userAgent) order(ctx context.Context, body protocol.Body) error {
	return u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request, Body: body})
	})
}

// buy starts a purchase and sends every change of it until it is over. When the caller
// leaves, the purchase goes on.
func (u userAgent) buy(ctx context.Context, q control.BuyCall, send func(control.ProgressLine) error) error {
	if q.Options.QuoteOnly != protocol.IsQuote(q.ID) {
		return exit.Fail(exit.Usage, "", "id %q: the IDs of quotes begin with %q, and no others do", q.ID, protocol.QuotePrefix)
	}
	if !control.ValidID(strings.TrimPrefix(q.ID, protocol.QuotePrefix), protocol.MaxName) { // a counter-offer's has more letters
		return exit.Fail(exit.Usage, "", "id %q: want 1..%d letters, digits, '.', '_' or '-'", protocol.Clip(q.ID), protocol.MaxName)
	}
	if o := q.Options.Objective; o != 0 {
		if _, err := protocol.ParseObjective(o.String()); err != nil {
			return exit.Fail(exit.Usage, "", "options: %w", err)
		}
	}
	if err := Launchable(q.ID, q.Program); err != nil {
		return err
	}
	began, first := time.Now(), q.ID
	for n := 2; ; n++ {
		var last control.ProgressLine
		err := u.bid(ctx, q, func(line control.ProgressLine) error {
			if last = line; line.Done && n <= again.MaxBids && again.Lost(line.Purchase) {
				return nil // unless it is bought after all
			}
			return send(line)
		})
		if err != nil || !last.Done || n > again.MaxBids || !again.Lost(last.Purchase) {
			return err
		}
		next, ok := again.Next(time.Now(), first, n, q, last.Purchase)
		if later := (again.Records{Journal: u.journal, Owners: u.owners}).LastBid(first); !ok && q.Resume && later != last.Purchase.ID {
			return u.goOn(ctx, later, send) // it was bid for while there was time
		}
		if !ok || last.Purchase.Created.After(began) && !agents.Pause(ctx, again.Pause(n)) {
			return send(last)
		}
		q = next
	}
}

// bid buys, or goes on with what was begun before.
func (u userAgent) bid(ctx context.Context, q control.BuyCall, send func(control.ProgressLine) error) error {
	begun, err := u.earlier(ctx, q)
	if err != nil {
		return err
	}
	if begun != "" {
		return u.goOn(ctx, begun, send)
	}
	switch job, err := u.journal.Get(user.TableJobs, q.ID); {
	case err != nil:
		return err
	case job != nil:
		return exit.Fail(exit.Usage, "give another --id", "a federation's job has the ID %q", q.ID)
	}
	if p, err := u.show(ctx, control.IDCall{ID: q.ID}); err == nil && user.Over(p.State) {
		return exit.Fail(exit.Usage, `"resume" goes on with it`, "a purchase has the ID %q: it is %s", q.ID, p.State)
	}
	if err := inputsThere(q.Program); err != nil {
		return err
	}
	u.owners.Take(q.ID, q.Command)
	f, stop := u.hub.Follow(q.ID)
	defer stop()
	body := message.Buy{ID: q.ID, Name: q.Name, Document: []byte(q.Document), Options: q.Options, Program: q.Program, Session: q.Session}
	if err := u.order(ctx, body); err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	return report(ctx, f, send)
}

// earlier returns the purchase that an order continues. Without one it waits until the
// agent has met the market, and searches again: the same order may have arrived meanwhile.
func (u userAgent) earlier(ctx context.Context, q control.BuyCall) (begun string, err error) {
	if q.Resume {
		if begun, err = u.begun(q); err != nil || begun != "" {
			return begun, err
		}
	}
	if err := u.meet(ctx, FirstSite, protocol.KindResource, protocol.KindBank); err != nil {
		return "", exit.WithCode(exit.Failed, err)
	}
	if q.Resume {
		return u.begun(q)
	}
	return "", nil
}

// errUnwritten ends what a purchase's followers see when the journal cannot be
// written: unsaved changes are forgotten.
var errUnwritten = errors.New("the agent cannot write its journal; it buys nothing that is not signed yet")

// report sends every change that a follower sees, until the purchase is over.
func report(ctx context.Context, f *hub.Follower[message.Progress], send func(control.ProgressLine) error) error {
	for {
		p, err := f.Next(ctx)
		if errors.Is(err, errUnwritten) {
			return send(control.ProgressLine{Event: "lost", Error: err.Error()})
		}
		if err != nil {
			return nil //nolint:nilerr // the caller has left
		}
		if err := send(control.ProgressLine{Event: p.Event, Done: p.Done, Purchase: p.Purchase}); err != nil || p.Done {
			return err
		}
	}
}

func (u userAgent) approve(ctx context.Context, q control.IDCall) (struct{}, error) {
	now, open := u.live.Latest(q.ID)
	if p, err := now.Purchase, error(nil); !open || p.State != user.StateApproval {
		if !open {
			p, err = u.show(ctx, q)
		}
		if err == nil {
			err = exit.Fail(exit.Usage, "'ramp user show' has the rest", "%s awaits no approval: it is %s", q.ID, p.State)
		}
		return struct{}{}, err
	}
	return struct{}{}, u.order(ctx, message.Approval{ID: q.ID, Yes: q.Yes})
}

func (u userAgent) resources(ctx context.Context, _ struct{}) ([]control.ResourceLine, error) {
	list := []control.ResourceLine{}
	known, err := u.known(ctx, protocol.KindResource)
	for _, k := range known {
		p := k.Presence
		list = append(list, control.ResourceLine{ID: k.ID, Name: k.ID.Name(), Cores: p.Properties.Cores, Start: p.Start, Min: p.Min, Props: p.Properties, Terms: p.Terms, Expires: k.Expires, Failures: k.Failures})
	}
	return list, err
}

// knownBanks are those that the agent has met.
func (u userAgent) knownBanks(ctx context.Context) (banks []protocol.AgentID, err error) {
	known, err := u.known(ctx, protocol.KindBank)
	for _, k := range known {
		banks = append(banks, k.ID)
	}
	if err == nil && len(banks) == 0 {
		err = exit.Fail(exit.Unreachable, "'ramp doctor' finds the cause", "no bank is known")
	}
	return banks, err
}

// known are the agents of a kind that the user knows.
func (u userAgent) known(ctx context.Context, kind protocol.Kind) ([]user.Known, error) {
	if err := u.meet(ctx, 0, kind); err != nil {
		return nil, err
	}
	return agents.Read(ctx, u.runner, func(now time.Time, r *user.Role) []user.Known { return r.Known(now, kind) })
}

// meet waits while nobody of a kind is known: first until the agent has joined, since a daemon
// that began just now has met nobody yet, and then for d, since they may be starting too. If
// nobody is there, that is no error. With d the first wait is also for the others, since all of
// the market is to bid.
func (u userAgent) meet(ctx context.Context, d time.Duration, kinds ...protocol.Kind) error {
	missing, err := u.missing(ctx, kinds)
	if err != nil || !missing && d == 0 {
		return err
	}
	join, cancel := context.WithTimeout(ctx, JoinTime)
	defer cancel()
	if u.joined(join) != nil || !missing {
		return ctx.Err()
	}
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	for missing && err == nil && agents.Pause(wait, control.BusyPause) {
		missing, err = u.missing(ctx, kinds)
	}
	return errors.Join(err, ctx.Err())
}

// missing reports whether nobody of one of the kinds is known.
func (u userAgent) missing(ctx context.Context, kinds []protocol.Kind) (bool, error) {
	return agents.Read(ctx, u.runner, func(now time.Time, r *user.Role) bool {
		return slices.ContainsFunc(kinds, func(k protocol.Kind) bool { return !r.Finds(now, k) })
	})
}

// sending is a call to a role that only sends m.
func sending(m protocol.Message) func(time.Time, agents.Role) protocol.Output {
	return func(time.Time, agents.Role) protocol.Output {
		return protocol.Output{Send: []protocol.Message{m}}
	}
}
