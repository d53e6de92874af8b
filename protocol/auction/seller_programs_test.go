package auction_test

import (
	"slices"

	"ramp/protocol"
	"ramp/protocol/auction"
	"ramp/protocol/message"
)

// only runs these applications, and only for ann.
func only(apps []string) auction.Serves {
	return func(buyer protocol.AgentID, launch message.Intent) *protocol.Reason {
		if buyer == ann && slices.Contains(apps, launch.App) {
			return nil
		}
		return &protocol.Reason{Code: protocol.CodeProgram, Note: "not here"}
	}
}
