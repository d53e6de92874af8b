package control

import "ramp/protocol"

// Reach is how others reach an agent, and by which paths it reaches them.
type Reach struct {
	Kind         string                                `json:"kind"`             // local, network, public, punched, relayed or none
	Relays       []protocol.AgentID                    `json:"relays,omitempty"` // through which others reach it
	TCP          int                                   `json:"tcp"`              // open connections
	QUIC         int                                   `json:"quic"`
	Relayed      int                                   `json:"relayed"`
	Through      map[protocol.AgentID]protocol.AgentID `json:"through,omitempty"` // agents that only a relay reaches, with the relay
	Punched      int                                   `json:"punched"`           // direct paths, since the start
	Unpunched    int                                   `json:"unpunched"`         // attempts that failed
	Offered      int                                   `json:"offered"`           // connected agents that relay
	Serves       bool                                  `json:"serves"`            // it relays for others
	Reservations int                                   `json:"reservations"`
	Circuits     int                                   `json:"circuits"`
	RelayedBytes uint64                                `json:"relayed_bytes"`
}

// Gossip is what presences cost, and how an agent's peers behave in gossip.
type Gossip struct {
	In    uint64  `json:"in"` // bytes, since the start
	Out   uint64  `json:"out"`
	Peers int     `json:"peers"`      // with a score
	Low   int     `json:"low"`        // whose score is below zero
	Deaf  int     `json:"graylisted"` // whose gossip is not taken
	Worst float64 `json:"worst"`
}

// IndexStand is what an agent's index of sellers holds.
type IndexStand struct {
	Records int `json:"records"`
	Servers int `json:"servers"` // other indexes that it knows
	Market  int `json:"market"`  // sellers, as far as it knows
	Queries int `json:"queries"` // answered since the start
}
