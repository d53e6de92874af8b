package resource

import (
	"time"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// over has the batch system lay over jobs what only the sharpened view allowed.
func (r *Role) over(out protocol.Output) protocol.Output {
	for i, m := range out.Send {
		if ask, ok := m.Body.(message.Reserve); ok && r.overJobs(ask.ID) {
			ask.Over = true
			out.Send[i].Body = ask
		}
	}
	return out
}

// dare notes what the sharpened view alone allowed to promise.
func (r *Role) dare() (save []protocol.Record) {
	for _, d := range r.market.dared {
		save = append(save, r.kept.dare(d.id, d.slot))
	}
	r.market.dared = nil
	return save
}

// judge looks which promises were kept, and stops or resumes selling by the sharpened
// view.
func (r *Role) judge(now time.Time) protocol.Output {
	if r.market.sharp == nil {
		return protocol.Output{}
	}
	lines := r.promises.Reservations()
	out := protocol.Output{Save: append(r.dare(), r.kept.look(now, lines)...)}
	r.market.sharp.stopped = r.kept.tooMany()
	return out.Join(r.giveUp(now, lines))
}

// giveUp releases slots over jobs that are soon to begin and will rather not be there.
// The batch system is then asked for them without that, like for any that it has lost;
// if it refuses, the promise is broken while its buyer can buy another slot.
func (r *Role) giveUp(now time.Time, lines []message.ReservationLine) (out protocol.Output) {
	for _, l := range lines {
		ahead := l.Slot.Start.Sub(now)
		if ahead <= 0 || ahead > giveUpAhead || l.State != string(reserve.ClaimSold) || !r.overJobs(l.ID) || !r.market.current().sharp.hopeless(l.Slot) {
			continue
		}
		p := r.kept.promises[l.ID]
		p.Given = true
		out.Save = append(out.Save, r.kept.put(l.ID, p))
		out.Send = append(out.Send, protocol.Message{
			Performative: protocol.Request, Sender: r.self, Receivers: []protocol.AgentID{protocol.LocalQueue},
			Protocol: protocol.ProtocolQueue, Body: message.Release{ID: l.ID},
		})
	}
	return out
}

// overJobs reports whether a reservation is to lie over jobs.
func (r *Role) overJobs(id string) bool {
	p := r.kept.promises[id]
	return r.market.sharp != nil && p.Sharp && !p.Given
}
