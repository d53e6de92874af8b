// Package control is the local API of a running agent: HTTP and JSON over a unix socket that only
// the agent's owner can open. It has one table of calls with their questions and answers, a client,
// and the server's front. Package node answers the calls. docs/CONTROL.md lists them.
package control

import (
	"time"

	"ramp/protocol"
)

// Reloaded is the answer of Reload.
type Reloaded struct {
	Revoked int      `json:"revoked"`           // certificates on the revocation list
	Restart []string `json:"restart,omitempty"` // changed keys of the configuration that need a restart
}

// StatusCallTime is how long a daemon may take to report its status.
const StatusCallTime = 10 * time.Second

// LiveStatus is what a daemon reports about itself.
type LiveStatus struct {
	Agent     protocol.AgentID `json:"agent"`
	Since     time.Time        `json:"since"`
	Addresses []string         `json:"addresses"`
	Peers     int              `json:"peers"` // connected agents
	Users     int              `json:"users"` // known, by kind
	Resources int              `json:"resources"`
	Banks     int              `json:"banks"`
	Reach     Reach            `json:"reach"`
	Gossip    Gossip           `json:"gossip"`
	Index     *IndexStand      `json:"index,omitempty"` // of an agent that keeps one
	// While a bank agent does not lead: the leader, or why it is not known.
	Follows string `json:"follows,omitempty"`
	Waits   string `json:"waits,omitempty"`
}

// Standby reports whether a bank agent waits while another leads.
func (s *LiveStatus) Standby() bool { return s.Follows != "" || s.Waits != "" }

// ClockView compares another agent's clock with this one's.
type ClockView struct {
	Agent    protocol.AgentID `json:"agent"`
	AheadMS  int64            `json:"ahead_ms"` // of this agent's clock
	WithinMS int64            `json:"within_ms"`
}

// WebLink logs a browser in once: through Socket, on which the pages are served, or through
// the proxy in front of it.
type WebLink struct {
	Socket string `json:"socket"`           // an absolute path
	Origin string `json:"origin,omitempty"` // of the proxy, if one is configured
	Path   string `json:"path"`             // of the link, with its token behind a #
}
