package mesh_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"ramp/agents/mesh"
)

// A site that is stopped takes a connection and never says who it is.
func TestAnAgentThatIsSilentIsSaidToBe(t *testing.T) {
	if got := mesh.SilenceWords(os.ErrDeadlineExceeded); !strings.Contains(got.Error(), "it does not answer within 20s") {
		t.Errorf("%v", got)
	}
	if got := mesh.SilenceWords(io.ErrUnexpectedEOF); !errors.Is(got, io.ErrUnexpectedEOF) {
		t.Errorf("%v", got)
	}
}
