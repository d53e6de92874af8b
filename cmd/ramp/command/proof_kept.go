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

// missing are some receipts without a proof, of each bank that is not silent, and in what
// time one is asked again. Proofs of contracts that the journal no longer has are left
// out of it.
func (p *proofs) missing(ctx context.Context, now time.Time) (lists map[protocol.AgentID][]reserve.Papers, next time.Duration, err error) {
	there := map[protocol.ContractID]bool{}
	lists, next = map[protocol.AgentID][]reserve.Papers{}, proofLook
	err = p.each(p.node.journal, func(one reserve.Papers) error {
		id, of, bank := one.Decided.Contract, digestOf(one.Receipt), one.Decided.Bank
		there[id] = true
		switch until := p.silent[bank].until; {
		case p.kept[id] == of || p.refused[id] == of:
		case until.After(now):
			next = min(next, until.Sub(now))
		case len(lists[bank]) < proofsAtOnce:
			lists[bank] = append(lists[bank], one)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	var gone []protocol.Record
	for id := range p.kept {
		if !there[id] {
			gone = append(gone, protocol.Record{Table: tableProofs, Key: string(id)})
			delete(p.kept, id)
		}
	}
	return lists, next, p.save(ctx, gone...)
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
