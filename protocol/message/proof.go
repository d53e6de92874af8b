package message

import "ramp/protocol"

// MaxProof bounds a Proof in bytes.
const MaxProof = 1 << 20

// ProofQuery asks a bank for its newest signed head (query-ref), with the proof
// that its log grew from one of From entries. With a contract it also asks for
// the entries that decided it, and their places in the log; only the contract's
// parties get those.
type ProofQuery struct {
	Contract protocol.ContractID // empty: only the head
	From     uint64              // size of the log that the sender saw last; 0: none
}

// Proof answers ProofQuery (inform): a document of package audit, at most
// MaxProof bytes. What it says holds only once it has been verified.
type Proof struct {
	Document []byte
}

// ProofLookup is a ProofQuery on its way to the store (local, to LocalHistory).
type ProofLookup struct {
	Query ProofQuery
	By    protocol.AgentID
}

// FoundProof answers ProofLookup.
type FoundProof struct {
	Document []byte
	Refusal  *Refusal // why there is none
}

// Kind names the body; local bodies are never on the wire.
func (ProofLookup) Kind() string { return "local-proof-lookup" }
func (FoundProof) Kind() string  { return "local-found-proof" }

// Kind is the word on the wire.
func (ProofQuery) Kind() string { return "proof-query" }
func (Proof) Kind() string      { return "proof" }
