package node

import (
	"context"
	"net/http"
	"time"

	"ramp/agents"
	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/protocol"
)

func (n *Node) statusRoutes(mux *http.ServeMux) {
	control.Agent.Answer(mux, n.status)
	control.Clocks.Answer(mux, func(ctx context.Context, _ struct{}) ([]control.ClockView, error) {
		return ClockViews(n.Mesh.Clocks(ctx)), nil
	})
	control.AnswerEvents(mux, n.sendEvents)
}

func (n *Node) status(ctx context.Context, _ struct{}) (control.LiveStatus, error) {
	s := control.LiveStatus{
		Agent: n.Cred.ID, Since: n.since.UTC(), Addresses: n.Mesh.Addresses(), Reach: control.Reach(n.Mesh.Reach()),
		Gossip: n.gossip(), Index: n.indexStand(ctx),
	}
	for _, k := range n.Mesh.Known() {
		if k.Connected {
			s.Peers++
		}
		if !k.Connected && !time.Now().Before(k.Until) {
			continue
		}
		switch k.Kind {
		case protocol.KindUser:
			s.Users++
		case protocol.KindResource:
			s.Resources++
		case protocol.KindBank:
			s.Banks++
		}
	}
	return s, nil
}

func (n *Node) gossip() control.Gossip {
	t, s := n.Mesh.Traffic()[mesh.TrafficPresence], n.Mesh.Scores()
	return control.Gossip{In: t.In, Out: t.Out, Peers: s.Peers, Low: s.Low, Deaf: s.Graylisted, Worst: s.Worst}
}

// indexStand is how its index stands; nil: it has none, or the role does not answer.
func (n *Node) indexStand(ctx context.Context) (stand *control.IndexStand) {
	if !n.Cfg.Index || n.Index == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	stand, _ = agents.Read(ctx, n.Runner, func(now time.Time, _ agents.Role) *control.IndexStand { // the rest of the status is good without
		return (*control.IndexStand)(n.Index.Stand(now))
	})
	return stand
}

func ClockViews(all []mesh.Clock) []control.ClockView {
	list := []control.ClockView{}
	for _, k := range all {
		list = append(list, control.ClockView{Agent: k.Agent, AheadMS: k.Ahead.Milliseconds(), WithinMS: k.Within.Milliseconds()})
	}
	return list
}
