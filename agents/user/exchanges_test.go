package user_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// exchanging is a user agent, its bank, the messages between them, which are lost,
// doubled and late, and commands that are killed.
type exchanging struct {
	t     *rapid.T
	cfg   user.Config
	bank  protocol.AgentID
	now   time.Time
	l     *ledger.Ledger
	store markettest.Store
	role  *user.Role
	wake  time.Time
	calm  bool // nothing is killed or lost any more

	there, back []protocol.Message
	dead        map[string]bool
	keys        int
	done        map[uint64]ledger.Quote // what the bank carried out, by entry
	shown       map[uint64]bool         // entries whose command has printed its answer
}

// maxUnderWay bounds the messages that may be late; further ones are lost.
const maxUnderWay = 6

const (
	exchangeWords = "the same words"
	exchangeGives = 10 * protocol.Credit
	exchangeLeast = 15 * protocol.Credit
)

func newExchanging(t *rapid.T, cast *markettest.Cast) *exchanging {
	x := &exchanging{
		t: t, cfg: user.Config{Credential: cast.Credential(markettest.User), Trust: cast.Trust}, bank: cast.ID(markettest.Bank), now: markettest.Dawn,
		store: markettest.Store{}, dead: map[string]bool{}, done: map[uint64]ledger.Quote{}, shown: map[uint64]bool{},
	}
	var err error
	x.l, err = ledger.Load(ledger.Config{Bank: x.bank, Currencies: []string{"CPU", "GPU"}}, x.now, markettest.Store{})
	x.must(err)
	_, _, err = x.l.Open(x.now, cast.ID(markettest.User), "ann")
	x.must(err)
	x.rate()
	_, _, err = x.l.Credit(x.now, cast.ID(markettest.User), "CPU", 10*protocol.Credit, "")
	x.must(err)
	_, _, err = x.l.Credit(x.now, ledger.House, "GPU", 1000*protocol.Credit, "")
	x.must(err)
	x.restart()
	return x
}

func (x *exchanging) must(err error) {
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *exchanging) chance(oneIn int, what string) bool {
	return !x.calm && rapid.IntRange(1, oneIn).Draw(x.t, what) == oneIn
}

// rate sets a new one; the lowest gives less than the orders want.
func (x *exchanging) rate() {
	half := protocol.Credits(rapid.IntRange(2, 4).Draw(x.t, "rate"))
	if x.calm {
		half = 4
	}
	_, _, err := x.l.Exchange.SetRate(x.now, "CPU", "GPU", half*protocol.Credit/2, "")
	x.must(err)
}

func (x *exchanging) restart() {
	role, out, err := user.New(x.cfg, x.store, x.now)
	x.must(err)
	x.role, x.wake = role, time.Time{}
	x.carryOut(out)
}

// carryOut saves an output and sends it; false: the agent crashed before the end.
func (x *exchanging) carryOut(out protocol.Output) bool {
	if x.chance(12, "crash before it is saved") {
		x.restart()
		return false
	}
	x.must(x.store.Append(out.Save))
	if x.chance(12, "crash before it is sent") {
		x.restart()
		return false
	}
	x.wake = protocol.Earlier(x.wake, out.WakeAt)
	for _, m := range out.Send {
		if _, ok := m.Body.(message.ExchangeRequest); ok && len(x.there) < maxUnderWay {
			x.there = append(x.there, m)
		}
	}
	return true
}

// take draws a message: lost, doubled or another one than the first.
func (x *exchanging) take(queue *[]protocol.Message) (m protocol.Message, ok bool) {
	if len(*queue) == 0 {
		return m, false
	}
	i := rapid.IntRange(0, len(*queue)-1).Draw(x.t, "which")
	m = (*queue)[i]
	if !x.chance(4, "doubled") {
		*queue = append((*queue)[:i:i], (*queue)[i+1:]...)
	}
	return m, !x.chance(4, "lost")
}

// step lets time pass and something happen.
func (x *exchanging) step() {
	x.now = x.now.Add(time.Duration(rapid.IntRange(0, 3).Draw(x.t, "seconds")) * time.Second)
	if x.chance(40, "long") {
		x.now = x.now.Add(2 * protocol.QuoteValidity)
	}
	x.l.Expire(x.now)
	switch rapid.IntRange(0, 9).Draw(x.t, "what") {
	case 0:
		x.rate()
	case 1:
		_, _, err := x.l.Credit(x.now, x.role.ID(), "CPU", 10*protocol.Credit, "")
		x.must(err)
	case 2:
		x.restart()
	case 3, 4, 5:
		if m, ok := x.take(&x.there); ok {
			x.back = append(x.back, x.answer(m))
		}
	case 6, 7:
		if m, ok := x.take(&x.back); ok {
			x.carryOut(x.role.Receive(x.now, m))
		}
	}
	if !x.wake.IsZero() && !x.now.Before(x.wake) {
		x.wake = time.Time{}
		x.carryOut(x.role.Wake(x.now))
	}
}

// answer is the bank's.
func (x *exchanging) answer(m protocol.Message) protocol.Message {
	r := m.Body.(message.ExchangeRequest)
	before := x.l.LastEntry()
	q, _, err := x.l.Exchange.CarryOut(x.now, m.Sender, r.ID, r.Least)
	var refusal *ledger.Refusal
	if errors.As(err, &refusal) {
		return m.Reply(x.bank, protocol.Refuse, message.Refused(refusal.Code, refusal.Note))
	}
	if x.l.LastEntry() > before {
		x.done[q.Entry] = q
	}
	return m.Reply(x.bank, protocol.Agree, message.Quoted{Signed: contract.VerifiedNote[contract.Quote]{Note: x.note(q), Signer: identity.Peer{ID: x.bank}}})
}

func (x *exchanging) note(q ledger.Quote) contract.Quote {
	return contract.Quote{Bank: x.bank, ID: q.ID, User: q.User, From: q.From, To: q.To, Gives: q.Gives, Gets: q.Gets, Until: q.Until, Entry: q.Entry}
}

// command is one run of a command.
type command struct {
	key, id string
}

// next lets a command make one step; over: it has ended, and how it was answered.
func (x *exchanging) next(c *command) (over bool, answer string) {
	if x.chance(10, "killed") {
		return true, "killed"
	}
	switch o := x.role.Exchanges.ByID(c.id); {
	case c.id == "" && c.key == "":
		x.keys++
		c.key = fmt.Sprint("key", x.keys)
		dead := slices.DeleteFunc(x.role.Exchanges.Unconfirmed(exchangeWords), func(key string) bool { return !x.dead[key] })
		o, out := x.role.Exchanges.Order(x.now, user.Exchange{Key: c.key, Words: exchangeWords}, dead)
		if o != nil {
			c.id = o.Quote.ID
		}
		return !x.carryOut(out), "crashed"
	case c.id == "":
		q, _, err := x.l.Exchange.Quote(x.now, x.role.ID(), "of-"+c.key+fmt.Sprint(x.now.UnixNano()), "CPU", "GPU", exchangeGives)
		switch {
		case err != nil:
			return true, "refused"
		case q.Gets < exchangeLeast:
			return true, "too little"
		}
		o, out := x.role.Exchanges.Order(x.now, user.Exchange{Key: c.key, Words: exchangeWords, Least: exchangeLeast, Quote: x.note(q)}, nil)
		c.id = o.Quote.ID
		return !x.carryOut(out), "crashed"
	case o == nil:
		return true, "gone"
	case o.State == user.ExchangeDone:
		return true, x.show(c, o)
	case o.State == user.ExchangeRefused:
		return true, "refused"
	case o.State == user.ExchangeLapsed:
		c.id = ""
		return !x.carryOut(x.role.Exchanges.Confirm(c.key)), "crashed"
	case o.State == user.ExchangeUnknown:
		x.t.Fatalf("within minutes the bank forgot %+v", o)
	}
	return false, ""
}

// show prints an answer, and confirms it unless the command is killed just then.
func (x *exchanging) show(c *command, o *user.Exchange) string {
	q, ok := x.done[o.Quote.Entry]
	if !ok || q.ID != o.Quote.ID || q.Gets != o.Quote.Gets {
		x.t.Fatalf("%+v was shown, and the bank has %+v", o, q)
	}
	again := x.shown[o.Quote.Entry]
	x.shown[o.Quote.Entry] = true
	if !x.chance(4, "killed before it confirms") {
		x.carryOut(x.role.Exchanges.Confirm(c.key))
	}
	if again {
		return "shown before" // its note says so, and the command is given once more
	}
	return "shown"
}

// However commands and agents are killed, and however messages are lost, doubled and
// late: each of two identical orders, given until it is answered, is carried out once,
// and never for less than was wanted.
func TestAnExchangeIsDoneOnceWhateverIsKilled(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	rapid.Check(t, func(t *rapid.T) {
		x := newExchanging(t, cast)
		answers := map[string]int{}
		commands := []*command{{}, {}}
		for steps := 0; len(commands) > 0; steps++ {
			if steps == 3000 {
				t.Fatalf("commands do not end: %v", answers)
			}
			x.calm = steps > 400
			x.step()
			i := rapid.IntRange(0, len(commands)-1).Draw(t, "command")
			over, answer := x.next(commands[i])
			if !over {
				continue
			}
			answers[answer]++
			x.dead[commands[i].key] = true
			if commands[i] = (&command{}); answer == "shown" {
				commands = append(commands[:i], commands[i+1:]...)
			}
		}
		for len(x.there) > 0 {
			x.step()
		}
		if len(x.done) != 2 {
			t.Fatalf("two orders were carried out %d times: %+v", len(x.done), x.done)
		}
		for _, q := range x.done {
			if q.Gets < exchangeLeast {
				t.Fatalf("an order for %s got %+v", exchangeLeast, q)
			}
		}
	})
}
