package codec

import (
	"ramp/protocol"
	"ramp/protocol/codec/wire"
	"ramp/protocol/message"
)

func (r *reader) proofQuery(w *wire.ProofQuery) message.ProofQuery {
	q := message.ProofQuery{From: w.GetFrom()}
	if w.GetContract() != "" {
		q.Contract = r.contract(w.GetContract())
	}
	return q
}

func (r *reader) proof(w *wire.Proof) message.Proof {
	n := len(w.GetDocument())
	if n > message.MaxProof {
		r.fail(protocol.CodeLimit, "proof of %d bytes, want at most %d", n, message.MaxProof)
	}
	if n == 0 {
		r.malformed("a proof without a document")
	}
	return message.Proof{Document: w.GetDocument()}
}
