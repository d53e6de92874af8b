package agents_test

import (
	"testing"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

func TestAnswersWhileTheJournalCannotBeWritten(t *testing.T) {
	const self, peer = protocol.AgentID("site"), protocol.AgentID("ann")
	for _, c := range []struct {
		name   string
		sender protocol.AgentID
		asked  protocol.Performative
		want   protocol.Performative // empty: no answer
	}{
		{"a call is refused", peer, protocol.CFP, protocol.Refuse},
		{"an accepted proposal is refused", peer, protocol.AcceptProposal, protocol.Refuse},
		{"a request fails", peer, protocol.Request, protocol.Failure},
		{"a query fails", peer, protocol.QueryRef, protocol.Failure},
		{"a confirmation fails", peer, protocol.Confirm, protocol.Failure},
		{"an inform expects no answer", peer, protocol.Inform, ""},
		{"a refusal expects no answer", peer, protocol.Refuse, ""},
		{"a local request gets no answer", protocol.LocalControl, protocol.Request, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := protocol.Message{Performative: c.asked, Sender: c.sender, Conversation: "c-1", ReplyWith: "r-1"}
			got, ok := agents.Unavailable(self, m)
			if ok != (c.want != "") || got.Performative != c.want {
				t.Fatalf("got %v %s, want %s", ok, got.Performative, c.want)
			}
			if !ok {
				return
			}
			body, isRefusal := got.Body.(message.Refusal)
			if got.Sender != self || got.InReplyTo != "r-1" || len(got.Receivers) != 1 || got.Receivers[0] != peer {
				t.Errorf("not an answer to ann: %+v", got)
			}
			if !isRefusal || body.Reasons[0].Code != protocol.CodeUnavailable {
				t.Errorf("body %+v, want the reason unavailable", got.Body)
			}
		})
	}
}
