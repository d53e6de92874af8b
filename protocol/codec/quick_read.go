package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol/codec/wire"
)

// quickest is the size up to which readQuick reads a message, whose texts then
// share one allocation: what keeps one of them keeps no more than this.
const quickest = 4 << 10 // bytes

// readQuick reads the messages of which auctions have most, as Encode writes
// them, as proto.Unmarshal would, in a quarter of the time. It reports false if
// this is another message, or not as Encode would write it.
func readQuick(b []byte) (*wire.Envelope, bool) {
	if len(b) > quickest {
		return nil, false
	}
	e := &wire.Envelope{}
	p := parts{b: b, text: string(b), end: len(b)}
	for p.next() {
		readEnvelope(&p, e)
	}
	return e, !p.strange
}

func readEnvelope(p *parts, e *wire.Envelope) {
	switch p.num {
	case 1:
		e.Performative = p.string()
	case 2:
		e.Protocol = p.string()
	case 3:
		e.Conversation = p.string()
	case 4:
		e.ReplyWith = p.string()
	case 5:
		e.InReplyTo = p.string()
	case 6:
		e.ReplyBy = p.fixed()
	case 7:
		e.Receivers = append(e.Receivers, p.item())
	case 8:
		e.Sender = p.string()
	default:
		readBody(p, e)
	}
}

// readBody reads a body that comes once, as the last field.
func readBody(p *parts, e *wire.Envelope) {
	p.strange = p.strange || e.Body != nil
	switch p.num {
	case 17:
		e.Body = &wire.Envelope_Cfp{Cfp: within(p, readCFP)}
	case 18:
		e.Body = &wire.Envelope_Proposal{Proposal: within(p, readProposal)}
	case 19:
		e.Body = &wire.Envelope_Refusal{Refusal: within(p, readRefusal)}
	default:
		p.strange = true
	}
}

// within reads the message in a field, field by field.
func within[M any](p *parts, field func(p *parts, m *M)) *M {
	m := new(M)
	inner := p.part()
	for inner.next() {
		field(&inner, m)
	}
	p.ended(inner)
	return m
}

func readCFP(p *parts, m *wire.CallForProposals) {
	switch p.num {
	case 1:
		m.Round = p.number()
	case 2:
		m.Document = p.bytes()
	case 3:
		m.Ceilings = append(m.Ceilings, within(p, readCeiling))
	case 4:
		m.Bundles = append(m.Bundles, within(p, readBundleCeiling))
	case 5:
		m.Objective = p.number()
	case 6:
		m.Terms = append(m.Terms, within(p, readTerms))
	case 7:
		m.Modes = append(m.Modes, p.item())
	case 8:
		m.Best = p.number() != 0
	case 9:
		m.Budget = p.number()
	case 10:
		m.Among = p.number()
	default:
		p.strange = true
	}
}

func readCeiling(p *parts, m *wire.Ceiling) {
	switch p.num {
	case 1:
		m.Unit = p.number()
	case 2:
		m.Price = p.number()
	default:
		p.strange = true
	}
}

func readBundleCeiling(p *parts, m *wire.BundleCeiling) {
	switch p.num {
	case 1:
		m.Units = readPacked(p)
	case 2:
		m.Cost = p.number()
	default:
		p.strange = true
	}
}

// readPacked reads a list of numbers that comes as one field.
func readPacked(p *parts) []int64 {
	p.strange = p.strange || p.again
	from, to := p.span()
	var list []int64
	for from < to {
		v, n := protowire.ConsumeVarint(p.b[from:to])
		if n < 0 {
			p.strange = true
			return nil
		}
		list = append(list, int64(v))
		from += n
	}
	return list
}

func readTerms(p *parts, m *wire.Terms) {
	switch p.num {
	case 1:
		m.Bank = p.string()
	case 2:
		m.Currency = p.string()
	default:
		p.strange = true
	}
}

func readProposal(p *parts, m *wire.Proposal) {
	switch p.num {
	case 1:
		m.Round = p.number()
	case 2:
		m.Offers = append(m.Offers, within(p, readOffer))
	case 3:
		m.Capacity = append(m.Capacity, within(p, readSlot))
	case 4:
		m.Refusals = append(m.Refusals, within(p, readReason))
	default:
		p.strange = true
	}
}

func readOffer(p *parts, m *wire.Offer) {
	switch p.num {
	case 1:
		m.Id = p.string()
	case 2:
		m.Items = append(m.Items, within(p, readItem))
	case 3:
		m.Cost = p.number()
	case 4:
		m.ValidUntil = p.fixed()
	case 5:
		m.Group = p.string()
	case 6:
		m.Voucher = p.number() != 0
	case 7:
		m.Queued = p.number()
	default:
		p.strange = true
	}
}

func readItem(p *parts, m *wire.Item) {
	switch p.num {
	case 1:
		m.Unit = p.number()
	case 2:
		m.Start = p.fixed()
	case 3:
		m.End = p.fixed()
	case 4:
		m.Cores = p.number()
	case 5:
		m.Price = p.number()
	case 6:
		m.Cost = p.number()
	default:
		p.strange = true
	}
}

func readSlot(p *parts, m *wire.Slot) {
	switch p.num {
	case 1:
		m.Start = p.fixed()
	case 2:
		m.End = p.fixed()
	case 3:
		m.Cores = p.number()
	default:
		p.strange = true
	}
}

func readRefusal(p *parts, m *wire.Refusal) {
	switch p.num {
	case 1:
		m.Round = p.number()
	case 2:
		m.Reasons = append(m.Reasons, within(p, readReason))
	default:
		p.strange = true
	}
}

func readReason(p *parts, m *wire.Reason) {
	switch p.num {
	case 1:
		m.Code = p.string()
	case 2:
		m.Unit = protowire.DecodeZigZag(uint64(p.number()))
	case 3:
		m.Term = p.string()
	case 4:
		m.Want = p.string()
	case 5:
		m.Have = p.string()
	case 6:
		m.Asks = p.number()
	case 7:
		m.Start = p.fixed()
	case 8:
		m.Free = p.number()
	case 9:
		m.Note = p.string()
	case 10:
		m.Hints = append(m.Hints, within(p, readHint))
	default:
		p.strange = true
	}
}

func readHint(p *parts, m *wire.Hint) {
	switch p.num {
	case 1:
		m.Start = p.fixed()
	case 2:
		m.Cores = p.number()
	case 3:
		m.Price = p.number()
	default:
		readHintTariff(p, m)
	}
}

func readHintTariff(p *parts, m *wire.Hint) {
	switch p.num {
	case 4:
		m.TimeLimit = p.number()
	case 5:
		m.PLo = p.number()
	case 6:
		m.PHi = p.number()
	case 7:
		m.PTop = p.number()
	case 8:
		m.QLo = p.number()
	case 9:
		m.QHi = p.number()
	case 10:
		m.QTop = p.number()
	case 11:
		m.Prepay = p.number()
	default:
		p.strange = true
	}
}
