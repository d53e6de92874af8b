package acl_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/acl"
)

// readAll returns the messages of a text and its error.
func readAll(text string) (list []acl.Message, err error) {
	err = acl.ParseAll([]byte(text), func(m acl.Message) error {
		list = append(list, m)
		return nil
	})
	return list, err
}

func TestMessagesOneAfterTheOtherAreReadWithCommentsBetween(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want, text := []acl.Message{}, strings.Builder{}
		between := func() {
			text.WriteString(rapid.SampledFrom([]string{"", "\n", " \n; 2026-11-22T00:08:10Z out\n", ";\n;(cfp\n", "\t; \"\r\n\n"}).Draw(t, "between"))
		}
		for range rapid.IntRange(1, 4).Draw(t, "messages") {
			m := acl.Message{Performative: protocol.Inform, Content: acl.Content{Text: rapid.SampledFrom([]string{"a", "a b", "x\n; no comment\ny", "(;)"}).Draw(t, "content")}}
			m.ConversationID = rapid.StringMatching(`[a-z;]{1,5}`).Draw(t, "conversation")
			between()
			text.Write(acl.Format(m))
			want = append(want, m)
		}
		between()
		got, err := readAll(text.String())
		if err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%v: %s\nfrom:\n%s", err, cmp.Diff(want, got), text.String())
		}
	})
}

func TestWhatIsWrongAmongSeveralMessagesIsSaidWithItsLine(t *testing.T) {
	const one = "(inform :content a)\n"
	for _, c := range []struct {
		name, text string
		before     int // messages before the fault
		want       string
	}{
		{"nothing", "", 0, "line 1, byte 0: found the end"},
		{"only comments", "; a\n; b", 0, "line 2, byte 7: found the end"},
		{"no message behind one", one + "; c\nfoo", 1, `line 3, byte 24: found "foo", want '('`},
		{"half a message", one + one + "(cfp", 2, "line 3, byte 44: found the end"},
		{"one over the bound", one + "(inform :content \"" + strings.Repeat("a", acl.MaxText) + "\")", 1, "at most"},
	} {
		got, err := readAll(c.text)
		var wrong *acl.SyntaxError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) || len(got) != c.before {
			t.Errorf("%s: %d messages, %v, want %d and %q", c.name, len(got), err, c.before, c.want)
		}
	}
}

func TestReadingEndsWithWhoTakesTheMessages(t *testing.T) {
	enough, n := errors.New("enough"), 0
	err := acl.ParseAll([]byte("(inform)(inform)"), func(acl.Message) error {
		n++
		return enough
	})
	if !errors.Is(err, enough) || n != 1 {
		t.Errorf("%d messages, %v", n, err)
	}
}
