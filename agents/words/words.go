// Package words writes times, amounts, names and shell words as people read them, and
// reads what people pass in files or on standard input.
package words

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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

// Zone names the zone of the times below, for the heading of a column.
func Zone() string { return zoneOf(time.Now()) }

func zoneOf(t time.Time) string {
	zone, _ := t.Local().Zone()
	return zone
}

// Sentence begins with a capital, unless its first word has digits, as most IDs have, and ends with a
// full stop.
func Sentence(s string) string {
	if s == "" {
		return ""
	}
	if first, _, _ := strings.Cut(s, " "); !strings.ContainsAny(first, "0123456789") {
		r, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(r)) + s[size:]
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

// ClockTime prints an instant for a column, in local time to the minute.
func ClockTime(t time.Time) string { return inColumn(t, "Jan 2 15:04") }

// EndTime is the ClockTime of an end, without its day if that is the day of its start.
func EndTime(start, end time.Time) string {
	if sameDay(start, end) {
		return end.Local().Format("15:04")
	}
	return ClockTime(end)
}

// EndStamp is the Timestamp of an end, without its day if that is the day of its start.
func EndStamp(start, end time.Time) string {
	if sameDay(start, end) {
		return end.Local().Format(time.TimeOnly)
	}
	return Timestamp(end)
}

func sameDay(start, end time.Time) bool {
	day := "Jan 2"
	return !end.IsZero() && start.Local().Format(day) == end.Local().Format(day) && end.Sub(start) < 24*time.Hour && zoneOf(end) == Zone()
}

// Timestamp prints an instant for a column, in local time to the second.
func Timestamp(t time.Time) string { return inColumn(t, "Jan 2 15:04:05") }

// Dated prints an instant for a column, with its year.
func Dated(t time.Time) string { return inColumn(t, time.DateTime) }

// inColumn names the zone only if it is not that of the heading, as on the other side of a change
// to summer time.
func inColumn(t time.Time, form string) string {
	if t.IsZero() {
		return "-"
	}
	if zone := zoneOf(t); zone != Zone() {
		form += " MST"
	}
	return t.Local().Format(form)
}

// At prints an instant in a sentence, in local time to the second with its zone.
func At(t time.Time) string { return t.Local().Format("Jan 2 15:04:05 MST") }

// AtMinute is At to the minute.
func AtMinute(t time.Time) string { return t.Local().Format("Jan 2 15:04 MST") }

// Moment prints an instant in a sentence, with its year and zone.
func Moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05 MST") }

// Date prints the local date of an instant.
func Date(t time.Time) string { return t.Local().Format(time.DateOnly) }

// Clock prints an instant of these hours in a sentence, with its zone.
func Clock(t time.Time) string { return t.Local().Format("15:04:05 MST") }

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

// NoAccount says that an agent has no account, and NoAccountHelp how it gets one.
const NoAccount, NoAccountHelp = "no bank has an account of this agent", "the bank's operator opens one: 'ramp bank account open NAME --cert agent.pem'"

// Names are the names of agents.
func Names(agents []protocol.AgentID, between string) string {
	var names []string
	for _, a := range agents {
		names = append(names, a.Name())
	}
	return strings.Join(names, between)
}

// Counterparty says where a transfer of an amount went, or came from.
func Counterparty(other protocol.AgentID, amount protocol.Credits) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(string(other), string(ledger.GroupID(""))), "@")
	if name = AccountWords(other, name); amount > 0 {
		return "from " + name
	}
	return "to " + name
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

// Ago is a duration for people, in its two largest units.
func Ago(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	case int(d.Hours())%24 == 0:
		return fmt.Sprintf("%d days", int(d.Hours())/24)
	}
	return fmt.Sprintf("%d days %d h", int(d.Hours())/24, int(d.Hours())%24)
}

// Prices are prices per core-hour; one that nobody offers is "-".
func Prices(list []*protocol.Credits) []string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = "-"
		if c != nil {
			parts[i] = c.Cents()
		}
	}
	return parts
}

// instant is a time in a text, as agents send it to each other: RFC 3339.
var instant = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)`)

// ForPeople is a text that may come from another agent or a file, harmless to print and with its
// times as Moments. A time that is quoted, an example ("such as …") or the value of a flag stays.
func ForPeople(s string) string {
	s = protocol.Harmless(s)
	var b strings.Builder
	from := 0
	for _, at := range instant.FindAllStringIndex(s, -1) {
		t, err := time.Parse(time.RFC3339, s[at[0]:at[1]])
		if err != nil || literal(s[:at[0]]) {
			continue
		}
		b.WriteString(s[from:at[0]] + Moment(t))
		from = at[1]
	}
	return b.String() + s[from:]
}

// literal reports whether what follows a text is quoted, an example or the value of a flag.
func literal(before string) bool {
	text := strings.TrimRight(before, " ")
	word := strings.TrimLeft(text[strings.LastIndex(text, " ")+1:], "'\"(")
	return strings.TrimRight(before, "\"'=") != before || text != before && (word == "as" || strings.HasPrefix(word, "--"))
}
