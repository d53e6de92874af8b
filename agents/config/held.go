package config

import (
	"errors"

	"ramp/agents/queue"
	"ramp/agents/queue/slurm"
	"ramp/protocol"
)

// Held says how the batch system would hold a sold slot.
type Held struct {
	What string `json:"what"`
	OK   bool   `json:"ok"`            // the batch system can do it
	Why  string `json:"why,omitempty"` // if not; or what it does not promise
}

// Held asks a site's batch system whether it answers, says what a sold slot will be in it,
// and tries whether this account can make one. Errors: it does not answer.
func (c *Config) Held(self protocol.AgentID) (Held, error) {
	if _, err := c.AskCores(self); err != nil {
		return Held{}, err
	}
	switch c.Resource.Driver {
	case "slurm":
		return holdInSlurm(c.Slurm(self, Quiet())), nil
	case "pbs":
		return Held{What: "a reservation", OK: true}, nil
	case "local":
		return Held{What: "a claim that all agents of this machine respect", OK: true, Why: "nothing keeps other processes off its cores"}, nil
	case "command":
		return Held{What: "what the program makes of it", OK: true}, nil
	}
	return Held{What: "a reservation of the machine that plays the log", OK: true}, nil
}

func holdInSlurm(cfg slurm.Config) Held {
	if cfg.Hold == slurm.HoldJob {
		return Held{What: "a placeholder job", OK: true, Why: "Slurm does not promise that it starts in time; a slot that does not begin within a minute is refunded"}
	}
	h := Held{What: "a reservation", OK: true}
	switch err := slurm.MayReserve(cfg); {
	case errors.Is(err, slurm.ErrForbidden):
		h.OK, h.Why = false, queue.OneLine([]byte(err.Error()))+": make it an operator, set resource.slurm.prefix, or set hold_by: job"
	case err != nil:
		h.OK, h.Why = false, "a trial failed: "+queue.OneLine([]byte(err.Error()))
	}
	return h
}
