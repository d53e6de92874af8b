package node

import (
	"context"
	"net/http"
	"time"

	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/protocol"
)

func (n *Node) statusRoutes(mux *http.ServeMux) {
	control.Agent.Answer(mux, n.status)
	control.Clocks.Answer(mux, n.clocks)
	control.AnswerEvents(mux, n.sendEvents)
}

func (n *Node) status(context.Context, struct{}) (control.LiveStatus, error) {
	s := control.LiveStatus{Agent: n.Cred.ID, Since: n.since.UTC(), Addresses: n.Mesh.Addresses(), Reach: control.Reach(n.Mesh.Reach())}
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

func (n *Node) clocks(ctx context.Context, _ struct{}) ([]control.ClockView, error) {
	return ClockViews(n.Mesh.Clocks(ctx)), nil
}

func ClockViews(all []mesh.Clock) []control.ClockView {
	list := []control.ClockView{}
	for _, k := range all {
		list = append(list, control.ClockView{Agent: k.Agent, AheadMS: k.Ahead.Milliseconds(), WithinMS: k.Within.Milliseconds()})
	}
	return list
}
