package user

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A usage record that the contract allows may still differ from what its owner saw. An owner who
// wants to check first (Config.AskUsage) gives the verdict: to countersign, or to dispute, and then
// the bank's operator decides. The bank counts silence as agreement.

// ownerVerdict signs the owner's verdict on usage records that are filed: of one
// unit, or of all if Unit is below zero.
func (r *usage) ownerVerdict(now time.Time, w message.OwnerWord) protocol.Output {
	f := r.followed.purchase(w.ID)
	if f == nil {
		return protocol.Output{}
	}
	var out protocol.Output
	for i := range f.row.Units {
		u := &f.row.Units[i]
		if !Judged(message.PurchasedUnit(*u)) || w.Unit >= 0 && u.Unit != w.Unit || w.Record != "" && u.Record != w.Record {
			continue
		}
		verdict := message.WordDispute
		if u.Dispute = w.Why; w.Agree {
			verdict, u.Dispute = message.WordAgree, ""
		}
		u.Word, u.Heard = "", "" // it replaces an earlier verdict
		out = out.Join(r.give(now, f, u, verdict))
	}
	if len(out.Save) == 0 {
		return out
	}
	return out.Join(f.row.report("usage", time.Time{}))
}

// Judged reports whether a verdict on a unit's usage record can be given or changed:
// the record is filed, and the money is held.
func Judged(u message.PurchasedUnit) bool { return open(Unit(u)) && u.Record != "" }

// Waits reports whether a unit's usage record waits for its owner's verdict.
func Waits(u message.PurchasedUnit) bool {
	return Judged(u) && u.Word == "" && u.Heard == "" && u.Dispute == ""
}

// askVerdict is when a verdict is sent to the bank again. Later it is sent as often
// as the bank is asked how a unit ended.
const askVerdict = 10 * time.Second

// give sends the bank a verdict on a record, now and again until the bank has
// answered: silence would agree.
func (r *usage) give(now time.Time, f *following, u *Unit, verdict message.Word) protocol.Output {
	var out protocol.Output
	if u.Word != verdict {
		u.Word = verdict
		out.Save = []protocol.Record{f.row.save()}
		f.tries = 0
		r.followed.putOff(f, now.Add(askVerdict))
		out.WakeAt = f.askAt
	}
	if sent, ok := r.verdict(now, f, u); ok {
		out.Send = []protocol.Message{sent}
	}
	return out
}

// verdictOn is the verdict on a record that the bank, which has filed it, or its
// seller shows; "": none, or none any more.
func (r *usage) verdictOn(u *Unit, byBank bool) message.Word {
	switch {
	case u.Word != "":
		return u.Word
	case u.Heard != "" && byBank:
		return u.Heard // the bank has lost the verdict, as by a restore
	case u.Heard != "":
		return ""
	case u.Dispute != "":
		return message.WordDispute
	case r.cfg.AskUsage:
		return ""
	}
	return message.WordAgree
}

// giveAgain sends the verdicts that the bank has not answered yet.
func (r *usage) giveAgain(now time.Time, f *following) (list []protocol.Message) {
	for i := range f.row.Units {
		u := &f.row.Units[i]
		if !open(*u) || u.Word == "" {
			continue
		}
		if sent, ok := r.verdict(now, f, u); ok {
			list = append(list, sent)
		}
	}
	return list
}

// verdictAnswered records that the bank has answered a unit's latest verdict; why is
// its reason for a refusal.
func (r *usage) verdictAnswered(f *following, m protocol.Message, why string) protocol.Output {
	p := &f.row.Purchase
	for i := range p.Units {
		u := &p.Units[i]
		if m.Sender != p.Bank || m.InReplyTo != verdictTag(*u) || u.Word == "" {
			continue
		}
		if u.Heard, u.Word = u.Word, ""; why != "" {
			u.Heard, p.Why = "", fmt.Sprintf("unit %d: the bank refused the verdict on its usage: %s", u.Unit+1, why)
		}
		return f.row.saveAndReport("usage")
	}
	return protocol.Output{}
}

// verdictRefused takes a bank's refusal. A temporary one is no answer: the contract,
// or the record, may not have reached the bank yet, as after a restore.
func (r *usage) verdictRefused(f *following, m protocol.Message, body message.Refusal) protocol.Output {
	if len(body.Reasons) == 0 {
		return protocol.Output{}
	}
	switch why := body.Reasons[0]; why.Code {
	case protocol.CodeExpired, protocol.CodeForbidden, protocol.CodeMalformed:
		return r.verdictAnswered(f, m, cmp.Or(why.Note, string(why.Code)))
	}
	return protocol.Output{}
}

// verdictPrefix begins the reply-with of a verdict; the unit and the verdict follow.
const verdictPrefix = "verdict-"

func verdictTag(u Unit) string { return verdictPrefix + strconv.Itoa(u.Unit) + "-" + string(u.Word) }

// verdict is a unit's signed verdict on its way to the bank; false: it cannot be
// signed now, and silence agrees.
func (r *usage) verdict(now time.Time, f *following, u *Unit) (protocol.Message, bool) {
	v := contract.Verdict{Version: contract.NoteVersion, Contract: f.row.Contract, Unit: u.Unit, User: r.cfg.self(), Record: u.Record, Agree: u.Word == message.WordAgree, At: now.UTC()}
	if !v.Agree {
		v.Why = protocol.Harmless(u.Dispute[:min(len(u.Dispute), contract.MaxWhy)])
	}
	signed, err := signNote(r.cfg, now, v)
	return request(r.cfg.self(), f.row.Bank, f.row.ID, verdictTag(*u), message.JobVerdict{Signed: signed}), err == nil
}
