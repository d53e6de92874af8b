package user

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// A usage record that the contract allows may still not be what its owner saw. An
// owner who wants to look first (Config.AskUsage) gives the word: it countersigns,
// or disputes, and then the bank's operator decides. Silence agrees, as the bank
// counts it.

// ownerWord signs what the owner says of usage records that are filed and wait:
// of one unit, or of all if Unit is below zero.
func (r *Role) ownerWord(now time.Time, w message.OwnerWord) protocol.Output {
	row := r.awaitedRow(w.ID)
	if row == nil {
		return protocol.Output{}
	}
	a := r.awaited.of(row.Purchase.Contract)
	var out protocol.Output
	for i := range row.Purchase.Units {
		u := &row.Purchase.Units[i]
		if !Waits(*u) || w.Unit >= 0 && u.Unit != w.Unit {
			continue
		}
		sent, ok := r.say(now, a, u, u.Record, w.Agree)
		if !ok {
			continue
		}
		if u.Dispute = w.Why; w.Agree {
			u.Dispute, u.Record = "", ""
		}
		out.Send = append(out.Send, sent)
	}
	if len(out.Send) == 0 {
		return out
	}
	out.Save = []protocol.Record{saveRow(*row)}
	return out.Join(tellRow(*row, "usage"))
}

// Waits reports whether a unit's usage record waits for its owner's word: it is
// filed, and the money is held.
func Waits(u message.PurchasedUnit) bool { return open(u) && u.Record != "" }

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
		Protocol: protocol.ProtocolRequest, Conversation: a.row.Purchase.ID, ReplyWith: fmt.Sprintf("verdict-%d", u.Unit),
		Body: message.JobVerdict{Signed: signed},
	}, true
}
