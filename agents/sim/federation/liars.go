package federation

import (
	"ramp/protocol"
)

func (w *World) addLiars(*Cast, []protocol.AgentID) {}
