package command

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"time"

	"ramp/agents"
	"ramp/agents/journal"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/reserve"
)

// tableProofs has the proofs of receipts by contract, each behind the digest of the
// receipt that it proves, and the last head that was seen of each bank.
const tableProofs = "proofs"

// lastHead begins the key of the last head that was seen of a bank; no contract's does.
const lastHead = "head "

// digest is that of a receipt, as its bank signed it.
type digest [sha256.Size]byte

func digestOf(receipt []byte) digest { return sha256.Sum256(receipt) }

// keptProof reads a proof of tableProofs.
func keptProof(value []byte) (of digest, doc []byte, err error) {
	if len(value) <= len(of) {
		return of, nil, fmt.Errorf("a proof of %d bytes", len(value))
	}
	return digest(value[:len(of)]), value[len(of):], nil
}

// load reads once which proofs the journal has.
func (p *proofs) load() error {
	if p.kept != nil {
		return nil
	}
	kept, last := map[protocol.ContractID]digest{}, map[protocol.AgentID]contract.Head{}
	err := p.node.journal.Each(tableProofs, func(key string, value []byte) error {
		if strings.HasPrefix(key, lastHead) {
			h, _, err := contract.ReadHead(value)
			last[h.Bank] = h
			return err
		}
		of, _, err := keptProof(value)
		kept[protocol.ContractID(key)] = of
		return err
	})
	if err == nil {
		p.kept, p.last = kept, last
	}
	return err
}

// missing are some receipts without a proof. Proofs of contracts that the journal no
// longer has are left out of it.
func (p *proofs) missing(ctx context.Context) (list []reserve.Papers, err error) {
	there := map[protocol.ContractID]bool{}
	err = p.each(p.node.journal, func(one reserve.Papers) error {
		id, of := one.Decided.Contract, digestOf(one.Receipt)
		there[id] = true
		if len(list) < proofsAtOnce && p.kept[id] != of && p.refused[id] != of {
			list = append(list, one)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var gone []protocol.Record
	for id := range p.kept {
		if !there[id] {
			gone = append(gone, protocol.Record{Table: tableProofs, Key: string(id)})
			delete(p.kept, id)
		}
	}
	return list, p.save(ctx, gone...)
}

func (p *proofs) save(ctx context.Context, records ...protocol.Record) error {
	if len(records) == 0 {
		return nil
	}
	return p.node.runner.Do(ctx, func(time.Time, agents.Role) protocol.Output { return protocol.Output{Save: records} })
}

// proofOf is the proof that a journal has of a receipt; nil: none yet.
func proofOf(j *journal.Journal, id protocol.ContractID, receipt []byte) (found []byte, err error) {
	err = j.Each(tableProofs, func(key string, value []byte) error {
		if key != string(id) {
			return nil
		}
		of, doc, err := keptProof(value)
		if err != nil {
			return err
		}
		if of == digestOf(receipt) {
			found = append(found, doc...)
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		err = nil
	}
	return found, err
}
