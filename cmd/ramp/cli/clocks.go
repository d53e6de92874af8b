package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/doctor"
	"ramp/protocol"
)

// WarnClock warns if a wrong clock may be the reason that nothing was bought. An agent that
// does not answer in time is not asked again.
func WarnClock(c *cobra.Command, agent *control.Client) {
	ctx, cancel := context.WithTimeout(c.Context(), WarnTime)
	defer cancel()
	if s, err := doctor.AskClocksOf(ctx, agent); err == nil && s.WrongHere() {
		fmt.Fprintf(Stderr(c), "warning: %s: %s%s\n", s.Words(), doctor.ClockHelp, protocol.ClockSkew)
	}
}
