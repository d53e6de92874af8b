package receipts

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// Times of proofs.
const (
	sealTime   = time.Second     // until a bank has signed the head that a proof rests on
	firstRetry = 5 * time.Second // after a bank did not answer; doubled up to lastRetry
	lastRetry  = 10 * time.Minute
	lookPart   = 20 // a pause between Lookups is at least as many times what the last one took
)

// proofs owns the receipts that lack a proof, by bank. Banks are asked independently of each other,
// each for one proof at a time.
type proofs struct {
	party
	banks   map[protocol.AgentID]*prover
	queued  map[protocol.ContractID]*owed
	refused map[string]bool // digests of receipts that their banks do not prove
	loaded  bool            // the journal has answered once
	asking  bool            // it is being asked
	asked   time.Time
	lookAt  time.Time                     // no earlier Lookup
	latest  map[protocol.ContractID]*owed // the last receipts that were queued, or were being asked for
}

// owed is a receipt without a proof.
type owed struct {
	receipt protocol.Receipt
	of      digest
	due     time.Time
	fresh   bool // this run saved it, and nobody has tried to prove it
}

// prover is a bank as its receipts' owner sees it.
type prover struct {
	queue  []*owed
	asked  *owed // nil: nothing
	tag    string
	until  time.Time     // that an answer is awaited
	silent time.Time     // it is not asked before
	retry  time.Duration // the next silence; zero: firstRetry
	lost   bool          // it could not be reached: its next presence ends the silence
	more   bool          // the journal has more of its receipts
	head   contract.Head // the last that it showed
}

func newProofs(p party) proofs {
	return proofs{
		party: p, banks: map[protocol.AgentID]*prover{}, queued: map[protocol.ContractID]*owed{},
		refused: map[string]bool{}, latest: map[protocol.ContractID]*owed{},
	}
}

func (p *proofs) bank(id protocol.AgentID) *prover {
	if p.banks[id] == nil {
		p.banks[id] = &prover{}
	}
	return p.banks[id]
}

// overtaken reports whether a newer receipt of the contract is known: one with more
// refunds and ends, or one that the role saved and the journal did not have yet.
func (p *proofs) overtaken(o *owed) bool {
	events := func(o *owed) int { return len(o.receipt.Refunds) + len(o.receipt.Ends) }
	last := p.latest[o.receipt.Contract]
	return last != nil && last.of != o.of && (!o.fresh || last.receipt.Entry == o.receipt.Entry && events(last) > events(o))
}

// add queues a receipt behind the others of its bank. A newer one of the same contract
// takes the place of the older one.
func (p *proofs) add(o *owed) {
	id, b := o.receipt.Contract, p.bank(o.receipt.Bank)
	switch had := p.queued[id]; {
	case o.receipt.Entry == 0 || p.refused[string(o.of[:])] || b.asked != nil && b.asked.of == o.of || had != nil && had.of == o.of || p.overtaken(o):
		return
	case had != nil:
		*had = *o
	case len(b.queue) >= maxQueue:
		b.more = true
		return
	default:
		b.queue = append(b.queue, o)
		p.queued[id] = o
	}
	if len(p.latest) >= maxRefused {
		clear(p.latest)
	}
	p.latest[id] = o
}

// look asks the journal for receipts without a proof, unless enough of them are known.
func (p *proofs) look(now time.Time) protocol.Output {
	wanted := !p.loaded
	for _, b := range p.banks {
		wanted = wanted || b.more && len(b.queue) == 0 && b.asked == nil
	}
	switch {
	case !wanted || p.asking:
		return protocol.Output{}
	case now.Before(p.lookAt):
		return protocol.Output{WakeAt: p.lookAt}
	}
	p.asking, p.asked = true, now
	return p.tell(Lookup{Sold: p.sells, Skip: maps.Clone(p.refused)})
}

// found takes the journal's answer.
func (p *proofs) found(now time.Time, f Found) protocol.Output {
	p.asking, p.lookAt = false, now.Add(max(sealTime, lookPart*now.Sub(p.asked)))
	if f.Err != nil {
		p.lookAt = now.Add(lastRetry)
		return p.tell(Note{true, "cannot read the journal to find receipts without a proof; it is read again", []any{"err", f.Err}}).Join(p.look(now))
	}
	for _, b := range p.banks {
		b.more = false
	}
	for id := range f.More {
		p.bank(id).more = true
	}
	for id, h := range f.Heads {
		if b := p.bank(id); !p.loaded {
			b.head = h
		}
	}
	p.loaded = true
	for _, c := range f.List {
		p.add(&owed{receipt: c.Decided, of: digestOf(c.Receipt), due: now})
	}
	return p.wake(now)
}

func (p *proofs) wake(now time.Time) (out protocol.Output) {
	for _, id := range slices.Sorted(maps.Keys(p.banks)) {
		out = out.Join(p.step(now, id))
	}
	return out.Join(p.look(now))
}

// step asks a bank for its next proof, once its last answer has come or is overdue.
func (p *proofs) step(now time.Time, id protocol.AgentID) protocol.Output {
	b := p.banks[id]
	if b.asked != nil && !now.Before(b.until) {
		p.silence(now, b)
	}
	switch {
	case b.asked != nil:
		return protocol.Output{WakeAt: b.until}
	case !p.loaded || len(b.queue) == 0:
		return protocol.Output{}
	case now.Before(b.silent):
		return protocol.Output{WakeAt: b.silent}
	case now.Before(b.queue[0].due):
		return protocol.Output{WakeAt: b.queue[0].due}
	}
	o := b.queue[0]
	b.queue, b.asked, b.until = b.queue[1:], o, now.Add(AnswerTime)
	delete(p.queued, o.receipt.Contract)
	b.tag = fmt.Sprintf("%s%d/%s", proofTag, b.head.Size, o.receipt.Contract)
	out := p.ask(id, protocol.QueryRef, b.tag, message.ProofQuery{Contract: o.receipt.Contract, From: b.head.Size})
	out.WakeAt = b.until
	return out
}

// silence leaves a bank that did not answer alone for a while.
func (p *proofs) silence(now time.Time, b *prover) {
	retry, o := max(firstRetry, b.retry), b.asked
	b.silent, b.retry, b.asked, o.fresh = now.Add(retry), min(2*retry, lastRetry), nil, false
	if p.queued[o.receipt.Contract] == nil {
		b.queue = slices.Insert(b.queue, 0, o)
		p.queued[o.receipt.Contract] = o
	}
}

// met asks a bank again that could not be reached.
func (p *proofs) met(now time.Time, id protocol.AgentID) protocol.Output {
	b := p.banks[id]
	if b == nil || !b.lost {
		return protocol.Output{}
	}
	b.lost, b.silent, b.retry = false, time.Time{}, 0
	return p.step(now, id)
}

// answered takes a bank's answer to the question with a tag.
func (p *proofs) answered(now time.Time, id protocol.AgentID, tag string, body protocol.Body) (out protocol.Output) {
	b := p.banks[id]
	if b == nil || b.asked == nil || b.tag != tag {
		return protocol.Output{} // late
	}
	refusal, refused := body.(message.Refusal)
	_, lost := body.(message.Undeliverable)
	if lost || refused && codeOf(refusal) == protocol.CodeUnavailable {
		p.silence(now, b)
		b.lost = lost
	} else {
		o := b.asked
		b.asked, b.retry = nil, 0
		if doc, ok := body.(message.Proof); ok {
			out = p.take(id, b, o, doc.Document)
		} else {
			out = p.unproved(o, Note{Text: "the bank has no proof of its receipt", About: []any{"why", why(refusal)}})
		}
	}
	return out.Join(p.step(now, id)).Join(p.look(now))
}

func (p *proofs) take(id protocol.AgentID, b *prover, o *owed, doc []byte) protocol.Output {
	var h contract.VerifiedHead
	d, err := audit.Decode(doc)
	if err == nil {
		h, err = Verify(d, id, p.trust)
	}
	if err == nil {
		err = d.CheckReceipt(o.receipt)
	}
	if err != nil {
		return p.unproved(o, Note{Warn: true, Text: "the bank does not prove its receipt", About: []any{"err", err}})
	}
	out := p.grown(b.head, h.Head, d.Growth)
	b.head = h.Head
	return out.Join(protocol.Output{Save: []protocol.Record{{Table: TableProofs, Key: string(o.receipt.Contract), Value: slices.Concat(o.of[:], doc)}, {Table: TableProofs, Key: lastHead + string(id), Value: h.DER}}})
}

// unproved asks no more for a receipt's proof.
func (p *proofs) unproved(o *owed, n Note) protocol.Output {
	if len(p.refused) >= maxRefused {
		clear(p.refused)
	}
	p.refused[string(o.of[:])] = true
	n.About = append([]any{"bank", o.receipt.Bank, "contract", o.receipt.Contract}, n.About...)
	return p.tell(n)
}

// grown warns if a bank's log does not contain the log that it showed before.
func (p *proofs) grown(last, h contract.Head, growth [][]byte) protocol.Output {
	err := audit.ErrShrunk
	switch {
	case last.Size == 0:
		return protocol.Output{}
	case h.Size >= last.Size:
		if err = audit.VerifyGrowth(last, h, growth); err == nil {
			return protocol.Output{}
		}
	}
	return p.tell(Note{
		true, "the bank's log did not grow out of the one that it showed before: it was restored from a backup, or it lies; 'ramp bank witness' checks it",
		[]any{"bank", h.Bank, "entries", h.Size, "before", last.Size, "err", err},
	})
}

// hurry asks at once for the proofs of this run's receipts.
func (p *proofs) hurry(now time.Time) (out protocol.Output, untried int) {
	for _, b := range p.banks {
		for _, o := range b.queue {
			if o.fresh {
				o.due = now
			}
		}
	}
	out = p.wake(now)
	for _, b := range p.banks {
		if b.asked != nil && b.asked.fresh {
			untried++
		}
		for _, o := range b.queue {
			if o.fresh && !now.Before(b.silent) {
				untried++
			}
		}
	}
	return out, untried
}

func codeOf(r message.Refusal) protocol.Code {
	if len(r.Reasons) == 0 {
		return ""
	}
	return r.Reasons[0].Code
}

func why(r message.Refusal) string {
	if len(r.Reasons) == 0 {
		return "it gives no reason"
	}
	return r.Reasons[0].Words()
}
