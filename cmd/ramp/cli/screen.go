package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"ramp/agents/user"
	"ramp/agents/words"
)

// Sizes on a terminal. Widths count cells: a wide character takes two, a combining one none.
const (
	defaultWidth = 80 // of a terminal that does not report its size
	defaultRows  = 24
)

// screened is a writer whose output ends up on a terminal of this size.
type screened interface{ screenSize() (width, rows int) }

func isTerminal(w any) bool { return terminalWidth(w) > 0 }

// terminalWidth is the width of a terminal; zero if w is not a terminal.
func terminalWidth(w any) int {
	width, _ := terminalSize(w)
	return width
}

// terminalSize is the size of a terminal, zero if w is not a terminal. COLUMNS and LINES
// override what the terminal reports.
func terminalSize(w any) (width, rows int) {
	if s, ok := w.(screened); ok {
		return s.screenSize()
	}
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return sizeOf("COLUMNS", int(size.Col), defaultWidth), sizeOf("LINES", int(size.Row), defaultRows)
}

func sizeOf(env string, reported, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil && n > 0 {
		return n
	}
	if reported > 0 {
		return reported
	}
	return otherwise
}

// Table prints rows in aligned columns, all flush left. To fit a terminal it folds the widest
// columns of words, never those of numbers, times and IDs; if that is not enough, it lists the
// cells of each row below each other.
func Table(w io.Writer, rows ...[]string) {
	width := terminalWidth(w)
	for _, r := range rows { // cells may have been written elsewhere
		for k := range r {
			r[k] = words.ForPeople(r[k])
		}
	}
	for _, line := range words.TableLines(rows, width) {
		fmt.Fprintln(w, line)
	}
}

// WithoutZeros leaves out the columns in which nothing happened in any row.
func WithoutZeros(rows [][]string) [][]string {
	out := make([][]string, len(rows))
	for col := range rows[0] {
		if len(rows) > 1 && !slices.ContainsFunc(rows[1:], func(r []string) bool { return strings.Trim(r[col], "0.") != "" }) {
			continue
		}
		for i, r := range rows {
			out[i] = append(out[i], r[col])
		}
	}
	return out
}

func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// paint is an SGR code of a terminal.
type paint string

// The colours. Each only repeats what the text says.
const (
	paintGood paint = "32"
	paintBad  paint = "31"
)

// coloured colours s if w is a terminal, unless NO_COLOR is set or TERM is dumb.
func coloured(w io.Writer, p paint, s string) string {
	if p == "" || !isTerminal(w) || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + string(p) + "m" + s + "\x1b[0m"
}

// stateWords is the state of a purchase, coloured on a terminal.
func stateWords(w io.Writer, state string) string {
	switch state {
	case user.StateSettled, user.StateQuoted:
		return coloured(w, paintGood, state)
	case user.StateFailed, user.StateVoid, user.StateInterrupted:
		return coloured(w, paintBad, state)
	}
	return state
}
