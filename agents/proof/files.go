package proof

import (
	"fmt"

	"ramp/agents/control"
)

// Files are the files of a purchase or sale, their names in order, and the commands that
// verify them. A missing receipt or proof has no file.
func Files(f control.SignedFiles) (files map[string][]byte, names, verify []string) {
	files, names = map[string][]byte{"ca.pem": f.Anchors}, []string{"ca.pem"}
	add := func(name string, file []byte, command string) {
		files[name], names, verify = file, append(names, name), append(verify, command)
	}
	for i, sale := range f.Sales {
		n := i + 1
		add(fmt.Sprintf("sale-%d.p7m", n), sale, fmt.Sprintf(
			"openssl cms -verify -inform DER -in sale-%[1]d.p7m -CAfile ca.pem -purpose any -out inner-%[1]d.p7 && "+
				"openssl cms -verify -inform DER -in inner-%[1]d.p7 -CAfile ca.pem -purpose any -out bundle-%[1]d.json", n))
	}
	if len(f.Receipt) > 0 {
		add("receipt.p7m", f.Receipt, "openssl cms -verify -inform DER -in receipt.p7m -CAfile ca.pem -purpose any -out receipt.json")
	}
	if len(f.Proof) > 0 {
		add(ReceiptFile, f.Proof, "ramp bank verify .")
	}
	return files, names, verify
}
