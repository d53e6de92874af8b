package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ramp/agents"
	"ramp/agents/again"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/hub"
	"ramp/agents/journal"
	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// A daemon that has just begun has met nobody: who buys then waits until it has, and
// not any more once a seller and a bank are known. That nobody is there is no error.
func TestWhoBuysWaitsForTheMarketThatIsBeingJoined(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	_, r := startUser(t, cast)
	for _, step := range []struct {
		comes  protocol.AgentID // "": nobody
		kind   protocol.Kind
		joined int
	}{{"", 0, 1}, {cast.ID(markettest.Seller(1)), protocol.KindResource, 1}, {cast.ID(markettest.Bank), protocol.KindBank, 0}} {
		if step.comes != "" {
			present := message.Presence{Agent: step.kind, Properties: protocol.Properties{Cores: 4}, TTL: time.Hour, Counter: 1}
			if err := r.Deliver(protocol.Message{Performative: protocol.Inform, Sender: step.comes, Body: present}); err != nil {
				t.Fatal(err)
			}
		}
		joined := 0
		u := userAgent{ownAccounts: ownAccounts{runner: r}, joined: func(context.Context) error { joined++; return errors.New("not in time") }}
		err := u.meet(t.Context(), 0, protocol.KindResource, protocol.KindBank)
		if err != nil || joined != step.joined {
			t.Errorf("after %q came: waited %d times, %v; want %d", step.comes, joined, err, step.joined)
		}
		joined = 0 // an order is for all, also if some are known
		if _, err := u.earlier(t.Context(), control.BuyCall{}); err != nil || joined != 1 {
			t.Errorf("after %q came: an order waited %d times, %v; want 1", step.comes, joined, err)
		}
	}
}

// A site may start while it is ordered from: the order waits for it after the market is joined.
func TestAnOrderWaitsForTheFirstSite(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	_, r := startUser(t, cast)
	site := protocol.Message{Performative: protocol.Inform, Sender: cast.ID(markettest.Seller(1)),
		Body: message.Presence{Agent: protocol.KindResource, Properties: protocol.Properties{Cores: 4}, TTL: time.Hour, Counter: 1}}
	returned, came := make(chan struct{}), make(chan error, 1)
	u := userAgent{ownAccounts: ownAccounts{runner: r}, joined: func(context.Context) error {
		go func() {
			select {
			case <-returned:
				came <- errors.New("the order did not wait")
			case <-time.After(5 * control.BusyPause):
				came <- r.Deliver(site)
			}
		}()
		return nil
	}}
	err := u.meet(t.Context(), time.Minute, protocol.KindResource)
	close(returned)
	if err = errors.Join(err, <-came); err != nil {
		t.Fatal(err)
	}
	left, cancel := context.WithCancel(t.Context())
	u.joined = func(context.Context) error { cancel(); return nil }
	if err := u.meet(left, time.Minute, protocol.KindBank); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the caller has left", err)
	}
}

const asked = `<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ"><Request>
<CPUHourCost>50</CPUHourCost><EndDate>2099-01-01</EndDate><EndTime>00:00:00</EndTime><WallTime>5</WallTime>
<Cores><TotalCores>16</TotalCores></Cores></Request></RequestForQuotation>`

// While one command waits for the market, another may give the same order: the first
// goes on with that purchase then.
func TestAnOrderThatIsGivenTwiceWhileTheMarketIsJoinedIsOnePurchase(t *testing.T) {
	j, r := startUser(t, markettest.NewCast(t, 1))
	other := func(now time.Time, role agents.Role) protocol.Output {
		return role.Receive(now, protocol.Message{Sender: protocol.LocalControl, Performative: protocol.Request,
			Body: message.Buy{ID: "twice", Document: []byte(asked), Options: message.Options{Rounds: 1, RoundLimit: time.Second}}})
	}
	u := userAgent{userRecords: userRecords{journal: j, owners: &again.Owners{}}, ownAccounts: ownAccounts{runner: r}, joined: func(ctx context.Context) error { return r.Do(ctx, other) }}
	got, err := u.earlier(t.Context(), control.BuyCall{ID: "twice", Document: asked, Resume: true, Named: true})
	if err != nil || got != "twice" {
		t.Errorf("goes on with %q, %v; want the purchase that was begun meanwhile", got, err)
	}
}

// A contract that the bank voids because it was not signed in time is bid for again by the same
// call: the first purchase is not the end of it, and the second is followed in its place. An order
// whose input is gone is refused.
func TestAContractThatWasNotSignedInTimeIsBidForAgain(t *testing.T) {
	cast, followed := markettest.NewCast(t, 1), hub.New[message.Progress]()
	ends := map[string]message.Purchase{"p": {State: user.StateVoid, Void: protocol.CodeSettleBy}, again.BidID("p", 2): {State: user.StateSettled, Settled: true}}
	j, r := startUser(t, cast, func(m protocol.Message) { // the market ends a purchase at its first call for proposals
		if p, ok := ends[m.Conversation]; ok {
			p.ID = m.Conversation
			followed.Publish(p.ID, message.Progress{Done: true, Purchase: p}, true)
		}
	})
	for kind, name := range map[protocol.Kind]string{protocol.KindResource: markettest.Seller(1), protocol.KindBank: markettest.Bank} {
		present := message.Presence{Agent: kind, Properties: protocol.Properties{Cores: 16}, Terms: []protocol.Terms{cast.Terms()}, TTL: time.Hour, Counter: 1}
		if err := r.Deliver(protocol.Message{Performative: protocol.Inform, Sender: cast.ID(name), Body: present}); err != nil {
			t.Fatal(err)
		}
	}
	u := userAgent{userRecords: userRecords{journal: j, owners: &again.Owners{}}, ownAccounts: ownAccounts{runner: r}, hub: followed,
		joined: func(context.Context) error { return nil }}
	var seen []string
	err := u.buy(t.Context(), control.BuyCall{ID: "p", Document: asked, Options: message.Options{Rounds: 1, RoundLimit: time.Minute}}, func(line control.ProgressLine) error {
		seen = append(seen, line.Purchase.ID+" "+line.Purchase.State)
		return nil
	})
	if err != nil || !slices.Equal(seen, []string{"p.bid2 settled"}) {
		t.Errorf("%v, %v; want the second bid only", seen, err)
	}
	for _, id := range []string{"p", again.BidID("p", 2)} { // as the market has ended them
		for begun, err := j.Get(user.TablePurchases, id); begun == nil; begun, err = j.Get(user.TablePurchases, id) { // the role's own row comes first
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
		}
		value, err := json.Marshal(map[string]any{"purchase": map[string]any{"id": id, "state": ends[id].State, "void": ends[id].Void, "settled": ends[id].Settled}})
		if err == nil {
			err = j.Append([]protocol.Record{{Table: user.TablePurchases, Key: id, Value: value}})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	seen = nil
	late := control.BuyCall{ID: "p", Document: strings.Replace(asked, "2099", "2026", 1), Resume: true, Named: true} // its time is over
	err = u.buy(t.Context(), late, func(line control.ProgressLine) error {
		seen = append(seen, line.Purchase.ID+" "+line.Purchase.State)
		return nil
	})
	if err != nil || !slices.Equal(seen, []string{"p.bid2 settled"}) {
		t.Errorf("%v, %v; want the purchase of the second bid", seen, err)
	}
	for name, q := range map[string]control.BuyCall{
		"an ID of another purchase": {ID: "p", Document: asked}, "an ID with a blank": {ID: "a b", Document: asked}, "with a path": {ID: "../p", Document: asked},
		"no program": {ID: "q1", Document: asked, Program: &message.Program{}},
	} {
		err := u.buy(t.Context(), q, func(line control.ProgressLine) error { return fmt.Errorf("%s: %+v", name, line) })
		if codeOf(err) != exit.Usage {
			t.Errorf("%s: %v", name, err)
		}
	}
	gone := &message.Program{Command: []string{"sort", "x"}, Inputs: []message.RunInput{{File: protocol.StagedFile{Path: "x", SHA256: strings.Repeat("0", 64)}, Source: filepath.Join(t.TempDir(), "x")}}}
	err = u.buy(t.Context(), control.BuyCall{ID: "q2", Document: asked, Program: gone}, func(control.ProgressLine) error { return errors.New("ordered") })
	if value, _ := j.Get(user.TablePurchases, "q2"); !errors.Is(err, os.ErrNotExist) || value != nil {
		t.Errorf("an order whose input is gone: %v, %s", err, value)
	}
}

// startUser runs the role of a user until the test ends.
func startUser(t *testing.T, cast *markettest.Cast, route ...func(protocol.Message)) (*journal.Journal, *agents.Runner) {
	t.Helper()
	j, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), 0)
	if err != nil {
		t.Fatal(err)
	}
	r := agents.NewRunner(agents.Config{
		Store: j, Now: time.Now, Log: slog.New(slog.DiscardHandler), Route: func(m protocol.Message) {
			for _, f := range route {
				f(m)
			}
		},
		Unavailable: func(protocol.Message) (protocol.Message, bool) { return protocol.Message{}, false },
		Load: func(tables protocol.Tables, now time.Time) (agents.Role, protocol.Output, error) {
			return user.New(user.Config{Credential: cast.Credential(markettest.User), Trust: cast.Trust}, tables, now)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = j.Close()
	})
	return j, r
}

// The journal has the beginning of a purchase and its end. In between its owner sees the rounds.
func TestAPurchaseThatGoesOnIsShownAsItStands(t *testing.T) {
	j, r := startUser(t, markettest.NewCast(t, 1))
	n := &Node{journal: j, News: newNews("user", time.Now())}
	u := n.userRecords()
	idle := func(time.Time, agents.Role) protocol.Output { return protocol.Output{} }
	if err := r.Do(t.Context(), idle); err != nil { // it ends what it finds when it begins
		t.Fatal(err)
	}
	begun := `{"purchase":{"id":"p1","state":"bidding","created":"2026-01-01T00:00:00Z"}}`
	if err := j.Append([]protocol.Record{{Table: user.TablePurchases, Key: "p1", Value: []byte(begun)}}); err != nil {
		t.Fatal(err)
	}
	check := func(when string, rounds int) {
		t.Helper()
		p, err := u.show(t.Context(), control.IDCall{ID: "p1"})
		list, err2 := u.list(t.Context(), control.LastCall{})
		if err != nil || err2 != nil || len(p.Rounds) != rounds || len(list) != 1 || len(list[0].Rounds) != rounds {
			t.Errorf("%s: %d rounds, list %+v, want %d; %v, %v", when, len(p.Rounds), list, rounds, err, err2)
		}
	}
	u2 := userAgent{userRecords: u, ownAccounts: ownAccounts{runner: r}}
	tell := func(state string, rounds int) {
		n.News.publish(protocol.Message{Body: message.Progress{Purchase: message.Purchase{ID: "p1", State: state, Rounds: make([]message.Round, rounds)}}})
	}
	check("before anything is known", 0)
	tell(user.StateBidding, 2)
	check("after two rounds", 2)
	if _, err := u2.approve(t.Context(), control.IDCall{ID: "p1", Yes: true}); codeOf(err) != exit.Usage || !strings.Contains(err.Error(), "it is bidding") {
		t.Errorf("an approval while it bids: %v", err)
	}
	tell(user.StateVoting, 3) // nothing is signed until all sites hold
	check("while the sites vote", 3)
	tell(user.StateSettled, 3)
	check("when it is over, which the journal has", 0)
	signed := message.Purchase{ID: "p1", State: user.StateDeciding, Contract: "c", Waits: "it is away"}
	n.News.publish(protocol.Message{Body: message.Progress{Purchase: signed}})
	if err := j.Append([]protocol.Record{{Table: reserve.TableBundles, Key: "p1", Value: []byte("unread")}}); err != nil {
		t.Fatal(err)
	}
	if p, err := u.show(t.Context(), control.IDCall{ID: "p1"}); err != nil || p.Waits != signed.Waits {
		t.Errorf("while the bank has not decided: %+v, %v", p, err)
	}
	if err := j.Append([]protocol.Record{{Table: reserve.TableBundles, Key: "p1"}}); err != nil {
		t.Fatal(err)
	}
	tell(user.StateApproval, 3)
	n.News.lost(errUnwritten)
	check("when the role was dropped", 0)
}

func codeOf(err error) int { code, _ := exit.Of(err); return code }
