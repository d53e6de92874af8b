package codec

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// reader turns wire types into messages and keeps the first fault; after one,
// what it returns means nothing.
type reader struct {
	signed signed
	own    bool // it is read before it is sent, so it has nothing that is not known
	err    error
	code   protocol.Code
}

func (r *reader) fail(code protocol.Code, format string, args ...any) {
	if r.err == nil {
		r.err, r.code = fmt.Errorf(format, args...), code
	}
}

func (r *reader) malformed(format string, args ...any) {
	r.fail(protocol.CodeMalformed, format, args...)
}

// list reads a list of at most so many.
func list[W, M any](r *reader, field string, in []W, most int, one func(W) M) []M {
	if len(in) > most {
		r.fail(protocol.CodeLimit, "%d %s, want at most %d", len(in), field, most)
	}
	if len(in) == 0 || r.err != nil {
		return nil
	}
	out := make([]M, len(in))
	for i := range in {
		out[i] = one(in[i])
	}
	return out
}

// endOfTime is the second from which on a message can carry no time: the year
// 2200, so that any wall time fits in a Duration. Zero means none, so that no
// message can carry the first instant of 1970 either.
const endOfTime = 7258118400

// nanos is t on the wire: 0 for none, and what no reader takes for a time that
// messages cannot carry.
func nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() < 0 || t.Unix() >= endOfTime || t.UnixNano() == 0:
		return -1
	}
	return t.UnixNano()
}

// instant reads a time, or zero for none.
func (r *reader) instant(field string, ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return r.needed(field, ns)
}

// needed reads a time that must be there.
func (r *reader) needed(field string, ns int64) time.Time {
	if ns <= 0 || ns >= endOfTime*int64(time.Second) {
		r.malformed("%s: no time, or none in the years 1970..2199", field)
	}
	return time.Unix(0, ns).UTC()
}

// number reads an integer in least..most.
func (r *reader) number(field string, v, least, most int64) int {
	if v < least || v > most {
		r.malformed("%s %d, want %d..%d", field, v, least, most)
	}
	return int(v)
}

func (r *reader) unit(v int64) int  { return r.number("unit", v, 0, protocol.MaxUnits-1) }
func (r *reader) cores(v int64) int { return r.number("cores", v, 0, protocol.MaxCores) }
func (r *reader) round(v int64) int { return r.number("round", v, 0, protocol.MaxRounds) }

// amount reads money that is not negative.
func (r *reader) amount(field string, v int64) protocol.Credits {
	if v < 0 {
		r.malformed("%s %s, want 0 or more", field, protocol.Credits(v))
	}
	return protocol.Credits(v)
}

// price reads money that is more than zero.
func (r *reader) price(field string, v int64) protocol.Credits {
	if v <= 0 {
		r.malformed("%s %s, want more than 0", field, protocol.Credits(v))
	}
	return protocol.Credits(v)
}

func (r *reader) slot(start, end, cores int64) protocol.Slot {
	s := protocol.Slot{Start: r.needed("start", start), End: r.needed("end", end), Cores: r.cores(cores)}
	if err := s.Validate(); err != nil {
		r.malformed("%w", err)
	}
	return s
}

func (r *reader) agent(field, s string) protocol.AgentID {
	id := protocol.AgentID(s)
	if err := id.Validate(); err != nil {
		r.malformed("%s: %w", field, err)
	}
	return id
}

// name reads an identifier, or "" for none: printable ASCII that needs no quoting
// in JSON or in FIPA-ACL.
func (r *reader) name(field, s string, most int) string {
	ok := len(s) <= most
	for i := 0; ok && i < len(s); i++ {
		c := s[i]
		ok = c > ' ' && c < 0x7f && c != '"' && c != '\\' && c != '(' && c != ')'
	}
	if !ok {
		r.malformed("%s %.80q, want at most %d printable ASCII characters without space, quote, backslash or parenthesis", field, s, most)
	}
	return s
}

// id reads a name that must be there.
func (r *reader) id(field, s string) string {
	if s == "" {
		r.malformed("%s: none", field)
	}
	return r.name(field, s, protocol.MaxName)
}

// words reads a text for people: at most protocol.MaxWords bytes, and nothing
// that a terminal would obey.
func (r *reader) words(field, s string) string {
	if s != words(s) {
		r.malformed("%s %.80q, want at most %d bytes without control characters", field, s, protocol.MaxWords)
	}
	return s
}

// words makes a text fit for people.
func words(s string) string { return protocol.Words(s) }

func (r *reader) currency(s string) string {
	if len(s) < 3 || len(s) > 8 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		r.malformed("currency %.80q, want 3..8 capital letters", s)
	}
	return s
}

// contract reads a contract's name: a SHA-256 in hex.
func (r *reader) contract(s string) protocol.ContractID {
	if len(s) != 64 || strings.Trim(s, "0123456789abcdef") != "" {
		r.malformed("contract %.80q, want 64 hex digits in lower case", s)
	}
	return protocol.ContractID(s)
}

// reasonCode reads a code of the closed set.
func (r *reader) reasonCode(s string) protocol.Code {
	c := protocol.Code(s)
	if !knownCode(c) {
		r.malformed("reason %.32q is unknown", s)
	}
	return c
}

// modes reads what somebody deals in. Modes of a later version are left out: who
// has one of them as well is to be heard by those who do not know it.
func (r *reader) modes(in []string) []protocol.Mode {
	if r.own {
		return list(r, "modes", in, protocol.MaxModes, r.mode)
	}
	return knownModes(list(r, "modes", in, protocol.MaxModes, func(s string) protocol.Mode { return protocol.Mode(s) }))
}

// knownModes leaves out, in place, what this version does not know.
func knownModes(modes []protocol.Mode) []protocol.Mode {
	known := slices.DeleteFunc(modes, func(m protocol.Mode) bool { return !m.Known() })
	if len(known) == 0 {
		return nil
	}
	return known
}

func (r *reader) mode(s string) protocol.Mode {
	m := protocol.Mode(s)
	if !knownMode(m) {
		r.malformed("settlement mode %.32q is unknown", s)
	}
	return m
}
