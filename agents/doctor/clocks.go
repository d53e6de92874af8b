package doctor

import (
	"context"
	"fmt"
	"time"

	"ramp/agents/control"
	"ramp/protocol"
)

// ClockHelp is the hint for a wrong clock; the largest tolerable difference follows it.
const ClockHelp = "set this machine's clock (chrony, systemd-timesyncd): purchases are lost beyond "

// ClockCheck compares this machine's clock with those of other agents.
type ClockCheck struct {
	all, Off int               // agents that were asked, and those whose time differs
	Worst    control.ClockView // the one that differs most
}

// checkClocks compares this machine's clock with those of a list.
func checkClocks(list []control.ClockView) ClockCheck {
	s := ClockCheck{all: len(list)}
	for _, k := range list {
		if abs(k.AheadMS)-k.WithinMS > protocol.ClockSkew.Milliseconds() {
			s.Off++
		}
		if abs(k.AheadMS) >= abs(s.Worst.AheadMS) {
			s.Worst = k
		}
	}
	return s
}

func abs(n int64) int64 { return max(n, -n) }

// WrongHere reports whether this machine's clock is the wrong one: it differs from most others.
func (s ClockCheck) WrongHere() bool { return 2*s.Off > s.all }

// Words describe how far this machine's clock is off.
func (s ClockCheck) Words() string {
	return fmt.Sprintf("this machine's clock is %s that of %s (%d of %d agents disagree with it)",
		aheadWords(-s.Worst.AheadMS), s.Worst.Agent.Name(), s.Off, s.all)
}

// aheadWords describe how far a clock is ahead or behind, in whole seconds from ten on.
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

// AskClocksOf asks an agent about the clocks of its peers.
func AskClocksOf(ctx context.Context, agent *control.Client) (ClockCheck, error) {
	ctx, cancel := context.WithTimeout(ctx, ClocksTime)
	defer cancel()
	var list []control.ClockView
	err := control.Clocks.Ask(ctx, agent, struct{}{}, &list)
	return checkClocks(list), err
}

// ClocksTime is how long other agents have to report their clocks.
const ClocksTime = 10 * time.Second
