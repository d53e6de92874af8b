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

// A usage record that the contract allows may still not be what its owner saw. An
// owner who wants to look first (Config.AskUsage) gives the word: it countersigns,
// or disputes, and then the bank's operator decides. Silence agrees, as the bank
// counts it.

// ownerWord signs what the owner says of usage records that are filed: of one unit, or
// of all if Unit is below zero.
func (r *Role) ownerWord(now time.Time, w message.OwnerWord) protocol.Output {
	row := r.awaitedRow(w.ID)
	if row == nil {
		return protocol.Output{}
	}
	a := r.awaited.of(row.Purchase.Contract)
	var out protocol.Output
	for i := range row.Purchase.Units {
		u := &row.Purchase.Units[i]
		if !Judged(*u) || w.Unit >= 0 && u.Unit != w.Unit {
			continue
		}
		word := message.WordDispute
		if u.Dispute = w.Why; w.Agree {
			word, u.Dispute = message.WordAgree, ""
		}
		u.Word, u.Heard = "", "" // what was said before is over
		out = out.Join(r.speak(now, a, u, word))
	}
	if len(out.Save) == 0 {
		return out
	}
	return out.Join(tellRow(*row, "usage"))
}

// Judged reports whether a unit has a usage record on which a word may be said, or said
// otherwise: it is filed, and the money is held.
func Judged(u message.PurchasedUnit) bool { return open(u) && u.Record != "" }

// Waits reports whether a unit's usage record waits for its owner's word.
func Waits(u message.PurchasedUnit) bool {
	return Judged(u) && u.Word == "" && u.Heard == "" && u.Dispute == ""
}

// askWord is after what time the bank is told again; later it is as often as it is asked
// how a unit ended.
const askWord = 10 * time.Second

// speak says a word on a record to the bank, now and again until the bank has answered:
// silence would agree.
func (r *Role) speak(now time.Time, a *awaited, u *message.PurchasedUnit, word message.Word) protocol.Output {
	var out protocol.Output
	if u.Word != word {
		u.Word = word
		out.Save = []protocol.Record{saveRow(*a.row)}
		a.tries = 0
		r.awaited.putOff(a, now.Add(askWord))
		out.WakeAt = a.askAt
	}
	if sent, ok := r.say(now, a, u); ok {
		out.Send = []protocol.Message{sent}
	}
	return out
}

// wordOn is what is to be said of a record that is shown, by the bank that has filed it
// or by its seller; "": nothing, or nothing more.
func (r *Role) wordOn(u *message.PurchasedUnit, byBank bool) message.Word {
	switch {
	case u.Word != "":
		return u.Word
	case u.Heard != "" && byBank:
		return u.Heard // it has lost the word, as by a restore
	case u.Heard != "":
		return ""
	case u.Dispute != "":
		return message.WordDispute
	case r.cfg.AskUsage:
		return ""
	}
	return message.WordAgree
}

// sayAgain tells the bank what it has not answered yet.
func (r *Role) sayAgain(now time.Time, a *awaited) (list []protocol.Message) {
	for i := range a.row.Purchase.Units {
		u := &a.row.Purchase.Units[i]
		if !open(*u) || u.Word == "" {
			continue
		}
		if sent, ok := r.say(now, a, u); ok {
			list = append(list, sent)
		}
	}
	return list
}

// wordHeard notes that the bank has answered a word, and not one before it; why: that
// it does not take it.
func (r *Role) wordHeard(a *awaited, m protocol.Message, why string) protocol.Output {
	p := &a.row.Purchase
	for i := range p.Units {
		u := &p.Units[i]
		if m.Sender != p.Bank || m.InReplyTo != verdictTag(*u) || u.Word == "" {
			continue
		}
		if u.Heard, u.Word = u.Word, ""; why != "" {
			u.Heard, p.Why = "", fmt.Sprintf("unit %d: the bank does not take the word on its usage: %s", u.Unit+1, why)
		}
		return protocol.Output{Save: []protocol.Record{saveRow(*a.row)}}.Join(tellRow(*a.row, "usage"))
	}
	return protocol.Output{}
}

// wordRefused takes a bank's no to a word. One that it gives for now is no answer: the
// contract, or the record, may not have come to it yet, as after a restore.
func (r *Role) wordRefused(a *awaited, m protocol.Message, body message.Refusal) protocol.Output {
	if len(body.Reasons) == 0 {
		return protocol.Output{}
	}
	switch why := body.Reasons[0]; why.Code {
	case protocol.CodeExpired, protocol.CodeForbidden, protocol.CodeMalformed:
		return r.wordHeard(a, m, cmp.Or(why.Note, string(why.Code)))
	}
	return protocol.Output{}
}

// verdictPrefix begins the reply-with of a word; the unit and the word follow.
const verdictPrefix = "verdict-"

func verdictTag(u message.PurchasedUnit) string {
	return verdictPrefix + strconv.Itoa(u.Unit) + "-" + string(u.Word)
}

// say is a unit's word as a signed verdict on its way to the bank; false: it cannot be
// signed now, and silence agrees.
func (r *Role) say(now time.Time, a *awaited, u *message.PurchasedUnit) (protocol.Message, bool) {
	note := contract.Verdict{
		Version: contract.NoteVersion, Contract: a.row.Purchase.Contract, Unit: u.Unit, User: r.ID(), Record: u.Record,
		Agree: u.Word == message.WordAgree, At: now.UTC(),
	}
	der, err := contract.SignNote(r.cfg.Credential, note, now)
	if err != nil {
		return protocol.Message{}, false
	}
	signed, err := contract.OpenNote[contract.Verdict](der, r.cfg.Trust, now)
	if err != nil {
		return protocol.Message{}, false
	}
	return protocol.Message{
		Performative: protocol.Request, Sender: r.ID(), Receivers: []protocol.AgentID{a.row.Purchase.Bank},
		Protocol: protocol.ProtocolRequest, Conversation: a.row.Purchase.ID, ReplyWith: verdictTag(*u),
		Body: message.JobVerdict{Signed: signed},
	}, true
}
