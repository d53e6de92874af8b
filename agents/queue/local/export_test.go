package local

import (
	"ramp/protocol"
	"ramp/protocol/message"
)

// Start starts a keeper for a job and waits until it has begun.
func Start(keeper []string, job message.Job) error { return (&cores{keeper: keeper}).start(job) }

// Status is how a job stands, as any agent of the machine sees it.
func Status(job message.Job) (protocol.JobStatus, error) { return (&cores{}).status(job) }
