package codec_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

var errNoise = errors.New("noise:\n\x1b[2J" + strings.Repeat("x", 2*protocol.MaxWords))

func hasReason(m protocol.Message, code protocol.Code) bool {
	f, ok := m.Body.(message.Refusal)
	return ok && len(f.Reasons) == 1 && f.Reasons[0].Code == code
}

func TestEveryMessageIsValidACL(t *testing.T) {
	m := newMarket(t)
	for _, s := range samples() {
		t.Run(s.body.Kind(), func(t *testing.T) {
			msg := m.filled(s)
			a := codec.ToACL(msg)
			if err := a.Validate(); err != nil {
				t.Fatal(err)
			}
			got, err := parse(acl.Format(a))
			must(t, err)
			a.ReplyBy = a.ReplyBy.Truncate(1e6) // FIPA has milliseconds
			if diff := cmp.Diff(a, got); diff != "" {
				t.Error(diff)
			}
			var content map[string]any
			if err := json.Unmarshal([]byte(a.Content.Text), &content); err != nil {
				t.Errorf("content: %v in %s", err, a.Content.Text)
			}
		})
	}
}

func TestTheEnvelopeIsFIPAs(t *testing.T) {
	m := newMarket(t)
	got := codec.ToACL(m.sampleOf(t, "balance-query"))
	want := acl.Message{
		Performative: "query-ref", Sender: acl.AID{Name: string(m.seller.ID)},
		Receivers: []acl.AID{{Name: string(m.user.ID)}, {Name: ".everyone"}}, Content: acl.Content{Text: "{}"},
		Language: "json", Ontology: "ramp", Protocol: "fipa-request", ConversationID: "c1",
		ReplyWith: "r2", InReplyTo: "r1", ReplyBy: now.Add(123456789),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestContentIsJSONOfTheBody(t *testing.T) {
	m := newMarket(t)
	cases := []struct {
		body protocol.Body
		want string
	}{
		{message.BalanceQuery{}, `{}`},
		{message.CallForProposals{Round: 1, Document: []byte("<Request unit='h'>\n&amp;</Request>"), Ceilings: []message.Ceiling{{Price: 1_500_000}}, Best: true},
			`{"round":1,"document":"<Request unit='h'>\n&amp;</Request>","ceilings":[{"unit":0,"price":1.5}],"best":true}`},
		{message.CallForProposals{Document: []byte{0xff}}, `{"document":"/w=="}`},
		{message.Presence{Agent: protocol.KindBank, TTL: protocol.PresenceTTL, Properties: protocol.Properties{RAMPerCore: 4}},
			`{"agent":3,"properties":{"ram_per_core_mb":4},"ttl":"35s"}`},
		{message.Acceptance{HoldUntil: now}, `{"hold_until":"2026-08-01T12:00:00Z"}`},
		{message.Refused(protocol.CodeBusy, "a \"b\""), `{"reasons":[{"code":"busy","unit":-1,"note":"a \"b\""}]}`},
		{message.Vote{Offer: "o1", Reservations: []message.Reservation{{ID: "r1"}}}, `{"offer":"o1","reservations":[{"unit":0,"id":"r1"}]}`},
		{message.Reserve{ID: "r1"}, `{"id":"r1"}`},
	}
	for _, c := range cases {
		a := codec.ToACL(protocol.Message{Performative: protocol.Inform, Sender: m.user.ID, Body: c.body})
		if a.Content.Text != c.want || a.Language != "json" || a.Ontology != "ramp" {
			t.Errorf("%T: got %s, want %s", c.body, a.Content.Text, c.want)
		}
	}
}

func TestContentShowsWhatWasSigned(t *testing.T) {
	m := newMarket(t)
	for kind, want := range map[string]string{
		"confirmation":      `{"bundle":{"contract":"` + string(m.bundle.ID) + `","user":"` + string(m.user.ID) + `","document":{"version":1,"conversation":"c1",`,
		"settlement":        `{"sale":{"contract":"` + string(m.bundle.ID) + `","user":"` + string(m.user.ID) + `","seller":"` + string(m.seller.ID) + `","document":{"version":1,`,
		"decision":          `,"receipt":{"contract":"` + string(m.bundle.ID) + `","bank":"` + string(m.bank.ID) + `","document":{"version":1,`,
		"unit-cancellation": `{"signed":{"contract":"` + string(m.bundle.ID) + `","user":"` + string(m.user.ID) + `","document":{"cancel":1,`,
	} {
		if got := codec.ToACL(m.sampleOf(t, kind)).Content.Text; !strings.Contains(got, want) || !strings.Contains(got, `"der":"MI`) {
			t.Errorf("%s: got %s, want %s in it", kind, got, want)
		}
	}
}

// parse reads one message.
func parse(b []byte) (m acl.Message, err error) {
	err = acl.ParseAll(b, func(one acl.Message) error { m = one; return nil })
	return m, err
}
