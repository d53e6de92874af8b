package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/node"
	"ramp/agents/proof"
	"ramp/agents/words"
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

// WriteReceipt writes the files, and prints the commands that verify them.
func WriteReceipt(c *cobra.Command, dir string, f control.SignedFiles) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.Fail(exit.Usage, "", "%w", err)
	}
	files, names, commands := proof.Files(f)
	if err := os.Remove(filepath.Join(dir, proof.ReceiptFile)); err != nil && !errors.Is(err, fs.ErrNotExist) { // an old proof belongs to an earlier receipt
		return exit.Fail(exit.Failed, "", "%w", err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return exit.Fail(exit.Failed, "", "%w", err)
		}
	}
	if WantsJSON(c) {
		return PrintJSON(Stdout(c), map[string]any{"dir": dir, "files": names, "verify": commands, "missing": f.Missing})
	}
	if len(f.Receipt) > 0 && len(f.Proof) == 0 {
		fmt.Fprintln(Stderr(c), "there is no proof of the receipt yet; the agent asks the bank for it while it runs")
	}
	if f.Missing > 0 {
		fmt.Fprintf(Stderr(c), "the copies that %d sellers signed did not reach this agent; the bank's receipt covers them\n", f.Missing)
	}
	fmt.Fprintf(Stdout(c), "wrote %s to %s\nverify with:\n  cd %s\n  %s\n", strings.Join(names, ", "), dir, words.ShellWord(dir), strings.Join(commands, "\n  "))
	return nil
}
