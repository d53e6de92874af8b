package receipts

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/reserve"
)

// TableProofs has the proofs of receipts by contract, each behind the digest of the
// receipt that it proves, and the last head that was seen of each bank.
const TableProofs = "proofs"

// lastHead begins the key of the last head that was seen of a bank; no contract's does.
const lastHead = "head "

// digest is the SHA-256 of a receipt's DER.
type digest [sha256.Size]byte

func digestOf(receipt []byte) digest { return sha256.Sum256(receipt) }

func readProof(value []byte) (of digest, doc []byte, err error) {
	if len(value) <= len(of) {
		return of, nil, fmt.Errorf("stored proof of %d bytes: want more than %d", len(value), len(of))
	}
	return digest(value[:len(of)]), value[len(of):], nil
}

// Lookup asks the journal for receipts without a proof, or for those that a Bank signed
// since an instant.
type Lookup struct {
	Sold  bool             // of a seller
	Bank  protocol.AgentID // empty: those without a proof
	Since time.Time
	Voids time.Time       // and of a seller's void contracts only since this instant
	Skip  map[string]bool // keys that the Bank was shown, or digests that are not proved; it does not change
}

// Found answers a Lookup.
type Found struct {
	Lookup
	List  []reserve.DecidedContract          // at most pageSize of each bank
	More  map[protocol.AgentID]bool          // banks with more receipts in the journal
	Heads map[protocol.AgentID]contract.Head // the last one that was seen of each bank
	Err   error
}

// Note is a line for the agent's log.
type Note struct {
	Warn  bool
	Text  string
	About []any // keys and values
}

// Kind names the body; local bodies are never on the wire.
func (Lookup) Kind() string { return "local-receipts-lookup" }
func (Found) Kind() string  { return "local-found-receipts" }
func (Note) Kind() string   { return "local-receipts-note" }

// Search answers a Lookup from a journal.
func Search(t protocol.Tables, q Lookup) Found {
	f := Found{Lookup: q, More: map[protocol.AgentID]bool{}, Heads: map[protocol.AgentID]contract.Head{}}
	proved := map[protocol.ContractID]digest{}
	if q.Bank == "" {
		if f.Err = t.Each(TableProofs, f.readInto(proved)); f.Err != nil {
			return f
		}
	}
	each, count := reserve.EachBought, map[protocol.AgentID]int{}
	if q.Sold {
		each = reserve.EachSold
	}
	list := func(c reserve.DecidedContract) error {
		bank, of := c.Decided.Bank, digestOf(c.Receipt)
		switch {
		case q.Bank == "" && (proved[c.Decided.Contract] == of || q.Skip[string(of[:])]):
		case q.Bank != "" && (q.Bank != bank || q.Skip[c.Key] || !c.Since(q.Since)):
		case count[bank] == pageSize:
			f.More[bank] = true
		case q.Bank == "":
			count[bank]++
			f.List = append(f.List, reserve.DecidedContract{Decided: c.Decided, Receipt: c.Receipt})
		default:
			count[bank]++
			f.List = append(f.List, c)
		}
		return nil
	}
	if f.Err = each(t, list); f.Err == nil && q.Sold && q.Bank != "" {
		f.Err = reserve.EachVoid(t, q.Voids, list)
	}
	return f
}

// readInto reads the records of TableProofs.
func (f *Found) readInto(proved map[protocol.ContractID]digest) func(key string, value []byte) error {
	return func(key string, value []byte) (err error) {
		if strings.HasPrefix(key, lastHead) {
			h, _, err := contract.ReadHead(value)
			f.Heads[h.Bank] = h
			return err
		}
		proved[protocol.ContractID(key)], _, err = readProof(value)
		return err
	}
}

// ProofOf is the proof that a journal has of a receipt; nil: none yet.
func ProofOf(t protocol.Tables, id protocol.ContractID, receipt []byte) ([]byte, error) {
	value, err := t.Get(TableProofs, string(id))
	if value == nil {
		return nil, err
	}
	if of, doc, err := readProof(value); err != nil || of == digestOf(receipt) {
		return doc, err
	}
	return nil, nil
}

// Verify checks the signature on a document's head, and the place of each of its entries
// in the log that the head stands for.
func Verify(d audit.Document, bank protocol.AgentID, trust *identity.Trust) (contract.VerifiedHead, error) {
	h, err := contract.OpenHead(d.Head, trust)
	switch {
	case err != nil:
		return h, err
	case h.Bank != bank:
		return h, fmt.Errorf("the proof is of %s, not of %s", h.Bank, bank)
	}
	return h, d.VerifyEntries(h.Head)
}
