package command

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// proof asks a bank for its newest head, or for the proof of a contract.
func (h holder) proof(ctx context.Context, q proofCall) (proofAnswer, error) {
	if err := q.Bank.Validate(); err != nil {
		return proofAnswer{}, fail(exitUsage, "", "bank: %w", err)
	}
	answer, err := h.asks.ask(ctx, h.runner, protocol.Message{
		Performative: protocol.QueryRef, Sender: h.self, Receivers: []protocol.AgentID{q.Bank},
		Protocol: protocol.ProtocolRequest, Body: message.ProofQuery{Contract: q.Contract, From: q.From},
	})
	if err != nil {
		return proofAnswer{}, err
	}
	switch b := answer.Body.(type) {
	case message.Proof:
		return proofAnswer{q.Bank, b.Document}, nil
	case message.Refusal:
		return proofAnswer{}, fail(exitRefused, "", "%s refuses: %s", q.Bank.Name(), refusalNote(b))
	}
	return proofAnswer{}, fail(exitFailed, "", "%s answers something else", q.Bank.Name())
}

func refusalNote(r message.Refusal) string {
	if len(r.Reasons) == 0 {
		return "it does not say why"
	}
	return string(r.Reasons[0].Code) + ": " + r.Reasons[0].Note
}

// reachUser reaches the user agent of a directory, or starts it in this process.
func reachUser(c *cobra.Command, dir string) (*caller, func(), error) {
	return reachUserBy(c, dir, startUser)
}

// fetchProof asks the bank of a receipt for its proof and verifies it; the head
// is remembered in the agent's directory.
func fetchProof(c *cobra.Command, agent *caller, f signedFiles) ([]byte, error) {
	if len(f.Receipt) == 0 {
		return nil, fail(exitNothing, "", "there is no receipt yet, so there is nothing to prove")
	}
	r, err := contract.ReadReceipt(f.Receipt)
	if err != nil {
		return nil, err
	}
	dir, err := dirOf(c, "user")
	if err != nil {
		return nil, err
	}
	cfg, err := readConfig(filepath.Join(dir, configName))
	if err != nil {
		return nil, err
	}
	trust, err := cfg.trust()
	if err != nil {
		return nil, err
	}
	heads, err := openHeads(filepath.Join(dir, headsName))
	if err != nil {
		return nil, err
	}
	defer awaiting(c, "asking "+r.Bank.Name()+" for the proof", answerTime)()
	var a proofAnswer
	q := proofCall{Bank: r.Bank, Contract: r.Contract, From: heads.seenSize(r.Bank)}
	if err := agent.call(c.Context(), "POST", "/v1/proof", q, &a); err != nil {
		return nil, err
	}
	d, _, err := heads.takeProof(a.Proof, r.Bank, trust, true)
	if err != nil {
		return nil, err
	}
	if err := d.CheckReceipt(r); err != nil {
		return nil, fail(exitFailed, "", "%w", err)
	}
	return a.Proof, nil
}
