package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/exit"
	"ramp/agents/words"
	"ramp/protocol"
)

// Ended reports how a command ended, and returns its exit code.
func Ended(c *cobra.Command, err error) int {
	code := Report(Stderr(c), err)
	if c.Annotations[withProgram] != "" {
		return exit.InRun(err, code)
	}
	return code
}

// trailingZeros finds durations as a library prints them; help has them without: 15m0s is 15m. Names
// and paths stay as they are.
var trailingZeros = regexp.MustCompile(`(^|[^\w/"'])(?:(\d+h)0m0s|((?:\d+h)?\d+m)0s)\b`)

// Report prints an error once, with its hint, and returns the exit code.
func Report(w io.Writer, err error) int {
	if err == nil {
		return exit.Done
	}
	lines := []string{exit.OneLine(err.Error())}
	code, hint := exit.Of(err)
	var faults interface{ In(file string) string }
	clean := words.ForPeople // an error may quote a foreign file or agent
	if errors.As(err, &faults) {
		lines = strings.Split(strings.TrimSpace(err.Error()), "\n") // one per fault
		clean = protocol.Harmless                                   // with times as in the document
	}
	if at := (*fs.PathError)(nil); errors.As(err, &at) && at.Path == "" {
		lines[0] = strings.Replace(lines[0], at.Error(), `FILE "": want a path`, 1)
	} else if at != nil && strings.HasPrefix(lines[0], at.Error()) {
		lines[0] = "cannot " + lines[0]
	}
	if errors.Is(err, context.Canceled) && code == exit.Failed {
		fmt.Fprintln(w, "ramp: interrupted")
		return exit.Failed
	}
	if errors.Is(err, exit.ErrSilent) {
		return code
	}
	hint = cmp.Or(hint, exit.PlaceHint(err))
	for _, line := range lines {
		fmt.Fprintln(w, "ramp: "+clean(trailingZeros.ReplaceAllString(line, "$1$2$3")))
	}
	if hint != "" {
		fmt.Fprintln(w, "  hint: "+clean(hint))
	}
	return code
}
