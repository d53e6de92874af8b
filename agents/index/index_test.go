package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/agents/index"
	"ramp/protocol"
	"ramp/protocol/message"
)

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

var crd = protocol.Terms{Bank: id("bank", 1), Currency: "CRD"}

// id is an agent whose fingerprint is drawn from a number.
func id(name string, n int) protocol.AgentID {
	r := rand.New(rand.NewPCG(uint64(n), uint64(len(name))))
	var b strings.Builder
	for range protocol.FingerprintLen {
		b.WriteByte("abcdefghijklmnopqrstuvwxyz234567"[r.IntN(32)])
	}
	return protocol.AgentID(name + "@" + b.String())
}

// record is one of seller n.
func record(n, cores int, issuer string) message.Record {
	return message.Record{
		Seller: id("s", n), Issuer: issuer, Issued: noon, Load: n % 8,
		Presence: message.Presence{
			Agent: protocol.KindResource, Properties: protocol.Properties{Cores: cores}, TTL: index.Life, Terms: []protocol.Terms{crd},
			Start: protocol.Credits(40+n%30) * protocol.Credit, Min: protocol.Credits(20+n%17) * protocol.Credit, Modes: []protocol.Mode{protocol.ModeOnReservation},
		},
	}
}

func homes(n, issuers int) []index.Home {
	list := make([]index.Home, n)
	for i := range list {
		list[i] = index.Home{ID: id("h", i), Issuer: fmt.Sprint(i % issuers)}
	}
	return list
}

func shards(n int) []message.Shard {
	var list []message.Shard
	for i := range n {
		list = append(list, message.Shard{Terms: crd, Class: i % 10, Bits: 8, Prefix: i / 10})
	}
	return list
}

func TestPlacesAreBalanced(t *testing.T) {
	at := map[protocol.AgentID]int{}
	for _, s := range shards(2000) {
		for _, h := range index.Place(s, homes(50, 5), index.Replicas) {
			at[h]++
		}
	}
	for _, h := range homes(50, 5) { // 120 on average
		if n := at[h.ID]; n < 80 || n > 170 {
			t.Errorf("%s has %d shards, want about 120", h.ID, n)
		}
	}
}

func TestReplicasHaveDifferentIssuersWhileThereAreEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, issuers := rapid.IntRange(1, 20).Draw(t, "homes"), rapid.IntRange(1, 5).Draw(t, "issuers")
		all := homes(n, issuers)
		of := map[protocol.AgentID]string{}
		for _, h := range all {
			of[h.ID] = h.Issuer
		}
		different := map[string]bool{}
		list := index.Place(shards(rapid.IntRange(1, 200).Draw(t, "shard"))[0], all, index.Replicas)
		for _, h := range list {
			different[of[h]] = true
		}
		if len(list) != min(n, index.Replicas) || len(different) != min(n, issuers, index.Replicas) {
			t.Fatalf("%d homes of %d issuers, of %d of %d", len(list), len(different), n, issuers)
		}
	})
}

// A server that joins takes shards, and moves none between the others; one that leaves is
// the reverse.
func TestPlacesAreStable(t *testing.T) {
	before, after := homes(40, 40), homes(41, 41)
	moved := 0
	for _, s := range shards(2000) {
		was, is := index.Place(s, before, index.Replicas), index.Place(s, after, index.Replicas)
		for _, h := range is {
			if !slices.Contains(was, h) && h != after[40].ID {
				t.Fatalf("%v moved to %s, which was there before", s, h)
			}
			if h == after[40].ID {
				moved++
			}
		}
	}
	if moved < 80 || moved > 220 { // 6000/41 = 146
		t.Errorf("%d shards moved to the new server, want about 146", moved)
	}
}

func TestClassesAndPrefixes(t *testing.T) {
	for cores, class := range map[int]int{0: 0, 1: 0, 3: 0, 4: 1, 15: 1, 16: 2, 63: 2, 64: 3, 1 << 18: 9, 1 << 30: 9} {
		if got := index.Class(cores); got != class {
			t.Errorf("%d cores are of class %d, want %d", cores, got, class)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		fp, n := id("s", rapid.IntRange(0, 1<<20).Draw(t, "seller")).Fingerprint(), rapid.IntRange(0, message.MaxShardBits-1).Draw(t, "bits")
		if p, longer := index.Prefix(fp, n), index.Prefix(fp, n+1); longer>>1 != p || p >= 1<<n {
			t.Fatalf("%d bits give %d, one more gives %d", n, p, longer)
		}
	})
}

// server is one with records of n sellers.
func server(t *rapid.T, n int) (*index.Server, []message.Record) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	var list []message.Record
	for i := range n {
		r := record(i, 1<<(i%6), "ca")
		if err := s.Put(noon, r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return s, list
}

type nobody struct{}

func (nobody) Receive(time.Time, protocol.Message) protocol.Output { return protocol.Output{} }
func (nobody) Wake(time.Time) protocol.Output                      { return protocol.Output{} }

// What a query answers is what a filter of all records gives; with room for fewer, a part of
// it, in which nobody is twice.
func TestQueriesAnswerWhatAFilterFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, all := server(t, rapid.IntRange(0, 200).Draw(t, "sellers"))
		q := message.IndexQuery{
			Shard: message.Shard{Terms: crd, Class: rapid.IntRange(0, 3).Draw(t, "class"), Bits: rapid.IntRange(0, 2).Draw(t, "bits")},
			Cores: rapid.IntRange(0, 40).Draw(t, "cores"), Ceiling: protocol.Credits(rapid.IntRange(0, 40).Draw(t, "ceiling")) * protocol.Credit,
			Want: message.MaxRows, Salt: rapid.Uint64().Draw(t, "salt"),
		}
		q.Shard.Prefix = rapid.IntRange(0, 1<<q.Shard.Bits-1).Draw(t, "prefix")
		var want, got []string
		for _, r := range all {
			p := r.Presence
			if index.Class(p.Properties.Cores) == q.Shard.Class && p.Properties.Cores >= q.Cores && (q.Ceiling == 0 || p.Min <= q.Ceiling) && index.Prefix(r.Seller.Fingerprint(), q.Shard.Bits) == q.Shard.Prefix {
				want = append(want, r.Seller.Fingerprint())
			}
		}
		for _, r := range s.Query(noon, q) {
			got = append(got, r.Seller)
		}
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Fatalf("%d rows, want %d", len(got), len(want))
		}
		q.Want = rapid.IntRange(0, 20).Draw(t, "want")
		answers := rapid.IntRange(1, 100).Draw(t, "answers")
		seen := map[string]int{}
		for range answers {
			few := s.Query(noon, q)
			if len(few) != min(q.Want, len(want)) {
				t.Fatalf("%d rows, want %d", len(few), min(q.Want, len(want)))
			}
			for _, r := range few {
				seen[r.Seller]++
			}
		}
		for _, fp := range want {
			if seen[fp] > answers {
				t.Fatalf("a seller is listed %d times in %d answers", seen[fp], answers)
			}
		}
	})
}

// Every seller is shown about as often as any other, also while records are renewed, and
// while somebody asks so that the answer ends at one seller; and every answer has prices from
// low to high.
func TestRowsAreDealt(t *testing.T) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	put := func(now time.Time, i, load int) {
		r := record(i, 16, "ca")
		if i == 7 {
			r.Presence.Properties.Cores = 63
		}
		r.Presence.Min = protocol.Credits(i) * protocol.Credit
		r.Presence.Start = 2*r.Presence.Min + 1
		r.Issued, r.Load = now, load
		if err := s.Put(now, r); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		put(noon, i, 0)
	}
	shown := map[string]int{}
	for n := range 400 {
		now := noon.Add(time.Minute + time.Duration(n)*time.Second)
		if n < 100 {
			put(now, n, n%8)
		}
		s.Query(now, message.IndexQuery{Shard: message.Shard{Terms: crd, Class: 2}, Want: 1, Cores: 63})
		cheap := 0
		for _, r := range s.Query(now, message.IndexQuery{Shard: message.Shard{Terms: crd, Class: 2}, Want: 10}) {
			shown[r.Seller]++
			if r.Min < 20*protocol.Credit {
				cheap++
			}
		}
		if cheap < 1 || cheap > 3 {
			t.Errorf("answer %d has %d of the cheapest fifth, want about 2", n, cheap)
		}
	}
	for i := range 100 {
		if n := shown[id("s", i).Fingerprint()]; n < 35 || n > 45 {
			t.Errorf("seller %d is shown %d times, want about 40", i, n)
		}
	}
}

// The replicas of a shard begin in different parts of it: their first answers have nobody in
// common.
func TestReplicasDealDifferentSellers(t *testing.T) {
	all, shown := homes(3, 3), map[string]bool{}
	for _, h := range all {
		s, _ := index.NewServer(h, nobody{}, noon)
		for _, x := range all {
			if x != h {
				s.Receive(noon, protocol.Message{Performative: protocol.Inform, Sender: x.ID, Body: message.Presence{Index: 1, TTL: time.Hour, Issuer: x.Issuer}})
			}
		}
		for i := range 90 {
			if err := s.Put(noon, record(i, 16, "ca")); err != nil {
				t.Fatal(err)
			}
		}
		out := s.Receive(noon, protocol.Message{
			Performative: protocol.QueryRef, Sender: id("u", 1), Receivers: []protocol.AgentID{h.ID}, Protocol: protocol.ProtocolIndex,
			Body: message.IndexQuery{Shard: message.Shard{Terms: crd, Class: 2}, Want: 30},
		})
		for _, r := range out.Send[0].Body.(message.IndexRows).Rows {
			if shown[r.Seller] {
				t.Errorf("%s is in the answers of two replicas", r.Seller)
			}
			shown[r.Seller] = true
		}
	}
	if len(shown) < 90 {
		t.Errorf("%d of 90 sellers are in the answers", len(shown))
	}
}

// More shards than a server remembers are dealt nevertheless.
func TestManyShardsAreDealt(t *testing.T) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	terms := func(i int) protocol.Terms {
		return protocol.Terms{Bank: crd.Bank, Currency: fmt.Sprintf("C%03d", i)}
	}
	const shards = index.MaxRings + 4
	for i := range shards * 10 {
		r := record(i, 16, "ca")
		r.Presence.Terms = []protocol.Terms{terms(i % shards)}
		if err := s.Put(noon, r); err != nil {
			t.Fatal(err)
		}
	}
	shown := map[string]bool{}
	for turn := range 40 {
		for i := range shards {
			now := noon.Add(time.Duration(turn*shards+i) * 100 * time.Millisecond)
			for _, r := range s.Query(now, message.IndexQuery{Shard: message.Shard{Terms: terms(i), Class: 2}, Want: 2}) {
				shown[r.Seller] = true
			}
		}
	}
	if len(shown) < shards*9 {
		t.Errorf("%d of %d sellers were shown", len(shown), shards*10)
	}
}

func TestOldRecordsBringNobodyBack(t *testing.T) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	first, gone := record(1, 16, "ca"), record(1, 16, "ca")
	gone.Issued, gone.Presence.TTL = noon.Add(time.Second), 0
	for _, r := range []message.Record{first, gone, first} {
		if err := s.Put(noon.Add(2*time.Second), r); err != nil {
			t.Fatal(err)
		}
	}
	q := message.IndexQuery{Shard: message.Shard{Terms: crd, Class: 2}, Want: 10}
	if n := len(s.Query(noon.Add(2*time.Second), q)); n != 0 {
		t.Errorf("%d rows after the withdrawal, want none", n)
	}
	for name, r := range map[string]message.Record{"ahead": record(2, 16, "ca"), "over": record(3, 16, "ca"), "too soon": record(4, 16, "ca")} {
		switch name {
		case "ahead":
			r.Issued = noon.Add(time.Minute)
		case "over":
			r.Issued = noon.Add(-index.Life)
		case "too soon":
			if err := s.Put(noon, r); err != nil {
				t.Fatal(err)
			}
			r.Issued = noon.Add(index.PutLeast - 1)
		}
		if s.Put(r.Issued.Truncate(time.Hour), r) == nil {
			t.Errorf("a record %s was kept", name)
		}
	}
}

// A full server takes from the issuer that has most: a flood leaves the others what they
// have, up to an equal part.
func TestAFloodTakesNoRoomFromOthers(t *testing.T) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	refused := 0
	for i := range index.MaxEntries + 1000 {
		if s.Put(noon, record(i, 16, "flood")) != nil {
			refused++
		}
	}
	for i := range 100 {
		if err := s.Put(noon, record(1_000_000+i, 16, fmt.Sprint("ca", i%3))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if s.Put(noon, record(2_000_000+i, 16, "flood")) == nil {
			t.Fatal("the flood took more room")
		}
	}
	if kept := s.Kept(); refused != 1000 || s.Held() != index.MaxEntries || kept["ca0"]+kept["ca1"]+kept["ca2"] != 100 {
		t.Errorf("%d refused, %d held: %v", refused, s.Held(), kept)
	}
	net := record(3_000_000, 16, "ca9")
	for i := range index.MaxOfNet + 1 {
		net.Seller = id("s", 3_000_000+i)
		net.Presence.Addresses = []string{fmt.Sprintf("/ip4/192.0.2.%d/tcp/1", i%256)}
		if err := s.Put(noon, net); (err == nil) != (i < index.MaxOfNet) {
			t.Fatalf("record %d of a /24: %v", i, err)
		}
	}
}

// Sellers may invent currencies; counting them stays cheap.
func TestInventedCurrenciesCostADigestLittle(t *testing.T) {
	s, _ := index.NewServer(homes(1, 1)[0], nobody{}, noon)
	for i := range 4 * message.MaxDigest {
		r := record(i, 16, "ca")
		for c := range index.MaxCurrent {
			r.Presence.Terms = append(r.Presence.Terms[:c:c], protocol.Terms{Bank: id("bank", i), Currency: string(rune('A' + c))})
		}
		if err := s.Put(noon, r); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.Examined(); n > 4*message.MaxDigest {
		t.Errorf("the homes of %d shards are worked out, want at most %d", n, 4*message.MaxDigest)
	}
}
