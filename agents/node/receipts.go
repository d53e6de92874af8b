package node

import (
	"context"
	"log/slog"
	"time"

	"ramp/agents"
	"ramp/agents/receipts"
	"ramp/protocol"
)

// proofsTime is how long a stopping node waits for the proofs of its new receipts.
const proofsTime = 2 * time.Second

// receiptsRole is a role that keeps the proofs of its receipts.
type receiptsRole interface {
	Receipts() *receipts.Keeper
}

// lookUp is the local correspondent History of users and sellers: it reads the journal,
// beside the role, and logs what the role notes about receipts.
func (n *Node) lookUp(m protocol.Message) {
	switch body := m.Body.(type) {
	case receipts.Lookup:
		n.wg.Go(func() {
			found := receipts.Search(n.journal, body)
			_ = n.Runner.Deliver(m.Reply(protocol.LocalHistory, protocol.Inform, found)) // the role has stopped
		})
	case receipts.Note:
		level := slog.LevelInfo
		if body.Warn {
			level = slog.LevelWarn
		}
		n.Log.Log(n.life, level, body.Text, body.About...)
	}
}

// awaitProofs waits, for proofsTime at most, until the banks were asked to prove the
// receipts of this process.
func (n *Node) awaitProofs() {
	ctx, cancel := context.WithTimeout(n.life, proofsTime)
	defer cancel()
	for {
		untried := 0
		err := n.Runner.Do(ctx, func(now time.Time, r agents.Role) (out protocol.Output) {
			out, untried = r.(receiptsRole).Receipts().Hurry(now)
			return out
		})
		if err != nil || untried == 0 || !agents.Pause(ctx, 50*time.Millisecond) {
			return
		}
	}
}
