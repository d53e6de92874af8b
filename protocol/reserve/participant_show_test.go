package reserve_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"ramp/protocol"
	"ramp/protocol/message"
)

// show applies an Output's records and prints it.
func (w *world) show(out protocol.Output) string {
	w.tables.apply(out.Save)
	w.note(out)
	var b strings.Builder
	for _, r := range out.Save {
		fmt.Fprintf(&b, "save %s: %s\n", strings.TrimPrefix(r.Table, "seller-"), w.record(r))
	}
	for _, m := range out.Send {
		fmt.Fprintf(&b, "%s to %s: %s\n", m.Performative, w.name(m.Receivers[0]), w.body(m.Body))
	}
	if !out.WakeAt.IsZero() {
		fmt.Fprintf(&b, "wake in %s\n", out.WakeAt.Sub(w.now))
	}
	if b.Len() == 0 {
		return "nothing\n"
	}
	return b.String()
}

func (w *world) record(r protocol.Record) string {
	if r.Value == nil {
		return "delete"
	}
	if r.Table != "seller-deals" {
		return "…"
	}
	var d struct {
		Silent bool
		Claims []struct {
			ID, State string
			Releasing bool
			Paid      bool            `json:"refund_paid"`
			Refund    json.RawMessage `json:"refund"`
		}
	}
	if err := json.Unmarshal(r.Value, &d); err != nil {
		panic(err)
	}
	var parts []string
	for _, c := range d.Claims {
		s := w.short(c.ID) + " " + c.State
		if c.Releasing {
			s += " releasing"
		}
		if c.Refund != nil && !c.Paid {
			s += " refund due"
		}
		if c.Paid {
			s += " refunded"
		}
		parts = append(parts, s)
	}
	if d.Silent {
		parts = append(parts, "silent")
	}
	return strings.Join(parts, ", ")
}

func (w *world) body(body protocol.Body) string {
	switch b := body.(type) {
	case message.Reserve:
		return fmt.Sprintf("reserve %s %d cores", w.short(b.ID), b.Slot.Cores)
	case message.Keep:
		return "keep " + w.short(b.ID)
	case message.Release:
		return "release " + w.short(b.ID)
	case message.Vote:
		var ids []string
		for _, r := range b.Reservations {
			ids = append(ids, fmt.Sprintf("%s for unit %d", w.short(r.ID), r.Unit))
		}
		return fmt.Sprintf("vote %s: %s, held for %s", b.Offer, strings.Join(ids, ", "), b.HoldUntil.Sub(w.now))
	case message.Refusal:
		r := b.Reasons[0]
		return strings.TrimSpace(fmt.Sprintf("%s %s", r.Code, r.Note))
	case message.Decision:
		if b.Receipt == nil {
			return fmt.Sprintf("decision %s", b.Outcome)
		}
		if ends := b.Receipt.Ends; len(ends) > 0 {
			return fmt.Sprintf("decision %s with receipt: %s, %s paid", b.Outcome, ends[0].How, ends[0].Paid)
		}
		return fmt.Sprintf("decision %s with receipt, %d refunds", b.Outcome, len(b.Receipt.Refunds))
	case message.SlotQuery:
		return "what became of " + w.short(b.ID)
	case message.JobReport:
		return job(b)
	case message.RefundRequest:
		return fmt.Sprintf("refund unit %d: %s, fee %s", b.Signed.Note.Unit, b.Signed.Note.Amount, b.Signed.Note.Fee)
	}
	return body.Kind()
}
