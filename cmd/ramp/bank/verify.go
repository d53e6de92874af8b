package bank

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/proof"
	"ramp/agents/words"
	"ramp/bank/audit"
	"ramp/cmd/ramp/cli"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
)

// verifyFiles are the paths of the files that a verification reads.
type verifyFiles struct {
	receipt, proof, anchors, list, heads string
}

// verified is the result of a verification in JSON; the names are fixed.
type verified struct {
	Bank     protocol.AgentID    `json:"bank"`
	Contract protocol.ContractID `json:"contract"`
	Outcome  protocol.Outcome    `json:"outcome"`
	Reason   protocol.Code       `json:"reason,omitempty"`
	Mode     protocol.Mode       `json:"mode,omitempty"` // empty: paid on reservation; otherwise Total was held
	Total    protocol.Credits    `json:"total"`
	Currency string              `json:"currency"`
	Entry    uint64              `json:"entry"`
	Ends     []protocol.UnitEnd  `json:"ends,omitempty"`
	Refunds  []protocol.Refund   `json:"refunds,omitempty"`
	Size     uint64              `json:"size"` // of the log
	Root     string              `json:"root"`
	Signed   string              `json:"signed"` // when the head was signed
	signed   time.Time
	Since    uint64 `json:"since"` // size of the log when it was last seen; 0: never
	Sales    int    `json:"sales"` // signed sales of the contract beside the receipt
}

// proofHint is the hint if a receipt or its proof is missing.
const proofHint = "a buyer gets receipt and proof by 'ramp user receipt ID --out DIR --proof', a seller by 'ramp resource receipt ID --out DIR'"

func newBankVerify() *cobra.Command {
	var f verifyFiles
	c := &cobra.Command{
		Use: "verify RECEIPT", Short: "Verify a receipt and its place in the bank's log, offline", GroupID: "trust",
		Long: `Verify RECEIPT offline: receipt.p7m, or the directory that 'ramp user receipt' or
'ramp resource receipt' wrote. The bank must have signed it; its certificate must lead to the
trust anchors; each sale-N.p7m beside it must belong to its contract and be signed by both
sides; and the entry that decided, and each refund and end of a unit, must be in the log of a
head that the bank signed. With --heads, the log must also have only grown since the last head
in that file, and the new head is added to it. Ends with 1 if something does not hold.`,
		Example: "  ramp bank verify receipt",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			f.receipt = args[0]
			if info, err := os.Stat(f.receipt); err == nil && info.IsDir() {
				f.receipt = filepath.Join(f.receipt, "receipt.p7m")
			}
			if !config.IsThere(f.receipt) {
				return exit.Fail(exit.Usage, proofHint, "no receipt at %s", f.receipt)
			}
			v, err := f.verify()
			if err != nil {
				return err
			}
			return cli.Show(c, v, v.print)
		},
	}
	c.Flags().StringVar(&f.proof, "proof", "", "`FILE` with the proof (default: proof.json beside the receipt)")
	c.Flags().StringVar(&f.anchors, "ca", "", "`FILE` with the trust anchors, PEM (default: ca.pem beside the receipt)")
	c.Flags().StringVar(&f.list, "crl", "", "`FILE` with a revocation list")
	c.Flags().StringVar(&f.heads, "heads", "", "`FILE` of the heads seen so far, created if missing")
	return c
}

func (f verifyFiles) verify() (verified, error) {
	anchors := proof.Besides(f.anchors, f.receipt, "ca.pem")
	if !config.IsThere(anchors) {
		return verified{}, exit.Fail(exit.Usage, "--ca names a file with the certificate of the market's authority", "no trust anchors at %s", anchors)
	}
	trust, err := proof.TrustOf(anchors, f.list)
	if err != nil {
		return verified{}, err
	}
	r, err := openReceiptFile(f.receipt, trust)
	if err != nil {
		return verified{}, err
	}
	shown := proof.Besides(f.proof, f.receipt, proof.ReceiptFile)
	if !config.IsThere(shown) {
		return verified{}, exit.Fail(exit.Usage, proofHint, "no proof at %s", shown)
	}
	doc, err := words.ReadBounded(nil, shown, control.MaxControlBody)
	if err != nil {
		return verified{}, err
	}
	if _, err := audit.Decode(doc); err != nil {
		return verified{}, exit.Fail(exit.Usage, proofHint, "%s: %w", shown, err)
	}
	heads, err := proof.OpenHeads(f.heads)
	if err != nil {
		return verified{}, err
	}
	since := heads.SeenSize(r.Bank)
	d, h, err := heads.TakeProof(doc, r.Bank, trust, false)
	if err != nil {
		return verified{}, fmt.Errorf("%s: %w", shown, err)
	}
	if err := d.CheckReceipt(r); err != nil {
		return verified{}, exit.Fail(exit.Failed, "", "%w", err)
	}
	sales, err := checkSales(filepath.Dir(f.receipt), r, trust)
	if err != nil {
		return verified{}, err
	}
	return verified{
		Sales: sales, Bank: r.Bank, Contract: r.Contract, Outcome: r.Outcome, Reason: r.Reason, Mode: r.Mode, Total: r.Total, Currency: r.Currency, Entry: r.Entry,
		Ends: r.Ends, Refunds: r.Refunds,
		Size: h.Size, Root: h.Root, Signed: h.Time.Format("2006-01-02T15:04:05.000000000Z"), signed: h.Time, Since: since,
	}, nil
}

// checkSales verifies the sales beside a receipt, as of the time of its decision.
func checkSales(dir string, r protocol.Receipt, trust *identity.Trust) (int, error) {
	files, err := filepath.Glob(filepath.Join(dir, "sale-*.p7m"))
	for _, path := range files {
		der, err := words.ReadBounded(nil, path, protocol.MaxSignature)
		if err != nil {
			return 0, err
		}
		sale, err := contract.OpenSale(der, trust, r.Time)
		if err != nil {
			return 0, exit.Fail(exit.Failed, "", "%s: %w", path, err)
		}
		if sale.ID != r.Contract {
			return 0, exit.Fail(exit.Failed, "", "%s belongs to contract %s, the receipt to %s", path, sale.ID, r.Contract)
		}
	}
	return len(files), err
}

// openReceiptFile verifies a receipt as of the time of its decision.
func openReceiptFile(path string, trust *identity.Trust) (protocol.Receipt, error) {
	der, err := words.ReadBounded(nil, path, protocol.MaxSignature)
	if err != nil {
		return protocol.Receipt{}, err
	}
	r, err := contract.ReadReceipt(der)
	if err != nil {
		return r, exit.Fail(exit.Usage, proofHint, "%s: not a signed receipt, or damaged", path)
	}
	if _, err := contract.OpenReceipt(der, trust, r.Time); err != nil {
		return r, exit.Fail(exit.Failed, "", "%s: %w", path, err)
	}
	return r, nil
}

func (v verified) print(w io.Writer) {
	fmt.Fprintf(w, "contract %s is %s: %s\n", v.Contract, v.Outcome, v.words())
	fmt.Fprintf(w, "  signed by %s\n", v.Bank)
	if v.Sales > 0 {
		fmt.Fprintf(w, "  %s of this contract beside it, signed by user and seller\n", words.Plural(v.Sales, "sale"))
	}
	fmt.Fprintf(w, "  entry %d is in the log of %d entries, root %s, signed %s\n", v.Entry, v.Size, v.Root, words.Moment(v.signed))
	for _, e := range v.Ends {
		fmt.Fprintf(w, "  and entry %d: unit %d, %s, %s %s paid\n", e.Entry, e.Unit+1, e.How, e.Paid.Cents(), v.Currency)
	}
	for _, f := range v.Refunds {
		fmt.Fprintf(w, "  and entry %d: unit %d, %s %s refunded\n", f.Entry, f.Unit+1, f.Amount.Cents(), v.Currency)
	}
	if v.Since > 0 {
		fmt.Fprintf(w, "  the log only grew since it had %d entries\n", v.Since)
	} else {
		fmt.Fprintln(w, "  no earlier head of this bank is known")
	}
}

// words describe the money that the decision moved, or why it moved none.
func (v verified) words() string {
	money := v.Total.Cents() + " " + v.Currency
	switch {
	case v.Outcome != protocol.OutcomeSettled && v.Reason != "":
		return string(v.Reason)
	case v.Mode != "" && v.Mode != protocol.ModeOnReservation:
		return fmt.Sprintf("%s held (%s)", money, v.Mode)
	}
	return money
}
