package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"ramp/agents/order"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
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

// No cell is cut: one that is too wide goes on in the next line, but no number, time or ID does.
func TestNothingIsCut(t *testing.T) {
	t.Parallel()
	rows := [][]string{
		{"account", "standing", "balance", "held", "available", "time (UTC)", "about"},
		{"ann", "open", "-1234567890.12", "0.00", "9223372036854.77", "2026-11-21 09:13:00", "for the long calculation of somebody else, /dns4/bank.example.org/tcp/4101/p2p/QmPepNZGjvFz9tu4oXgKx6N8yKMN"},
		{"physics-department", "frozen", "1.00", "0.00", "1.00", "2026-11-22 10:00:00", "p8a3e735"},
	}
	for width := 40; width <= 140; width++ {
		w := &window{width: width}
		Table(w, rows...)
		for _, word := range []string{"-1234567890.12", "9223372036854.77", "2026-11-21 09:13:00", "p8a3e735", "calculation", "somebody", "else,"} {
			if !strings.Contains(w.String(), word) {
				t.Fatalf("on a terminal of %d %s is cut:\n%s", width, word, w.String())
			}
		}
		if text := w.String(); strings.Contains(text, "…") || strings.Count(text, "4") != strings.Count(fmt.Sprint(rows), "4") {
			t.Fatalf("on a terminal of %d a cell is cut:\n%s", width, text)
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

// The usual purchase fits a terminal of 80 columns as a table, before it is bought and after.
func TestAPurchaseFitsATerminal(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 9, 13, 0, 0, time.UTC)
	p := message.Purchase{Units: []message.PurchasedUnit{
		{Resource: "thunder1", Cores: 256, Start: start, End: start.Add(time.Hour), List: 2 * protocol.Credit, Price: protocol.Credit, Cost: 2560 * protocol.Credit, State: "offered"},
		{Unit: 1, Resource: "thunder2", Cores: 8, Start: start, End: start.Add(time.Hour), List: 2 * protocol.Credit, Price: protocol.Credit, Cost: 8 * protocol.Credit, State: "offered"},
	}}
	w := &window{width: 80}
	Table(w, order.UnitRows(p)...)
	if got := w.String(); strings.Count(got, "\n") != 3 || strings.Contains(got, "…") || !strings.Contains(got, "  list price  per core-hour  cost\n") {
		t.Errorf("offered:\n%s", got)
	}
	p.Settled, p.Units = true, p.Units[:1]
	p.Units[0].State = "settled"
	w = &window{width: 80}
	Table(w, order.UnitRows(p)...)
	if got := w.String(); strings.Count(got, "\n") != 2 || strings.Contains(got, "…") || !strings.Contains(got, "  10:13  1.00 ") {
		t.Errorf("bought:\n%s", got)
	}
	p.Units[0].State = "failed"
	if got := fmt.Sprint(order.UnitRows(p)); !strings.Contains(got, "state") {
		t.Errorf("an odd state is not shown: %s", got)
	}
}
