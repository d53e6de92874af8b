package cli

import (
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/proof"
	"ramp/protocol/contract"
)

// ReachUser reaches the user agent of a directory, or starts it in this process.
func ReachUser(c *cobra.Command, dir string) (*control.Client, func(), error) {
	return reachUserBy(c, dir, node.StartUser)
}

// FetchProof asks the bank of a receipt for its proof, verifies it, and remembers the head in the
// agent's directory.
func FetchProof(c *cobra.Command, agent *control.Client, f control.SignedFiles) ([]byte, error) {
	if len(f.Receipt) == 0 {
		return nil, exit.Fail(exit.Nothing, "", "there is no receipt yet, so there is nothing to prove")
	}
	r, err := contract.ReadReceipt(f.Receipt)
	if err != nil {
		return nil, err
	}
	dir, cfg, err := ConfigOf(c, "user")
	if err != nil {
		return nil, err
	}
	trust, err := cfg.TrustAnchors()
	if err != nil {
		return nil, err
	}
	heads, err := proof.OpenHeads(filepath.Join(dir, proof.HeadsFile))
	if err != nil {
		return nil, err
	}
	defer Awaiting(c, "asking "+r.Bank.Name()+" for the proof", control.AnswerTime)()
	var a control.ProofAnswer
	q := control.ProofCall{Bank: r.Bank, Contract: r.Contract, From: heads.SeenSize(r.Bank)}
	if err := control.UserProof.Ask(c.Context(), agent, q, &a); err != nil {
		return nil, err
	}
	d, _, err := heads.TakeProof(a.Proof, r.Bank, trust, true)
	if err != nil {
		return nil, err
	}
	if err := d.CheckReceipt(r); err != nil {
		return nil, exit.Fail(exit.Failed, "", "%w", err)
	}
	return a.Proof, nil
}
