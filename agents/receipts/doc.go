// Package receipts decides what an agent does with the receipts that banks sign for it.
//
// A Keeper asks each bank to prove its receipts by its log, checks the proofs against
// the heads that it has seen, and keeps them:
//
//	saved --1 s--> asked --the proof holds--> kept
//	  ^              |--refused, or the proof fails--> unproved (until a restart)
//	  '--5 s..10 min-'--no answer
//
// When a bank announces that it recovers from a backup, the Keeper shows it the receipts
// that it signed since the backup. Refused ones are shown again at its next presence. A
// user's journal takes the receipt that the bank signs instead.
//
// A role owns a Keeper and passes it what arrives, what it saves, and its alarms. The
// journal is a local correspondent (protocol.LocalHistory): it answers each Lookup by
// Search, and logs each Note. A Keeper reads no clock and no file, and signs nothing.
package receipts

import (
	"slices"
	"strings"
	"time"

	"ramp/protocol"
	"ramp/protocol/identity"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// Bounds of a Keeper.
const (
	AnswerTime = 30 * time.Second // that a bank has for each answer
	pageSize   = 256              // receipts of each bank in the answer to a Lookup
	maxQueue   = 1024             // receipts that await their proofs, by bank; the journal has the others
	maxRefused = 1 << 14          // receipts remembered as unprovable, or as latest; then all are forgotten
	maxBanks   = 64               // that recover at a time; others are heard later
)

// Prefixes of the tags of a Keeper's questions.
const (
	proofTag = "proof/"
	shownTag = "readmit/"
)

type party struct {
	self  protocol.AgentID
	trust *identity.Trust // verifies what banks signed
	sells bool            // a seller's journal, not a user's
}

// ask asks a bank a question; the answer bears its tag.
func (p party) ask(bank protocol.AgentID, act protocol.Performative, tag string, body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: act, Sender: p.self, Receivers: []protocol.AgentID{bank},
		Protocol: protocol.ProtocolRequest, Conversation: tag, ReplyWith: tag, Body: body,
	}}}
}

// tell sends a Lookup or a Note to the journal.
func (p party) tell(body protocol.Body) protocol.Output {
	return protocol.Output{Send: []protocol.Message{{
		Performative: protocol.Inform, Sender: p.self, Receivers: []protocol.AgentID{protocol.LocalHistory}, Body: body,
	}}}
}

// Keeper keeps the proofs of one agent's receipts, and shows them to banks that recover.
type Keeper struct {
	party
	proofs     proofs
	recoveries recoveries
}

// New is the Keeper of an agent; a seller's journal differs from a user's.
func New(self protocol.AgentID, trust *identity.Trust, seller bool) Keeper {
	p := party{self, trust, seller}
	return Keeper{p, newProofs(p), recoveries{party: p, banks: map[protocol.AgentID]*recovery{}}}
}

// Begin looks for receipts that earlier runs have left without a proof.
func (k *Keeper) Begin(now time.Time) protocol.Output { return k.proofs.look(now) }

// Receive takes what concerns the Keeper, and gives everything else to its role.
func (k *Keeper) Receive(now time.Time, m protocol.Message, role func(time.Time, protocol.Message) protocol.Output) protocol.Output {
	out, taken := k.take(now, m)
	if taken {
		return out
	}
	did := role(now, m)
	return out.Join(did).Join(k.Saved(now, did.Save))
}

// take reports true if the role need not see a message.
func (k *Keeper) take(now time.Time, m protocol.Message) (out protocol.Output, taken bool) {
	from, tag := m.Sender, m.InReplyTo
	switch body := m.Body.(type) {
	case message.Presence:
		return k.proofs.met(now, from).Join(k.recoveries.hear(now, from, body)), false
	case Found:
		if from == protocol.LocalHistory && body.Bank != "" {
			return k.recoveries.found(now, body), true
		} else if from == protocol.LocalHistory {
			return k.proofs.found(now, body), true
		}
	case message.Undeliverable:
		if from == protocol.LocalMesh {
			from, tag = body.To, m.ReplyWith
		}
	}
	switch {
	case strings.HasPrefix(tag, proofTag):
		return k.proofs.answered(now, from, tag, m.Body), true
	case strings.HasPrefix(tag, shownTag):
		out := k.recoveries.answered(now, from, tag, m.Body)
		return out.Join(k.Saved(now, out.Save)), true
	}
	return protocol.Output{}, false
}

// Saved takes what the role saves: new receipts get their proofs, and with a finished deal
// its proof is deleted.
func (k *Keeper) Saved(now time.Time, records []protocol.Record) (out protocol.Output) {
	for _, r := range records {
		if r.Table == reserve.TablePast && r.Value == nil && !slices.ContainsFunc(records, func(x protocol.Record) bool { // it is not brought back
			return x.Table == reserve.TableSales && x.Key == reserve.PastContract(r.Key) && x.Value != nil
		}) {
			out.Save = append(out.Save, protocol.Record{Table: TableProofs, Key: reserve.PastContract(r.Key)})
		}
		if receipt, der, err := reserve.ReceiptOf(r); err != nil {
			panic("receipts: the role saves what it cannot read: " + err.Error())
		} else if len(der) > 0 {
			k.proofs.add(&owed{receipt, digestOf(der), now.Add(sealTime), true})
			out = out.Join(k.proofs.step(now, receipt.Bank))
		}
	}
	return out
}

// Wake does what is due, after what the role did.
func (k *Keeper) Wake(now time.Time, did protocol.Output) protocol.Output {
	return did.Join(k.Saved(now, did.Save)).Join(k.proofs.wake(now)).Join(k.recoveries.wake(now))
}

// Hurry asks at once for the proofs of the receipts that this run has saved, and returns
// how many of them nobody has tried to prove yet.
func (k *Keeper) Hurry(now time.Time) (protocol.Output, int) { return k.proofs.hurry(now) }

// Sizes lists what the Keeper holds in memory, with the bound of each.
func (k *Keeper) Sizes() []protocol.Size {
	n := 0
	for _, b := range k.proofs.banks {
		n = max(n, len(b.queue))
	}
	return []protocol.Size{
		{Of: "receipts of a bank that await their proofs", N: n, Most: maxQueue + 1},
		{Of: "receipts without a proof at their banks", N: len(k.proofs.refused), Most: maxRefused},
		{Of: "latest receipts", N: len(k.proofs.latest), Most: maxRefused},
		{Of: "banks that recover", N: len(k.recoveries.banks), Most: maxBanks},
	}
}
