package reserve_test

import (
	"testing"

	"ramp/protocol"
	"ramp/protocol/reserve"
)

// A seller that wants a voucher has refused only if it had one, also for a bid that is no longer voted on.
func TestASellerThatRefusesAVoucherIsOut(t *testing.T) {
	for _, c := range []struct {
		reply string
		code  protocol.Code
		out   bool
	}{
		{"vote-o", protocol.CodeVoucher, false}, {"vote-o", protocol.CodeBusy, true},
		{"vouched-o", protocol.CodeVoucher, true}, {"vouched-o", protocol.CodeBusy, true}, {"vote-x", protocol.CodeBusy, false},
	} {
		if got := reserve.OutAfterRefusal(c.reply, c.code); got != c.out {
			t.Errorf("%s to %s: out %v, want %v", c.code, c.reply, got, c.out)
		}
	}
}
