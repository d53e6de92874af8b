package cli

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"ramp/agents/words"
)

// window is a terminal of so many letters.
type window struct {
	bytes.Buffer
	width int
}

func (w *window) screenSize() (width, rows int) { return w.width, 24 }

// A table is never wider than its terminal: it is cut, and where that is not enough its
// rows are listed.
func TestATableFitsItsTerminal(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"unit", "resource", "cores", "start (UTC)", "end", "per core-hour", "cost", "state", "reservation"},
		{"1", "thunder1", "256", "Nov 22 02:13", "Nov 22 03:13", "12.25", "3136", "settled", "thunder1-6048222f-0-1"},
		{"2", "thunder2", "256", "Nov 22 02:13", "Nov 22 03:13", "", "3136", "settled", "thunder2-6048222f-0-2"},
	}
	for width := 40; width <= 140; width++ {
		w := &window{width: width}
		Table(w, rows...)
		for line := range strings.Lines(w.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Fatalf("a line of %d letters on a terminal of %d: %q", n, width, line)
			}
		}
	}
	w := &window{width: 100}
	Table(w, rows...)
	if strings.Contains(w.String(), "…") {
		t.Errorf("cut:\n%s", w.String())
	}
	w = &window{width: 60}
	Table(w, rows...)
	if got := w.String(); !strings.Contains(got, "  per core-hour  12.25\n") || !strings.Contains(got, "  reservation    thunder2-6048222f-0-2\n") ||
		strings.Count(got, "per core-hour") != 1 || strings.Count(got, "\n\n") != 1 {
		t.Errorf("listed:\n%s", got)
	}
}

// Only words are cut: a number, a time or an ID says something else without its end.
func TestNothingNumericIsCut(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"account", "standing", "balance", "held", "available", "time (UTC)", "about"},
		{"ann", "open", "-1234567890.12", "0.00", "9223372036854.77", "2026-11-21 09:13:00", "for the long calculation of somebody else"},
		{"physics-department", "frozen", "1.00", "0.00", "1.00", "2026-11-22 10:00:00", "p8a3e735"},
	}
	for width := 40; width <= 140; width++ {
		w := &window{width: width}
		Table(w, rows...)
		for _, number := range []string{"-1234567890.12", "9223372036854.77", "2026-11-21 09:13:00", "p8a3e735"} {
			if !strings.Contains(w.String(), number) {
				t.Fatalf("on a terminal of %d %s is cut:\n%s", width, number, w.String())
			}
		}
	}
}

// Columns line up below wide and combining characters, also where cells are cut.
func TestColumnsLineUpByCells(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"name", "cores"}, {"計算機", "8"}, {"Zu\u0308rich", "16"}, {"👩‍🔬 lab", "32"}}
	want := "  name    cores\n  計算機  8\n  Zu\u0308rich  16\n  👩‍🔬 lab  32\n"
	w := &window{width: 80}
	if Table(w, rows...); w.String() != want {
		t.Errorf("got\n%swant\n%s", w.String(), want)
	}
	for in, want := range map[string]string{"計算機": "計…", "Zu\u0308rich": "Zu\u0308r…", "abcd": "abcd"} {
		if got := words.Cut(in, 4); got != want {
			t.Errorf("%s is cut to %s, want %s", in, got, want)
		}
	}
}
