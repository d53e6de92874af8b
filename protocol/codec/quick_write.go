package codec

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ramp/protocol/codec/wire"
)

// marshal writes e, the same bytes each time: those of the library, field by
// field in rising order, without it if the body is one of which auctions have
// most.
func marshal(e *wire.Envelope) ([]byte, error) {
	var body func(b []byte) []byte
	switch x := e.Body.(type) {
	case *wire.Envelope_Cfp:
		body = func(b []byte) []byte { return appendCFP(b, x.Cfp) }
	case *wire.Envelope_Proposal:
		body = func(b []byte) []byte { return appendProposal(b, x.Proposal) }
	case *wire.Envelope_Refusal:
		body = func(b []byte) []byte { return appendRefusal(b, x.Refusal) }
	default:
		return proto.MarshalOptions{Deterministic: true}.Marshal(e)
	}
	return body(appendHead(make([]byte, 0, roomFor(e)), e)), nil
}

// usualSize is how long most messages of an auction are at most, in bytes.
const usualSize = 256

// roomFor is about how long e will be.
func roomFor(e *wire.Envelope) int {
	return usualSize + len(e.GetCfp().GetDocument())
}

// appendHead writes the fields before the body.
func appendHead(b []byte, e *wire.Envelope) []byte {
	b = appendText(b, 1, e.Performative)
	b = appendText(b, 2, e.Protocol)
	b = appendText(b, 3, e.Conversation)
	b = appendText(b, 4, e.ReplyWith)
	b = appendText(b, 5, e.InReplyTo)
	b = appendFixed(b, 6, e.ReplyBy)
	b = appendTexts(b, 7, e.Receivers)
	return appendText(b, 8, e.Sender)
}

func appendCFP(b []byte, m *wire.CallForProposals) []byte {
	b, from := beginPart(b, 17)
	b = appendNumber(b, 1, m.Round)
	if len(m.Document) > 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), m.Document)
	}
	for _, x := range m.Ceilings {
		var at int
		b, at = beginPart(b, 3)
		b = appendNumber(b, 1, x.Unit)
		b = appendNumber(b, 2, x.Price)
		b = endPart(b, at)
	}
	for _, x := range m.Bundles {
		b = appendBundleCeiling(b, x)
	}
	b = appendNumber(b, 5, m.Objective)
	for _, x := range m.Terms {
		var at int
		b, at = beginPart(b, 6)
		b = appendText(b, 1, x.Bank)
		b = appendText(b, 2, x.Currency)
		b = endPart(b, at)
	}
	b = appendTexts(b, 7, m.Modes)
	b = appendTruth(b, 8, m.Best)
	b = appendNumber(b, 9, m.Budget)
	b = appendNumber(b, 10, m.Among)
	return endPart(b, from)
}

func appendBundleCeiling(b []byte, m *wire.BundleCeiling) []byte {
	b, from := beginPart(b, 4)
	if len(m.Units) > 0 {
		var at int
		b, at = beginPart(b, 1)
		for _, u := range m.Units {
			b = protowire.AppendVarint(b, uint64(u))
		}
		b = endPart(b, at)
	}
	b = appendNumber(b, 2, m.Cost)
	return endPart(b, from)
}

func appendProposal(b []byte, m *wire.Proposal) []byte {
	b, from := beginPart(b, 18)
	b = appendNumber(b, 1, m.Round)
	for _, x := range m.Offers {
		b = appendOffer(b, x)
	}
	for _, x := range m.Capacity {
		var at int
		b, at = beginPart(b, 3)
		b = appendFixed(b, 1, x.Start)
		b = appendFixed(b, 2, x.End)
		b = appendNumber(b, 3, x.Cores)
		b = endPart(b, at)
	}
	b = appendReasons(b, 4, m.Refusals)
	return endPart(b, from)
}

func appendOffer(b []byte, m *wire.Offer) []byte {
	b, from := beginPart(b, 2)
	b = appendText(b, 1, m.Id)
	for _, x := range m.Items {
		var at int
		b, at = beginPart(b, 2)
		b = appendNumber(b, 1, x.Unit)
		b = appendFixed(b, 2, x.Start)
		b = appendFixed(b, 3, x.End)
		b = appendNumber(b, 4, x.Cores)
		b = appendNumber(b, 5, x.Price)
		b = appendNumber(b, 6, x.Cost)
		b = endPart(b, at)
	}
	b = appendNumber(b, 3, m.Cost)
	b = appendFixed(b, 4, m.ValidUntil)
	b = appendText(b, 5, m.Group)
	b = appendTruth(b, 6, m.Voucher)
	b = appendNumber(b, 7, m.Queued)
	return endPart(b, from)
}

func appendRefusal(b []byte, m *wire.Refusal) []byte {
	b, from := beginPart(b, 19)
	b = appendNumber(b, 1, m.Round)
	b = appendReasons(b, 2, m.Reasons)
	return endPart(b, from)
}

func appendReasons(b []byte, num protowire.Number, list []*wire.Reason) []byte {
	for _, x := range list {
		var at int
		b, at = beginPart(b, num)
		b = appendText(b, 1, x.Code)
		b = appendNumber(b, 2, int64(protowire.EncodeZigZag(x.Unit)))
		b = appendText(b, 3, x.Term)
		b = appendText(b, 4, x.Want)
		b = appendText(b, 5, x.Have)
		b = appendNumber(b, 6, x.Asks)
		b = appendFixed(b, 7, x.Start)
		b = appendNumber(b, 8, x.Free)
		b = appendText(b, 9, x.Note)
		for _, h := range x.Hints {
			b = appendHint(b, h)
		}
		b = endPart(b, at)
	}
	return b
}

func appendHint(b []byte, m *wire.Hint) []byte {
	b, from := beginPart(b, 10)
	b = appendFixed(b, 1, m.Start)
	b = appendNumber(b, 2, m.Cores)
	b = appendNumber(b, 3, m.Price)
	b = appendNumber(b, 4, m.TimeLimit)
	b = appendNumber(b, 5, m.PLo)
	b = appendNumber(b, 6, m.PHi)
	b = appendNumber(b, 7, m.PTop)
	b = appendNumber(b, 8, m.QLo)
	b = appendNumber(b, 9, m.QHi)
	b = appendNumber(b, 10, m.QTop)
	b = appendNumber(b, 11, m.Prepay)
	return endPart(b, from)
}

// beginPart begins a field that is a message; endPart needs where it began.
func beginPart(b []byte, num protowire.Number) (out []byte, from int) {
	b = append(protowire.AppendTag(b, num, protowire.BytesType), 0)
	return b, len(b)
}

// endPart writes the length before the part; a part of 128 bytes or more moves
// to make room for it.
func endPart(b []byte, from int) []byte {
	n := len(b) - from
	if n < 0x80 {
		b[from-1] = byte(n)
		return b
	}
	size := protowire.SizeVarint(uint64(n))
	b = append(b, make([]byte, size-1)...)
	copy(b[from-1+size:], b[from:from+n])
	protowire.AppendVarint(b[:from-1], uint64(n))
	return b
}

func appendText(b []byte, num protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}

func appendTexts(b []byte, num protowire.Number, list []string) []byte {
	for _, s := range list {
		b = protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
	}
	return b
}

func appendNumber(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), uint64(v))
}

func appendFixed(b []byte, num protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), uint64(v))
}

func appendTruth(b []byte, num protowire.Number, v bool) []byte {
	if !v {
		return b
	}
	return appendNumber(b, num, 1)
}
