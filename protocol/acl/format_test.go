package acl_test

import (
	"strings"
	"testing"

	"ramp/protocol/acl"
)

// Readers disagree on bare values, so only words of all readers are bare.
func TestFormatQuotesWhatIsNotAWordToAll(t *testing.T) {
	cases := []struct{ value, want string }{
		{"fipa-request", `fipa-request`},
		{"http://h:7778/acc?a=b", `http://h:7778/acc?a=b`},
		{`C:\dir\`, `C:\dir\`},
		{"+5", `+5`},
		{"été", `été`},
		{"two words", `"two words"`},
		{"tab\tbed", "\"tab\tbed\""},
		{"12", `"12"`},
		{"-x", `"-x"`},
		{"#x", `"#x"`},
		{"@x", `"@x"`},
		{":x", `":x"`},
		{"(a b)", `"(a b)"`},
		{`say "a"`, `"say \"a\""`},
		{`a\"b`, `"a\\"b"`},
		{`two \`, `#5"two \`},
	}
	for _, c := range cases {
		m := acl.Message{Performative: "inform", Ontology: c.value}
		if got := string(acl.Format(m)); got != "(inform\n :ontology "+c.want+")\n" {
			t.Errorf("%q: got %s, want %s", c.value, got, c.want)
		}
	}
}

func TestFormatWritesContentThatReadersWouldTrimWithItsLength(t *testing.T) {
	for text, want := range map[string]string{" a": `#2" a)`, "a\n": "#2\"a\n)", "a b": `"a b")`, "a": `"a")`} {
		got := string(acl.Format(acl.Message{Performative: "inform", Content: acl.Content{Text: text}}))
		if !strings.HasSuffix(got, ":content "+want+"\n") {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}
