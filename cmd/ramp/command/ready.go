package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"ramp/protocol"
)

// readyEnv names a file descriptor to which a daemon writes one JSON value when
// it is ready, for whoever has started it.
const readyEnv = "RAMP_READY_FD"

// ready is what a daemon says of itself then.
type ready struct {
	Agent     protocol.AgentID `json:"agent"`
	Addresses []string         `json:"addresses"`
}

// tellReady writes r to the descriptor of readyEnv, if there is one.
func tellReady(r ready) error {
	v := os.Getenv(readyEnv)
	if v == "" {
		return nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return fail(exitUsage, "", "%s=%q: want the number of an open file descriptor above 2", readyEnv, v)
	}
	f := os.NewFile(uintptr(fd), "ready")
	if f == nil {
		return fail(exitUsage, "", "%s=%q is not open", readyEnv, v)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(r); err != nil {
		return fmt.Errorf("tell that the daemon is ready: %w", err)
	}
	return nil
}
