package command

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

// clockHelp says what to do about a clock that is wrong.
const clockHelp = "set this machine's clock (chrony, systemd-timesyncd): purchases are lost beyond "

// clocksSaid is what other agents' clocks say of this machine's.
type clocksSaid struct {
	all, off int       // agents that were asked, and those that have another time
	worst    clockView // the one that is the furthest off
}

func judgeClocks(list []clockView) clocksSaid {
	s := clocksSaid{all: len(list)}
	for _, k := range list {
		if abs(k.AheadMS)-k.WithinMS > protocol.ClockSkew.Milliseconds() {
			s.off++
		}
		if abs(k.AheadMS) >= abs(s.worst.AheadMS) {
			s.worst = k
		}
	}
	return s
}

func abs(n int64) int64 { return max(n, -n) }

// wrongHere reports whether it is this machine's clock that is wrong: most others
// have another time.
func (s clocksSaid) wrongHere() bool { return 2*s.off > s.all }

// words say how this machine's clock stands.
func (s clocksSaid) words() string {
	return fmt.Sprintf("this machine's clock is %s that of %s (%d of %d agents have another time)",
		aheadWords(-s.worst.AheadMS), s.worst.Agent.Name(), s.off, s.all)
}

// aheadWords say how far a clock is ahead or behind, in whole seconds if it is far off.
func aheadWords(ms int64) string {
	d := time.Duration(abs(ms)) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	if ms < 0 {
		return d.String() + " behind"
	}
	return d.String() + " ahead of"
}

// askClocksOf asks an agent how the clocks of those stand whom it is connected to.
func askClocksOf(ctx context.Context, agent *caller) (clocksSaid, error) {
	ctx, cancel := context.WithTimeout(ctx, clocksTime)
	defer cancel()
	var list []clockView
	err := agent.call(ctx, "POST", "/v1/clocks", nil, &list)
	return judgeClocks(list), err
}

// warnClock tells whoever did not buy if that may be for this machine's clock. An
// agent that cannot tell is asked next time.
func warnClock(c *cobra.Command, agent *caller) {
	ctx, cancel := context.WithTimeout(c.Context(), warnTime)
	defer cancel()
	if s, err := askClocksOf(ctx, agent); err == nil && s.wrongHere() {
		fmt.Fprintf(stderr(c), "warning: %s: %s%s\n", s.words(), clockHelp, protocol.ClockSkew)
	}
}
