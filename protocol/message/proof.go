package message

import "ramp/protocol"

// MaxProof bounds a Proof in bytes.
const MaxProof = 1 << 20

// ProofQuery asks a bank for its newest signed head (query-ref), with a proof that
// its log extends a log of From entries. With a contract it also asks for the entries
// that decided it, and their places in the log; only its parties get these.
type ProofQuery struct {
	Contract protocol.ContractID // empty: only the head
	From     uint64              // size of the log that the sender saw last; 0: it has seen none
}

// Proof answers ProofQuery (inform): a document of package audit, at most
// MaxProof bytes. Verify it before using its content.
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
	Refusal  *Refusal // instead of the document
}

// Kind names the body; local bodies are never on the wire.
func (ProofLookup) Kind() string { return "local-proof-lookup" }
func (FoundProof) Kind() string  { return "local-found-proof" }

// Kind is the name on the wire.
func (ProofQuery) Kind() string { return "proof-query" }
func (Proof) Kind() string      { return "proof" }
