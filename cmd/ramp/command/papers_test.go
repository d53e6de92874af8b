package command_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"ramp/cmd/ramp/command"
	"ramp/protocol"
	"ramp/protocol/reserve"
)

// Who says that it is a bank and recovers is shown what it has signed itself since then,
// each once, however much that is, and nothing of another's.
func TestABankIsShownItsOwnPapersOnly(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var list []reserve.Papers
	var want []string
	for i := range 1000 {
		p := reserve.Papers{Key: fmt.Sprintf("p%04d", i), Decided: protocol.Receipt{Bank: "bank@a", Time: at.Add(time.Duration(i-300) * time.Second)}}
		if i%2 == 0 {
			p.Decided.Bank = "bank@b"
		} else if i >= 300 {
			want = append(want, p.Key)
		}
		list = append(list, p)
	}
	got, err := command.PapersFor("bank@a", at, list...)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%d are shown, want %d: %v", len(got), len(want), err)
	}
	if got, err := command.PapersFor("liar@c", time.Unix(0, 1), list...); err != nil || len(got) > 0 {
		t.Errorf("another is shown %v, %v", got, err)
	}
}
