package web

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ramp/agents/words"
	"ramp/protocol"
)

// maxText is the longest text of a peer that a page shows, in characters.
const maxText = 500

// Visible is a text for a page: control, direction and invisible characters appear as their
// numbers, and a long text is cut, with its length.
func Visible(s string) string {
	var out strings.Builder
	n := 0
	for i, c := range s {
		if n++; n > maxText {
			fmt.Fprintf(&out, "… (%d more bytes)", len(s)-i)
			break
		}
		switch {
		case c == utf8.RuneError:
			out.WriteString(`\ufffd`)
		case unicode.IsPrint(c):
			out.WriteRune(c)
		default:
			fmt.Fprintf(&out, `\u%04x`, c)
		}
	}
	return out.String()
}

func zoneWords(now time.Time) string { zone, _ := now.Local().Zone(); return zone }

func money(c protocol.Credits, currency string) string {
	return strings.TrimSpace(c.Cents() + " " + currency)
}

func moment(t time.Time) cell { return cell{Text: words.Timestamp(t), Whole: true} }

func minute(t time.Time) cell { return cell{Text: words.ClockTime(t), Whole: true} }

func slot(start, end time.Time) cell {
	if start.IsZero() {
		return txt("-")
	}
	return cell{Text: words.ClockTime(start) + " – " + words.EndTime(start, end), Whole: true}
}

func span(d time.Duration) string { return words.Ago(d) }

func name(id protocol.AgentID) string { return words.OrDash(id.Name()) }

// short cuts an ID for a table; its page has all of it.
func short(id string) string {
	const most = 12
	if len(id) > most && utf8.ValidString(id) {
		return id[:most] + "…"
	}
	return id
}

// states of purchases, runs, sweeps, reservations and claims, and how they look.
var stateKinds = map[string]string{
	"settled": "good", "quoted": "good", "paid": "good", "succeeded": "good", "done": "good", "sold": "good", "open": "good", "up": "good", "completed": "good",
	"failed": "bad", "void": "bad", "interrupted": "bad", "cancelled": "bad", "killed": "bad", "broken": "bad", "lost": "bad", "disputed": "bad", "down": "bad", "drained": "bad", "paused": "bad",
}

func state(s string) cell {
	kind := cmp.Or(stateKinds[s], "going")
	return cell{Text: s, State: kind}
}
