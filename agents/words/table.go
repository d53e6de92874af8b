package words

import (
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Sizes of tables in cells of a terminal: a wide character takes two, a combining one none.
const (
	columnGap   = 2
	leastColumn = 12 // a column that is narrowed to fit keeps this width
	// longestNumber bounds a number, time or ID in a table; hashes are longer.
	longestNumber = 24
)

// TableLines are the lines of a table of at most a width (0: no limit). To fit, it folds the widest
// columns of words, never those of numbers, times and IDs; if that is not enough, it lists the
// cells of each row below each other, unless there are but two. Nothing is cut.
func TableLines(rows [][]string, width int) []string {
	if width > 0 && len(rows) > 1 && len(rows[0]) > 2 && leastWidth(rows) > width {
		return listLines(rows[0], rows[1:], width)
	}
	return slices.Concat(grid(rows, width, folded)...)
}

// leastWidth is the width of a table with every column narrowed as far as it may be.
func leastWidth(rows [][]string) int {
	total := 0
	for _, n := range leastWidths(rows) {
		total += n + columnGap
	}
	return total
}

// leastWidths are the widths to which columns may be narrowed, which leave headings and numbers whole.
func leastWidths(rows [][]string) []int {
	least := make([]int, len(columnWidths(rows)))
	for i, r := range rows {
		for k, cell := range r {
			n := uniseg.StringWidth(cell)
			if i > 0 && !numeric(cell) || n > longestNumber {
				n = min(n, leastColumn)
			}
			least[k] = max(least[k], n)
		}
	}
	return least
}

// numeric reports whether a cell is a number, a time or an ID, rather than words with one.
func numeric(cell string) bool {
	return len(cell) <= longestNumber && strings.ContainsAny(cell, "0123456789") && strings.Count(cell, " ") <= 3 &&
		!slices.ContainsFunc(strings.Fields(cell), isWord)
}

// isWord reports whether s is a word, longer than a month or a unit.
func isWord(s string) bool { return len(s) > 3 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz") == "" }

// listLines lists the rows of a table below each other, each cell beside its heading; empty
// cells are left out.
func listLines(heads []string, rows [][]string, most int) []string {
	var cells [][]string
	ends := map[int]bool{} // numbers of cells up to the end of each row
	for _, r := range rows {
		for k, cell := range r {
			if cell != "" && k < len(heads) {
				cells = append(cells, []string{heads[k], cell})
			}
		}
		ends[len(cells)] = true
	}
	var lines []string
	for i, group := range grid(cells, most, folded) {
		if lines = append(lines, group...); ends[i+1] && i+1 < len(cells) {
			lines = append(lines, "")
		}
	}
	return lines
}

// Columns are the lines of a table of at most this width, one for each row. Longer cells are cut.
func Columns(rows [][]string, most int) []string {
	return slices.Concat(grid(rows, most, func(cell string, width int) []string { return []string{Cut(cell, width)} })...)
}

// grid are the lines of each row of a table of at most this width (0: no limit); fit makes the
// lines of a cell.
func grid(rows [][]string, most int, fit func(cell string, width int) []string) [][]string {
	widths := columnWidths(rows)
	if most > 0 {
		squeeze(widths, leastWidths(rows), most)
	}
	out := make([][]string, len(rows))
	for i, r := range rows {
		cells, height := make([][]string, len(r)), 1
		for k, cell := range r {
			cells[k] = fit(cell, widths[k])
			height = max(height, len(cells[k]))
		}
		for n := range height {
			out[i] = append(out[i], gridLine(cells, widths, n))
		}
	}
	return out
}

func gridLine(cells [][]string, widths []int, n int) string {
	var b strings.Builder
	for k, lines := range cells {
		cell := ""
		if n < len(lines) {
			cell = lines[n]
		}
		b.WriteString(strings.Repeat(" ", columnGap) + cell + strings.Repeat(" ", widths[k]-uniseg.StringWidth(cell)))
	}
	return strings.TrimRight(b.String(), " ")
}

// folded breaks a cell into lines of a width: between words, and within one that is longer, there
// if possible after a punctuation mark.
func folded(cell string, width int) []string {
	if uniseg.StringWidth(cell) <= width {
		return []string{cell}
	}
	var lines []string
	line, used := "", 0
	flush := func() { lines, line, used = append(lines, line), "", 0 }
	for _, word := range strings.Fields(cell) {
		size := uniseg.StringWidth(word)
		if used > 0 && used+1+size > width {
			flush()
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		for letters, state := word, -1; letters != ""; {
			var letter string
			var n int
			if letter, letters, n, state = uniseg.FirstGraphemeClusterInString(letters, state); used > 0 && used+n > width {
				moved := tail(line, width)
				line = strings.TrimSuffix(line, moved)
				flush()
				line, used = moved, uniseg.StringWidth(moved)
			}
			line, used = line+letter, used+n
		}
	}
	return append(lines, line)
}

// tail is the end of a line inside a word that is better moved to the next line: what follows the
// last punctuation mark in the second half of the line.
func tail(line string, width int) string {
	if k := strings.LastIndexAny(line, "-._@/") + 1; 2*k >= width {
		return line[k:]
	}
	return ""
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
func squeeze(widths, least []int, most int) {
	total := 0
	for _, n := range widths {
		total += n + columnGap
	}
	for ; total > most; total-- {
		widest := -1
		for k := range widths {
			if widths[k] > least[k] && (widest < 0 || widths[k] > widths[widest]) {
				widest = k
			}
		}
		if widest < 0 {
			return
		}
		widths[widest]--
	}
}

// Cut shortens s to a width, and marks the cut with an ellipsis.
func Cut(s string, most int) string {
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

// Wrapped breaks a sentence between words into lines of at most this width.
func Wrapped(s string, most int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case uniseg.StringWidth(line)+1+uniseg.StringWidth(word) <= most:
			line += " " + word
		default:
			lines, line = append(lines, Cut(line, most)), word
		}
	}
	return append(lines, Cut(line, most))
}
