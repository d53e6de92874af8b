package node

import (
	"context"
	"errors"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/bank/audit"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// sealPeriod is how long entries are without a signed head at most.
const sealPeriod = time.Second

// sealHeads signs the log while there are new entries.
func (b *Bank) sealHeads(ctx context.Context) {
	t := time.NewTicker(sealPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := b.db.SealHead(time.Now()); err != nil {
				b.Log.Error("cannot sign the log", "err", err)
				b.endOn(ctx, err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// openOwnHead verifies a head that is in the ledger: it must be the bank's own.
func openOwnHead(trust *identity.Trust) ledgerdb.OpenHead {
	return func(der []byte) (contract.Head, string, error) {
		h, err := contract.OpenHead(der, trust)
		return h.Head, h.ID, err
	}
}

// prove answers a question about the log from outside. The entries of a contract
// say what its parties had afterwards, so they are for the parties.
func (b *Bank) prove(q message.ProofLookup) (message.FoundProof, error) {
	if q.Query.Contract != "" {
		if ok, err := b.db.Party(q.Query.Contract, q.By); err != nil {
			return message.FoundProof{}, err
		} else if !ok {
			return refusedProof(protocol.CodeForbidden, "this bank has decided no such contract of yours, and only its parties get a proof"), nil
		}
	}
	doc, err := b.document(q.Query.Contract, q.Query.From)
	if errors.Is(err, ledgerdb.ErrNoEntry) {
		return refusedProof(protocol.CodeUnknown, "nothing was entered yet"), nil
	}
	return message.FoundProof{Document: doc}, err
}

func refusedProof(code protocol.Code, note string) message.FoundProof {
	r := message.Refused(code, note)
	return message.FoundProof{Refusal: &r}
}

func (b *Bank) document(id protocol.ContractID, from uint64) ([]byte, error) {
	var d audit.Document
	var err error
	if id == "" {
		d, err = b.db.Prove(nil, from, time.Now())
	} else {
		d, err = b.db.ProveContract(id, from, time.Now())
	}
	if err != nil {
		return nil, err
	}
	return d.Encode()
}

func (b *Bank) proof(_ context.Context, q control.ProofCall) (control.ProofAnswer, error) {
	doc, err := b.document(q.Contract, q.From)
	if errors.Is(err, ledgerdb.ErrNoEntry) {
		return control.ProofAnswer{}, exit.Fail(exit.Nothing, "", "%w", err)
	}
	return control.ProofAnswer{Bank: b.Cred.ID, Proof: doc}, err
}
