package market

import (
	"fmt"

	"ramp/agents/receipts"
	"ramp/agents/sim"
	"ramp/agents/user"
	proofs "ramp/bank/audit"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

const (
	// Proved: in the end every receipt in an honest journal has its proof beside it, and
	// nobody ever has cause to warn of the bank.
	Proved = "C-receipts-proved"
	// Readmitted: a bank that was restored has decided again, in the end, whatever an
	// honest journal has its receipt for; users' journals name the entries that stand.
	Readmitted = "D-receipts-readmitted"
)

// receiptChecks checks receipts and their proofs. Once the bank was restored it takes the
// place of all other checks: they follow entries and claims from the beginning.
type receiptChecks struct {
	audit    *audit
	bank     *bankBook
	restored bool
	entry    map[protocol.ContractID]uint64 // that decided it, of a restored bank
}

// said checks what a host's owner reads in its log about receipts. The log of a restored
// bank has another past, which is worth a warning.
func (c *receiptChecks) said(h *sim.Host, m protocol.Message) {
	if n, ok := m.Body.(receipts.Note); ok {
		c.audit.check(Proved, !n.Warn || c.restored, "%s: %s: %v", h.Name, n.Text, n.About)
	}
}

// rewound reads what a bank has after it was restored, and which purchases go on.
func (c *receiptChecks) rewound(h *sim.Host) {
	if c.audit.m == nil || h.ID() != c.audit.m.bank.ID() {
		return
	}
	c.restored, *c.bank, c.audit.going = true, *newBankBook(), map[string]bool{"recovery": true}
	read := func(of *sim.Host, table string) {
		err := of.Disk().Each(table, func(key string, value []byte) error {
			c.saved(of, []protocol.Record{{Table: table, Key: key, Value: value}})
			return nil
		})
		c.audit.check(Decided, err == nil, "%s: %v", of.Name, err)
	}
	read(h, ledger.TableEntries)
	for _, u := range c.audit.m.users {
		read(u.Host, user.TablePurchases)
	}
}

// saved follows the entries of a restored bank, and what users still buy.
func (c *receiptChecks) saved(h *sim.Host, records []protocol.Record) {
	for _, r := range records {
		switch r.Table {
		case ledger.TableEntries:
			c.entered(r)
			c.audit.follow("recovery", c.audit.m.backup.recovering)
		case user.TablePurchases:
			row, err := user.ReadRow(r.Value)
			c.audit.check(Decided, err == nil, "%s: purchase %s cannot be read: %v", h.Name, r.Key, err)
			c.audit.follow("purchase "+h.Name+" "+r.Key, !user.Over(row.Purchase.State))
		}
	}
}

// entered follows an entry of a restored bank, which decides no contract twice.
func (c *receiptChecks) entered(record protocol.Record) {
	e, err := ledger.DecodeEntry(record.Key, record.Value)
	c.audit.check(Money, err == nil, "entry %q: %v", record.Key, err)
	if r, err := e.Receipt(c.audit.m.bank.ID()); err == nil {
		had := c.bank.outcome[e.Contract]
		c.audit.check(AllOrNothing, had == "", "entry %d decides contract %.8s, which is %s", e.Number, e.Contract, had)
		c.bank.outcome[e.Contract], c.entry[e.Contract] = r.Outcome, e.Number
	}
}

// finish checks all receipts in honest journals, and a restored ledger.
func (c *receiptChecks) finish() {
	for _, u := range c.audit.m.users {
		c.finishJournal(u.Host, reserve.EachBought)
	}
	for _, s := range c.audit.m.sites {
		c.finishJournal(s.Host, reserve.EachSold)
	}
	if c.restored {
		report, err := ledger.Audit(c.audit.m.bank.Disk())
		c.audit.check(Money, err == nil && len(report.Bad) == 0, "the restored ledger: %q, %v", report.Bad, err)
	}
}

// finishJournal checks each receipt in a journal. After a restore nobody can prove a
// receipt that names other entries than now stand, nor refunds and ends entered again.
func (c *receiptChecks) finishJournal(h *sim.Host, each func(protocol.Tables, func(reserve.DecidedContract) error) error) {
	err := each(h.Disk(), func(k reserve.DecidedContract) error {
		r := k.Decided
		// It lapsed beyond its user's allowance of void contracts: there never was an entry.
		unentered := r.Outcome == protocol.OutcomeVoid && r.Entry == 0
		if c.restored {
			outcome, entry := c.bank.outcome[r.Contract], c.entry[r.Contract]
			c.audit.check(Readmitted, outcome == r.Outcome || unentered && outcome == "", "%s has a receipt that contract %.8s is %s; at the bank it is %q", h.Name, r.Contract, r.Outcome, outcome)
			c.audit.check(Readmitted, entry == r.Entry || !c.audit.isUser(h.ID()), "%s has a receipt of contract %.8s by entry %d; now entry %d stands for it", h.Name, r.Contract, r.Entry, entry)
			if entry != r.Entry || len(r.Refunds)+len(r.Ends) > 0 {
				return nil
			}
		}
		if unentered {
			return nil
		}
		err := c.proves(h, k)
		c.audit.check(Proved, err == nil, "%s has no proof of its receipt of contract %.8s: %v", h.Name, r.Contract, err)
		return nil
	})
	c.audit.check(Proved, err == nil, "%s: its receipts cannot be read: %v", h.Name, err)
}

// proves checks the proof of a receipt that a journal has.
func (c *receiptChecks) proves(h *sim.Host, k reserve.DecidedContract) error {
	doc, err := receipts.ProofOf(h.Disk(), k.Decided.Contract, k.Receipt)
	if err != nil {
		return err
	}
	if doc == nil {
		return fmt.Errorf("it has none")
	}
	d, err := proofs.Decode(doc)
	if err != nil {
		return err
	}
	if _, err := receipts.Verify(d, k.Decided.Bank, c.audit.m.Cast.Trust); err != nil {
		return err
	}
	return d.CheckReceipt(k.Decided)
}
