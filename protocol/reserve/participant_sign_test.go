package reserve_test

import (
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// confirm signs what is held of the reservations r=… as a bundle, with changes
// that a transcript wants, and sends it.
func (w *world) confirm(t *testing.T, a args) string {
	from := a.text("from", "ann")
	key := a.text("as", a["r"])
	v, ok := w.bundles[key]
	if !ok {
		v = w.sign(t, from, a)
		w.bundles[key] = v
	}
	if a["unverified"] != "" {
		v = contract.Verified{ID: v.ID, Bundle: v.Bundle, DER: v.DER}
	}
	return w.receive(t, args{"from": a.text("sender", from), "conv": a.text("conv", "c1"), "with": "confirm"},
		protocol.Confirm, message.Confirmation{Bundle: v})
}

func (w *world) sign(t *testing.T, user string, a args) contract.Verified {
	b := protocol.Bundle{
		Version: protocol.BundleVersion, Conversation: a.text("conv", "c1"), User: w.id(user), Bank: w.id(a.text("bank", "bank")),
		Currency: a.text("currency", "CRD"), Mode: protocol.Mode(a.text("mode", "on-reservation")), RFQ: strings.Repeat(a.text("doc", "d"), 64),
		Nonce: strings.Repeat("0", 32), SettleBy: w.now.Add(a.wait("settle", "20s")),
	}
	for _, id := range w.list(a["r"]) {
		for _, l := range w.p.Reservations() {
			if l.ID == id {
				b.Units = append(b.Units, protocol.BundleUnit{Unit: l.Unit, Seller: w.cfg.Self, Reservation: id, Slot: l.Slot, Price: l.Price, Cost: l.Cost})
			}
		}
	}
	if len(b.Units) == 0 {
		slot := protocol.Slot{Start: dawn.Add(time.Hour), End: dawn.Add(2 * time.Hour), Cores: 1}
		b.Units = []protocol.BundleUnit{{Seller: w.id(a.text("seller", "atlas")), Reservation: a["r"], Slot: slot, Price: protocol.Credit, Cost: protocol.Credit}}
	}
	w.meter(&b, a)
	b.Units[0].Cost -= protocol.Credits(a.number("cheaper", 0))
	b.Units[0].Slot.End = b.Units[0].Slot.End.Add(a.wait("longer", "0s"))
	for _, u := range b.Units {
		b.Total += u.Cost
	}
	der, err := contract.Sign(w.agents[user], b, w.now)
	must(t, err)
	v, err := contract.OpenBundle(der, w.trust, w.now)
	must(t, err)
	return v
}

// decide has outcome= and by=, the bank that signs; refund=UNIT adds a refund.
func (w *world) decide(t *testing.T, a args) string {
	v := w.bundles[a.text("of", a["r"])]
	body := message.Decision{Contract: v.ID, Outcome: protocol.Outcome(a["outcome"])}
	if body.Outcome == protocol.OutcomeSettled || body.Outcome == protocol.OutcomeVoid {
		body.Receipt = w.receipt(t, v, a)
	}
	return w.receive(t, args{"from": a.text("from", "bank"), "re": a["re"]}, protocol.Agree, body)
}

func (w *world) receipt(t *testing.T, v contract.Verified, a args) *contract.VerifiedReceipt {
	by := a.text("by", "bank")
	r := protocol.Receipt{
		Version: contract.ReceiptVersion, Bank: w.id(by), Contract: v.ID, Outcome: protocol.Outcome(a["outcome"]), Entry: 7,
		Time: w.now, User: v.Bundle.User, Total: v.Bundle.Total, Currency: "CRD",
	}
	w.late(&r, v.Bundle.Mode, a)
	if r.Outcome == protocol.OutcomeVoid {
		r.Reason, r.Total = protocol.CodeSettleBy, 0
	}
	if a["refund"] != "" {
		r.Refunds = []protocol.Refund{{Unit: a.number("refund", 0), Amount: min(450*protocol.Credit, v.Bundle.Total), Entry: 8, Time: w.now}}
	}
	if a["forged"] != "" {
		return &contract.VerifiedReceipt{Receipt: r, Signer: identity.Peer{ID: r.Bank}}
	}
	der, err := contract.SignReceipt(w.agents[by], r, w.now)
	must(t, err)
	receipt, err := contract.OpenReceipt(der, w.trust, w.now)
	must(t, err)
	return &receipt
}

func (w *world) giveBack(t *testing.T, a args) string {
	note := contract.Cancel{
		Version: contract.NoteVersion, Contract: w.bundles[a["of"]].ID, Unit: a.number("unit", 0), User: w.id(a.text("from", "ann")),
		At: w.now, Nonce: strings.Repeat("0", 32),
	}
	der, err := contract.SignNote(w.agents[a.text("from", "ann")], note, w.now)
	must(t, err)
	v, err := contract.OpenNote[contract.Cancel](der, w.trust, w.now)
	must(t, err)
	return w.receive(t, args{"from": a.text("from", "ann"), "with": "cancel-0"}, protocol.Request, message.UnitCancellation{Signed: v})
}
