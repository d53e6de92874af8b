package real

import (
	"context"
	"slices"
	"syscall"
	"time"

	"ramp/agents"
)

// act is the beginning or the end of a fault.
type act struct {
	at    time.Duration
	fault Fault
	end   bool
}

// acts lists the acts of a plan by time; equal times keep the order of the plan.
func acts(plan []Fault) []act {
	var list []act
	for _, f := range plan {
		list = append(list, act{f.At, f, false}, act{f.At + f.For, f, true})
	}
	slices.SortStableFunc(list, func(x, y act) int { return int(x.at - y.at) })
	return list
}

// breakAll carries out a plan until its end or until ctx is cancelled, and then ends every
// fault in progress.
func (m *market) breakAll(ctx context.Context, plan []Fault) {
	begun := time.Now()
	open := map[Fault]bool{}
	for _, a := range acts(plan) {
		if !agents.Pause(ctx, time.Until(begun.Add(a.at))) {
			break
		}
		m.carryOut(a, open)
	}
	for _, f := range plan {
		if open[f] {
			m.carryOut(act{fault: f, end: true}, open)
		}
	}
	for _, a := range m.fleet.agents {
		a.revive()
	}
}

// carryOut begins or ends a fault. It does not count one without effect, such as killing an
// agent that is down.
func (m *market) carryOut(a act, open map[Fault]bool) {
	if a.end != open[a.fault] || !m.do(a.fault, !a.end) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if open[a.fault] = !a.end; a.end {
		m.broken--
		return
	}
	m.faults[a.fault.Kind]++
	m.broken++
}

// do begins or ends a fault, and reports whether that had an effect.
func (m *market) do(f Fault, begin bool) bool {
	a := m.fleet.agents[f.Agent]
	switch f.Kind {
	case Kill:
		return !begin || a.kill(f.For) // the agent restarts by itself
	case Stop:
		if begin {
			return a.signal(syscall.SIGSTOP)
		}
		a.signal(syscall.SIGCONT) // it may have been killed meanwhile
		return true
	case DiskFull:
		return a.fill(begin)
	case CutOneWay:
		m.cut(f.Agent, f.Peer, begin)
	case CutBoth:
		m.cut(f.Agent, f.Peer, begin)
		m.cut(f.Peer, f.Agent, begin)
	case Isolate:
		for i := range m.fleet.agents {
			m.cut(f.Agent, i, begin)
			m.cut(i, f.Agent, begin)
		}
	}
	return true
}

// cut counts the faults that cut a link, which heals when the count is zero.
func (m *market) cut(from, to int, begin bool) {
	if from == to {
		return
	}
	link := [2]int{from, to}
	if begin {
		m.cuts[link]++
		m.fleet.wan.Cut(from, to)
		return
	}
	if m.cuts[link]--; m.cuts[link] == 0 {
		m.fleet.wan.Heal(from, to)
	}
}
