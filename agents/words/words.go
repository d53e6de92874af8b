// Package words writes times, amounts, names and shell words as people read them, and
// reads what people pass in files or on standard input.
package words

import (
	"fmt"
	"strings"
	"time"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// groupWord begins the name of a group's account in commands.
const groupWord = "group:"

// GroupName parses 'group:NAME'.
func GroupName(who string) (protocol.AgentID, bool) {
	name, ok := strings.CutPrefix(who, groupWord)
	return ledger.GroupID(name), ok
}

// ClockTime prints an instant for people, in UTC to the minute.
func ClockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("Jan 2 15:04")
}

// Timestamp prints an instant for people, in UTC to the second.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("Jan 2 15:04:05")
}

// OrDash writes "-" instead of an empty text.
func OrDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// Plural writes a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// plainBytes need no quotes in a shell word.
const plainBytes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:@%+,-"

// ShellWord writes a path for a printed command: quoted if necessary, and never an option.
func ShellWord(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	if s != "" && strings.Trim(s, plainBytes) == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// AccountWords writes an account as commands accept it.
func AccountWords(id protocol.AgentID, name string) string {
	switch {
	case ledger.GroupID(name) == id:
		return groupWord + name
	case id == ledger.House, id == ledger.Issuer:
		return string(id)
	}
	return name
}

// ShortDuration writes a duration in its largest unit.
func ShortDuration(d time.Duration) string {
	switch days := d / (24 * time.Hour); {
	case days >= 2:
		return fmt.Sprintf("%d days", days)
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	}
	return d.Round(time.Second).String()
}
