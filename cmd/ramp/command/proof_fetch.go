package command

import (
	"context"
	"errors"
	"slices"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// fetch asks a bank for one proof, checks it and keeps it. With an error the bank is
// asked again.
func (p *proofs) fetch(ctx context.Context, one reserve.Papers) error {
	ctx, cancel := context.WithTimeout(ctx, proofWait)
	defer cancel()
	bank, id := one.Decided.Bank, one.Decided.Contract
	answer, err := p.node.asks.ask(ctx, p.node.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: p.node.cred.ID, Receivers: []protocol.AgentID{bank},
		Protocol: protocol.ProtocolRequest, Body: message.ProofQuery{Contract: id, From: p.last[bank].Size},
	})
	if err != nil {
		return err
	}
	switch body := answer.Body.(type) {
	case message.Proof:
		if err = p.take(ctx, one, body.Document); !errors.Is(err, errUnproved) {
			return err
		}
		p.node.log.Warn("the bank does not prove its receipt", "bank", bank, "contract", id, "err", err)
	case message.Refusal:
		if codeOf(body) == protocol.CodeUnavailable {
			return errors.New(refusalNote(body))
		}
		p.node.log.Info("the bank has no proof of its receipt", "bank", bank, "contract", id, "why", refusalNote(body))
	}
	p.refused[id] = digestOf(one.Receipt)
	return nil
}

func codeOf(r message.Refusal) protocol.Code {
	if len(r.Reasons) == 0 {
		return ""
	}
	return r.Reasons[0].Code
}

// errUnproved: what a bank showed does not hold.
var errUnproved = errors.New("it shows something else")

// take keeps a proof that holds.
func (p *proofs) take(ctx context.Context, one reserve.Papers, doc []byte) error {
	bank, id, of := one.Decided.Bank, one.Decided.Contract, digestOf(one.Receipt)
	d, h, err := openProof(doc, bank, p.node.trust)
	if err == nil {
		err = d.CheckReceipt(one.Decided)
	}
	if err != nil {
		return errors.Join(errUnproved, err)
	}
	p.grown(bank, d, h.Head)
	err = p.save(ctx, protocol.Record{Table: tableProofs, Key: string(id), Value: slices.Concat(of[:], doc)},
		protocol.Record{Table: tableProofs, Key: lastHead + string(bank), Value: h.DER})
	if err == nil {
		p.kept[id], p.last[bank] = of, h.Head
	}
	return err
}

// grown warns if a bank's log did not grow out of what it showed before.
func (p *proofs) grown(bank protocol.AgentID, d audit.Document, h contract.Head) {
	last := p.last[bank]
	if last.Size == 0 {
		return
	}
	err := audit.ErrShrunk
	if h.Size >= last.Size {
		err = audit.VerifyGrowth(last, h, d.Growth)
	}
	if err != nil {
		p.node.log.Warn("the bank's log did not grow out of the one that it showed before: it was restored from a backup, or it lies; 'ramp bank witness' looks closer",
			"bank", bank, "entries", h.Size, "before", last.Size, "err", err)
	}
}
