package auction_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
	"ramp/rfql"
)

// The transcripts in testdata/seller are auctions as one seller sees them.
func TestSellerTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/seller", func(t *testing.T, path string) {
		w := newStand()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return w.run(t, d) })
	})
}

var noon = time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)

const (
	atlas protocol.AgentID = "atlas@aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	ann   protocol.AgentID = "ann@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	bank  protocol.AgentID = "bank@cccccccccccccccccccccccccccccccc"
)

// machine is a calendar by the hour from noon: the cores free in each.
type machine struct {
	capacity int
	free     []int
}

func (k *machine) at(t time.Time) int {
	h := int(t.Sub(noon) / time.Hour)
	if h < 0 || h >= len(k.free) {
		return k.capacity
	}
	return k.free[h]
}

func (k *machine) Free(start, end time.Time) int {
	least := k.capacity
	for t := start; t.Before(end); t = t.Truncate(time.Hour).Add(time.Hour) {
		least = min(least, k.at(t))
	}
	return least
}

func (k *machine) Load(t time.Time) (busy, capacity int) { return k.capacity - k.at(t), k.capacity }

func (k *machine) Earliest(cores int, wall time.Duration, from, latest time.Time) (time.Time, bool) {
	for t := from; !t.After(latest); t = t.Truncate(time.Hour).Add(time.Hour) {
		if k.Free(t, t.Add(wall)) >= cores {
			return t, true
		}
		if t.Sub(noon) > 1000*time.Hour {
			break
		}
	}
	return time.Time{}, false
}

// linear is the price rule of specs §1.2 in its plainest form.
type linear struct{ start, least protocol.Credits }

func (p linear) Ask(standing protocol.Credits, busy, capacity int) (protocol.Credits, bool) {
	d := (p.start - p.least) * protocol.Credits(capacity-busy) / protocol.Credits(capacity) / 4
	return max(standing-d, p.least), standing >= p.least
}

func (p linear) Outbids() bool { return true }

func (p linear) Limits() (start, least protocol.Credits) { return p.start, p.least }

// stand is a seller in a transcript.
type stand struct {
	cal     *machine
	cfg     auction.SellerConfig
	sellers *auction.Sellers
	now     time.Time
	units   []string // of the document
}

func newStand() *stand {
	w := &stand{
		cal: &machine{capacity: 100}, now: noon,
		cfg: auction.SellerConfig{
			Self: atlas, Properties: protocol.Properties{OS: "Linux", Arch: "x86_64", RAMPerCore: 2048, Cores: 100},
			Terms: []protocol.Terms{{Bank: bank, Currency: "CRD"}}, Modes: []protocol.Mode{protocol.ModeOnReservation, protocol.ModeMetered},
			Pricing: linear{40 * protocol.Credit, 20 * protocol.Credit}, Validity: protocol.OfferValidity,
			Lead: auction.DefaultLead, Horizon: 48 * time.Hour,
		},
	}
	w.sellers = auction.NewSellers(w.cfg)
	return w
}

func (w *stand) run(t *testing.T, d *datadriven.TestData) string {
	a := map[string]string{}
	for _, arg := range d.CmdArgs {
		a[arg.Key] = strings.Join(arg.Vals, ",")
	}
	if after, err := time.ParseDuration(a["after"]); err == nil {
		w.now = w.now.Add(after)
	}
	switch d.Cmd {
	case "free": // free cores by the hour
		w.cal.free = nil
		for _, f := range strings.Fields(d.Input) {
			n, _ := strconv.Atoi(f)
			w.cal.free = append(w.cal.free, n)
		}
		return ""
	case "document": // one unit per line: price, start, end, wall minutes, cores, further terms
		w.units = strings.Split(strings.TrimSpace(d.Input), "\n")
		return ""
	case "programs": // the only ones that run here
		w.cfg.Serves = only(strings.Fields(d.Input))
		w.sellers = auction.NewSellers(w.cfg)
		return ""
	case "cfp":
		return w.cfp(a)
	case "offer":
		o, _, ok := w.sellers.Offer(w.now, ann, a["conv"], a["id"])
		return fmt.Sprintf("%v %d items\n", ok, len(o.Items))
	case "reject":
		w.sellers.Forget(ann, a["conv"])
		return fmt.Sprintf("%d auctions\n", w.sellers.Len())
	case "check":
		return w.check(t, a)
	}
	t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
	return ""
}

func (w *stand) call(a map[string]string) message.CallForProposals {
	call := message.CallForProposals{Round: 1, Best: a["best"] != ""}
	if n, err := strconv.Atoi(a["round"]); err == nil {
		call.Round = n
	}
	if call.Round == 1 || a["unheard"] != "" || a["budget"] != "" {
		call.Document = document(w.units)
		call.Terms = []protocol.Terms{{Bank: bank, Currency: "CRD"}}
		call.Modes = []protocol.Mode{protocol.ModeOnReservation}
		if a["program"] != "" {
			call.Launch = &message.Intent{App: a["program"]}
		}
		switch {
		case a["currency"] != "":
			call.Terms[0].Currency = a["currency"]
		case a["mode"] != "":
			call.Modes[0] = protocol.Mode(a["mode"])
		case a["garbage"] != "":
			call.Document = []byte(a["garbage"])
		}
	}
	call.Budget, _ = strconv.Atoi(a["budget"])
	for unit, p := range strings.Split(a["ceilings"], ",") {
		p, tied := strings.CutSuffix(p, "=")
		if price, err := protocol.ParseCredits(p); err == nil {
			call.Ceilings = append(call.Ceilings, message.Ceiling{Unit: unit, Price: price, Tied: tied})
		}
	}
	return call
}

func (w *stand) cfp(a map[string]string) string {
	m := protocol.Message{Performative: protocol.CFP, Sender: ann, Conversation: a["conv"]}
	answer, ok := w.sellers.Call(w.now, m, w.call(a), w.cal)
	if !ok {
		return "no answer\n"
	}
	var b strings.Builder
	fmt.Fprintln(&b, answer.Performative)
	switch body := answer.Body.(type) {
	case message.Proposal:
		for _, o := range body.Offers {
			fmt.Fprintf(&b, "  offer %s: %s, valid for %s\n", o.ID, item(o.Items[0]), o.ValidUntil.Sub(w.now))
		}
		for _, s := range body.Capacity {
			fmt.Fprintf(&b, "  together %d cores from %s to %s\n", s.Cores, clock(s.Start), clock(s.End))
		}
		reasons(&b, body.Refusals)
	case message.Refusal:
		reasons(&b, body.Reasons)
	}
	return b.String()
}

func item(it protocol.Item) string {
	return fmt.Sprintf("unit %d, %d cores from %s to %s at %s = %s", it.Unit, it.Slot.Cores, clock(it.Slot.Start), clock(it.Slot.End), it.Price, it.Cost)
}

func clock(t time.Time) string {
	if t.Sub(noon) >= 12*time.Hour {
		return t.Format("2 15:04:05")
	}
	return t.Format("15:04:05")
}

func reasons(b *strings.Builder, list []protocol.Reason) {
	for _, r := range list {
		fmt.Fprintf(b, "  unit %d: %s", r.Unit, r.Code)
		if r.Term != "" {
			fmt.Fprintf(b, " %s: want %s, have %s", r.Term, r.Want, r.Have)
		}
		if r.Asks > 0 {
			fmt.Fprintf(b, " asks %s", r.Asks)
		}
		if r.Code == protocol.CodeBusy {
			fmt.Fprintf(b, " %d free", r.Free)
		}
		if !r.Start.IsZero() {
			fmt.Fprintf(b, ", could start %s", clock(r.Start))
		}
		if r.Note != "" {
			fmt.Fprintf(b, " (%s)", strings.ReplaceAll(r.Note, "\n", " "))
		}
		fmt.Fprintln(b)
		for _, h := range r.Hints {
			if h.Tariff != (protocol.Tariff{}) {
				fmt.Fprintf(b, "    would accept %d cores from %s at %s: P(%s) Q(%s) for %s, prepaid %s\n",
					h.Cores, clock(h.Start), h.Price, function(h.Tariff.P), function(h.Tariff.Q), h.Tariff.TimeLimit, h.Tariff.Prepay)
			}
		}
	}
}

func function(r protocol.Ramp) string {
	return fmt.Sprintf("%s, %s, %s", protocol.Credits(r.Lo), protocol.Credits(r.Hi), r.Top)
}

func (w *stand) check(t *testing.T, a map[string]string) string {
	rounds, _ := strconv.Atoi(a["rounds"])
	lines, err := auction.Check(w.cfg, w.now, w.call(map[string]string{}), rounds, w.cal)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "round %d unit %d: stands at %s, %d of %d busy: ", l.Round, l.Unit, l.Standing, l.Busy, l.Capacity)
		if l.Offer != nil {
			fmt.Fprintln(&b, item(l.Offer.Items[0]))
			continue
		}
		reasons(&b, []protocol.Reason{*l.Reason})
	}
	return b.String()
}

// document writes units as RFQL: "PRICE START END WALL CORES [TERM=VALUE …]",
// times of the day (a number of hours may exceed 24), "-" where not given.
func document(units []string) []byte {
	var b strings.Builder
	b.WriteString(`<RequestForQuotation xmlns="http://www.realitygrid.org/AHE/RFQ">`)
	for _, u := range units {
		f := strings.Fields(u)
		fmt.Fprintf(&b, "<Request><CPUHourCost>%s</CPUHourCost>", f[0])
		fmt.Fprintf(&b, "<EndDate>%s</EndDate><EndTime>%s</EndTime>", when(f[2]).Format("2006-01-02"), when(f[2]).Format("15:04:05"))
		if f[1] != "-" {
			fmt.Fprintf(&b, "<StartDate>%s</StartDate><StartTime>%s</StartTime>", when(f[1]).Format("2006-01-02"), when(f[1]).Format("15:04:05"))
		}
		terms := map[string]string{}
		for _, term := range f[5:] {
			k, v, _ := strings.Cut(term, "=")
			terms[k] = v
		}
		for _, k := range []string{"OperatingSystem", "Architecture"} {
			if terms[k] != "" {
				fmt.Fprintf(&b, "<%s>%s</%s>", k, terms[k], k)
			}
		}
		if f[3] != "-" {
			fmt.Fprintf(&b, "<WallTime>%s</WallTime>", f[3])
		}
		if v := terms["RAMPerCore"]; v != "" {
			fmt.Fprintf(&b, "<RAMPerCore>%s</RAMPerCore>", v)
		}
		fmt.Fprintf(&b, "<Cores><TotalCores>%s</TotalCores></Cores>%s</Request>", f[4], contractOf(terms))
	}
	b.WriteString("</RequestForQuotation>")
	return []byte(b.String())
}

// contractOf writes P=rmin,rmax,Pmax and Q=Smin,Smax,Qmax as a contract.
func contractOf(terms map[string]string) string {
	const space = `<r:Contract xmlns:r="` + rfql.ExtensionNamespace + `" prepay="%t">%s%s</r:Contract>`
	price := func(term, least, most, top string) string {
		f := strings.Split(terms[term], ",")
		if len(f) != 3 {
			return ""
		}
		return fmt.Sprintf(`<r:%s %s="%s" %s="%s" %s="%s"/>`, term, least, f[0], most, f[1], top, f[2])
	}
	p, q := price("P", "rmin", "rmax", "Pmax"), price("Q", "Smin", "Smax", "Qmax")
	if p+q == "" {
		return ""
	}
	return fmt.Sprintf(space, terms["prepay"] != "", p, q)
}

func when(s string) time.Time {
	h, m, _ := strings.Cut(s, ":")
	hours, _ := strconv.Atoi(h)
	minutes, _ := strconv.Atoi(m)
	return noon.Truncate(24 * time.Hour).Add(time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
}

// A seller's prices only fall, its offers meet the request's terms, each fits the machine,
// and together they fit its joint capacity.
func TestSellerKeepsItsWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newStand()
		w.cal.free = rapid.SliceOfN(rapid.IntRange(0, 100), 12, 12).Draw(t, "free")
		n := rapid.IntRange(1, 4).Draw(t, "units")
		for range n {
			from := 12 + rapid.IntRange(0, 8).Draw(t, "from")
			w.units = append(w.units, fmt.Sprintf("%d %d:00 %d:00 %d %d", rapid.IntRange(10, 60).Draw(t, "price"), from,
				from+rapid.IntRange(2, 8).Draw(t, "window"), 60*rapid.IntRange(1, 2).Draw(t, "hours"), rapid.IntRange(1, 110).Draw(t, "cores")))
		}
		last := map[int]protocol.Item{}
		ceilings := make([]string, n)
		for round := 1; round <= 5; round++ {
			a, _ := w.sellers.Call(w.now, protocol.Message{Sender: ann, Conversation: "c"}, w.call(map[string]string{
				"round": strconv.Itoa(round), "ceilings": strings.Join(ceilings, ",")}), w.cal)
			p, _ := a.Body.(message.Proposal)
			for _, o := range p.Offers {
				it := o.Items[0]
				if prev, ok := last[it.Unit]; ok && it.Price >= prev.Price {
					t.Fatalf("round %d: unit %d for %s after %s", round, it.Unit, it.Price, prev.Price)
				}
				if w.cal.Free(it.Slot.Start, it.Slot.End) < it.Slot.Cores || !it.Slot.Start.After(w.now) {
					t.Fatalf("round %d: %s does not fit", round, item(it))
				}
				last[it.Unit] = it
			}
			if len(p.Offers) > 0 {
				fitsTogether(t, w.cal, last, p.Capacity)
			}
			for i := range ceilings { // another seller bids a little less now and then
				ceilings[i] = strconv.Itoa(rapid.IntRange(10, 60).Draw(t, "ceiling"))
			}
			w.now = w.now.Add(10 * time.Second)
		}
	})
}

// fitsTogether checks hour by hour that a span covers the times at which the offers exceed
// the machine.
func fitsTogether(t *rapid.T, cal *machine, offers map[int]protocol.Item, spans []protocol.Span) {
	for h := range 24 {
		at := noon.Add(time.Duration(h)*time.Hour + 30*time.Minute)
		sum, said := 0, false
		for _, it := range offers {
			if !at.Before(it.Slot.Start) && at.Before(it.Slot.End) {
				sum += it.Slot.Cores
			}
		}
		for _, s := range spans {
			said = said || !at.Before(s.Start) && at.Before(s.End) && s.Cores <= cal.at(at)
		}
		if sum > cal.at(at) && !said {
			t.Fatalf("at %s %d cores are offered of %d free, and no span says so", clock(at), sum, cal.at(at))
		}
	}
}

// At the bounds the oldest auction is forgotten, and a buyer cannot push out
// another's.
func TestSellersForgetTheOldest(t *testing.T) {
	w := newStand()
	w.units = []string{"50 14:00 15:00 60 1"}
	call := w.call(nil)
	other := protocol.AgentID("bob@dddddddddddddddddddddddddddddddd")
	w.sellers.Call(noon, protocol.Message{Sender: other, Conversation: "first"}, call, w.cal)
	for i := range auction.MaxAuctionsPerBuyer + 1 {
		w.sellers.Call(noon, protocol.Message{Sender: ann, Conversation: strconv.Itoa(i)}, call, w.cal)
	}
	if w.sellers.Len() != auction.MaxAuctionsPerBuyer+1 {
		t.Fatalf("%d auctions are remembered", w.sellers.Len())
	}
	for conversation, known := range map[string]bool{"0": false, "1": true} {
		if _, _, ok := w.sellers.Offer(noon, ann, conversation, "u0-1"); ok != known {
			t.Fatalf("auction %s is known: %v", conversation, ok)
		}
	}
	for i := range auction.MaxAuctions { // no buyer ends its quotes
		w.sellers.Call(noon, protocol.Message{Sender: ann, Conversation: protocol.QuotePrefix + strconv.Itoa(i)}, call, w.cal)
	}
	if _, _, ok := w.sellers.Offer(noon, ann, "1", "u0-1"); !ok {
		t.Fatal("quotes push out a purchase")
	}
	if _, _, ok := w.sellers.Offer(noon, other, "first", "u0-1"); !ok {
		t.Fatal("another buyer's auction is forgotten")
	}
}
