package market

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents/bank"
	"ramp/agents/sim"
	"ramp/agents/user"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// Second is the currency that users exchange Currency for, and back.
const Second = "EUR"

// rate is what one credit of a currency buys of the other.
func rate(from string) protocol.Credits {
	if from == Currency {
		return 3 * protocol.Credit / 2
	}
	return protocol.Credit / 2
}

// buys is what an amount of a currency buys of the other.
func buys(from string, gives protocol.Credits) protocol.Credits {
	return gives * (rate(from) / 1000) / (protocol.Credit / 1000)
}

// currencies are those of the bank.
func (c Config) currencies() []string {
	if c.Exchanges > 0 {
		return []string{Currency, Second}
	}
	return []string{Currency}
}

// openExchange sets both rates, and funds the bank's and the users' side.
func (m *Market) openExchange() {
	if m.cfg.Exchanges == 0 {
		return
	}
	for _, p := range [][2]string{{Currency, Second}, {Second, Currency}} {
		m.operator().Do(func(b *bank.Role, now time.Time) (protocol.Output, error) {
			_, out, err := b.SetRate(now, p[0], p[1], rate(p[0]), "")
			return out, err
		})
	}
	m.grant(grant{key: "house", to: ledger.House, currency: Currency, money: rich})
	m.grant(grant{key: "house " + Second, to: ledger.House, currency: Second, money: rich})
	for _, u := range m.users {
		m.grant(grant{key: u.Host.Name + " " + Second, to: u.Host.ID(), currency: Second, money: poor})
	}
	m.clerks.begin()
}

// commandStep is the mean time between steps of a command.
const commandStep = 5 * time.Second

// quotePatience is how many steps a command waits for a quote before it asks again.
const quotePatience = 6

// exchanger is the owner of a user agent who exchanges money, one order at a time. As
// `ramp user exchange` does, a command places the order, waits for the answer and confirms
// it. Commands are killed, and then the owner gives the same order again.
type exchanger struct {
	market *Market
	user   *User
	chance sim.Chance
	named  int // commands and quotes so far

	order  message.QuoteRequest // the present one, without an ID
	open   bool                 // the owner has no answer yet
	key    string               // of the command that runs; empty: none
	ended  map[string]bool      // keys of commands that have ended
	asked  string               // ID of the quote that the command awaits; empty: none
	waited int                  // steps
	quote  contract.Quote       // the answer
	placed string               // ID of the order's quote, once the agent has the order

	shown map[string]contract.Quote // exchanges that the owner was shown, by ID
	gave  map[string]bool           // up, after a refusal
}

func newExchanger(m *Market, u *User, i int) *exchanger {
	return &exchanger{
		market: m, user: u, chance: sim.NewChance(m.cfg.Seed, streamExchange+uint64(i)),
		ended: map[string]bool{}, shown: map[string]contract.Quote{}, gave: map[string]bool{},
	}
}

// next has the owner order again and again, at random, until the market is calm.
func (x *exchanger) next() {
	if x.market.cfg.Exchanges == 0 {
		return
	}
	x.market.World.After(x.chance.Waiting(time.Duration(float64(time.Hour)/x.market.cfg.Exchanges)), func() {
		if x.market.calm {
			return
		}
		x.order = message.QuoteRequest{From: Currency, To: Second, Gives: protocol.Credits(1+x.chance.N(2)) * 500 * protocol.Credit}
		if x.chance.N(2) == 0 {
			x.order.From, x.order.To = Second, Currency
		}
		x.open = true
		x.command()
	})
}

// command lets commands make one step after the other until the owner has an answer.
func (x *exchanger) command() {
	x.market.World.After(x.chance.Around(commandStep), func() {
		if x.key == "" || !x.market.calm && x.chance.N(20) == 0 { // the command is killed
			x.end()
			x.key = x.name("command")
		}
		x.market.World.Do(x.user.Host, func(now time.Time) protocol.Output {
			return x.step(now, &x.user.Host.Role().(userRole).Exchanges)
		})
		if x.open {
			x.command()
		} else {
			x.next()
		}
	})
}

func (x *exchanger) name(what string) string {
	x.named++
	return fmt.Sprintf("%s-%s-%d", x.user.Host.Name, what, x.named)
}

// end ends the command that runs.
func (x *exchanger) end() {
	x.ended[x.key] = true
	x.key, x.asked, x.placed, x.quote = "", "", "", contract.Quote{}
}

func (x *exchanger) step(now time.Time, e *user.Exchanges) protocol.Output {
	if x.placed == "" {
		return x.place(now, e)
	}
	value, err := x.user.Host.Disk().Get(user.TableExchanges, x.placed)
	var o user.Exchange
	switch {
	case err == nil && value == nil && e.ByID(x.placed) != nil:
		return protocol.Output{} // its agent has not saved it yet
	case err == nil && value == nil:
		x.end()
		return protocol.Output{}
	case err == nil:
		err = json.Unmarshal(value, &o)
	}
	if err != nil {
		panic(fmt.Sprintf("market: exchange %s: %v", x.placed, err))
	}
	return x.answered(o, e)
}

// place places the order, or first asks for a quote if no ended command has left the order
// with the agent.
func (x *exchanger) place(now time.Time, e *user.Exchanges) protocol.Output {
	words, least := fmt.Sprint(x.order), buys(x.order.From, x.order.Gives)
	dead := slices.DeleteFunc(e.Unconfirmed(words), func(key string) bool { return !x.ended[key] })
	o, out := e.Order(now, user.Exchange{Key: x.key, Words: words, Least: least, Quote: x.quote}, dead)
	if o != nil {
		x.placed = o.Quote.ID
		return out
	}
	if x.waited++; x.asked != "" && x.waited < quotePatience {
		return out
	}
	q := x.order
	q.ID, x.waited = x.name("quote"), 0
	x.asked = q.ID
	out.Send = append(out.Send, protocol.Message{
		Performative: protocol.Request, Sender: x.user.Host.ID(), Receivers: []protocol.AgentID{x.market.bank.ID()},
		Protocol: protocol.ProtocolRequest, Conversation: q.ID, ReplyWith: askPrefix + q.ID, Body: q,
	})
	return out
}

// answered shows the owner the answer to an order, once it is durable. A refused order is
// given up or given again.
func (x *exchanger) answered(o user.Exchange, e *user.Exchanges) (out protocol.Output) {
	switch o.State {
	case user.ExchangeAsked:
	case user.ExchangeDone:
		_, before := x.shown[x.placed]
		x.shown[x.placed], x.open = o.Quote, before
		if x.market.calm || x.chance.N(4) > 0 { // otherwise the command is killed first
			out = e.Confirm(x.key)
		}
		x.end()
	case user.ExchangeRefused:
		if x.open = x.chance.N(3) > 0; !x.open {
			x.gave[x.placed] = true
		}
		x.end()
	default:
		out = e.Confirm(x.key)
		x.asked, x.placed, x.quote = "", "", contract.Quote{}
	}
	return out
}

// askPrefix marks requests of a command, as those of a live agent.
const askPrefix = "ask-"

// userRole is a user agent whose commands hear the answers to their own requests.
type userRole struct {
	*user.Role
	owner *exchanger
}

// Receive passes an answer to the command that awaits it, and anything else to the agent.
func (r userRole) Receive(now time.Time, m protocol.Message) protocol.Output {
	id, ok := strings.CutPrefix(m.InReplyTo, askPrefix)
	if !ok {
		return r.Role.Receive(now, m)
	}
	if q, ok := m.Body.(message.Quoted); ok && id == r.owner.asked && q.Signed.Signer.ID == m.Sender {
		r.owner.quote = q.Signed.Note
	}
	return protocol.Output{}
}
