package codec

import (
	"google.golang.org/protobuf/encoding/protowire"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

// writeQuick writes the messages of which auctions have most, straight into the
// bytes that the library would write by way of the wire types: field by field in
// rising order. It reports false if this is another message, or one with a fault,
// which is for the reader of what the library writes to name.
func writeQuick(m protocol.Message, sender protocol.AgentID) ([]byte, bool) {
	w := quickWriter{}
	switch body := m.Body.(type) {
	case message.CallForProposals:
		w.head(m, sender, len(body.Document))
		w.cfp(body)
	case message.Proposal:
		w.head(m, sender, 0)
		w.proposal(body)
	case message.Refusal:
		w.head(m, sender, 0)
		w.refusal(body)
	default:
		return nil, false
	}
	w.check.checkAllowed(m)
	return w.b, w.check.err == nil && len(w.b) <= protocol.MaxMessage
}

// How long most messages of an auction are at most, beside a document and the names of
// their receivers, and how long such a name, in bytes.
const (
	usualSize = 224
	usualName = 48
)

// quickWriter writes what a reader takes. The wire types in it are of values that
// lie beside each other, and never leave a function.
type quickWriter struct {
	b     []byte
	check reader
}

// fits refuses a list that is too long.
func (w *quickWriter) fits(field string, n, most int) {
	if n > most {
		w.check.malformed("%d %s, want at most %d", n, field, most)
	}
}

// head writes the fields before the body, with room for it and for so many bytes more.
func (w *quickWriter) head(m protocol.Message, sender protocol.AgentID, more int) {
	w.b = make([]byte, 0, usualSize+usualName*len(m.Receivers)+more)
	e := wire.Envelope{
		Performative: string(m.Performative), Protocol: m.Protocol, Conversation: m.Conversation,
		ReplyWith: m.ReplyWith, InReplyTo: m.InReplyTo, ReplyBy: nanos(m.ReplyBy),
	}
	w.check.head(&e)
	w.text(1, e.Performative)
	w.text(2, e.Protocol)
	w.text(3, e.Conversation)
	w.text(4, e.ReplyWith)
	w.text(5, e.InReplyTo)
	w.fixed(6, e.ReplyBy)
	if len(m.Receivers) == 0 {
		w.check.malformed("no receiver")
	}
	w.fits("receivers", len(m.Receivers), protocol.MaxReceivers)
	for _, a := range m.Receivers {
		w.item(7, string(w.check.receiver(string(a)))) // a local one is none
	}
	w.text(8, string(sender))
}

func (w *quickWriter) cfp(c message.CallForProposals) {
	x := wire.CallForProposals{
		Round: int64(c.Round), Document: c.Document, Objective: int64(c.Objective), Best: c.Best, Budget: int64(c.Budget), Among: int64(c.Among),
	}
	w.check.cfpHead(&x)
	w.fits("bytes of the document", len(c.Document), protocol.MaxDocument)
	from := w.begin(17)
	w.number(1, x.Round)
	if len(c.Document) > 0 {
		w.b = protowire.AppendBytes(protowire.AppendTag(w.b, 2, protowire.BytesType), c.Document)
	}
	w.ceilings(c)
	w.number(5, x.Objective)
	w.terms(c.Terms)
	w.fits("modes", len(c.Modes), protocol.MaxModes)
	for _, m := range c.Modes {
		w.item(7, string(w.check.mode(string(m))))
	}
	w.truth(8, x.Best)
	w.number(9, x.Budget)
	w.number(10, x.Among)
	if c.Launch != nil {
		v := wire.Intent{App: c.Launch.App, Input: c.Launch.Input}
		w.check.intent(&v)
		at := w.begin(11)
		w.text(1, v.App)
		w.number(2, v.Input)
		w.end(at)
	}
	w.end(from)
}

func (w *quickWriter) ceilings(c message.CallForProposals) {
	w.fits("ceilings", len(c.Ceilings), protocol.MaxUnits)
	for _, x := range c.Ceilings {
		v := wire.Ceiling{Unit: int64(x.Unit), Price: int64(x.Price)}
		w.check.ceiling(&v)
		from := w.begin(3)
		w.number(1, v.Unit)
		w.number(2, v.Price)
		w.end(from)
	}
	w.fits("ceilings of bundles", len(c.Bundles), protocol.MaxOffers)
	for _, x := range c.Bundles {
		from := w.begin(4)
		w.units(x.Units)
		w.check.amount("ceiling of a bundle", int64(x.Cost))
		w.number(2, int64(x.Cost))
		w.end(from)
	}
}

func (w *quickWriter) units(list []int) {
	if len(list) == 0 {
		return
	}
	w.fits("units", len(list), protocol.MaxUnits)
	from := w.begin(1)
	for _, u := range list {
		w.b = protowire.AppendVarint(w.b, uint64(w.check.unit(int64(u))))
	}
	w.end(from)
}

func (w *quickWriter) terms(list []protocol.Terms) {
	w.fits("terms", len(list), protocol.MaxTerms)
	for _, t := range list {
		v := wire.Terms{Bank: string(t.Bank), Currency: t.Currency}
		w.check.term(&v)
		from := w.begin(6)
		w.text(1, v.Bank)
		w.text(2, v.Currency)
		w.end(from)
	}
}

func (w *quickWriter) proposal(p message.Proposal) {
	from := w.begin(18)
	w.check.round(int64(p.Round))
	w.number(1, int64(p.Round))
	items := 0
	w.fits("offers", len(p.Offers), protocol.MaxOffers)
	for _, o := range p.Offers {
		w.offer(o)
		items += len(o.Items)
	}
	w.fits("items", items, protocol.MaxItems)
	w.fits("spans", len(p.Capacity), protocol.MaxSpans)
	for _, s := range p.Capacity {
		v := wire.Slot{Start: nanos(s.Start), End: nanos(s.End), Cores: int64(s.Cores)}
		w.check.span(&v)
		at := w.begin(3)
		w.fixed(1, v.Start)
		w.fixed(2, v.End)
		w.number(3, v.Cores)
		w.end(at)
	}
	w.reasons(4, p.Refusals)
	w.end(from)
}

func (w *quickWriter) offer(o protocol.Offer) {
	v := wire.Offer{
		Id: o.ID, Cost: int64(o.Cost), ValidUntil: nanos(o.ValidUntil), Group: o.Group, Voucher: o.Voucher, Queued: int64(o.Queued),
	}
	w.check.offerHead(&v)
	from := w.begin(2)
	w.text(1, v.Id)
	w.fits("items", len(o.Items), protocol.MaxUnits)
	for _, x := range o.Items {
		w.offerItem(x)
	}
	w.check.checkItems(o)
	w.number(3, v.Cost)
	w.fixed(4, v.ValidUntil)
	w.text(5, v.Group)
	w.truth(6, v.Voucher)
	w.number(7, v.Queued)
	w.end(from)
}

func (w *quickWriter) offerItem(x protocol.Item) {
	v := wire.Item{
		Unit: int64(x.Unit), Start: nanos(x.Slot.Start), End: nanos(x.Slot.End), Cores: int64(x.Slot.Cores), Price: int64(x.Price), Cost: int64(x.Cost),
	}
	w.check.item(&v)
	from := w.begin(2)
	w.number(1, v.Unit)
	w.fixed(2, v.Start)
	w.fixed(3, v.End)
	w.number(4, v.Cores)
	w.number(5, v.Price)
	w.number(6, v.Cost)
	w.end(from)
}

func (w *quickWriter) refusal(f message.Refusal) {
	from := w.begin(19)
	w.check.round(int64(f.Round))
	w.number(1, int64(f.Round))
	w.reasons(2, f.Reasons)
	w.end(from)
}

func (w *quickWriter) reasons(num protowire.Number, list []protocol.Reason) {
	w.fits("reasons", len(list), protocol.MaxReasons)
	for _, x := range list {
		v := wire.Reason{
			Code: string(x.Code), Unit: int64(x.Unit), Term: words(x.Term), Want: words(x.Want), Have: words(x.Have),
			Asks: int64(x.Asks), Start: nanos(x.Start), Free: int64(x.Free), Note: words(x.Note),
		}
		w.check.reasonHead(&v)
		from := w.begin(num)
		w.text(1, v.Code)
		w.number(2, int64(protowire.EncodeZigZag(v.Unit)))
		w.text(3, v.Term)
		w.text(4, v.Want)
		w.text(5, v.Have)
		w.number(6, v.Asks)
		w.fixed(7, v.Start)
		w.number(8, v.Free)
		w.text(9, v.Note)
		w.hints(x.Hints)
		w.end(from)
	}
}

func (w *quickWriter) hints(list []protocol.Hint) {
	w.fits("hints", len(list), protocol.MaxHints)
	for _, h := range list {
		v := hintToWire(h)
		w.check.hint(v)
		from := w.begin(10)
		w.fixed(1, v.Start)
		w.number(2, v.Cores)
		w.number(3, v.Price)
		w.number(4, v.TimeLimit)
		w.number(5, v.PLo)
		w.number(6, v.PHi)
		w.number(7, v.PTop)
		w.number(8, v.QLo)
		w.number(9, v.QHi)
		w.number(10, v.QTop)
		w.number(11, v.Prepay)
		w.end(from)
	}
}
