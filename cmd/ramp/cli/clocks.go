package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/protocol"
)

// ClockHelp is the hint for a wrong clock; the largest tolerable difference follows it.
const ClockHelp = "set this machine's clock (chrony, systemd-timesyncd): purchases are lost beyond "

// clockCheck compares this machine's clock with those of other agents.
type clockCheck struct {
	all, Off int               // agents that were asked, and those whose time differs
	Worst    control.ClockView // the one that differs most
}

// CheckClocks compares this machine's clock with those of a list.
func CheckClocks(list []control.ClockView) clockCheck {
	s := clockCheck{all: len(list)}
	for _, k := range list {
		if Abs(k.AheadMS)-k.WithinMS > protocol.ClockSkew.Milliseconds() {
			s.Off++
		}
		if Abs(k.AheadMS) >= Abs(s.Worst.AheadMS) {
			s.Worst = k
		}
	}
	return s
}

func Abs(n int64) int64 { return max(n, -n) }

// WrongHere reports whether this machine's clock is the wrong one: it differs from most others.
func (s clockCheck) WrongHere() bool { return 2*s.Off > s.all }

// Words describe how far this machine's clock is off.
func (s clockCheck) Words() string {
	return fmt.Sprintf("this machine's clock is %s that of %s (%d of %d agents disagree with it)",
		AheadWords(-s.Worst.AheadMS), s.Worst.Agent.Name(), s.Off, s.all)
}

// AheadWords describe how far a clock is ahead or behind, in whole seconds from ten on.
func AheadWords(ms int64) string {
	d := time.Duration(Abs(ms)) * time.Millisecond
	if d >= 10*time.Second {
		d = d.Round(time.Second)
	}
	if ms < 0 {
		return d.String() + " behind"
	}
	return d.String() + " ahead of"
}

// AskClocksOf asks an agent about the clocks of its peers.
func AskClocksOf(ctx context.Context, agent *control.Client) (clockCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, ClocksTime)
	defer cancel()
	var list []control.ClockView
	err := control.Clocks.Ask(ctx, agent, struct{}{}, &list)
	return CheckClocks(list), err
}

// WarnClock warns if a wrong clock may be the reason that nothing was bought. An agent that
// does not answer in time is not asked again.
func WarnClock(c *cobra.Command, agent *control.Client) {
	ctx, cancel := context.WithTimeout(c.Context(), WarnTime)
	defer cancel()
	if s, err := AskClocksOf(ctx, agent); err == nil && s.WrongHere() {
		fmt.Fprintf(Stderr(c), "warning: %s: %s%s\n", s.Words(), ClockHelp, protocol.ClockSkew)
	}
}

// ClocksTime is how long other agents have to report their clocks.
const ClocksTime = 10 * time.Second
