package index

import (
	"cmp"
	"container/list"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// shelf has the sellers of a class that accept the terms.
type shelf struct {
	terms protocol.Terms
	class int
}

// entry is a record that a server keeps. A withdrawn one stays until its life is over,
// so that no older record brings the seller back.
type entry struct {
	message.Record
	shelves []shelf
	net     string
	place   *list.Element // among those of its issuer
}

func (e *entry) ends() time.Time { return e.Issued.Add(Life) }

func (e *entry) row() message.IndexRow {
	p := &e.Presence
	return message.IndexRow{Seller: e.Seller.Fingerprint(), Start: p.Start, Min: p.Min, Cores: p.Properties.Cores, Load: e.Load}
}

type table struct {
	by      map[string]*entry // by fingerprint
	shelves map[shelf]map[string]*entry
	issuers map[string]*list.List // entries of each, those put first at the front
	nets    map[string]int
	rings   map[message.Shard]*ring
	dropped float64 // rings that were forgotten
}

func newTable() table {
	return table{by: map[string]*entry{}, shelves: map[shelf]map[string]*entry{}, issuers: map[string]*list.List{}, nets: map[string]int{}, rings: map[message.Shard]*ring{}}
}

// errNotHere refuses a record that belongs elsewhere.
var errNotHere = errors.New("this index is no home of the record")

// ErrFull refuses a record beyond a quota.
var ErrFull = errors.New("no room in this index")

// put keeps a record, or says why not. An older one changes nothing.
func (t *table) put(now time.Time, r message.Record) error {
	old := t.by[r.Seller.Fingerprint()]
	switch {
	case r.Issued.After(now.Add(protocol.ClockSkew)):
		return fmt.Errorf("issued at %s, now is %s: set the clock", r.Issued.Format(time.RFC3339), now.Format(time.RFC3339))
	case !now.Before(r.Issued.Add(Life)):
		return fmt.Errorf("issued at %s: a record lives for %s", r.Issued.Format(time.RFC3339), Life)
	case old != nil && !r.Issued.After(old.Issued):
		return nil
	case old != nil && r.Presence.TTL > 0 && r.Issued.Before(old.Issued.Add(PutLeast)):
		return fmt.Errorf("renewed after less than %s", PutLeast)
	}
	e := &entry{Record: r, net: netOf(r.Presence.Addresses)}
	if old != nil {
		t.remove(old)
	}
	if err := t.makeRoom(e); err != nil {
		if old != nil {
			t.add(old)
		}
		return err
	}
	t.add(e)
	return nil
}

// makeRoom applies the quotas. A full table takes from the issuer that has most, unless
// that is the newcomer's own.
func (t *table) makeRoom(e *entry) error {
	if e.net != "" && t.nets[e.net] >= MaxOfNet {
		return fmt.Errorf("%w: %d sellers of %s", ErrFull, MaxOfNet, e.net)
	}
	if len(t.by) < MaxEntries {
		return nil
	}
	most := ""
	for issuer := range t.issuers { // any order: the rule is total
		if n, m := t.of(issuer), t.of(most); n > m || n == m && issuer < most {
			most = issuer
		}
	}
	if t.of(e.Issuer)+1 >= t.of(most) {
		return fmt.Errorf("%w: %d records", ErrFull, MaxEntries)
	}
	t.remove(t.issuers[most].Front().Value.(*entry))
	return nil
}

func (t *table) of(issuer string) int {
	if l := t.issuers[issuer]; l != nil {
		return l.Len()
	}
	return 0
}

func (t *table) add(e *entry) {
	fp := e.Seller.Fingerprint()
	t.by[fp] = e
	if t.issuers[e.Issuer] == nil {
		t.issuers[e.Issuer] = list.New()
	}
	e.place = t.issuers[e.Issuer].PushBack(e)
	t.nets[e.net]++
	if e.Presence.TTL == 0 {
		return
	}
	class := Class(e.Presence.Properties.Cores)
	for _, terms := range e.Presence.Terms[:min(len(e.Presence.Terms), MaxCurrent)] {
		s := shelf{terms, class}
		if t.shelves[s] == nil {
			t.shelves[s] = map[string]*entry{}
		}
		t.shelves[s][fp] = e
		e.shelves = append(e.shelves, s)
	}
}

func (t *table) remove(e *entry) {
	fp := e.Seller.Fingerprint()
	delete(t.by, fp)
	if t.issuers[e.Issuer].Remove(e.place); t.of(e.Issuer) == 0 {
		delete(t.issuers, e.Issuer)
	}
	if t.nets[e.net]--; t.nets[e.net] == 0 {
		delete(t.nets, e.net)
	}
	for _, s := range e.shelves {
		if delete(t.shelves[s], fp); len(t.shelves[s]) == 0 {
			delete(t.shelves, s)
		}
	}
	e.shelves = nil
}

// expire forgets the records whose life is over.
func (t *table) expire(now time.Time) {
	for _, e := range t.by { // any order: each entry stands alone
		if !now.Before(e.ends()) {
			t.remove(e)
		}
	}
}

// ring is the order in which the sellers of a shard are dealt.
type ring struct {
	sellers []string // fingerprints
	made    time.Time
	next    [filters]int // where the next answer begins, for queries that skip alike
}

// filters is how many kinds of queries have places of their own in a ring, so that those that
// skip much do not move the others.
const filters = 16

// golden puts the first answers of different filters in different parts of a ring.
const golden = 0.6180339887498949

// deal returns rows, each answer beginning where the last one could have ended: every seller
// is shown as often as any other, and buyers rank what they see. Third is where a replica
// begins, so that the three deal different sellers.
func (t *table) deal(now time.Time, q message.IndexQuery, third func() int) []message.IndexRow {
	r := t.rings[q.Shard]
	if r == nil || !now.Before(r.made.Add(ringLife)) {
		r = t.renew(now, q.Shard, third)
	}
	n, next := len(r.sellers), &r.next[lot(0, fmt.Sprint(q.Cores, q.Ceiling, q.Modes))%filters]
	var rows []message.IndexRow
	for i := range n {
		if len(rows) >= q.Want {
			break
		}
		if e := t.by[r.sellers[(*next+i)%n]]; e != nil && e.suits(now, q) {
			rows = append(rows, e.row())
		}
	}
	*next = (*next + q.Want) % max(n, 1)
	return rows
}

func (e *entry) suits(now time.Time, q message.IndexQuery) bool {
	p := &e.Presence
	return slices.Contains(e.shelves, shelf{q.Shard.Terms, q.Shard.Class}) && now.Before(e.ends()) &&
		p.Properties.Cores >= q.Cores && (q.Ceiling == 0 || p.Min <= q.Ceiling) &&
		(len(q.Modes) == 0 || slices.ContainsFunc(p.Modes, func(m protocol.Mode) bool { return slices.Contains(q.Modes, m) }))
}

// renew makes a shard's ring anew. If there are too many, it forgets the oldest.
func (t *table) renew(now time.Time, shard message.Shard, third func() int) *ring {
	old, r := t.rings[shard], &ring{sellers: t.spread(shard), made: now}
	if len(r.sellers) == 0 { // somebody asks for what nobody has
		delete(t.rings, shard)
		return r
	}
	if old != nil {
		for i, at := range old.next {
			r.next[i] = at * len(r.sellers) / len(old.sellers)
		}
	} else {
		first := float64(third())/Replicas + float64(t.dropped*golden)
		for i := range r.next {
			_, part := math.Modf(first + float64(float64(i)*golden))
			r.next[i] = int(part * float64(len(r.sellers)))
		}
	}
	if old == nil && len(t.rings) >= MaxRings {
		t.dropped++
		delete(t.rings, slices.MinFunc(slices.Collect(maps.Keys(t.rings)), func(a, b message.Shard) int { // any order: the rule is total
			return cmp.Or(t.rings[a].made.Compare(t.rings[b].made), compareShards(a, b))
		}))
	}
	t.rings[shard] = r
	return r
}

// spread orders the sellers of a shard so that any few neighbours have prices from low to
// high: by the bits of their place among the prices, the last one first. Loads are left out,
// so that the order hardly changes while records are renewed.
func (t *table) spread(shard message.Shard) []string {
	var rows []message.IndexRow
	for fp, e := range t.shelves[shelf{shard.Terms, shard.Class}] { // any order: sorted
		if Prefix(fp, shard.Bits) == shard.Prefix {
			x := e.row()
			x.Load = 0
			rows = append(rows, x)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	from := slices.MinFunc(rows, func(a, b message.IndexRow) int { return cmp.Compare(a.Start, b.Start) }).Start
	slices.SortFunc(rows, func(a, b message.IndexRow) int {
		return cmp.Or(cmp.Compare(Expected(a, from, crossing/2), Expected(b, from, crossing/2)), cmp.Compare(a.Seller, b.Seller))
	})
	sellers := make([]string, 0, len(rows))
	width := bits.Len(uint(len(rows) - 1))
	for i := range 1 << width {
		if at := bits.Reverse(uint(i)) >> (bits.UintSize - width); int(at) < len(rows) {
			sellers = append(sellers, rows[at].Seller)
		}
	}
	return sellers
}

// digest counts the sellers in each shard that this server is a home of, in order. It does so for
// every split of a class, up to the bits that most gives. If there are too many shards it keeps
// the fullest: nobody's invented currencies crowd others out, or cost much.
func (t *table) digest(most func(shelf) int, isHome func(message.Shard) bool) []message.Census {
	counts := map[message.Shard]int{}
	for s, sellers := range t.shelves { // any order: sorted below
		for n := range most(s) + 1 {
			for fp := range sellers {
				counts[message.Shard{Terms: s.terms, Class: s.class, Bits: n, Prefix: Prefix(fp, n)}]++
			}
		}
	}
	all := make([]message.Census, 0, len(counts))
	for s, n := range counts { // any order: sorted
		all = append(all, message.Census{Shard: s, Count: n})
	}
	all = slices.DeleteFunc(fullest(all, maxExamined), func(c message.Census) bool { return !isHome(c.Shard) })
	return fullest(all, message.MaxDigest)
}

// fullest returns at most n of the counts, the highest of all, in order of the shards.
func fullest(all []message.Census, n int) []message.Census {
	slices.SortFunc(all, func(a, b message.Census) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), compareShards(a.Shard, b.Shard))
	})
	all = all[:min(len(all), n)]
	slices.SortFunc(all, func(a, b message.Census) int { return compareShards(a.Shard, b.Shard) })
	return all
}

func compareShards(a, b message.Shard) int {
	return cmp.Or(cmp.Compare(a.Terms.Bank, b.Terms.Bank), cmp.Compare(a.Terms.Currency, b.Terms.Currency),
		cmp.Compare(a.Class, b.Class), cmp.Compare(a.Bits, b.Bits), cmp.Compare(a.Prefix, b.Prefix))
}

// netOf is the network of the first IP address, a /24 or a /48 of IPv6; empty: there is none.
// Sellers claim addresses, so this bounds only what one careless or honest network takes.
func netOf(addresses []string) string {
	for _, a := range addresses {
		part := strings.Split(a, "/")
		switch {
		case len(part) < 3:
		case part[1] == "ip4":
			return part[2][:max(strings.LastIndexByte(part[2], '.'), 0)]
		case part[1] == "ip6":
			groups := strings.SplitN(part[2], ":", 4)
			return strings.Join(groups[:min(3, len(groups))], ":")
		}
	}
	return ""
}

// Pack writes records for a journal.
func Pack(list []message.Record) []byte {
	signed := make([][]byte, len(list))
	for i, r := range list {
		signed[i] = r.Signed
	}
	b, err := json.Marshal(signed)
	if err != nil {
		panic(err) // bytes can always be written
	}
	return b
}

// Unpack reads what Pack has written. Records whose certificate is no longer valid are left out.
func Unpack(trust *identity.Trust, b []byte, now time.Time) (list []message.Record, err error) {
	var signed [][]byte
	if err := json.Unmarshal(b, &signed); err != nil {
		return nil, err
	}
	for _, b := range signed[:min(len(signed), Shortlist)] {
		if r, err := codec.OpenRecord(trust, b, now); err == nil {
			list = append(list, r)
		}
	}
	return list, nil
}
