package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/sys/unix"

	"ramp/agents/user"
	"ramp/protocol"
)

// Sizes on a terminal. Widths count cells: a wide character takes two, a combining one none.
const (
	defaultWidth = 80 // of a terminal that does not report its size
	defaultRows  = 24
	leastColumn  = 6 // a column that is cut to fit keeps this width
	columnGap    = 2
)

// screened is a writer whose output ends up on a terminal of this size.
type screened interface{ screenSize() (width, rows int) }

// isTerminal reports whether w is a terminal.
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

// Table prints rows in aligned columns, all flush left. To fit a terminal it cuts the widest
// columns; if that is not enough, it lists the cells of each row below each other.
func Table(w io.Writer, rows ...[]string) { tableOr(w, leastColumn, rows) }

// wholeTable is a table that is never cut: if it does not fit, it is listed.
func wholeTable(w io.Writer, rows ...[]string) { tableOr(w, math.MaxInt, rows) }

// tableOr prints a table whose columns may be cut to least, or lists its rows.
func tableOr(w io.Writer, least int, rows [][]string) {
	width := terminalWidth(w)
	for _, r := range rows { // cells may have been written elsewhere
		for k := range r {
			r[k] = protocol.Harmless(r[k])
		}
	}
	lines := tableLines(rows, width)
	if width > 0 && len(rows) > 1 && leastWidth(rows, least) > width {
		lines = listLines(rows[0], rows[1:], width)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}

// leastWidth is the width of a table with every column cut to least.
func leastWidth(rows [][]string, least int) int {
	total := 0
	for _, n := range columnWidths(rows) {
		total += min(n, least) + columnGap
	}
	return total
}

// listLines lists the rows of a table below each other, each cell beside its heading; empty
// cells are left out.
func listLines(heads []string, rows [][]string, most int) []string {
	var cells [][]string
	var ends []int // number of cells up to the end of each row
	for _, r := range rows {
		for k, cell := range r {
			if cell != "" && k < len(heads) {
				cells = append(cells, []string{heads[k], cell})
			}
		}
		ends = append(ends, len(cells))
	}
	lines := tableLines(cells, most)
	for _, end := range slices.Backward(ends[:len(ends)-1]) {
		lines = slices.Insert(lines, end, "")
	}
	return lines
}

// tableLines are the lines of a table of at most this width; 0: no limit.
func tableLines(rows [][]string, most int) []string {
	widths := columnWidths(rows)
	if most > 0 {
		squeeze(widths, most)
	}
	lines := make([]string, len(rows))
	for i, r := range rows {
		var b strings.Builder
		for k, cell := range r {
			cell = cut(cell, widths[k])
			b.WriteString(strings.Repeat(" ", columnGap) + cell)
			if k < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[k]-uniseg.StringWidth(cell)))
			}
		}
		lines[i] = b.String()
	}
	return lines
}

func columnWidths(rows [][]string) []int {
	var widths []int
	for _, r := range rows {
		for k, cell := range r {
			if k == len(widths) {
				widths = append(widths, 0)
			}
			widths[k] = max(widths[k], uniseg.StringWidth(cell))
		}
	}
	return widths
}

// squeeze narrows the widest columns until a line fits, or none can be narrowed further.
func squeeze(widths []int, most int) {
	total := 0
	for _, n := range widths {
		total += n + columnGap
	}
	for ; total > most; total-- {
		widest := 0
		for k := range widths {
			if widths[k] > widths[widest] {
				widest = k
			}
		}
		if len(widths) == 0 || widths[widest] <= leastColumn {
			return
		}
		widths[widest]--
	}
}

// lastOf are the last n of a list.
func lastOf[T any](list []T, n int) []T { return list[max(0, len(list)-n):] }

// cut shortens s to a width, and marks the cut with an ellipsis.
func cut(s string, most int) string {
	if uniseg.StringWidth(s) <= most {
		return s
	}
	short, rest, state := "", s, -1
	for {
		var letter string
		var width int
		if letter, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state); uniseg.StringWidth(short)+width > most-1 {
			return short + "…"
		}
		short += letter
	}
}

// paint is an SGR code of a terminal.
type paint string

// The colours. Each only repeats what the text says.
const (
	paintGood paint = "32"
	paintBad  paint = "31"
	paintDim  paint = "2"
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
