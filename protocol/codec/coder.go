package codec

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"ramp/protocol"
)

// coder copies a message to its wire type or back, field by field. It checks each
// value in both directions, so that Encode refuses what Open would refuse, and keeps
// the first fault. After a fault the copy means nothing.
//
// Methods take a field of the message and its counterpart on the wire.
type coder struct {
	writes    bool      // to the wire; otherwise it reads
	documents documents // only a coder that reads needs it
	row       row       // of the body; a reader finds it
	err       error
	code      protocol.Code
}

func (c *coder) fail(code protocol.Code, format string, args ...any) {
	if c.err == nil {
		c.err, c.code = fmt.Errorf(format, args...), code
	}
}

func (c *coder) malformed(format string, args ...any) {
	c.fail(protocol.CodeMalformed, format, args...)
}

func (c *coder) reading() bool { return !c.writes && c.err == nil }

// same copies a value that has one form and no bounds.
func same[T any](c *coder, m, w *T) {
	if c.writes {
		*w = *m
	} else {
		*m = *w
	}
}

// text copies a string that the caller checks.
func text[M ~string](c *coder, m *M, w *string) {
	if c.writes {
		*w = string(*m)
	} else {
		*m = M(*w)
	}
}

// whole copies an integer that may have any value.
func whole[M ~int | ~int64 | ~uint32](c *coder, m *M, w *int64) {
	if c.writes {
		*w = int64(*m)
	} else {
		*m = M(*w)
	}
}

// number copies an integer in least..most.
func number[M ~int | ~int64 | ~uint32](c *coder, field string, m *M, w *int64, least, most int64) {
	whole(c, m, w)
	if *w < least || *w > most {
		c.malformed("%s %d, want %d..%d", field, *w, least, most)
	}
}

// values copies a list of at most so many values.
func values[M, W any](c *coder, field string, m *[]M, w *[]W, most int, one func(*coder, *M, *W)) {
	for i := range room(c, field, m, w, most) {
		one(c, &(*m)[i], &(*w)[i])
	}
}

// list copies a list of at most so many structs.
func list[M, W any](c *coder, field string, m *[]M, w *[]*W, most int, one func(*coder, *M, *W)) {
	n := room(c, field, m, w, most)
	if n > 0 && c.writes {
		structs := make([]W, n)
		for i := range structs {
			(*w)[i] = &structs[i]
		}
	}
	for i := range n {
		one(c, &(*m)[i], part(&(*w)[i]))
	}
}

// room makes the list that is to be filled, and returns the number of its elements: 0
// if there is nothing to copy.
func room[M, W any](c *coder, field string, m *[]M, w *[]W, most int) int {
	n := max(len(*m), len(*w)) // the other one is empty
	if n > most {
		c.fail(protocol.CodeLimit, "%d %s, want at most %d", n, field, most)
	}
	switch {
	case n == 0:
	case c.writes:
		*w = make([]W, n)
	case c.err == nil:
		*m = make([]M, n)
	default:
		return 0
	}
	return n
}

// part is the message in a field of another, made if it is missing.
func part[W any](w **W) *W {
	if *w == nil {
		*w = new(W)
	}
	return *w
}

// endOfTime is the first second that no message can carry: the start of the year
// 2200, so that any wall time fits in a Duration. Zero stands for a missing time, so
// no message can carry the first instant of 1970 either.
const endOfTime = 7258118400

// nanos is t on the wire: 0 if t is zero, and -1, which every reader refuses, if
// messages cannot carry t.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() < 0 || t.Unix() >= endOfTime || t.UnixNano() == 0:
		return -1
	}
	return t.UnixNano()
}

// needed copies a time that must be set.
func (c *coder) needed(field string, m *time.Time, w *int64) {
	if c.writes {
		*w = nanos(*m)
	}
	if *w <= 0 || *w >= endOfTime*int64(time.Second) {
		c.malformed("%s is missing or outside the years 1970..2199", field)
	}
	if !c.writes {
		*m = time.Unix(0, *w).UTC()
	}
}

// instant copies a time that may be zero.
func (c *coder) instant(field string, m *time.Time, w *int64) {
	if !m.IsZero() || *w != 0 {
		c.needed(field, m, w)
	}
}

func (c *coder) unit(m *int, w *int64)  { number(c, "unit", m, w, 0, protocol.MaxUnits-1) }
func (c *coder) cores(m *int, w *int64) { number(c, "cores", m, w, 0, protocol.MaxCores) }
func (c *coder) round(m *int, w *int64) { number(c, "round", m, w, 0, protocol.MaxRounds) }

// amount copies money that is zero or more.
func (c *coder) amount(field string, m *protocol.Credits, w *int64) {
	whole(c, m, w)
	if *w < 0 {
		c.malformed("%s %s, want 0 or more", field, protocol.Credits(*w))
	}
}

// price copies money that is more than zero.
func (c *coder) price(field string, m *protocol.Credits, w *int64) {
	whole(c, m, w)
	if *w <= 0 {
		c.malformed("%s %s, want more than 0", field, protocol.Credits(*w))
	}
}

func (c *coder) slot(m *protocol.Slot, start, end, cores, nodes *int64) {
	c.needed("start", &m.Start, start)
	c.needed("end", &m.End, end)
	c.cores(&m.Cores, cores)
	number(c, "nodes", &m.Nodes, nodes, 0, protocol.MaxCores)
	if err := m.Validate(); err != nil {
		c.malformed("%w", err)
	}
}

func (c *coder) agent(field string, m *protocol.AgentID, w *string) {
	text(c, m, w)
	if err := m.Validate(); err != nil {
		c.malformed("%s: %w", field, err)
	}
}

// name copies an identifier or "": printable ASCII that needs no quoting in JSON or in FIPA-ACL.
func (c *coder) name(field string, m, w *string, most int) {
	same(c, m, w)
	s := *w
	ok := len(s) <= most
	for i := 0; ok && i < len(s); i++ {
		b := s[i]
		ok = b > ' ' && b < 0x7f && b != '"' && b != '\\' && b != '(' && b != ')'
	}
	if !ok {
		c.malformed("%s %.80q, want at most %d printable ASCII characters without space, quote, backslash or parenthesis", field, s, most)
	}
}

// id copies a name that must be set.
func (c *coder) id(field string, m, w *string, most int) {
	c.name(field, m, w, most)
	if *w == "" {
		c.malformed("%s is missing", field)
	}
}

// words copies a text for people, and cleans it on the way out.
func (c *coder) words(field string, m, w *string) {
	clean := *m
	if c.writes {
		clean = words(clean)
	}
	c.plain(field, &clean, w)
	if !c.writes {
		*m = clean
	}
}

// plain copies a text of at most protocol.MaxWords bytes that cannot control a terminal.
func (c *coder) plain(field string, m, w *string) {
	same(c, m, w)
	if *w != words(*w) {
		c.malformed("%s %.80q, want at most %d bytes without control characters", field, *w, protocol.MaxWords)
	}
}

// words cleans a text for people.
func words(s string) string { return protocol.Words(s) }

func (c *coder) currency(m, w *string) {
	same(c, m, w)
	if len(*w) < 3 || len(*w) > 8 || strings.Trim(*w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		c.malformed("currency %.80q, want 3..8 capital letters", *w)
	}
}

// contract copies a contract's ID: a SHA-256 in hex.
func (c *coder) contract(m *protocol.ContractID, w *string) {
	text(c, m, w)
	if len(*w) != 64 || strings.Trim(*w, "0123456789abcdef") != "" {
		c.malformed("contract %.80q, want 64 hex digits in lower case", *w)
	}
}

// contractOrNone copies a contract's ID that may be empty.
func (c *coder) contractOrNone(m *protocol.ContractID, w *string) {
	if *m != "" || *w != "" {
		c.contract(m, w)
	}
}

func (c *coder) reasonCode(m *protocol.Code, w *string) {
	text(c, m, w)
	if !knownCode(*m) {
		c.malformed("unknown reason %.32q", *w)
	}
}

// modes copies the settlement modes that somebody accepts. A reader drops those of
// later versions: it still understands an agent that also accepts one of them.
func (c *coder) modes(m *[]protocol.Mode, w *[]string) {
	values(c, "modes", m, w, protocol.MaxModes, (*coder).mode)
	if !c.writes {
		*m = knownModes(*m)
	}
}

func (c *coder) mode(m *protocol.Mode, w *string) {
	text(c, m, w)
	if c.writes && !m.Known() || !utf8.ValidString(*w) {
		c.malformed("unknown settlement mode %.32q", *w)
	}
}

// knownModes removes, in place, the modes that this version does not know.
func knownModes(modes []protocol.Mode) []protocol.Mode {
	known := slices.DeleteFunc(modes, func(m protocol.Mode) bool { return !m.Known() })
	if len(known) == 0 {
		return nil
	}
	return known
}
