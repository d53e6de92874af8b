package real

import (
	"context"
	"slices"
	"syscall"
	"time"
)

// act is the beginning or the end of a fault.
type act struct {
	at    time.Duration
	fault Fault
	end   bool
}

// acts are those of a plan, in order of time; equal times in order of the plan.
func acts(plan []Fault) []act {
	var list []act
	for _, f := range plan {
		list = append(list, act{f.At, f, false}, act{f.At + f.For, f, true})
	}
	slices.SortStableFunc(list, func(x, y act) int { return int(x.at - y.at) })
	return list
}

// breakAll carries out a plan until it is over or ctx is done, and then ends every
// fault that still goes on.
func (m *market) breakAll(ctx context.Context, plan []Fault) {
	begun := time.Now()
	open := map[Fault]bool{}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for _, a := range acts(plan) {
		timer.Reset(time.Until(begun.Add(a.at)))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil {
			break
		}
		m.carryOut(a, open)
	}
	for _, f := range plan {
		if open[f] {
			m.carryOut(act{fault: f, end: true}, open)
		}
	}
	for _, a := range m.agents {
		a.revive()
	}
}

// carryOut begins or ends a fault. One that changes nothing, such as killing who
// is down, is not counted.
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

// do begins or ends a fault; false: there was nothing to do.
func (m *market) do(f Fault, begin bool) bool {
	a := m.agents[f.Agent]
	switch f.Kind {
	case Kill:
		return !begin || a.kill(f.For) // it is started again by itself
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
		for i := range m.agents {
			m.cut(f.Agent, i, begin)
			m.cut(i, f.Agent, begin)
		}
	}
	return true
}

// cut counts the faults that cut a link: it is whole when none does.
func (m *market) cut(from, to int, begin bool) {
	if from == to {
		return
	}
	link := [2]int{from, to}
	if begin {
		m.cuts[link]++
		m.wan.Cut(from, to)
		return
	}
	if m.cuts[link]--; m.cuts[link] == 0 {
		m.wan.Heal(from, to)
	}
}
