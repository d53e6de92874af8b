package reserve_test

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

func (w *world) start(t *testing.T, cores int) string {
	w.book = &book{cores: cores, slots: map[string]protocol.Slot{}}
	w.cfg.Book = w.book
	p, out, err := reserve.NewParticipant(w.cfg, w.tables, w.now)
	must(t, err)
	w.p = p
	return w.show(out)
}

// offer has unit=N cores=N start=10m (from dawn) wall=1h price=N (credits).
func (w *world) offer(a args) string {
	slot := protocol.Slot{Start: dawn.Add(a.wait("start", "10m")), Cores: a.number("cores", 10)}
	slot.End = slot.Start.Add(a.wait("wall", "1h"))
	price := protocol.Credits(a.number("price", 50)) * protocol.Credit
	o := protocol.Offer{ID: a["id"], ValidUntil: dawn.Add(time.Hour)}
	for _, unit := range strings.Split(a.text("unit", "0"), ",") {
		n, _ := strconv.Atoi(unit)
		cost, _ := protocol.Cost(price, slot.Cores, slot.Wall())
		o.Items = append(o.Items, protocol.Item{Unit: n, Slot: slot, Price: price, Cost: cost})
		o.Cost += cost
	}
	w.offers[o.ID] = o
	return fmt.Sprintf("%s costs %s\n", o.ID, o.Cost)
}

func (w *world) accept(a args) string {
	o, ok := w.offers[a["offer"]]
	var offered *reserve.Offered
	if ok && a.text("live", "yes") == "yes" {
		offered = &reserve.Offered{Offer: o, Document: strings.Repeat(a.text("doc", "d"), 64)}
	}
	if offered != nil && a["metered"] != "" {
		offered.Tariffs = w.tariffs(o, a)
	}
	if a["cheaper"] != "" {
		o.Items = slices.Clone(o.Items)
		o.Items[0].Price--
	}
	m := protocol.Message{
		Performative: protocol.AcceptProposal, Sender: w.id(a.text("from", "ann")), Protocol: protocol.ProtocolCommit,
		Conversation: a.text("conv", "c1"), ReplyWith: "vote-" + a["offer"],
	}
	body := message.Acceptance{Offer: o, HoldUntil: w.now.Add(a.wait("hold", "60s")), Voucher: w.voucher(a, m)}
	return w.show(w.p.Accept(w.now, m, body, offered))
}

// voucher is of voucher=AMOUNT (credits) until=90s by=bank for=CONVERSATION of=USER.
func (w *world) voucher(a args, m protocol.Message) *contract.VerifiedNote[contract.Voucher] {
	if a["voucher"] == "" {
		return nil
	}
	by := w.agents[a.text("by", "bank")]
	der, err := contract.SignNote(by, contract.Voucher{
		Version: contract.NoteVersion, Bank: by.ID, User: w.id(a.text("of", m.Sender.Name())), Conversation: a.text("for", m.Conversation),
		Currency: "CRD", Amount: protocol.Credits(a.number("voucher", 0)) * protocol.Credit, Until: w.now.Add(a.wait("until", "90s")).UTC(), Hold: 1,
	}, w.now)
	if err != nil {
		panic(err)
	}
	v, err := contract.OpenNote[contract.Voucher](der, w.trust, w.now)
	if err != nil {
		panic(err)
	}
	return &v
}

func (w *world) list(names string) []string {
	var ids []string
	for _, n := range strings.Split(names, ",") {
		ids = append(ids, w.full(n))
	}
	return ids
}

// full is the ID that a transcript writes as r1, r2, …; any other word is itself.
func (w *world) full(name string) string {
	if id, ok := w.names[name]; ok {
		return id
	}
	return name
}

func (w *world) receive(t *testing.T, a args, p protocol.Performative, body protocol.Body) string {
	from := protocol.AgentID(a.text("from", "ann"))
	if !from.Local() {
		from = w.id(string(from))
	}
	out, ok := w.p.Receive(w.now, protocol.Message{
		Performative: p, Sender: from, Conversation: a.text("conv", "c1"), ReplyWith: a["with"], InReplyTo: a["re"], Body: body,
	})
	if !ok {
		t.Fatalf("%s is not taken", body.Kind())
	}
	return w.show(out)
}

func (w *world) reserved(t *testing.T, kept bool, a args) string {
	r := message.Reserved{ID: w.full(a["r"]), Kept: kept, OK: a["no"] == ""}
	if r.OK {
		r.Slot = w.slotOf(r.ID)
		r.Slot.Cores -= a.number("less", 0)
	} else {
		r.Reason = protocol.Reason{Code: protocol.Code(a["no"])}
	}
	return w.receive(t, args{"from": ".queue"}, protocol.Inform, r)
}

func (w *world) slotOf(id string) protocol.Slot {
	for _, l := range w.p.Reservations() {
		if l.ID == id {
			return l.Slot
		}
	}
	return protocol.Slot{}
}

// changed has=r1,r2: what the batch system lists as the seller's.
func (w *world) changed(t *testing.T, a args) string {
	q := message.QueueChanged{At: w.now, Capacity: w.book.cores}
	if a["has"] != "" {
		for _, id := range w.list(a["has"]) {
			slot := w.slotOf(id)
			if slot.Cores == 0 {
				slot = protocol.Slot{Start: w.now, End: w.now.Add(time.Hour), Cores: 1}
			}
			q.Reservations = append(q.Reservations, message.QueueReservation{ID: id, Slot: slot, Mine: true})
		}
	}
	return w.receive(t, args{"from": ".queue"}, protocol.Inform, q)
}

// reservations prints the journal's view and what the book blocks.
func (w *world) reservations() string {
	var b strings.Builder
	for _, l := range w.p.Reservations() {
		fmt.Fprintf(&b, "%s %s", w.short(l.ID), l.State)
		if l.Why != "" {
			fmt.Fprintf(&b, " (%s)", l.Why)
		}
		if g := l.Guarantee; g != nil {
			fmt.Fprintf(&b, ", %s of %s cores promised: %s, kept %t", g.Of, protocol.Credits(g.Promised), protocol.Credits(g.Had), g.Kept)
		}
		fmt.Fprintln(&b)
	}
	blocked := make([]string, 0, len(w.book.slots))
	for id := range w.book.slots {
		blocked = append(blocked, w.short(id))
	}
	sort.Strings(blocked)
	fmt.Fprintf(&b, "book: %s\n", strings.Join(blocked, " "))
	return b.String()
}

// short is r and the counter of a reservation's ID.
func (w *world) short(id string) string {
	if !strings.HasPrefix(id, "atlas-") || strings.Count(id, "-") < 3 {
		return id
	}
	name := "r" + id[strings.LastIndexByte(id, '-')+1:]
	if known, ok := w.names[name]; ok && known != id {
		return id
	}
	w.names[name] = id
	return name
}
