package resource

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// releaseAhead is how long before its start an overbooked slot is released that is
// unlikely to be free, so that its buyer can still buy another one.
const releaseAhead = 5 * time.Minute

// markOverbooked flags the reservations that only the optimistic view allows, so that
// the batch system lays them over jobs.
func (r *Role) markOverbooked(out protocol.Output) protocol.Output {
	for i, m := range out.Send {
		if ask, ok := m.Body.(message.Reserve); ok && r.overbooked(ask.ID) {
			ask.Over = true
			out.Send[i].Body = ask
		}
	}
	return out
}

// overbooked reports whether to reserve a promised slot over jobs.
func (r *Role) overbooked(id string) bool {
	p := r.record.promises[id]
	return r.market.optimistic != nil && p.Overbooked && !p.Released
}

// recordOverbooked records the promises that only the optimistic view allowed.
func (r *Role) recordOverbooked() (save []protocol.Record) {
	for _, o := range r.market.overbooked {
		save = append(save, r.record.put(o.id, promise{Start: o.slot.Start, Overbooked: true}))
	}
	r.market.overbooked = nil
	return save
}

// review records which promises were kept, and stops or resumes overbooking.
func (r *Role) review(now time.Time) protocol.Output {
	if r.market.optimistic == nil {
		return protocol.Output{}
	}
	lines := r.promises.Reservations()
	out := protocol.Output{Save: append(r.recordOverbooked(), r.record.update(now, lines)...)}
	r.market.optimistic.stopped = r.record.tooManyBroken()
	return out.Join(r.releaseUnlikely(now, lines))
}

// releaseUnlikely releases overbooked slots that begin soon and are unlikely to be free. The commit
// side then asks for them again as for any that the batch system has lost, without overbooking; if
// the batch system refuses, the promise is broken while its buyer can still buy another slot.
func (r *Role) releaseUnlikely(now time.Time, lines []message.ReservationLine) (out protocol.Output) {
	for _, l := range lines {
		ahead := l.Slot.Start.Sub(now)
		if ahead <= 0 || ahead > releaseAhead || l.State != string(reserve.ClaimSold) || !r.overbooked(l.ID) || !r.market.current().optimistic.unlikely(l.Slot) {
			continue
		}
		p := r.record.promises[l.ID]
		p.Released = true
		out.Save = append(out.Save, r.record.put(l.ID, p))
		out.Send = append(out.Send, protocol.Message{
			Performative: protocol.Request, Sender: r.self, Receivers: []protocol.AgentID{protocol.LocalQueue},
			Protocol: protocol.ProtocolQueue, Body: message.Release{ID: l.ID},
		})
	}
	return out
}
