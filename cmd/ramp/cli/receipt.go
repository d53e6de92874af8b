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
	files, names := map[string][]byte{"ca.pem": f.Anchors}, []string{"ca.pem"}
	var commands []string
	add := func(name string, file []byte, verify string) {
		files[name], names, commands = file, append(names, name), append(commands, verify)
	}
	for i, sale := range f.Sales {
		add(fmt.Sprintf("sale-%d.p7m", i+1), sale, verifySale(i+1))
	}
	if len(f.Receipt) > 0 {
		add("receipt.p7m", f.Receipt, "openssl cms -verify -inform DER -in receipt.p7m -CAfile ca.pem -purpose any -out receipt.json")
	}
	if len(f.Proof) > 0 {
		add(proof.ReceiptFile, f.Proof, "ramp bank verify .")
	} else if err := os.Remove(filepath.Join(dir, proof.ReceiptFile)); err != nil && !errors.Is(err, fs.ErrNotExist) { // an old proof belongs to an earlier receipt
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

func verifySale(n int) string {
	return fmt.Sprintf("openssl cms -verify -inform DER -in sale-%d.p7m -CAfile ca.pem -purpose any -out inner-%d.p7 && "+
		"openssl cms -verify -inform DER -in inner-%d.p7 -CAfile ca.pem -purpose any -out bundle-%d.json", n, n, n, n)
}
