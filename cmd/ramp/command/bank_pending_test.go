package command_test

import (
	"strings"
	"testing"

	"ramp/cmd/ramp/command"
)

// An order that may have been carried out is not sent to the bank agent that leads now,
// which would carry it out once more.
func TestAFollowerWarnsOfAnOrderThatMayHaveBeenCarriedOut(t *testing.T) {
	first, again := command.OrderAgain(t.TempDir())
	if !strings.Contains(first, "give the command on the machine of the one who leads") {
		t.Errorf("what was not given before: %s", first)
	}
	if !strings.Contains(again, "b leads") || !strings.Contains(again, "may have been carried out") || strings.Contains(again, "give the command on") {
		t.Errorf("what was given before: %s", again)
	}
}

// The note of an order is forgotten only with an answer that tells whether it was carried
// out: a daemon that lost the lead, or its disk, between two calls says neither.
func TestWhichAnswersTellOfAnOrder(t *testing.T) {
	for code, want := range map[int]bool{1: false, 2: true, 3: true, 4: true, 5: false} {
		if got := command.Decided(code); got != want {
			t.Errorf("exit code %d: %t", code, got)
		}
	}
}
