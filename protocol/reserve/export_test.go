package reserve

import (
	"fmt"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// Alarms fails if the alarm stored for a deal differs from the one it computes.
func (p *Participant) Alarms() error {
	for _, d := range p.deals.order {
		if due := d.due(); !due.Equal(d.dueAt) {
			return fmt.Errorf("deal %s of %s: kept %s, due %s", d.conversation, d.user, d.dueAt, due)
		}
	}
	return nil
}

// NextCheck is the rule for checks on running jobs.
var NextCheck = nextCheck

// Found counts the sold units whose contract the journal lacks.
func (p *Participant) Found() int { return len(p.found.units) }

// PrunePast archives n deals of a size, and returns what was deleted for them.
func PrunePast(size, n int) (deleted []string, left int) {
	t, ps, value := &turn{now: time.Unix(1, 0)}, &past{}, make([]byte, size)
	for i := range n {
		ps.add(t, protocol.Record{Table: TablePast, Key: fmt.Sprint("k", i), Value: value})
	}
	for _, r := range t.out.Save {
		if r.Value == nil {
			deleted = append(deleted, r.Key)
		}
	}
	return deleted, ps.bytes
}

// KeepVoids adds n receipts of a size, of so many buyers in turn and each a second after the
// last, and returns what was deleted for them and what one buyer and all have left.
func KeepVoids(size, n, buyers int) (deleted []string, left, all int) {
	t, vs := &turn{now: time.Unix(1, 0)}, newVoids()
	for i := range n {
		r := protocol.Receipt{Contract: protocol.ContractID(fmt.Sprint("k", i)), User: protocol.AgentID(fmt.Sprint("u", i%buyers)), Time: t.now.Add(time.Duration(i) * time.Second)}
		vs.add(t, contract.VerifiedReceipt{Receipt: r, DER: make([]byte, size)})
	}
	for _, r := range t.out.Save {
		if r.Value == nil {
			deleted = append(deleted, r.Key)
		}
	}
	return deleted, vs.users["u0"], vs.bytes
}

// OutAfterRefusal reports whether a seller gets no more questions that refuses, with a code, to hold an
// offer that is in no set any more.
func OutAfterRefusal(inReplyTo string, code protocol.Code) bool {
	cfg, key := &CoordinatorConfig{}, protocol.BidKey{Seller: "s", Offer: "o"}
	c := &Coordinator{cfg: cfg, state: Voting, votes: newElection(cfg)}
	c.votes.owed[key] = &ballot{}
	c.refused(time.Unix(1, 0), protocol.Message{Sender: "s", InReplyTo: inReplyTo}, []protocol.Reason{{Code: code}})
	return c.votes.out["s"]
}
