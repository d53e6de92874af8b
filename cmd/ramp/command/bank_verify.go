package command

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/bank/audit"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// verifyFiles are the files that a verification reads.
type verifyFiles struct {
	receipt, proof, anchors, list, heads string
}

// verified is what a verification found, in JSON; the names are fixed.
type verified struct {
	Bank     protocol.AgentID    `json:"bank"`
	Contract protocol.ContractID `json:"contract"`
	Outcome  protocol.Outcome    `json:"outcome"`
	Reason   protocol.Code       `json:"reason,omitempty"`
	Mode     protocol.Mode       `json:"mode,omitempty"` // none: paid on reservation; else Total was held
	Total    protocol.Credits    `json:"total"`
	Currency string              `json:"currency"`
	Entry    uint64              `json:"entry"`
	Ends     []protocol.UnitEnd  `json:"ends,omitempty"`
	Refunds  []protocol.Refund   `json:"refunds,omitempty"`
	Size     uint64              `json:"size"` // of the log
	Root     string              `json:"root"`
	Signed   string              `json:"signed"` // when the head was
	Since    uint64              `json:"since"`  // entries of the log that was seen before; 0: none
	Sales    int                 `json:"sales"`  // signed sales beside the receipt, all of its contract
}

// proofHint says where what is verified comes from.
const proofHint = "'ramp user receipt ID --out DIR --proof' writes receipt and proof, for a seller 'ramp resource receipt ID --out DIR'"

func newBankVerify() *cobra.Command {
	var f verifyFiles
	c := &cobra.Command{
		Use: "verify RECEIPT", Short: "Check a receipt and its place in the bank's log, offline",
		Long: `Checks, without asking anybody, that the bank signed RECEIPT (receipt.p7m, or the
directory that 'ramp user receipt --proof' wrote), that its certificate leads to the
trust anchors, that each sale-N.p7m beside it is of its contract and signed by both
sides, that the entry which decided, and each refund and end of a unit, is in the log of
a head that the bank signed, and, with --heads, that this log only grew since the last
head that was seen. The head is remembered in that file.

Exit codes: 0 all of it holds, 1 something does not, 2 bad input or usage.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.receipt = args[0]
			if info, err := os.Stat(f.receipt); err == nil && info.IsDir() {
				f.receipt = filepath.Join(f.receipt, "receipt.p7m")
			}
			if !isThere(f.receipt) {
				return fail(exitUsage, proofHint, "there is no receipt at %s", f.receipt)
			}
			v, err := f.verify()
			if err != nil {
				return err
			}
			return printVerified(c, v)
		},
	}
	c.Flags().StringVar(&f.proof, "proof", "", "the proof (default: proof.json beside the receipt)")
	c.Flags().StringVar(&f.anchors, "ca", "", "trust anchors, PEM (default: ca.pem beside the receipt)")
	c.Flags().StringVar(&f.list, "crl", "", "a revocation list")
	c.Flags().StringVar(&f.heads, "heads", "", "file of the heads that were seen; it is made if it is not there")
	return c
}

func (f verifyFiles) verify() (verified, error) {
	anchors := besides(f.anchors, f.receipt, "ca.pem")
	if !isThere(anchors) {
		return verified{}, fail(exitUsage, "--ca names a file with the certificate of the market's authority", "there are no trust anchors at %s", anchors)
	}
	trust, err := trustOf(anchors, f.list)
	if err != nil {
		return verified{}, err
	}
	r, err := openReceiptFile(f.receipt, trust)
	if err != nil {
		return verified{}, err
	}
	proof := besides(f.proof, f.receipt, proofName)
	if !isThere(proof) {
		return verified{}, fail(exitUsage, proofHint, "there is no proof at %s", proof)
	}
	doc, err := readBounded(proof, maxControlBody)
	if err != nil {
		return verified{}, err
	}
	if _, err := audit.Decode(doc); err != nil {
		return verified{}, fail(exitUsage, proofHint, "%s: %w", proof, err)
	}
	heads, err := openHeads(f.heads)
	if err != nil {
		return verified{}, err
	}
	since := heads.seenSize(r.Bank)
	d, h, err := heads.takeProof(doc, r.Bank, trust, false)
	if err != nil {
		return verified{}, err
	}
	if err := d.CheckReceipt(r); err != nil {
		return verified{}, fail(exitFailed, "", "%w", err)
	}
	sales, err := checkSales(filepath.Dir(f.receipt), r, trust)
	if err != nil {
		return verified{}, err
	}
	return verified{
		Sales: sales, Bank: r.Bank, Contract: r.Contract, Outcome: r.Outcome, Reason: r.Reason, Mode: r.Mode, Total: r.Total, Currency: r.Currency, Entry: r.Entry,
		Ends: r.Ends, Refunds: r.Refunds,
		Size: h.Size, Root: h.Root, Signed: h.Time.Format("2006-01-02T15:04:05.000000000Z"), Since: since,
	}, nil
}

// checkSales verifies the sales beside a receipt, as things stood when it was decided.
func checkSales(dir string, r protocol.Receipt, trust *identity.Trust) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "sale-*.p7m"))
	for _, path := range files {
		der, err := readBounded(path, protocol.MaxSignature)
		if err != nil {
			return 0, err
		}
		sale, err := contract.OpenSale(der, trust, r.Time)
		if err != nil {
			return 0, fail(exitFailed, "", "%s: %w", path, err)
		}
		if sale.ID != r.Contract {
			return 0, fail(exitFailed, "", "%s is of contract %s, the receipt of %s", path, sale.ID, r.Contract)
		}
	}
	return len(files), err
}

// openReceiptFile verifies a receipt as things stood when it was decided.
func openReceiptFile(path string, trust *identity.Trust) (protocol.Receipt, error) {
	der, err := readBounded(path, protocol.MaxSignature)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r, err := contract.ReadReceipt(der)
	if err != nil {
		return r, fail(exitFailed, "", "%s: %w", path, err)
	}
	if _, err := contract.OpenReceipt(der, trust, r.Time); err != nil {
		return r, fail(exitFailed, "", "%s: %w", path, err)
	}
	return r, nil
}

func printVerified(c *cobra.Command, v verified) error {
	if wantsJSON(c) {
		return printJSON(stdout(c), v)
	}
	w := stdout(c)
	fmt.Fprintf(w, "contract %s is %s: %s\n", v.Contract, v.Outcome, v.words())
	fmt.Fprintf(w, "  signed by %s\n", v.Bank)
	if v.Sales > 0 {
		fmt.Fprintf(w, "  %s beside it: of this contract, signed by user and seller\n", plural(v.Sales, "sale"))
	}
	fmt.Fprintf(w, "  entry %d is in the log of %d entries, root %s, signed %s\n", v.Entry, v.Size, v.Root, v.Signed)
	for _, e := range v.Ends {
		fmt.Fprintf(w, "  so is entry %d: unit %d, %s, %s %s paid\n", e.Entry, e.Unit+1, e.How, e.Paid, v.Currency)
	}
	for _, f := range v.Refunds {
		fmt.Fprintf(w, "  so is entry %d: unit %d, %s %s given back\n", f.Entry, f.Unit+1, f.Amount, v.Currency)
	}
	if v.Since > 0 {
		fmt.Fprintf(w, "  the log only grew since it had %d entries\n", v.Since)
	} else {
		fmt.Fprintln(w, "  no earlier head of this bank is remembered")
	}
	return nil
}

// words say what was moved by the decision, or why nothing was.
func (v verified) words() string {
	money := v.Total.String() + " " + v.Currency
	switch {
	case v.Outcome != protocol.OutcomeSettled && v.Reason != "":
		return string(v.Reason)
	case v.Mode != "" && v.Mode != protocol.ModeOnReservation:
		return fmt.Sprintf("%s held (%s)", money, v.Mode)
	}
	return money
}
