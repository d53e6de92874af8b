package experiment

import (
	"time"

	"ramp/agents/sim"
	"ramp/protocol/message"
)

// service is the time that agents need for what they receive: in a world alone
// they need none. A host serves its messages one by one, in the order in which
// they were sent; on a workstation all hosts share one processor, as the source's
// agents did (002 §9).
type service struct {
	world       *sim.World
	each, unit  time.Duration
	workstation bool
	free        map[*sim.Host]time.Duration
	shared      time.Duration
	watch       *watch
	far         func(from, to *sim.Host) time.Duration // on top of a link's own delay; nil: nothing
}

// fate puts off a packet until its receiver has served it.
func (s *service) fate(p sim.Packet) sim.Fate {
	if _, presence := p.Message.Body.(message.Presence); presence {
		return sim.Fate{}
	}
	s.watch.sent(p, s.world.Elapsed())
	now := s.world.Elapsed()
	begin := max(now, s.free[p.To])
	if s.workstation {
		begin = max(now, s.shared)
	}
	done := begin + s.work(p)
	s.free[p.To], s.shared = done, done
	return sim.Fate{Delay: done - now + s.distance(p)}
}

func (s *service) distance(p sim.Packet) time.Duration {
	if s.far == nil {
		return 0
	}
	return s.far(p.From, p.To)
}

func (s *service) work(p sim.Packet) time.Duration {
	if call, ok := p.Message.Body.(message.CallForProposals); ok {
		return s.each + time.Duration(len(call.Ceilings))*s.unit
	}
	return s.each
}
