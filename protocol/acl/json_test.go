package acl_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol/acl"
)

func TestJSONIsTolerant(t *testing.T) {
	at := time.Date(2026, 8, 1, 12, 0, 0, 123e6, time.UTC)
	cases := []struct {
		name, in string
		want     acl.Message
	}{
		{"a performative alone", `{"performative":"INFORM"}`, acl.Message{}},
		{"an agent by its name", `{"performative":"inform","sender":"a","receiver":"b","reply-to":["c",{"name":"d"}]}`,
			acl.Message{Sender: acl.AID{Name: "a"}, Receivers: []acl.AID{{Name: "b"}}, ReplyTo: []acl.AID{{Name: "c"}, {Name: "d"}}}},
		{"one agent for a list", `{"performative":"inform","receiver":{"name":"b","addresses":"x"}}`, acl.Message{Receivers: []acl.AID{{Name: "b", Addresses: []string{"x"}}}}},
		{"a surrogate pair", `{"performative":"inform","content":"\ud83d\ude00\\ud800"}`, acl.Message{Content: acl.Content{Text: "😀\\ud800"}}},
		{"keys in any case", `{"Performative":"inform","CONVERSATION-ID":"c","x-a":"b"}`, acl.Message{ConversationID: "c", User: map[string]string{"X-a": "b"}}},
		{"bytes", `{"performative":"inform","content":{"base64":"AAH/"}}`, acl.Message{Content: acl.Content{Bytes: []byte{0, 1, 255}}}},
		{"bytes as platforms mark them", `{"performative":"inform","content":"AAH/","X-JADE-Encoding":"Base64"}`, acl.Message{Content: acl.Content{Bytes: []byte{0, 1, 255}}}},
		{"a date as RFC 3339", `{"performative":"inform","reply-by":"2026-08-01T14:00:00.123456+02:00"}`, acl.Message{ReplyBy: at}},
		{"a date as FIPA's", `{"performative":"inform","reply-by":"20260801T120000123Z"}`, acl.Message{ReplyBy: at}},
		{"empty things are absent", `{"performative":"inform","receiver":[],"content":"","language":"","X-a":"","sender":{"addresses":[]}}`, acl.Message{}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.want.Performative = "inform"
			var got acl.Message
			if err := json.Unmarshal([]byte(c.in), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSONRefuses(t *testing.T) {
	deep := strings.Repeat(`{"name":"a","resolvers":`, 2000) + `[]` + strings.Repeat("}", 2000)
	cases := []struct{ name, in, reason string }{
		{"a list", `[]`, "JSON object"},
		{"no performative", `{}`, "performative"},
		{"a performative that is not FIPA's", `{"performative":"offer"}`, "offer"},
		{"a double", `{"performative":"inform","language":"a","Language":"b"}`, "duplicate"},
		{"a key that FIPA does not have", `{"performative":"inform","receivers":[]}`, "receivers"},
		{"a number", `{"performative":"inform","reply-with":5}`, "want a string"},
		{"half a surrogate pair", `{"performative":"inform","content":"a\ud800b"}`, "half a surrogate pair"},
		{"the other half", `{"performative":"inform","content":"\\\udc00\ud83d"}`, "half a surrogate pair"},
		{"null", `{"performative":"inform","reply-with":null}`, "want a string"},
		{"an agent without a name", `{"performative":"inform","receiver":[{"addresses":["a"]}]}`, "without a name"},
		{"content that is an object", `{"performative":"inform","content":{"a":"b"}}`, "base64"},
		{"content that is not Base64", `{"performative":"inform","content":{"base64":"*"}}`, "Base64"},
		{"a date in words", `{"performative":"inform","reply-by":"tomorrow"}`, "YYYYMMDD"},
		{"a key that is no word", `{"performative":"inform","X-a b":"c"}`, "X-a b"},
		{"resolvers without end", `{"performative":"inform","sender":` + deep + `}`, "nested deeper"},
		{"text that is not UTF-8", "{\"performative\":\"inform\",\"language\":\"\xff\"}", "UTF-8"},
		{"a message over the bound", `{"performative":"inform","content":"` + strings.Repeat("a", acl.MaxText) + `"}`, "at most"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var m acl.Message
			err := json.Unmarshal([]byte(c.in), &m)
			if err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, want an error with %q", err, c.reason)
			}
		})
	}
}

func TestJSONKeepsXMLReadable(t *testing.T) {
	m := acl.Message{Performative: "cfp", Content: acl.Content{Text: "<a b='&'/>"}}
	b, err := m.MarshalJSON()
	if err != nil || !strings.Contains(string(b), "<a b='&'/>") {
		t.Errorf("got %s, %v", b, err)
	}
}

func TestValidateRefuses(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	cases := []struct {
		name   string
		change func(*acl.Message)
	}{
		{"a performative in upper case", func(m *acl.Message) { m.Performative = "INFORM" }},
		{"a sender without a name", func(m *acl.Message) { m.Sender.Addresses = []string{"a"} }},
		{"a receiver without a name", func(m *acl.Message) { m.Receivers = []acl.AID{{}} }},
		{"a resolver without a name", func(m *acl.Message) { m.Sender = acl.AID{Name: "a", Resolvers: []acl.AID{{}}} }},
		{"an empty address", func(m *acl.Message) { m.Sender = acl.AID{Name: "a", Addresses: []string{""}} }},
		{"text and bytes", func(m *acl.Message) { m.Content = acl.Content{Text: "a", Bytes: []byte("b")} }},
		{"content that is not UTF-8", func(m *acl.Message) { m.Content.Text = "\xff" }},
		{"a value that is not UTF-8", func(m *acl.Message) { m.Ontology = "\xff" }},
		{"a value over the bound", func(m *acl.Message) { m.ReplyWith = strings.Repeat("a", acl.MaxValue+1) }},
		{"two reply-bys", func(m *acl.Message) { m.ReplyBy, m.ReplyIn = now, new(time.Second) }},
		{"a reply-by in the year 10000", func(m *acl.Message) { m.ReplyBy = now.AddDate(8000, 0, 0) }},
		{"a reply-by 250 years from sending", func(m *acl.Message) { m.ReplyIn = new(250 * 365 * 24 * time.Hour) }},
		{"a user key without X-", func(m *acl.Message) { m.User = map[string]string{"a": "b"} }},
		{"a user key with a space", func(m *acl.Message) { m.User = map[string]string{"X-a b": "c"} }},
		{"a user key with a parenthesis", func(m *acl.Message) { m.User = map[string]string{"X-a)": "c"} }},
		{"user keys that differ in case", func(m *acl.Message) { m.User = map[string]string{"X-a": "b", "X-A": "b"} }},
		{"an empty user value", func(m *acl.Message) { m.User = map[string]string{"X-a": ""} }},
		{"the mark of Base64", func(m *acl.Message) { m.User = map[string]string{"X-JADE-Encoding": "base64"} }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := acl.Message{Performative: "inform"}
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			if c.change(&m); m.Validate() == nil {
				t.Error("found valid")
			}
		})
	}
}
