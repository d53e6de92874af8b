package codec

import (
	"math"
	"time"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

func cfpToWire(c message.CallForProposals) *wire.CallForProposals {
	w := &wire.CallForProposals{
		Round:     int64(c.Round),
		Document:  c.Document,
		Ceilings:  make([]*wire.Ceiling, len(c.Ceilings)),
		Bundles:   make([]*wire.BundleCeiling, len(c.Bundles)),
		Objective: int64(c.Objective),
		Terms:     termsToWire(c.Terms),
		Modes:     modesToWire(c.Modes),
		Best:      c.Best,
		Budget:    int64(c.Budget),
		Among:     int64(c.Among),
	}
	if c.Launch != nil {
		w.Launch = &wire.Intent{App: c.Launch.App, Input: c.Launch.Input}
	}
	for i, x := range c.Ceilings {
		w.Ceilings[i] = &wire.Ceiling{Unit: int64(x.Unit), Price: int64(x.Price)}
	}
	for i, x := range c.Bundles {
		w.Bundles[i] = bundleCeilingToWire(x)
	}
	return w
}

func bundleCeilingToWire(b message.BundleCeiling) *wire.BundleCeiling {
	w := &wire.BundleCeiling{Units: make([]int64, len(b.Units)), Cost: int64(b.Cost)}
	for i, u := range b.Units {
		w.Units[i] = int64(u)
	}
	return w
}

func (r *reader) cfp(w *wire.CallForProposals) message.CallForProposals {
	if len(w.Document) > protocol.MaxDocument {
		r.fail(protocol.CodeLimit, "document of %d bytes, want at most %d", len(w.Document), protocol.MaxDocument)
	}
	if len(w.Document) == 0 {
		w.Document = nil
	}
	c := r.cfpHead(w)
	c.Ceilings = list(r, "ceilings", w.Ceilings, protocol.MaxUnits, r.ceiling)
	c.Bundles = list(r, "ceilings of bundles", w.Bundles, protocol.MaxOffers, r.bundleCeiling)
	c.Terms = list(r, "terms", w.Terms, protocol.MaxTerms, r.term)
	c.Modes = r.modes(w.Modes)
	if w.Launch != nil {
		c.Launch = r.intent(w.Launch)
	}
	return c
}

// intent reads what is to be launched. Whether a site would is for the role.
func (r *reader) intent(w *wire.Intent) *message.Intent {
	return &message.Intent{
		App:   r.name("application", w.GetApp(), protocol.MaxName),
		Input: int64(r.number("bytes of the inputs", w.GetInput(), 0, protocol.MaxStaged*protocol.MaxFileSize)),
	}
}

// cfpHead reads what is no list.
func (r *reader) cfpHead(w *wire.CallForProposals) message.CallForProposals {
	return message.CallForProposals{
		Round:     r.round(w.Round),
		Document:  w.Document,
		Objective: r.objective(w.Objective),
		Best:      w.Best,
		Budget:    r.number("budget", w.Budget, 0, math.MaxInt32),
		Among:     r.number("among", w.Among, 0, math.MaxInt32),
	}
}

// objective reads one of the closed set, or zero: later rounds need not repeat
// it.
func (r *reader) objective(v int64) protocol.Objective {
	return protocol.Objective(r.number("objective", v, 0, int64(protocol.ObjectiveCostTime)))
}

func (r *reader) ceiling(w *wire.Ceiling) message.Ceiling {
	return message.Ceiling{Unit: r.unit(w.Unit), Price: r.amount("ceiling", w.Price)}
}

func (r *reader) bundleCeiling(w *wire.BundleCeiling) message.BundleCeiling {
	return message.BundleCeiling{
		Units: list(r, "units", w.Units, protocol.MaxUnits, r.unit),
		Cost:  r.amount("ceiling of a bundle", w.Cost),
	}
}

func proposalToWire(p message.Proposal) *wire.Proposal {
	w := &wire.Proposal{
		Round:    int64(p.Round),
		Offers:   make([]*wire.Offer, len(p.Offers)),
		Capacity: make([]*wire.Slot, len(p.Capacity)),
		Refusals: reasonsToWire(p.Refusals),
	}
	for i, o := range p.Offers {
		w.Offers[i] = offerToWire(o)
	}
	for i, s := range p.Capacity {
		w.Capacity[i] = &wire.Slot{Start: nanos(s.Start), End: nanos(s.End), Cores: int64(s.Cores)}
	}
	return w
}

func (r *reader) proposal(w *wire.Proposal) message.Proposal {
	items := 0
	for _, o := range w.Offers {
		items += len(o.Items)
	}
	if items > protocol.MaxItems {
		r.fail(protocol.CodeLimit, "%d items in all offers, want at most %d", items, protocol.MaxItems)
	}
	return message.Proposal{
		Round:    r.round(w.Round),
		Offers:   list(r, "offers", w.Offers, protocol.MaxOffers, r.offer),
		Capacity: list(r, "spans", w.Capacity, protocol.MaxSpans, r.span),
		Refusals: list(r, "reasons", w.Refusals, protocol.MaxReasons, r.reason),
	}
}

// span may have no cores, unlike a slot: then nothing is left.
func (r *reader) span(w *wire.Slot) protocol.Span {
	s := protocol.Span{Start: r.needed("start", w.Start), End: r.needed("end", w.End), Cores: r.cores(w.Cores)}
	if !s.End.After(s.Start) {
		r.malformed("a span that does not end after its start")
	}
	return s
}

func refusalToWire(f message.Refusal) *wire.Refusal {
	return &wire.Refusal{Round: int64(f.Round), Reasons: reasonsToWire(f.Reasons)}
}

func (r *reader) refusal(w *wire.Refusal) message.Refusal {
	return message.Refusal{
		Round:   r.round(w.Round),
		Reasons: list(r, "reasons", w.Reasons, protocol.MaxReasons, r.reason),
	}
}

func reasonsToWire(reasons []protocol.Reason) []*wire.Reason {
	out := make([]*wire.Reason, len(reasons))
	for i, x := range reasons {
		out[i] = &wire.Reason{
			Code: string(x.Code), Unit: int64(x.Unit), Term: words(x.Term), Want: words(x.Want), Have: words(x.Have),
			Asks: int64(x.Asks), Start: nanos(x.Start), Free: int64(x.Free), Note: words(x.Note),
			Hints: hintsToWire(x.Hints),
		}
	}
	return out
}

func hintsToWire(hints []protocol.Hint) []*wire.Hint {
	out := make([]*wire.Hint, len(hints))
	for i, h := range hints {
		out[i] = hintToWire(h)
	}
	return out
}

func hintToWire(h protocol.Hint) *wire.Hint {
	t := h.Tariff
	return &wire.Hint{
		Start: nanos(h.Start), Cores: int64(h.Cores), Price: int64(h.Price), TimeLimit: int64(t.TimeLimit),
		PLo: t.P.Lo, PHi: t.P.Hi, PTop: int64(t.P.Top), QLo: t.Q.Lo, QHi: t.Q.Hi, QTop: int64(t.Q.Top), Prepay: int64(t.Prepay),
	}
}

func (r *reader) hint(w *wire.Hint) protocol.Hint {
	return protocol.Hint{
		Start:  r.needed("start of a hint", w.Start),
		Cores:  r.number("cores of a hint", w.Cores, 1, protocol.MaxCores),
		Price:  r.price("price of a hint", w.Price),
		Tariff: r.hintTariff(w),
	}
}

// hintTariff is the contract of a counter-offer, valid, or none at all.
func (r *reader) hintTariff(w *wire.Hint) protocol.Tariff {
	t := protocol.Tariff{
		TimeLimit: time.Duration(w.TimeLimit), P: protocol.Ramp{Lo: w.PLo, Hi: w.PHi, Top: r.amount("Pmax of a hint", w.PTop)},
		Q: protocol.Ramp{Lo: w.QLo, Hi: w.QHi, Top: r.amount("Qmax of a hint", w.QTop)}, Prepay: r.amount("prepayment of a hint", w.Prepay),
	}
	if t == (protocol.Tariff{}) {
		return t
	}
	if err := t.Validate(); err != nil {
		r.malformed("contract of a hint: %w", err)
	}
	return t
}

func (r *reader) reason(w *wire.Reason) protocol.Reason {
	x := r.reasonHead(w)
	x.Hints = list(r, "hints", w.Hints, protocol.MaxHints, r.hint)
	return x
}

// reasonHead reads a reason without its hints.
func (r *reader) reasonHead(w *wire.Reason) protocol.Reason {
	return protocol.Reason{
		Code:  r.reasonCode(w.Code),
		Unit:  r.number("unit", w.Unit, protocol.AllUnits, protocol.MaxUnits-1),
		Term:  r.words("term", w.Term),
		Want:  r.words("want", w.Want),
		Have:  r.words("have", w.Have),
		Asks:  r.amount("asks", w.Asks),
		Start: r.instant("start", w.Start),
		Free:  r.number("free", w.Free, 0, math.MaxInt32),
		Note:  r.words("note", w.Note),
	}
}
