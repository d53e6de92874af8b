package cli

import (
	"ramp/agents/exit"
	"ramp/protocol"
)

// AmountOf reads a positive amount of money.
func AmountOf(name, s string) (protocol.Credits, error) {
	return amount(name, s, 1, "a positive number of credits")
}

// AmountOrZero reads an amount that may be zero.
func AmountOrZero(name, s string) (protocol.Credits, error) {
	return amount(name, s, 0, "zero or more credits")
}

func amount(name, s string, least protocol.Credits, allowed string) (protocol.Credits, error) {
	c, err := protocol.ParseCredits(s)
	if err != nil || c < least {
		return 0, exit.Fail(exit.Usage, "", "%s %q: want %s, at most %s, with at most six decimals", name, s, allowed, protocol.MaxCredits)
	}
	return c, nil
}
