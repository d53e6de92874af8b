package bank_test

import (
	"testing"
	"time"

	"ramp/agents/markettest"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Whoever asks is told what it sold itself, and nobody else's.
func TestASellerIsToldWhatItSold(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	out := c.ask("s01", protocol.QueryRef, message.SoldQuery{Ends: c.now})
	c.expect("the store is asked", out, ".history query-ref local-sold-lookup")
	if asked := out.Send[0].Body.(message.SoldLookup); asked.Seller != c.cast.ID("s01") {
		t.Fatalf("the store is asked about %s", asked.Seller)
	}
	answer := out.Send[0].Reply(protocol.LocalHistory, protocol.Inform, message.SoldList{Complete: true})
	back := c.role.Receive(c.now, answer)
	c.expect("the answer", back, "s01 inform sold-list")
	if back.Send[0].InReplyTo != "tag-s01" {
		t.Fatalf("it answers %q", back.Send[0].InReplyTo)
	}
	answer.Sender = c.cast.ID(markettest.Stranger)
	c.expect("a forged answer", c.role.Receive(c.now, answer))
}

// A bank that recovers does not know all that it settled, so it says nothing.
func TestABankThatRecoversTellsNoSeller(t *testing.T) {
	c := open(t, 1, markettest.Store{})
	_, out, err := c.role.SetRecovery(c.now.Add(time.Second), true, "restored")
	c.must(err)
	c.save(out)
	c.expect("it refuses", c.ask("s01", protocol.QueryRef, message.SoldQuery{Ends: c.now}), "s01 refuse unavailable")
}
