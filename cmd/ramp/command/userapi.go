package command

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"sort"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/journal"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/codec"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// buyCall is an order over the control socket.
type buyCall struct {
	ID       string           `json:"id"`
	Name     string           `json:"name"`
	Document string           `json:"document"`
	Options  message.Options  `json:"options"`
	StartNow bool             `json:"start_now,omitempty"` // the document's start was written in now, where it had none
	Moving   bool             `json:"moving,omitempty"`    // the document's times were counted from now
	Program  *message.Program `json:"program,omitempty"`   // to run in what was bought
	Resume   bool             `json:"resume,omitempty"`    // go on with one of this ID, or an undecided one of this request
	Named    bool             `json:"named,omitempty"`     // its owner chose the ID: with resume, only one of this ID is gone on with
	Follows  bool             `json:"follows,omitempty"`   // it takes counter-offers to an order that was named, so the ID says which it is
}

// progressLine is what a buy answers, one JSON value per change.
type progressLine struct {
	Event    string           `json:"event"`
	Done     bool             `json:"done"`
	Purchase message.Purchase `json:"purchase"`
	Error    string           `json:"error,omitempty"` // why no more will come
}

// idCall names a purchase.
type idCall struct {
	ID   string `json:"id"`
	Unit int    `json:"unit"` // cancel: from 1; 0: all
	Yes  bool   `json:"yes"`  // approve
}

// traced is one message of a trace, as a FIPA string and as JSON.
type traced struct {
	At      time.Time   `json:"at"`
	Dir     string      `json:"dir"`
	Message acl.Message `json:"message"`
	Text    string      `json:"text"`
}

// signedFiles are the documents of a purchase, as they are on disk.
type signedFiles struct {
	Sales   [][]byte `json:"sales"`
	Receipt []byte   `json:"receipt"`
	Anchors []byte   `json:"anchors"`
	Missing int      `json:"missing"` // sellers whose signature did not reach this agent
	Proof   []byte   `json:"proof"`   // the receipt's, as it was kept; null: none yet
}

// userRecords answers what the journal alone knows; it works with every agent
// gone.
type userRecords struct {
	journal *journal.Journal
	cfg     *config
}

func (u userRecords) routes(mux *http.ServeMux) {
	mux.HandleFunc("POST /v1/purchases", handler(u.list))
	mux.HandleFunc("POST /v1/find", handler(u.find))
	mux.HandleFunc("POST /v1/purchase", handler(u.show))
	mux.HandleFunc("POST /v1/trace", handler(u.trace))
	mux.HandleFunc("POST /v1/signed", handler(u.signed))
	u.runRoutes(mux)
}

// list are the last purchases, the oldest of them first.
func (u userRecords) list(_ context.Context, q lastCall) ([]message.Purchase, error) {
	list := []message.Purchase{}
	live := map[string]user.Row{}
	err := u.journal.Each(user.TablePurchases, func(_ string, value []byte) error {
		row, err := user.ReadRow(value)
		list = append(list, row.Purchase)
		if row.Live() {
			live[row.Purchase.ID] = row
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	signed, err := u.signedOf(live)
	if err != nil {
		return nil, err
	}
	for i := range list {
		if p, ok := signed[list[i].ID]; ok {
			list[i] = p
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Created.Before(list[j].Created) })
	return lastOf(list, q.Limit), nil
}

// signedOf are those of some live purchases that are signed, as they stand.
func (u userRecords) signedOf(live map[string]user.Row) (map[string]message.Purchase, error) {
	signed := map[string]message.Purchase{}
	if len(live) == 0 {
		return signed, nil
	}
	err := u.journal.Each(reserve.TableBundles, func(id string, value []byte) (err error) {
		if row, ok := live[id]; ok {
			signed[id], err = row.Signed(value)
		}
		return err
	})
	return signed, err
}

var errFound = errors.New("found")

// row is the record of one purchase.
func (u userRecords) row(table, id string) ([]byte, error) {
	var found []byte
	err := u.journal.Each(table, func(key string, value []byte) error {
		if key != id {
			return nil
		}
		found = append([]byte(nil), value...)
		return errFound
	})
	if errors.Is(err, errFound) {
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, fail(exitUsage, "'ramp user list' shows the purchases there are", "no purchase %q", id)
}

func (u userRecords) show(_ context.Context, q idCall) (message.Purchase, error) {
	value, err := u.row(user.TablePurchases, q.ID)
	if err != nil {
		return message.Purchase{}, err
	}
	row, err := user.ReadRow(value)
	if err != nil || !row.Live() {
		return row.Purchase, err
	}
	signed, err := u.signedOf(map[string]user.Row{q.ID: row})
	if p, ok := signed[q.ID]; ok {
		return p, err
	}
	return row.Purchase, err
}

func (u userRecords) trace(_ context.Context, q idCall) ([]traced, error) {
	if _, err := u.row(user.TablePurchases, q.ID); err != nil {
		return nil, err
	}
	messages, err := u.journal.Conversation(q.ID)
	if err != nil {
		return nil, err
	}
	list := make([]traced, 0, len(messages))
	for _, m := range messages {
		parsed, err := codec.DecodeTrace(m.Encoded)
		if err != nil {
			return nil, err
		}
		a := codec.ToACL(parsed)
		list = append(list, traced{At: m.At, Dir: m.Dir, Message: a, Text: string(acl.Format(a))})
	}
	return list, nil
}

func (u userRecords) signed(_ context.Context, q idCall) (signedFiles, error) {
	p, err := u.show(context.Background(), q)
	if err != nil {
		return signedFiles{}, err
	}
	value, err := u.row(reserve.TableBundles, q.ID)
	if err != nil {
		return signedFiles{}, fail(exitNothing, "", "purchase %s was never signed", q.ID)
	}
	saved, err := reserve.ReadSaved(value)
	if err != nil {
		return signedFiles{}, err
	}
	anchors, err := os.ReadFile(u.cfg.path(u.cfg.Trust))
	if err != nil {
		return signedFiles{}, err
	}
	sellers := map[protocol.AgentID]bool{}
	for _, unit := range p.Units {
		sellers[unit.Seller] = true
	}
	f := signedFiles{Sales: saved.Sales, Anchors: anchors, Missing: max(0, len(sellers)-len(saved.Sales))}
	if f.Receipt, err = reserve.LatestReceipt(u.journal, q.ID, saved.Receipt); err != nil {
		return signedFiles{}, err
	}
	f.Proof, err = proofOf(u.journal, p.Contract, f.Receipt)
	return f, err
}

// userAgent answers what needs the running role.
type userAgent struct {
	userRecords
	holder
	hub    *hub[message.Progress]
	joined func(ctx context.Context) error // waits until the agent has met the market
}

func (n *node) userAgent() userAgent {
	u := userAgent{userRecords{n.journal, n.cfg}, holder{self: n.cred.ID, runner: n.runner, asks: n.asks}, n.hub, n.mesh.Joined}
	u.holder.banks = u.knownBanks
	return u
}

func (u userAgent) routes(mux *http.ServeMux) {
	u.userRecords.routes(mux)
	mux.HandleFunc("POST /v1/buy", u.buy)
	mux.HandleFunc("POST /v1/approve", handler(u.approve))
	mux.HandleFunc("POST /v1/cancel", u.cancel)
	mux.HandleFunc("POST /v1/exchange", handler(within(answerTime, u.exchange)))
	mux.HandleFunc("POST /v1/usage", handler(u.usage))
	mux.HandleFunc("POST /v1/resources", handler(u.resources))
	mux.HandleFunc("POST /v1/balance", handler(within(answerTime, u.balance)))
	mux.HandleFunc("POST /v1/proof", handler(within(answerTime, u.proof)))
	mux.HandleFunc("POST /v1/statement", handler(within(answerTime, u.statements)))
	mux.HandleFunc("POST /v1/runway", handler(within(answerTime, u.runway)))
}

// order sends the role a message of its owner.
func (u userAgent) order(ctx context.Context, body protocol.Body) error {
	return u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		return r.Receive(now, protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request, Body: body})
	})
}

// buy starts a purchase and answers every change of it until it is over. When
// the caller leaves, the purchase goes on.
func (u userAgent) buy(w http.ResponseWriter, r *http.Request) {
	q, err := readBody[buyCall](w, r)
	if err != nil {
		refuseCall(w, err)
		return
	}
	if q.Options.QuoteOnly != strings.HasPrefix(q.ID, quotePrefix) {
		refuseCall(w, fail(exitUsage, "", "id %q: those of quotes, and only those, begin with %q", q.ID, quotePrefix))
		return
	}
	if err := launchable(q.ID, q.Program); err != nil {
		refuseCall(w, err)
		return
	}
	begun, err := u.earlier(r.Context(), q)
	if err != nil {
		refuseCall(w, err)
		return
	}
	if begun != "" {
		u.goOn(w, r, begun)
		return
	}
	body := message.Buy{ID: q.ID, Name: q.Name, Document: []byte(q.Document), Options: q.Options, Program: q.Program}
	u.follow(w, r, q.ID, func() error { return u.order(r.Context(), body) })
}

// earlier is the purchase that an order is gone on with; if there is none, the market
// has been met. Meanwhile the same order may have been given again, so it is looked for
// afterwards too.
func (u userAgent) earlier(ctx context.Context, q buyCall) (begun string, err error) {
	if q.Resume {
		if begun, err = u.begun(q); err != nil || begun != "" {
			return begun, err
		}
	}
	if err := u.meet(ctx, protocol.KindResource, protocol.KindBank); err != nil {
		return "", withCode(exitFailed, err)
	}
	if q.Resume {
		return u.begun(q)
	}
	return "", nil
}

// follow gives an order and answers every change of the purchase until done.
func (u userAgent) follow(w http.ResponseWriter, r *http.Request, id string, order func() error) {
	f, stop := u.hub.follow(id)
	defer stop()
	if err := order(); err != nil {
		refuseCall(w, withCode(exitFailed, err))
		return
	}
	u.report(w, r, f)
}

// errUnwritten ends what a purchase's followers see when the journal cannot be
// written: what was not saved is forgotten.
var errUnwritten = errors.New("the agent cannot write its journal; what was not signed yet is not bought")

// report answers every change that a follower sees, until the purchase is over.
func (u userAgent) report(w http.ResponseWriter, r *http.Request, f *follower[message.Progress]) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	e := json.NewEncoder(w)
	flush, _ := w.(http.Flusher)
	for {
		p, err := f.next(r.Context())
		if errors.Is(err, errUnwritten) {
			_ = e.Encode(progressLine{Event: "lost", Error: err.Error()}) // the caller has gone, or sees it
		}
		if err != nil {
			return // the caller has gone
		}
		if e.Encode(progressLine{Event: p.Event, Done: p.Done, Purchase: p.Purchase}) != nil {
			return // likewise
		}
		flush.Flush()
		if p.Done {
			return
		}
	}
}

func (u userAgent) approve(ctx context.Context, q idCall) (struct{}, error) {
	return struct{}{}, u.order(ctx, message.Approval{ID: q.ID, Yes: q.Yes})
}

// resourceLine is a seller that the agent knows.
type resourceLine struct {
	ID      protocol.AgentID    `json:"id"`
	Name    string              `json:"name"`
	Cores   int                 `json:"cores"`
	Start   protocol.Credits    `json:"start_price"`
	Min     protocol.Credits    `json:"minimum_price"`
	Props   protocol.Properties `json:"properties"`
	Terms   []protocol.Terms    `json:"terms"`
	Expires time.Time           `json:"expires"`
}

func (u userAgent) resources(ctx context.Context, _ struct{}) ([]resourceLine, error) {
	list := []resourceLine{}
	known, err := u.known(ctx, protocol.KindResource)
	for _, k := range known {
		p := k.Presence
		list = append(list, resourceLine{k.ID, k.ID.Name(), p.Properties.Cores, p.Start, p.Min, p.Properties, p.Terms, k.Expires})
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
		err = fail(exitUnreachable, "'ramp doctor' looks closer", "no bank is known")
	}
	return banks, err
}

// known are the agents of a kind that the user knows.
func (u userAgent) known(ctx context.Context, kind protocol.Kind) (list []user.Known, err error) {
	if err := u.meet(ctx, kind); err != nil {
		return nil, err
	}
	err = u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		list = r.(*user.Role).Known(now, kind)
		return protocol.Output{}
	})
	return list, err
}

// meet waits while nobody of a kind is known: a daemon that began just now has met
// nobody yet. If nobody is there, that is no error.
func (u userAgent) meet(ctx context.Context, kinds ...protocol.Kind) error {
	missing := false
	err := u.runner.Do(ctx, func(now time.Time, r agents.Role) protocol.Output {
		missing = slices.ContainsFunc(kinds, func(k protocol.Kind) bool { return len(r.(*user.Role).Known(now, k)) == 0 })
		return protocol.Output{}
	})
	if err != nil || !missing {
		return err
	}
	join, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	if u.joined(join) != nil {
		return ctx.Err()
	}
	return nil
}

// sending is a call to a role that only sends m.
func sending(m protocol.Message) func(time.Time, agents.Role) protocol.Output {
	return func(time.Time, agents.Role) protocol.Output {
		return protocol.Output{Send: []protocol.Message{m}}
	}
}
