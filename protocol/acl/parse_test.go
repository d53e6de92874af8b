package acl_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol/acl"
)

func TestParseIsTolerant(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 123e6, time.UTC)
	cases := []struct {
		name, in string
		want     acl.Message
	}{
		{"a performative alone", `(inform)`, acl.Message{}},
		{"upper case, white space and NUL anywhere", "\x00 (\n INFORM\t)\r\n\x00", acl.Message{}},
		{"keys in any case", `(inform :Reply-WITH r1 :LANGUAGE json)`, acl.Message{ReplyWith: "r1", Language: "json"}},
		{"an empty value is an absent one", `(inform :language "" :content "" :X-a "")`, acl.Message{}},
		{"content is trimmed", "(inform :content \" \n a b \t\")", content("a b")},
		{"content with a length is not trimmed", `(inform :content #3" a )`, content(" a ")},
		{"a quote after a string with a length", `(inform :content #3"a"b" :language x)`, acl.Message{Content: acl.Content{Text: `a"b`}, Language: "x"}},
		{"a string with a length may hold anything", `(inform :content #6"):a "()`, content(`):a "(`)},
		{"only a quote is escaped", `(inform :content "a\nb\\c\"d\\\"e")`, content(`a\nb\\c"d\\"e`)},
		{"a newline stands literally", "(inform :content \"a\nb\")", content("a\nb")},
		{"content that is a word", `(inform :content done)`, content("done")},
		{"content that is an expression", `(inform :content ((action  a "b )") 5))`, content(`((action  a "b )") 5)`)},
		{"content that is not UTF-8", "(inform :content \"caf\xe9\")", acl.Message{Content: acl.Content{Bytes: []byte("caf\xe9")}}},
		{"content as Base64", `(inform :X-JADE-Encoding Base64 :content "AAH/")`, acl.Message{Content: acl.Content{Bytes: []byte{0, 1, 255}}}},
		{"Base64 in lines, without padding, marked later", "(inform :content \"AA\nE=\" :x-jade-encoding base64)", acl.Message{Content: acl.Content{Bytes: []byte{0, 1}}}},
		{"another encoding is a user parameter", `(inform :content a :X-JADE-Encoding hex)`, acl.Message{Content: acl.Content{Text: "a"}, User: map[string]string{"X-JADE-Encoding": "hex"}}},
		{"a user parameter in lower case", `(inform :x-Trace "a b")`, acl.Message{User: map[string]string{"X-Trace": "a b"}}},
		{"a protocol in quotes", `(inform :protocol "my protocol")`, acl.Message{Protocol: "my protocol"}},
		{"a bare value that is no word", `(inform :conversation-id 550e8400-e29b)`, acl.Message{ConversationID: "550e8400-e29b"}},
		{"a word with a colon, a quote and an at sign", `(inform :ontology :a"b@c)`, acl.Message{Ontology: `:a"b@c`}},
		{"a number", `(inform :reply-with -12.5e3)`, acl.Message{ReplyWith: "-12.5e3"}},
		{"an expression", `(inform :reply-with (a (b "c")))`, acl.Message{ReplyWith: `(a (b "c"))`}},
		{"a receiver without a set", `(inform :receiver (agent-identifier :name a))`, acl.Message{Receivers: []acl.AID{{Name: "a"}}}},
		{"receivers in a sequence", `(inform :receiver (SEQUENCE (Agent-Identifier :NAME a)(agent-identifier :name b)))`, acl.Message{Receivers: []acl.AID{{Name: "a"}, {Name: "b"}}}},
		{"an empty set", `(inform :receiver (set))`, acl.Message{}},
		{"an agent with everything, in another order", `(inform :sender ( agent-identifier :X-k v :resolvers (sequence (agent-identifier :name r)) :addresses (sequence http://h:7778/acc "b c") :name a@h:1099/JADE))`,
			acl.Message{Sender: acl.AID{Name: "a@h:1099/JADE", Addresses: []string{"http://h:7778/acc", "b c"}, Resolvers: []acl.AID{{Name: "r"}}, User: map[string]string{"X-k": "v"}}}},
		{"a date", `(inform :reply-by 20260801T120000123Z)`, acl.Message{ReplyBy: at}},
		{"a date in quotes and lower case", `(inform :reply-by "20260801t120000123z")`, acl.Message{ReplyBy: at}},
		{"a date without milliseconds", `(inform :reply-by 20260801T120000Z)`, acl.Message{ReplyBy: at.Truncate(time.Second)}},
		{"a date without a zone is UTC", `(inform :reply-by 20260801T120000123)`, acl.Message{ReplyBy: at}},
		{"a relative date", `(inform :reply-by +00000001T000010500)`, acl.Message{ReplyIn: new(24*time.Hour + 10500*time.Millisecond)}},
		{"a relative date in the past", `(inform :reply-by -00010000T000000Z)`, acl.Message{ReplyIn: new(-365 * 24 * time.Hour)}},
		{"a date with another letter is local", `(inform :reply-by 20260801T120000123A)`, acl.Message{ReplyBy: at}},
		{"a relative date with a letter", `(inform :reply-by +00000001T000010500a)`, acl.Message{ReplyIn: new(24*time.Hour + 10500*time.Millisecond)}},
		{"a counted string and another behind it", `(inform :reply-with (#1"a"b)c"))`, acl.Message{ReplyWith: `(#1"a"b)c")`}},
		{"a counted string that is closed", `(inform :reply-with #1"a" :language sl)`, acl.Message{ReplyWith: "a", Language: "sl"}},
		{"at the time of sending", `(inform :reply-by +00000000T000000000)`, acl.Message{ReplyIn: new(time.Duration)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.want.Performative = "inform"
			got, err := acl.Parse([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func content(s string) acl.Message { return acl.Message{Content: acl.Content{Text: s}} }

func TestDatesWithAndWithoutZAreUTC(t *testing.T) {
	want := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	for _, date := range []string{"20260801T120000000", "20260801T120000000Z"} {
		m, err := acl.Parse([]byte("(inform :reply-by " + date + ")"))
		if err != nil || !m.ReplyBy.Equal(want) {
			t.Errorf("%s: got %s, %v, want %s", date, m.ReplyBy, err, want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	cases := []struct {
		name, in     string
		offset, line int
		reason       string
	}{
		{"nothing", ``, 0, 1, "the end"},
		{"no parenthesis", `inform`, 0, 1, `want '('`},
		{"no performative", `( )`, 2, 1, "performative"},
		{"a performative that is not FIPA's", "(\noffer)", 2, 2, `"offer"`},
		{"an open message", `(inform`, 7, 1, "the end"},
		{"something behind the end", `(inform) x`, 9, 1, `"x" after the end`},
		{"a key without a colon", `(inform language x)`, 8, 1, `"language"`},
		{"a colon without a key", `(inform : x)`, 8, 1, `":"`},
		{"a key that FIPA does not have", `(inform :colour red)`, 8, 1, ":colour"},
		{"a user key without a name", `(inform :X- red)`, 8, 1, ":X-"},
		{"no value", "(inform\n:language)", 17, 2, "want a value"},
		{"a double", `(inform :language a :LANGUAGE a)`, 20, 1, "duplicate parameter :language"},
		{"a double user parameter", `(inform :X-a "" :x-A b)`, 16, 1, "duplicate"},
		{"a double in an agent", `(inform :sender (agent-identifier :name a :name a))`, 42, 1, "duplicate"},
		{"an open string", `(inform :content "a\")`, 17, 1, "not closed"},
		{"an open list", `(inform :content (a (b) `, 17, 1, "not closed"},
		{"a length beyond the end", `(inform :content #9"abc)`, 17, 1, "only 4 are left"},
		{"a length without digits", `(inform :content #"abc")`, 17, 1, "#"},
		{"a length without a quote", `(inform :content #3abc)`, 17, 1, "#"},
		{"a length that overflows", `(inform :content #99999999999999999999"a)`, 17, 1, "#"},
		{"text that is not UTF-8", "(inform :language \xff)", 18, 1, "UTF-8"},
		{"a key that is not UTF-8", "(inform :X-\xff a)", 8, 1, "UTF-8"},
		{"an agent that is a word", `(inform :sender ann)`, 16, 1, `want '('`},
		{"an agent without a name", `(inform :sender (agent-identifier :addresses (sequence a)))`, 16, 1, ":name"},
		{"an agent with an unknown key", `(inform :sender (agent-identifier :name a :age 5))`, 42, 1, ":age"},
		{"something else than an agent", `(inform :receiver (set (agent :name a)))`, 24, 1, `"agent"`},
		{"a set of words", `(inform :receiver (set ann))`, 23, 1, `want '('`},
		{"an open set", `(inform :receiver (set `, 23, 1, "the end"},
		{"an empty address", `(inform :sender (agent-identifier :name a :addresses (sequence "")))`, 63, 1, "empty"},
		{"addresses in something else", `(inform :sender (agent-identifier :name a :addresses (list a)))`, 54, 1, "sequence"},
		{"a date with dashes", `(inform :reply-by 2026-08-01T12:00:00Z)`, 18, 1, "YYYYMMDD"},
		{"a day that is not in the calendar", `(inform :reply-by 20260230T120000000Z)`, 18, 1, "does not exist"},
		{"a leap second", `(inform :reply-by 20161231T235960000Z)`, 18, 1, "does not exist"},
		{"a year before 1970", `(inform :reply-by 19691231T235959999Z)`, 18, 1, "1970"},
		{"a relative date of a thousand years", `(inform :reply-by +10000000T000000000)`, 18, 1, "200 years"},
		{"content that is not Base64", "(inform :X-JADE-Encoding Base64\n:content \"a*\")", 32, 2, "Base64"},
		{"Base64 that is not text", "(inform :X-JADE-Encoding Base64 :content \"\xff\")", 32, 1, "Base64"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := acl.Parse([]byte(c.in))
			var e *acl.SyntaxError
			if !errors.As(err, &e) {
				t.Fatalf("read as %+v, %v; want a SyntaxError", m, err)
			}
			if e.Offset != c.offset || e.Line != c.line || !strings.Contains(e.Reason, c.reason) {
				t.Errorf("got %v; want line %d, byte %d and %q", err, c.line, c.offset, c.reason)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestParseKeepsItsBounds(t *testing.T) {
	aid := "(agent-identifier :name a)"
	resolvers := func(n int) string {
		return strings.Repeat("(agent-identifier :name a :resolvers (sequence ", n) + aid + strings.Repeat("))", n)
	}
	user := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(" :X-" + strings.Repeat("k", i+1) + " v")
		}
		return b.String()
	}
	cases := []struct {
		name string
		in   func(n int) string
		most int
	}{
		{"depth of an expression", func(n int) string { return ":reply-with " + strings.Repeat("(", n) + strings.Repeat(")", n) }, acl.MaxDepth},
		{"depth of resolvers", func(n int) string { return ":sender " + resolvers(n-1) }, acl.MaxDepth},
		{"receivers", func(n int) string { return ":receiver (set " + strings.Repeat(aid, n) + ")" }, acl.MaxAgents},
		{"addresses", func(n int) string {
			return ":sender (agent-identifier :name a :addresses (sequence" + strings.Repeat(" b", n) + "))"
		}, acl.MaxAddresses},
		{"user parameters", user, acl.MaxUser},
		{"user parameters beside Base64", func(n int) string { return ":X-JADE-Encoding Base64 :content AA" + user(n) }, acl.MaxUser},
		{"user parameters of an agent", func(n int) string { return ":sender (agent-identifier :name a" + user(n) + ")" }, acl.MaxUser},
		{"a value", func(n int) string { return ":language " + strings.Repeat("a", n) }, acl.MaxValue},
		{"a user key", func(n int) string { return ":" + "X-" + strings.Repeat("a", n-2) + " v" }, acl.MaxValue},
		{"a message", func(n int) string { return ":content " + strings.Repeat("a", n-len("(inform :content )")) }, acl.MaxText},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := acl.Parse([]byte("(inform " + c.in(c.most) + ")"))
			if err != nil {
				t.Fatalf("%d: %v", c.most, err)
			}
			if err := m.Validate(); err != nil {
				t.Errorf("%d was read but is not valid: %v", c.most, err)
			}
			if _, err := acl.Parse([]byte("(inform " + c.in(c.most+1) + ")")); err == nil {
				t.Errorf("%d was read, want at most %d", c.most+1, c.most)
			}
		})
	}
}

func TestParseOfDeepInputEnds(t *testing.T) {
	for _, open := range []string{"(", ":sender (agent-identifier :resolvers ", ":receiver (set "} {
		in := "(inform :content " + strings.Repeat(open, acl.MaxText/len(open)-2)
		if _, err := acl.Parse([]byte(in)); err == nil {
			t.Errorf("8 MiB of %q was read", open)
		}
	}
}
