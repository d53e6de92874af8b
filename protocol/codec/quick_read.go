package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// quickest is the size up to which readQuick reads a message, whose texts then
// share one allocation: what keeps one of them keeps no more than this.
const quickest = 4 << 10 // bytes

// readQuick reads the messages of which auctions have most, as Encode writes
// them, straight from the bytes: the same message as by way of the wire types, in
// a quarter of the time. It reports false if this is another message, not as
// Encode would write it, or one with a fault, which is for the library to name.
// The sender is whom an own trace says.
func readQuick(b []byte) (protocol.Message, bool) {
	if len(b) > quickest {
		return protocol.Message{}, false
	}
	r := quickReader{parts: parts{b: b, text: string(b), end: len(b)}}
	m := r.message()
	return m, r.good()
}

// quickReader reads parts of a message by the rules of a reader. The wire types
// in it are of values that lie beside each other, and never leave a function.
type quickReader struct {
	parts
	check reader
}

func (r *quickReader) good() bool { return !r.strange && r.check.err == nil }

// fits makes a list that is too long strange.
func (r *quickReader) fits(n, most int) { r.strange = r.strange || n > most }

// enter goes into the part in a field; leave, with what enter returned, behind it.
func (r *quickReader) enter() (outer parts) {
	inner := r.part()
	outer, r.parts = r.parts, inner
	return outer
}

func (r *quickReader) leave(outer parts) {
	outer.ended(r.parts)
	r.parts = outer
}

func (r *quickReader) message() (m protocol.Message) {
	var e wire.Envelope
	var to []protocol.AgentID
	var body protocol.Body
	var sender string
	for r.next() {
		switch r.num {
		case 1:
			e.Performative = r.string()
		case 2:
			e.Protocol = r.string()
		case 3:
			e.Conversation = r.string()
		case 4:
			e.ReplyWith = r.string()
		case 5:
			e.InReplyTo = r.string()
		case 6:
			e.ReplyBy = r.fixed()
		case 7:
			to = append(room(to, &r.parts), r.check.receiver(r.item()))
		case 8:
			sender = r.string()
		default:
			r.strange = r.strange || body != nil // one body, as the last field
			body = r.quickBody()
		}
	}
	m = r.check.head(&e)
	m.Sender, m.Receivers, m.Body = protocol.AgentID(sender), to, body
	r.strange = r.strange || len(to) == 0 || len(to) > protocol.MaxReceivers || body == nil
	r.check.checkAllowed(m)
	return m
}

// room makes a list as long as the fields that lie here one after the other, if
// it is not there yet.
func room[T any](list []T, p *parts) []T {
	if list == nil {
		return make([]T, 0, p.alike())
	}
	return list
}

func (r *quickReader) quickBody() protocol.Body {
	switch r.num {
	case 17:
		return r.quickCFP()
	case 18:
		return r.quickProposal()
	case 19:
		return r.quickRefusal()
	}
	r.strange = true
	return nil
}

func (r *quickReader) quickCFP() message.CallForProposals {
	var w wire.CallForProposals
	var c message.CallForProposals
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Round = r.number()
		case 2:
			w.Document = r.bytes()
		case 3:
			c.Ceilings = append(room(c.Ceilings, &r.parts), r.quickCeiling())
		case 4:
			c.Bundles = append(room(c.Bundles, &r.parts), r.quickBundle())
		case 5:
			w.Objective = r.number()
		case 6:
			c.Terms = append(room(c.Terms, &r.parts), r.quickTerms())
		case 7:
			c.Modes = append(room(c.Modes, &r.parts), protocol.Mode(r.item()))
		case 8:
			w.Best = r.number() != 0
		case 9:
			w.Budget = r.number()
		case 10:
			w.Among = r.number()
		case 11:
			r.strange = r.strange || r.again
			c.Launch = r.quickIntent()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.wholeCFP(&w, c)
}

// wholeCFP joins lists with what is none.
func (r *quickReader) wholeCFP(w *wire.CallForProposals, lists message.CallForProposals) message.CallForProposals {
	r.fits(len(w.Document), protocol.MaxDocument)
	r.fits(len(lists.Ceilings), protocol.MaxUnits)
	r.fits(len(lists.Bundles), protocol.MaxOffers)
	r.fits(len(lists.Terms), protocol.MaxTerms)
	r.fits(len(lists.Modes), protocol.MaxModes)
	c := r.check.cfpHead(w)
	c.Ceilings, c.Bundles, c.Terms, c.Modes, c.Launch = lists.Ceilings, lists.Bundles, lists.Terms, knownModes(lists.Modes), lists.Launch
	return c
}

func (r *quickReader) quickIntent() *message.Intent {
	var w wire.Intent
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.App = r.string()
		case 2:
			w.Input = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.check.intent(&w)
}

func (r *quickReader) quickCeiling() message.Ceiling {
	var w wire.Ceiling
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Unit = r.number()
		case 2:
			w.Price = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.check.ceiling(&w)
}

func (r *quickReader) quickBundle() (c message.BundleCeiling) {
	cost := int64(0)
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			c.Units = r.packedUnits()
		case 2:
			cost = r.number()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	r.fits(len(c.Units), protocol.MaxUnits)
	c.Cost = r.check.amount("ceiling of a bundle", cost)
	return c
}

// packedUnits reads a list of numbers that comes as one field.
func (r *quickReader) packedUnits() []int {
	r.strange = r.strange || r.again
	from, to := r.span()
	var list []int
	for from < to {
		v, n := protowire.ConsumeVarint(r.b[from:to])
		if n < 0 {
			r.strange = true
			return nil
		}
		list = append(list, r.check.unit(int64(v)))
		from += n
	}
	return list
}

func (r *quickReader) quickTerms() protocol.Terms {
	var w wire.Terms
	outer := r.enter()
	for r.next() {
		switch r.num {
		case 1:
			w.Bank = r.string()
		case 2:
			w.Currency = r.string()
		default:
			r.strange = true
		}
	}
	r.leave(outer)
	return r.check.term(&w)
}
