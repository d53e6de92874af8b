package market

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/bank"
	"ramp/agents/sim"
	"ramp/bank/ledger"
	"ramp/protocol"
)

// clerks are the people who operate the bank. As `ramp bank credit` and `ramp bank transfer`
// do, their commands give an order and confirm its answer. Commands are killed, and then
// their clerk gives the same order again. The words of orders are few, so that several
// commands give the same ones at the same time.
type clerks struct {
	market *Market
	ended  map[string]bool   // keys of commands that have ended
	given  map[string]int    // how often each order was meant, by its words
	shown  map[uint64]string // words of the orders whose answers were shown, by entry
	going  int               // orders without an answer
}

// howMany are the clerks of a bank, and clerkPrefix begins the words of their orders.
const (
	howMany     = 2
	clerkPrefix = "clerk: "
)

func (cs *clerks) begin() {
	for i := range howMany {
		c := &clerk{clerks: cs, name: fmt.Sprintf("clerk%d", i), chance: sim.NewChance(cs.market.cfg.Seed, streamClerk+uint64(i))}
		c.next()
	}
}

// moves are the changes that an order asks for, sorted.
func (cs *clerks) moves(words string) []string {
	from, to := cs.parties(words)
	list := []string{fmt.Sprintf("%s %s %s", from, -clerkAmount, Second), fmt.Sprintf("%s %s %s", to, clerkAmount, Second)}
	slices.Sort(list)
	return list
}

// parties reads the words of an order: whose money it moves, and to whom.
func (cs *clerks) parties(words string) (from, to protocol.AgentID) {
	first := cs.market.users[0].Host.ID()
	if strings.HasSuffix(words, "credit") {
		return ledger.Issuer, first
	}
	return first, ledger.House
}

// clerkAmount is what every order moves; it is more than the first user always has.
const clerkAmount = 700 * protocol.Credit

// clerk gives one order at a time.
type clerk struct {
	*clerks
	name   string
	chance sim.Chance
	named  int // commands so far

	words string      // of the present order
	open  bool        // the clerk has no answer to it yet
	key   string      // of the command that runs; empty: none
	entry uint64      // that the bank has named; zero: none
	by    agents.Role // the run of the bank that did
}

// next has the clerk order again and again, as often as a user exchanges money, until the
// market is calm.
func (c *clerk) next() {
	m := c.market
	m.World.After(c.chance.Waiting(time.Duration(float64(time.Hour)/m.cfg.Exchanges)), func() {
		if m.calm {
			return
		}
		c.words, c.open = clerkPrefix+[]string{"credit", "transfer"}[c.chance.N(2)], true
		c.given[c.words]++
		c.going++
		c.command()
	})
}

// command lets commands make one step after the other until the clerk has an answer.
func (c *clerk) command() {
	c.market.World.After(c.chance.Around(commandStep), func() {
		if c.key == "" || !c.market.calm && c.chance.N(5) == 0 { // the command is killed
			c.end()
			c.named++
			c.key = fmt.Sprintf("%s-%d", c.name, c.named)
		}
		h := c.market.World.Leader(c.market.bank.ID())
		c.market.World.Do(h, func(now time.Time) protocol.Output { return c.step(now, h) })
		if c.open {
			c.command()
			return
		}
		c.going--
		c.next()
	})
}

// end ends the command that runs.
func (c *clerk) end() {
	c.ended[c.key] = true
	c.key, c.entry, c.by = "", 0, nil
}

// step gives the order, or waits until the disk of the bank that carried it out has it.
func (c *clerk) step(now time.Time, h *sim.Host) protocol.Output {
	role := h.Role().(*bank.Role)
	if c.entry == 0 || c.by != h.Role() {
		return c.give(now, role)
	}
	value, err := h.Disk().Get(ledger.TableEntries, ledger.NumberKey(c.entry))
	if err != nil {
		panic(fmt.Sprintf("market: entry %d: %v", c.entry, err))
	}
	if value == nil {
		return protocol.Output{}
	}
	_, before := c.shown[c.entry] // of a command that was killed before it confirmed: the order is given anew
	c.shown[c.entry], c.open = c.words, before
	out := protocol.Output{}
	if c.market.calm || c.chance.N(4) > 0 { // otherwise the command is killed first
		out = role.Orders.Confirm(c.key)
	}
	c.end()
	return out
}

// give gives the order. A refused one is given up or given again.
func (c *clerk) give(now time.Time, role *bank.Role) protocol.Output {
	from, to := c.parties(c.words)
	e, _, out, err := role.Orders.Once(now, c.key, c.words, func(key string) bool { return c.ended[key] }, func() (ledger.Entry, protocol.Output, error) {
		if from == ledger.Issuer {
			return role.Credit(now, to, Second, clerkAmount, c.words)
		}
		return role.Transfer(now, from, to, Second, clerkAmount, ledger.Disputed{}, c.words)
	})
	if err != nil {
		if c.open = !c.market.calm && c.chance.N(3) > 0; !c.open {
			c.given[c.words]--
		}
		c.end()
		return protocol.Output{}
	}
	c.entry, c.by = e.Number, role
	return out
}
