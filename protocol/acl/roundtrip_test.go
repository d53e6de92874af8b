package acl_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/acl"
)

// The characters that matter to the grammar, and some that do not.
var text = rapid.StringOfN(rapid.RuneFrom([]rune("ab\"\\() \n\t\x00:#-@X0127é中+.,")), 0, 12, -1)

func anyUser(t *rapid.T, name string) map[string]string {
	var user map[string]string
	for i := range rapid.IntRange(0, 2).Draw(t, name+" n") {
		if user == nil {
			user = map[string]string{}
		}
		user[fmt.Sprintf("X-%s%d", rapid.StringMatching(`[A-Za-z":#@\\-]{0,3}`).Draw(t, name), i)] = "v" + text.Draw(t, name)
	}
	return user
}

func anyAgent(t *rapid.T, name string, depth int) acl.AID {
	a := acl.AID{Name: "n" + text.Draw(t, name)}
	for range rapid.IntRange(0, 2).Draw(t, name+" addresses") {
		a.Addresses = append(a.Addresses, text.Draw(t, "address")+"/")
	}
	if depth < 3 {
		a.Resolvers = anyAgents(t, "resolver", depth+1)
	}
	a.User = anyUser(t, name)
	return a
}

func anyAgents(t *rapid.T, name string, depth int) []acl.AID {
	var list []acl.AID
	for range rapid.IntRange(0, 2).Draw(t, name+" n") {
		list = append(list, anyAgent(t, name, depth))
	}
	return list
}

func anyMessage(t *rapid.T) acl.Message {
	m := acl.Message{
		Performative:   rapid.SampledFrom([]protocol.Performative{"cfp", "inform", "request-whenever", "not-understood"}).Draw(t, "act"),
		Receivers:      anyAgents(t, "receiver", 1),
		ReplyTo:        anyAgents(t, "reply-to", 1),
		Language:       text.Draw(t, "language"),
		Encoding:       text.Draw(t, "encoding"),
		Ontology:       text.Draw(t, "ontology"),
		Protocol:       text.Draw(t, "protocol"),
		ConversationID: text.Draw(t, "conversation-id"),
		ReplyWith:      text.Draw(t, "reply-with"),
		InReplyTo:      text.Draw(t, "in-reply-to"),
		User:           anyUser(t, "user"),
	}
	if rapid.Bool().Draw(t, "sender") {
		m.Sender = anyAgent(t, "sender", 1)
	}
	if rapid.Bool().Draw(t, "bytes") {
		if b := rapid.SliceOf(rapid.Byte()).Draw(t, "content"); len(b) > 0 {
			m.Content.Bytes = b
		}
	} else {
		m.Content.Text = text.Draw(t, "content")
	}
	switch rapid.IntRange(0, 2).Draw(t, "reply-by") {
	case 1:
		m.ReplyBy = time.UnixMilli(rapid.Int64Range(0, 253402300799999).Draw(t, "ms")).UTC()
	case 2:
		m.ReplyIn = new(time.Duration(rapid.Int64Range(-1e12, 1e12).Draw(t, "ms")) * time.Millisecond)
	}
	return m
}

func TestParseReadsWhatFormatWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		b := acl.Format(m)
		got, err := acl.Parse(b)
		if err != nil {
			t.Fatalf("%v in:\n%s", err, b)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("%s\nfrom:\n%s", diff, b)
		}
	})
}

func TestJSONReadsWhatItWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		b, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		var got acl.Message
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatalf("%v in:\n%s", err, b)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("%s\nfrom:\n%s", diff, b)
		}
	})
}

// writer writes a message as the grammar allows but as Format does not: another
// order, any case, any white space, any form of a string. It shares nothing with
// Format, so that the two cannot be wrong in the same way.
type writer struct {
	t *rapid.T
	strings.Builder
}

func (w *writer) pick(s ...string) string { return rapid.SampledFrom(s).Draw(w.t, "pick") }

func (w *writer) space() { w.WriteString(w.pick(" ", "\n", "\t \r\n", "\x00 ")) }

func (w *writer) word(s string) {
	w.WriteString(w.pick(s, strings.ToUpper(s), strings.ToUpper(s[:1])+s[1:]))
}

func (w *writer) value(s string) {
	plain := s != "" && !strings.ContainsAny(s, "\"() \n\t\x00") && !strings.ContainsAny(s[:1], "#0123456789-@")
	switch {
	case plain && rapid.Bool().Draw(w.t, "bare"):
		w.WriteString(s)
	case strings.HasSuffix(s, `\`) || rapid.Bool().Draw(w.t, "prefixed"):
		fmt.Fprintf(w, "#%d\"%s", len(s), s)
	default:
		w.WriteString(`"` + strings.Join(strings.Split(s, `"`), `\"`) + `"`)
	}
	w.space()
}

func (w *writer) key(s string) {
	w.WriteString(":")
	w.word(s)
	w.space()
}

func (w *writer) user(user map[string]string) {
	for k, v := range user {
		w.WriteString(":" + w.pick("X-", "x-") + k[2:])
		w.space()
		w.value(v)
	}
}

func (w *writer) list(word string, n int, one func(int)) {
	w.WriteString("(")
	w.space()
	w.word(word)
	w.space()
	for i := range n {
		one(i)
	}
	w.WriteString(")")
	w.space()
}

func (w *writer) agents(list []acl.AID) {
	w.list(w.pick("set", "sequence"), len(list), func(i int) { w.agent(list[i]) })
}

func (w *writer) agent(a acl.AID) {
	w.WriteString(w.pick("(", "( "))
	w.word("agent-identifier")
	w.space()
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3}).Draw(w.t, "order") {
		switch i {
		case 0:
			w.key("name")
			w.value(a.Name)
		case 1:
			w.key("addresses")
			w.list("sequence", len(a.Addresses), func(i int) { w.value(a.Addresses[i]) })
		case 2:
			w.key("resolvers")
			w.agents(a.Resolvers)
		case 3:
			w.user(a.User)
		}
	}
	w.WriteString(")")
}

func (w *writer) content(c acl.Content) {
	switch {
	case len(c.Bytes) > 0:
		w.key("x-jade-encoding")
		w.value("Base64")
		w.key("content")
		w.value(base64.StdEncoding.EncodeToString(c.Bytes))
	case strings.Trim(c.Text, "\x00\t\n ") != c.Text:
		fmt.Fprintf(w, ":content #%d\"%s ", len(c.Text), c.Text)
	case c.Text != "":
		w.key("content")
		w.value(c.Text)
	}
}

func (w *writer) message(m acl.Message) {
	w.WriteString("(")
	w.word(string(m.Performative))
	w.space()
	for _, i := range rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6}).Draw(w.t, "order") {
		switch i {
		case 0:
			if m.Sender.Name != "" {
				w.key("sender")
				w.agent(m.Sender)
			}
		case 1:
			w.key("receiver")
			w.agents(m.Receivers)
		case 2:
			w.key("reply-to")
			w.agents(m.ReplyTo)
		case 3:
			w.content(m.Content)
		case 4:
			if !m.ReplyBy.IsZero() {
				w.key("reply-by")
				w.WriteString(strings.Replace(m.ReplyBy.Format("20060102T150405.000Z "), ".", "", 1))
			}
		case 5:
			w.user(m.User)
		case 6:
			w.texts(m)
		}
	}
	w.WriteString(")")
}

func (w *writer) texts(m acl.Message) {
	for _, p := range [][2]string{
		{"language", m.Language}, {"encoding", m.Encoding}, {"ontology", m.Ontology}, {"protocol", m.Protocol},
		{"conversation-id", m.ConversationID}, {"reply-with", m.ReplyWith}, {"in-reply-to", m.InReplyTo},
	} {
		w.key(p[0])
		w.value(p[1])
	}
}

func TestParseReadsWhatTheGrammarAllows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMessage(t)
		m.ReplyIn = nil
		w := writer{t: t}
		w.message(m)
		got, err := acl.Parse([]byte(w.String()))
		if err != nil {
			t.Fatalf("%v in:\n%s", err, w.String())
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Fatalf("%s\nfrom:\n%s", diff, w.String())
		}
	})
}
