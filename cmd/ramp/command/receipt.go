package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// writeReceipt writes the files and says how to verify them.
func writeReceipt(c *cobra.Command, dir string, f signedFiles) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fail(exitUsage, "", "%w", err)
	}
	files := map[string][]byte{"ca.pem": f.Anchors}
	names := []string{"ca.pem"}
	var commands []string
	for i, sale := range f.Sales {
		name := fmt.Sprintf("sale-%d.p7m", i+1)
		files[name] = sale
		names = append(names, name)
		commands = append(commands, verifySale(i+1))
	}
	if len(f.Receipt) > 0 {
		files["receipt.p7m"] = f.Receipt
		names = append(names, "receipt.p7m")
		commands = append(commands, "openssl cms -verify -inform DER -in receipt.p7m -CAfile ca.pem -purpose any -out receipt.json")
	}
	if len(f.Proof) > 0 {
		files[proofName] = f.Proof
		names = append(names, proofName)
		commands = append(commands, "ramp bank verify .")
	} else if err := os.Remove(filepath.Join(dir, proofName)); err != nil && !errors.Is(err, fs.ErrNotExist) { // it proves an earlier receipt
		return fail(exitFailed, "", "%w", err)
	}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return fail(exitFailed, "", "%w", err)
		}
	}
	if wantsJSON(c) {
		return printJSON(stdout(c), map[string]any{"dir": dir, "files": names, "verify": commands, "missing": f.Missing})
	}
	if len(f.Receipt) > 0 && len(f.Proof) == 0 {
		fmt.Fprintln(stderr(c), "the receipt's proof is not here yet: the agent asks its bank while it runs")
	}
	if f.Missing > 0 {
		fmt.Fprintf(stderr(c), "%d sellers signed for the bank, and their copies did not reach this agent; the bank's receipt stands for them\n", f.Missing)
	}
	fmt.Fprintf(stdout(c), "wrote %s to %s\nverify with:\n  cd %s\n  %s\n", strings.Join(names, ", "), dir, shellWord(dir), strings.Join(commands, "\n  "))
	return nil
}

func verifySale(n int) string {
	return fmt.Sprintf("openssl cms -verify -inform DER -in sale-%d.p7m -CAfile ca.pem -purpose any -out inner-%d.p7 && "+
		"openssl cms -verify -inform DER -in inner-%d.p7 -CAfile ca.pem -purpose any -out bundle-%d.json", n, n, n, n)
}
