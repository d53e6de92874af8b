package reserve_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// lose runs the commands of transcripts in which a journal is lost, or older.
func (w *world) lose(t *testing.T, cmd string, a args) (string, bool) {
	switch cmd {
	case "copy-journal":
		w.older = copied(w.tables)
		return "", true
	case "older":
		w.tables = copied(w.older)
		return w.start(t, w.book.cores), true
	case "bundle":
		w.bundles[a["name"]] = w.sign(t, a.text("from", "ann"), a)
		return "", true
	case "heard":
		return w.show(w.p.Heard(w.now, w.id(a["from"]), a["recovers"] != "")), true
	case "unasked":
		bank, why, waits := w.p.Unasked()
		if !waits {
			return "nothing is waited for\n", true
		}
		return "waits for " + bank.Name() + ", which said " + why + "\n", true
	case "not-given":
		v := w.bundles[a["of"]]
		return w.receive(t, args{"from": a.text("from", "ann"), "conv": v.Bundle.Conversation, "re": "bundle-" + string(v.ID)},
			protocol.Refuse, message.Refused(protocol.Code(a.text("code", "unknown")), "not kept")), true
	case "sold":
		return w.sold(t, a), true
	case "copy":
		v := w.bundles[a["of"]]
		if a["unverified"] != "" {
			v = contract.Verified{ID: v.ID, Bundle: v.Bundle, DER: v.DER}
		}
		return w.receive(t, args{"from": a.text("from", "ann"), "conv": v.Bundle.Conversation}, protocol.Inform, message.BundleCopy{Bundle: v}), true
	}
	return "", false
}

func copied(s tables) tables {
	c := tables{}
	for table, rows := range s {
		c[table] = maps.Clone(rows)
	}
	return c
}

// sold is a bank's answer to the last question: of= names bundles, without= a
// reservation that was given back, re= another question.
func (w *world) sold(t *testing.T, a args) string {
	body := message.SoldList{Complete: a["partial"] == "", More: a["more"] != ""}
	for _, name := range strings.Split(a["of"], ",") {
		v, ok := w.bundles[name]
		if !ok {
			continue
		}
		s := protocol.Sold{Contract: v.ID, User: v.Bundle.User, Conversation: v.Bundle.Conversation}
		for _, u := range v.Bundle.Units {
			if u.Slot.End.After(s.Ends) {
				s.Ends = u.Slot.End
			}
			if u.Reservation != w.full(a["without"]) {
				s.Units = append(s.Units, protocol.SoldUnit{Unit: u.Unit, Reservation: u.Reservation, Slot: u.Slot})
			}
		}
		body.Sold = append(body.Sold, s)
	}
	return w.receive(t, args{"from": a.text("from", "bank"), "conv": "sold", "re": a.text("re", w.asked)}, protocol.Inform, body)
}

// note remembers the last question to a bank about what it has settled.
func (w *world) note(out protocol.Output) {
	for _, m := range out.Send {
		if _, ok := m.Body.(message.SoldQuery); ok {
			w.asked = m.ReplyWith
		}
	}
}

// A seller never makes a name twice, whatever its journal lost.
func TestNumbersOfALostJournalAreNotUsedAgain(t *testing.T) {
	w := newWorld(t)
	w.cfg.TrustJournal = false
	w.start(t, 100)
	w.bundles["one"] = w.sign(t, "ann", args{"r": "atlas-aaaaaaaa-0-41", "conv": "c7"})
	w.sold(t, args{"of": "one"})
	w.offer(args{"id": "o1"})
	w.accept(args{"offer": "o1"})
	for _, l := range w.p.Reservations() {
		if l.User == w.id("ann") && l.State == "reserving" && !strings.HasSuffix(l.ID, "-42") {
			t.Errorf("reservation %s, want one after 41", l.ID)
		}
	}
	if got := w.p.Found(); got != 1 {
		t.Errorf("%d units found, want 1", got)
	}
	w.now = w.now.Add(3 * time.Hour) // the slot is over
	w.p.Wake(w.now)
	if got, blocked := w.p.Found(), len(w.book.slots); got != 1 || blocked > 1 {
		t.Errorf("%d units found and %d slots blocked after the slot's end", got, blocked)
	}
	w.now = w.now.Add(protocol.ReportWithin) // nobody can be paid for it any more
	w.p.Wake(w.now)
	if got := w.p.Found(); got != 0 {
		t.Errorf("%d units found a day after the slot's end", got)
	}
}
