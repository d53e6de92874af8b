package mesh_test

import (
	"strings"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/message"
)

// A user that was told a seller's record by an index reaches the seller, whom it has never
// met. A record of another market's seller leads nowhere.
func TestRecordsLeadToTheirSellers(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	inbox := make(chan protocol.Message, 1<<16)
	cfg := m.config("seller", inbox)
	cfg.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	seller := m.listen(cfg, inbox)
	record := func(of mesh.Config) message.Record {
		t.Helper()
		var addresses []string
		for _, a := range seller.Addresses() {
			addresses = append(addresses, a[:strings.LastIndex(a, "/p2p/")])
		}
		r, err := codec.SealRecord(of.Credential, message.Record{
			Issued: time.Now(), Presence: message.Presence{Agent: protocol.KindResource, TTL: time.Minute, Counter: 1, Addresses: addresses},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	stranger := other.config("stranger", nil)
	user := m.start("user", nil)
	user.Send(protocol.Message{
		Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.LocalMesh}, Protocol: protocol.ProtocolIndex,
		Body: message.Records{List: []message.Record{record(cfg), record(stranger)}},
	})
	user.Send(query(1, seller.Self(), stranger.Credential.ID))
	seller.awaitQuery(1)
	if u, ok := user.awaitUndeliverable(1).Body.(message.Undeliverable); !ok || u.To != stranger.Credential.ID {
		t.Errorf("not delivered: %+v", u)
	}
}
