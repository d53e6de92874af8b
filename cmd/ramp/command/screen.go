package command

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"ramp/agents/user"
)

// Bounds of what is shown on a terminal.
const (
	defaultWidth = 80 // letters on a line of a terminal that does not say
	defaultRows  = 24
	leastColumn  = 6 // letters that a column keeps when its table is too wide
	columnGap    = 2
)

// screened is a writer that stands for a terminal: what is written to it is shown
// on one of this size.
type screened interface{ screenSize() (width, rows int) }

// isTerminal reports whether w is a terminal.
func isTerminal(w any) bool { return terminalWidth(w) > 0 }

// terminalWidth is how many letters fit on a line of a terminal; zero: w is none.
func terminalWidth(w any) int {
	width, _ := terminalSize(w)
	return width
}

// terminalSize is how many letters and lines a terminal shows; zeros: w is none.
// COLUMNS and LINES count before what the terminal says.
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

func sizeOf(env string, told, otherwise int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil && n > 0 {
		return n
	}
	if told > 0 {
		return told
	}
	return otherwise
}

// table prints rows in aligned columns, numbers and words alike to the left. On a
// terminal it is no wider than that: the widest columns are cut, and where even that is
// too wide each row is listed, its cells below each other.
func table(w io.Writer, rows ...[]string) { tableOr(w, leastColumn, rows) }

// wholeTable is a table of which nothing is cut: rows that do not fit are listed.
func wholeTable(w io.Writer, rows ...[]string) { tableOr(w, math.MaxInt, rows) }

// tableOr prints a table whose columns may be cut to least letters, or lists its rows.
func tableOr(w io.Writer, least int, rows [][]string) {
	width := terminalWidth(w)
	lines := tableLines(rows, width)
	if width > 0 && len(rows) > 1 && leastWidth(rows, least) > width {
		lines = listLines(rows[0], rows[1:], width)
	}
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
}

// leastWidth is what a table takes when no column can give more.
func leastWidth(rows [][]string, least int) int {
	total := 0
	for _, n := range columnWidths(rows) {
		total += min(n, least) + columnGap
	}
	return total
}

// listLines are the rows of a table under each other, each cell behind the head of its
// column; what has nothing in it is left out.
func listLines(heads []string, rows [][]string, most int) []string {
	var cells [][]string
	var ends []int // how many cells there are up to the end of each row
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

// tableLines are the lines of a table that is at most so wide; 0: as wide as need
// be.
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
				b.WriteString(strings.Repeat(" ", widths[k]-utf8.RuneCountInString(cell)))
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
			widths[k] = max(widths[k], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// squeeze takes letters from the widest columns until a line fits, or no column
// can give more.
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

// cut makes s at most so long; what was cut shows.
func cut(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	return string([]rune(s)[:max(0, most-1)]) + "…"
}

// paint is an SGR code of a terminal.
type paint string

// The colours. None of them says what the words beside it do not.
const (
	paintGood paint = "32"
	paintBad  paint = "31"
	paintDim  paint = "2"
)

// coloured puts a colour on s if w shows colours: a terminal, unless NO_COLOR is
// set or TERM is dumb.
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
