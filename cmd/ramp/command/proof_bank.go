package command

import (
	"context"
	"errors"
	"time"

	"ramp/bank/audit"
	"ramp/bank/ledgerdb"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// sealPeriod is how long entries are without a signed head at most.
const sealPeriod = time.Second

// proofCall asks for a proof: of a contract, or the newest head only. Bank is for
// the calls of users.
type proofCall struct {
	Bank     protocol.AgentID    `json:"bank,omitempty"`
	Contract protocol.ContractID `json:"contract,omitempty"`
	From     uint64              `json:"from"` // size of the log that was seen last
}

// proofAnswer is a document of package audit.
type proofAnswer struct {
	Bank  protocol.AgentID `json:"bank"`
	Proof []byte           `json:"proof"`
}

// sealHeads signs the log while there are new entries.
func (b *bankNode) sealHeads(ctx context.Context) {
	t := time.NewTicker(sealPeriod)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if err := b.db.SealHead(time.Now()); err != nil {
				b.log.Error("cannot sign the log", "err", err)
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
func (b *bankNode) prove(q message.ProofLookup) (message.FoundProof, error) {
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

func (b *bankNode) document(id protocol.ContractID, from uint64) ([]byte, error) {
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

// proof answers the operator.
func (b *bankNode) proof(_ context.Context, q proofCall) (proofAnswer, error) {
	doc, err := b.document(q.Contract, q.From)
	if errors.Is(err, ledgerdb.ErrNoEntry) {
		return proofAnswer{}, fail(exitNothing, "", "%w", err)
	}
	return proofAnswer{b.cred.ID, doc}, err
}
