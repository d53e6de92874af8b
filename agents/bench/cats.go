package bench

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/clearing"
)

// Bounds of an instance of the Combinatorial Auction Test Suite (CATS).
const (
	MaxCATSGoods = protocol.MaxUnits
	MaxCATSBids  = clearing.MaxBids - MaxCATSGoods
	maxCATSLine  = 1 << 16
	maxCATSPrice = 1e6
)

// CATS is an instance of the suite: bids for goods. The seller wants the best set of bids in
// which no good is sold twice.
type CATS struct {
	Goods, Dummies int
	Bids           []CATSBid
}

// CATSBid asks for some goods. Bids with the same dummy good exclude each other.
type CATSBid struct {
	Price protocol.Credits
	Goods []int
	Dummy int // 0: none; numbered from 1
}

// ParseCATS reads the suite's text format: comments after '%', then 'goods N', 'bids M' and 'dummy
// D', then a line for each bid: its number, its price, its goods, '#'. Goods from N on are dummies.
func ParseCATS(r io.Reader) (*CATS, error) {
	c := &CATS{Goods: -1, Dummies: -1}
	bids := -1
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxCATSLine)
	n := 0
	for lines.Scan() {
		n++
		text, _, _ := strings.Cut(lines.Text(), "%")
		f := strings.Fields(text)
		if len(f) == 0 {
			continue
		}
		if err := c.parseLine(f, &bids); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	switch {
	case lines.Err() != nil:
		return nil, fmt.Errorf("line %d: %w", n+1, lines.Err())
	case c.Goods < 0 || bids < 0:
		return nil, fmt.Errorf("line %d: the file ends without 'goods' and 'bids'", n)
	case len(c.Bids) != bids:
		return nil, fmt.Errorf("line %d: the file ends after %d of %d bids", n, len(c.Bids), bids)
	}
	return c, nil
}

func (c *CATS) parseLine(f []string, bids *int) error {
	switch f[0] {
	case "goods":
		return parseSize(f, 1, MaxCATSGoods, &c.Goods)
	case "bids":
		return parseSize(f, 0, MaxCATSBids, bids)
	case "dummy":
		return parseSize(f, 0, MaxCATSBids, &c.Dummies)
	}
	if c.Goods < 0 || *bids < 0 {
		return fmt.Errorf("%q before 'goods' and 'bids'", f[0])
	}
	if len(c.Bids) == *bids {
		return fmt.Errorf("more than %d bids", *bids)
	}
	b, err := c.parseBid(f)
	if err == nil {
		c.Bids = append(c.Bids, b)
	}
	return err
}

// parseSize reads a line of the head, which may appear once.
func parseSize(f []string, least, most int, size *int) error {
	if *size >= 0 {
		return fmt.Errorf("a second line %q", f[0])
	}
	n, err := 0, error(nil)
	if len(f) == 2 {
		n, err = strconv.Atoi(f[1])
	}
	if len(f) != 2 || err != nil || n < least || n > most {
		return fmt.Errorf("%q: want '%s N' with N in %d..%d", strings.Join(f, " "), f[0], least, most)
	}
	*size = n
	return nil
}

func (c *CATS) parseBid(f []string) (CATSBid, error) {
	last := len(f) - 1
	if last < 3 || f[last] != "#" {
		return CATSBid{}, fmt.Errorf("%.40q: want a number, a price, goods and '#'", strings.Join(f, " "))
	}
	price, err := strconv.ParseFloat(f[1], 64)
	if err != nil || !(price >= 0 && price <= maxCATSPrice) {
		return CATSBid{}, fmt.Errorf("bid %s: price %q: want a number in 0..%g", f[0], f[1], maxCATSPrice)
	}
	b := CATSBid{Price: protocol.Credits(math.Round(price * float64(protocol.Credit)))}
	all, seen := c.Goods+max(c.Dummies, 0), map[int]bool{}
	for _, s := range f[2:last] {
		g, err := strconv.Atoi(s)
		switch {
		case err != nil || g < 0 || g >= all:
			return b, fmt.Errorf("bid %s: good %q: want a number in 0..%d", f[0], s, all-1)
		case seen[g]:
			return b, fmt.Errorf("bid %s: good %d twice", f[0], g)
		case g < c.Goods:
			b.Goods = append(b.Goods, g)
		case b.Dummy > 0:
			return b, fmt.Errorf("bid %s: dummy goods %d and %d: want at most one", f[0], c.Goods+b.Dummy-1, g)
		default:
			b.Dummy = g - c.Goods + 1
		}
		seen[g] = true
	}
	if len(b.Goods) == 0 {
		return b, fmt.Errorf("bid %s: want at least one good below %d", f[0], c.Goods)
	}
	return b, nil
}

// Fallback is K of Reverse: the least price of one good that makes no offer's cost negative.
func (c *CATS) Fallback() protocol.Credits {
	var k protocol.Credits
	for _, b := range c.Bids {
		n := protocol.Credits(len(b.Goods))
		k = max(k, (b.Price+n-1)/n)
	}
	return k
}

// Reverse is the instance as a purchase of every good: a bid of price p for n goods offers
// them for K·n − p, and each good is offered alone for K. Of all sets that cover every good
// once, the one of least cost has the bids of the highest sum.
func (c *CATS) Reverse() clearing.Problem {
	k := c.Fallback()
	p := clearing.Problem{Units: c.Goods, Objective: protocol.ObjectiveCost}
	add := func(seller, group string, cost protocol.Credits, goods ...int) {
		b := clearing.Bid{Bid: protocol.Bid{Seller: protocol.AgentID(seller), Offer: protocol.Offer{ID: strconv.Itoa(len(p.Bids)), Group: group, Cost: cost}}}
		for _, g := range goods {
			b.Offer.Items = append(b.Offer.Items, protocol.Item{Unit: g, Slot: catsSlot()})
		}
		b.Arrival = len(p.Bids)
		p.Bids = append(p.Bids, b)
	}
	for i, b := range c.Bids {
		cost := k*protocol.Credits(len(b.Goods)) - b.Price
		if b.Dummy > 0 {
			add(fmt.Sprintf("dummy%d", b.Dummy), "dummy", cost, b.Goods...)
		} else {
			add(fmt.Sprintf("bid%d", i), "", cost, b.Goods...)
		}
	}
	for g := range c.Goods {
		add("fallback", "", k, g)
	}
	return p
}

func catsSlot() protocol.Slot {
	start := time.Unix(0, 0).UTC()
	return protocol.Slot{Start: start, End: start.Add(time.Hour), Cores: 1}
}

// writeLP writes Reverse as an integer programme in the CPLEX format.
func (c *CATS) writeLP(w io.Writer) error {
	b := bufio.NewWriter(w)
	p := c.Reverse()
	rows := make([][]int, c.Goods+c.Dummies+1) // offers by good, and by dummy from c.Goods+1 on
	fmt.Fprint(b, "Minimize\n cost:")
	for i, bid := range p.Bids {
		fmt.Fprintf(b, " + %s x%d\n", bid.Offer.Cost, i)
		for _, it := range bid.Offer.Items {
			rows[it.Unit] = append(rows[it.Unit], i)
		}
		if i < len(c.Bids) && c.Bids[i].Dummy > 0 {
			rows[c.Goods+c.Bids[i].Dummy] = append(rows[c.Goods+c.Bids[i].Dummy], i)
		}
	}
	fmt.Fprint(b, "Subject To\n")
	for r, offers := range rows {
		for _, i := range offers {
			fmt.Fprintf(b, " + x%d\n", i)
		}
		if len(offers) > 0 {
			fmt.Fprintln(b, map[bool]string{true: " = 1", false: " <= 1"}[r < c.Goods])
		}
	}
	fmt.Fprint(b, "Binary\n")
	for i := range p.Bids {
		fmt.Fprintf(b, " x%d\n", i)
	}
	fmt.Fprint(b, "End\n")
	return b.Flush()
}
