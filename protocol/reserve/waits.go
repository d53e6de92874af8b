package reserve

import (
	"cmp"

	"ramp/protocol"
	"ramp/protocol/message"
)

// Waits is what keeps the bank from deciding, in its own words, or that it cannot
// be reached; "" if nothing is known to. The bank is asked again all the same.
func (c *Coordinator) Waits() string {
	if c.Over() {
		return ""
	}
	return c.waits
}

// heed notes what keeps the bank from deciding, before the message has its effect.
func (c *Coordinator) heed(m protocol.Message) {
	bank := c.bundle.Bundle.Bank
	switch body := m.Body.(type) {
	case message.Refusal:
		if m.Sender == bank && len(body.Reasons) > 0 {
			c.waits = cmp.Or(body.Reasons[0].Note, string(body.Reasons[0].Code))
		}
	case message.Undeliverable:
		if body.To == bank {
			c.waits = "it cannot be reached"
		}
	case message.Decision:
		if m.Sender == bank {
			c.waits = ""
		}
	}
}
