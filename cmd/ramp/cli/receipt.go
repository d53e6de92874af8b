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
	"ramp/agents/proof"
	"ramp/agents/words"
)

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
