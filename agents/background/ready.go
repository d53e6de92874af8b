package background

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"github.com/coreos/go-systemd/v22/daemon"

	"ramp/agents/exit"
	"ramp/protocol"
)

// ReadyEnv names a file descriptor to which a daemon writes one JSON value when it is
// ready, for the process that started it.
const ReadyEnv = "RAMP_READY_FD"

// Ready is that value.
type Ready struct {
	Agent     protocol.AgentID `json:"agent"`
	Addresses []string         `json:"addresses"`
}

// TellReady writes r to the descriptor of ReadyEnv, if there is one, and notifies systemd.
func TellReady(r Ready) error {
	_, _ = daemon.SdNotify(false, daemon.SdNotifyReady) // without it systemd reports that the start timed out
	v := os.Getenv(ReadyEnv)
	if v == "" {
		return nil
	}
	fd, err := strconv.Atoi(v)
	if err != nil || fd < 3 {
		return exit.Fail(exit.Usage, "", "%s=%q: want the number of an open file descriptor above 2", ReadyEnv, v)
	}
	f := os.NewFile(uintptr(fd), "ready")
	if f == nil {
		return exit.Fail(exit.Usage, "", "%s=%q is not open", ReadyEnv, v)
	}
	defer f.Close()
	if err := json.NewEncoder(f).Encode(r); err != nil && !errors.Is(err, syscall.EPIPE) { // whoever started it may be gone
		return fmt.Errorf("report that the daemon is ready: %w", err)
	}
	return nil
}
