package slurm

import (
	"time"

	"ramp/agents/queue"
	"ramp/protocol"
)

// partition owns the last view of the partition and the times to look at it again.
// It passes every view to the slots and to the usage records.
type partition struct {
	name   string
	slow   cluster
	mark   queue.Mark
	slots  *slots
	usage  *usage // nil: placeholders hold the slots, and nobody else runs in them
	pace   queue.Pace
	last   *view // of the last look that succeeded
	usable bool  // last includes our last change

	special   string    // a node that keeps cores for the system
	specialAt time.Time // when to look for such nodes: a change of them restarts daemons of Slurm
}

// When the next look for nodes with special cores is, and after one that failed.
const specialPeriod, specialRetry = time.Hour, time.Minute

// look reads the partition as it is. The reservations are read last: a slot that
// was granted before the look is in it, or is lost.
func (p *partition) look(now time.Time) (*view, error) {
	nodes, err := p.slow.nodes(p.name)
	if err != nil {
		return nil, err
	}
	rules, err := p.slow.rules(p.name)
	if err != nil {
		return nil, err
	}
	jobs, err := p.slow.jobs()
	if err != nil {
		return nil, err
	}
	list, err := p.slow.reservations()
	if err != nil {
		return nil, err
	}
	v, err := assemble(now, p.name, p.mark, nodes, jobs, list)
	if err != nil {
		return nil, err
	}
	if p.usage != nil && now.After(p.specialAt) {
		p.specialAt = now.Add(specialRetry)
		if special, err := p.slow.specialised(nodes); err == nil {
			p.special, p.specialAt = special, now.Add(specialPeriod)
		}
	}
	v.rules = rules
	v.rules.special = p.special
	p.last, p.usable = v, true
	p.slots.learn(v)
	if p.usage != nil {
		p.usage.note(v, jobs)
	}
	return v, nil
}

// fresh returns a view that includes our last change and is at most 250 ms old.
func (p *partition) fresh(now time.Time) (*view, error) {
	if p.usable && now.Sub(p.last.at).Abs() < 250*time.Millisecond {
		return p.last, nil
	}
	return p.look(now)
}

// seen returns the last view, or looks for the first time.
func (p *partition) seen(now time.Time) (*view, error) {
	if p.last == nil {
		return p.look(now)
	}
	return p.last, nil
}

// granted reads a reservation back, together with all others.
func (p *partition) granted(now time.Time, id string) (protocol.Slot, *protocol.Reason) {
	list, err := p.slow.reservations()
	if err != nil {
		return protocol.Slot{}, queue.Unavailable(err)
	}
	v, err := p.seen(now)
	if err != nil {
		return protocol.Slot{}, queue.Unavailable(err)
	}
	w := *v // others have that one
	w.at, w.held, p.last = now, nil, &w
	w.hold(p.mark, p.name, list)
	h, ok := w.mine(id)
	if !ok {
		return protocol.Slot{}, unknown()
	}
	return h.slot, nil
}

// oversold reports whether the reservations of the partition add up to more cores
// than it has: Slurm allows whole-node reservations to overlap others.
func (p *partition) oversold(slot protocol.Slot) bool {
	var uses []protocol.Slot
	for _, h := range p.last.held {
		uses = append(uses, h.slot)
	}
	return queue.Taken(uses, slot) > p.last.all
}

// scattered reports whether a reservation spans more nodes than a job may have.
func (p *partition) scattered(id string) bool {
	h, _ := p.last.mine(id)
	return p.last.rules.spread > 0 && int64(len(h.nodes)) > p.last.rules.spread
}

// changed notes that the last view is out of date, and looks again soon.
func (p *partition) changed(now time.Time) {
	p.usable = false
	p.pace.Soon(now)
}
