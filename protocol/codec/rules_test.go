package codec_test

import (
	"strings"
	"testing"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
)

// The stages of the protocol from its document, one body per line: the performatives and
// protocol tokens with which it may come.
const stages = `
presence:          inform/ramp-presence
cfp:               cfp/fipa-iterated-contract-net
proposal:          propose/fipa-iterated-contract-net
refusal:           refuse/fipa-iterated-contract-net failure/fipa-iterated-contract-net not-understood/fipa-iterated-contract-net
refusal:           reject-proposal/fipa-iterated-contract-net reject-proposal/ramp-commit
refusal:           refuse/ramp-commit failure/ramp-commit not-understood/ramp-commit
refusal:           refuse/fipa-request failure/fipa-request not-understood/fipa-request
acceptance:        accept-proposal/ramp-commit
vote:              agree/ramp-commit
confirmation:      confirm/ramp-commit
countersigned:     confirm/ramp-commit
cancellation:      cancel/ramp-commit
settlement:        request/fipa-request
annulment:         request/fipa-request
outcome-query:     query-ref/fipa-request
decision:          agree/fipa-request refuse/fipa-request inform/fipa-request agree/ramp-commit refuse/ramp-commit inform/ramp-commit
unit-cancellation: request/fipa-request
refund-request:    request/fipa-request
balance-query:     query-ref/fipa-request
balances:          inform/fipa-request
statement-query:   query-ref/fipa-request
statement:         inform/fipa-request
job-report:        request/fipa-request inform/fipa-request
job-verdict:       request/fipa-request
voucher-request:   request/fipa-request
voucher:           agree/fipa-request
quote-request:     request/fipa-request
exchange-request:  request/fipa-request
quote:             agree/fipa-request
readmission:       request/fipa-request
proof-query:       query-ref/fipa-request
proof:             inform/fipa-request
launch:            request/fipa-request
launch-order:      request/fipa-request
launch-status:     agree/fipa-request inform/fipa-request
sold-query:        query-ref/fipa-request
sold-list:         inform/fipa-request
bundle-query:      query-ref/fipa-request
bundle-copy:       inform/fipa-request
`

func TestOnlyTheStagesOfTheProtocolAreAllowed(t *testing.T) {
	want := map[string]bool{}
	for _, line := range strings.Split(strings.TrimSpace(stages), "\n") {
		kind, pairs, _ := strings.Cut(line, ":")
		for _, p := range strings.Fields(pairs) {
			want[kind+" "+p] = true
		}
	}
	m := newMarket(t)
	acts := append(constants(t, "Performative"), "subscribe", "CFP", "")
	tokens := []string{protocol.ProtocolPresence, protocol.ProtocolAuction, protocol.ProtocolCommit, protocol.ProtocolRequest,
		protocol.ProtocolQueue, protocol.ProtocolControl, "fipa-contract-net", ""}
	o, n := codec.NewOpener(m.trust, 4), 0
	for _, s := range samples() {
		for _, act := range acts {
			for _, token := range tokens {
				b := m.mangled(t, s.body.Kind(), func(e *wire.Envelope) { e.Performative, e.Protocol = act, token })
				_, err := o.Open(b, m.seller.ID, now)
				if name := s.body.Kind() + " " + act + "/" + token; (err == nil) != want[name] {
					t.Errorf("%s: %v, want allowed %t", name, err, want[name])
				} else if err == nil {
					n++
				}
			}
		}
	}
	if n != len(want) {
		t.Errorf("%d of %d stages were tried", n, len(want))
	}
}

func TestAnswerSaysWhy(t *testing.T) {
	const malformed, signature = protocol.CodeMalformed, protocol.CodeSignature
	cases := []struct {
		act, token string
		code       protocol.Code
		want       protocol.Performative // "": no answer
	}{
		{"request", protocol.ProtocolRequest, signature, protocol.Refuse},
		{"query-ref", protocol.ProtocolRequest, malformed, protocol.NotUnderstood},
		{"accept-proposal", protocol.ProtocolCommit, signature, protocol.Refuse},
		{"cfp", protocol.ProtocolAuction, malformed, protocol.NotUnderstood},
		{"confirm", protocol.ProtocolCommit, signature, protocol.Failure},
		{"confirm", protocol.ProtocolCommit, protocol.CodeMismatch, protocol.NotUnderstood},
		{"propose", protocol.ProtocolAuction, malformed, protocol.NotUnderstood},
		{"agree", protocol.ProtocolCommit, malformed, protocol.NotUnderstood},
		{"agree", protocol.ProtocolRequest, signature, ""},
		{"not-understood", protocol.ProtocolCommit, malformed, ""},
		{"refuse", protocol.ProtocolAuction, malformed, ""},
		{"failure", protocol.ProtocolCommit, malformed, ""},
		{"reject-proposal", protocol.ProtocolAuction, malformed, ""},
		{"inform", protocol.ProtocolRequest, malformed, ""},
		{"inform", protocol.ProtocolPresence, malformed, ""},
		{"request", "fipa-subscribe", malformed, ""},
		{"", "", malformed, ""},
	}
	m := newMarket(t)
	for _, c := range cases {
		e := &codec.Error{Code: c.code, Err: errNoise, Envelope: protocol.Message{
			Performative: protocol.Performative(c.act), Protocol: c.token, Conversation: "c1", ReplyWith: "r1", Sender: m.user.ID,
		}}
		got, ok := e.Answer(m.seller.ID)
		if ok != (c.want != "") || ok && got.Performative != c.want {
			t.Errorf("%s/%s, %s: answered %t with %q, want %q", c.act, c.token, c.code, ok, got.Performative, c.want)
			continue
		}
		if ok {
			checkAnswer(t, m, got, c.code)
		}
	}
}

func checkAnswer(t *testing.T, m *market, got protocol.Message, code protocol.Code) {
	t.Helper()
	b, err := codec.Encode(got)
	must(t, err)
	opened, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	must(t, err)
	if opened.InReplyTo != "r1" || opened.Conversation != "c1" || opened.Receivers[0] != m.user.ID || !hasReason(opened, code) {
		t.Errorf("answered with %+v", opened)
	}
}
