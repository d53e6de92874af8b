package words

import (
	"regexp"
	"strings"
	"time"

	"ramp/protocol"
)

// instant is a time in a text, as agents send it to each other: RFC 3339 in UTC.
var instant = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)

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
