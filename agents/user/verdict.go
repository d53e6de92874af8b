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
		u.Dispute = w.Why
		if w.Agree {
			u.Dispute = ""
		}
		out = out.Join(r.speak(now, a, u, u.Record, w.Agree))
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
func Waits(u message.PurchasedUnit) bool { return Judged(u) && u.Word == "" }

// askWord is after what time the bank is told again; later it is as often as it is asked
// how a unit ended.
const askWord = 10 * time.Second

// speak says a word on a record to the bank, now and again until the bank has answered:
// silence would agree.
func (r *Role) speak(now time.Time, a *awaited, u *message.PurchasedUnit, record string, agree bool) protocol.Output {
	word := message.WordDispute
	if agree {
		word = message.WordAgree
	}
	var out protocol.Output
	if u.Word != word || u.Record != record {
		u.Word, u.Record = word, record
		out.Save = []protocol.Record{saveRow(*a.row)}
	}
	if sent, ok := r.say(now, a, u, record, agree); ok {
		out.Send = []protocol.Message{sent}
	}
	a.tries = 0
	r.awaited.putOff(a, now.Add(askWord))
	out.WakeAt = a.askAt
	return out
}

// sayAgain tells the bank what it has not answered yet.
func (r *Role) sayAgain(now time.Time, a *awaited) (list []protocol.Message) {
	for i := range a.row.Purchase.Units {
		u := &a.row.Purchase.Units[i]
		if !open(*u) || u.Word == "" {
			continue
		}
		if sent, ok := r.say(now, a, u, u.Record, u.Word == message.WordAgree); ok {
			list = append(list, sent)
		}
	}
	return list
}

// wordHeard notes that the bank has answered a word; why: that it does not take it.
func (r *Role) wordHeard(a *awaited, m protocol.Message, why string) protocol.Output {
	p := &a.row.Purchase
	for i := range p.Units {
		u := &p.Units[i]
		if m.Sender != p.Bank || m.InReplyTo != verdictTag(*u) || u.Word == "" {
			continue
		}
		u.Word = ""
		if !r.cfg.AskUsage {
			u.Record = ""
		}
		if why != "" {
			u.Dispute, p.Why = "", fmt.Sprintf("unit %d: the bank does not take the word on its usage: %s", u.Unit+1, why)
		}
		return protocol.Output{Save: []protocol.Record{saveRow(*a.row)}}.Join(tellRow(*a.row, "usage"))
	}
	return protocol.Output{}
}

// wordRefused takes a bank's no to a word. One that it gives for now is no answer: the
// record may not have come to it yet, as after a restore.
func (r *Role) wordRefused(a *awaited, m protocol.Message, body message.Refusal) protocol.Output {
	if len(body.Reasons) == 0 {
		return protocol.Output{}
	}
	switch why := body.Reasons[0]; why.Code {
	case protocol.CodeExpired, protocol.CodeForbidden, protocol.CodeMalformed, protocol.CodeUnknown:
		return r.wordHeard(a, m, cmp.Or(why.Note, string(why.Code)))
	}
	return protocol.Output{}
}

// verdictPrefix begins the reply-with of a word; the unit follows.
const verdictPrefix = "verdict-"

func verdictTag(u message.PurchasedUnit) string { return verdictPrefix + strconv.Itoa(u.Unit) }

// say is a signed verdict on its way to the bank; false: it cannot be signed now,
// and silence agrees.
func (r *Role) say(now time.Time, a *awaited, u *message.PurchasedUnit, record string, agree bool) (protocol.Message, bool) {
	note := contract.Verdict{
		Version: contract.NoteVersion, Contract: a.row.Purchase.Contract, Unit: u.Unit, User: r.ID(), Record: record, Agree: agree, At: now.UTC(),
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
