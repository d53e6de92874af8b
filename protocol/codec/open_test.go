package codec_test

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// sampleOf is the filled message of a kind.
func (m *market) sampleOf(t testing.TB, kind string) protocol.Message {
	t.Helper()
	for _, s := range samples() {
		if s.body.Kind() == kind {
			return m.filled(s)
		}
	}
	t.Fatalf("no sample of kind %q", kind)
	return protocol.Message{}
}

// mangled is the bytes of a good message after a change that Encode would not
// make.
func (m *market) mangled(t testing.TB, kind string, change func(*wire.Envelope)) []byte {
	t.Helper()
	b, err := codec.Encode(m.sampleOf(t, kind))
	must(t, err)
	e := &wire.Envelope{}
	must(t, proto.Unmarshal(b, e))
	change(e)
	b, err = proto.Marshal(e)
	must(t, err)
	return b
}

func refused(t *testing.T, m *market, b []byte, code protocol.Code, reason string) {
	t.Helper()
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	var e *codec.Error
	if !errors.As(err, &e) {
		t.Fatalf("opened as %+v, %v; want an Error", got, err)
	}
	if e.Code != code || !strings.Contains(err.Error(), reason) {
		t.Errorf("got %s: %v; want %s and %q", e.Code, err, code, reason)
	}
	if e.Envelope.Sender != m.seller.ID || e.Envelope.Body != nil {
		t.Errorf("the envelope of the error is %+v", e.Envelope)
	}
}

func TestOpenRefuses(t *testing.T) {
	const malformed, limit, mismatch = protocol.CodeMalformed, protocol.CodeLimit, protocol.CodeMismatch
	long := strings.Repeat("a", protocol.MaxWords+1)
	cases := []struct {
		name, kind string
		change     func(*wire.Envelope)
		code       protocol.Code
		reason     string
	}{
		{"a performative that is FIPA's but not allowed here", "vote", func(e *wire.Envelope) { e.Performative = "inform" }, malformed, "not allowed"},
		{"a performative that is not FIPA's", "vote", func(e *wire.Envelope) { e.Performative = "offer" }, malformed, "not allowed"},
		{"a performative in upper case", "vote", func(e *wire.Envelope) { e.Performative = "AGREE" }, malformed, "not allowed"},
		{"a foreign protocol", "vote", func(e *wire.Envelope) { e.Protocol = "fipa-request" }, malformed, "not allowed"},
		{"no conversation", "vote", func(e *wire.Envelope) { e.Conversation = "" }, malformed, "conversation is missing"},
		{"a conversation over its bound", "vote", func(e *wire.Envelope) { e.Conversation = strings.Repeat("c", protocol.MaxConversation+1) }, malformed, "conversation"},
		{"a conversation with a control character", "vote", func(e *wire.Envelope) { e.Conversation = "c\x1b[2J" }, malformed, "conversation"},
		{"a reply-with over its bound", "vote", func(e *wire.Envelope) { e.ReplyWith = strings.Repeat("c", protocol.MaxName+1) }, malformed, "reply-with"},
		{"an in-reply-to with a space", "vote", func(e *wire.Envelope) { e.InReplyTo = "a b" }, malformed, "in-reply-to"},
		{"a reply-by before 1970", "vote", func(e *wire.Envelope) { e.ReplyBy = -5 }, malformed, "reply-by"},
		{"a reply-by in the year 2262", "vote", func(e *wire.Envelope) { e.ReplyBy = 1<<63 - 1 }, malformed, "reply-by"},
		{"no receiver", "vote", func(e *wire.Envelope) { e.Receivers = nil }, malformed, "receiver"},
		{"too many receivers", "vote", func(e *wire.Envelope) { e.Receivers = make([]string, protocol.MaxReceivers+1) }, limit, "receivers"},
		{"a receiver that is no agent", "vote", func(e *wire.Envelope) { e.Receivers[0] = "ann" }, malformed, "receiver"},
		{"a local receiver", "vote", func(e *wire.Envelope) { e.Receivers[0] = ".queue" }, malformed, "receiver"},
		{"no body", "vote", func(e *wire.Envelope) { e.Body = nil }, malformed, "not allowed"},
		{"an empty body", "vote", func(e *wire.Envelope) { e.Body = &wire.Envelope_Vote{Vote: &wire.Vote{}} }, malformed, "offer ID is missing"},

		{"a kind of agent that there is not", "presence", func(e *wire.Envelope) { e.GetPresence().Agent = 4 }, malformed, "kind of agent"},
		{"no kind of agent", "presence", func(e *wire.Envelope) { e.GetPresence().Agent = 0 }, malformed, "kind of agent"},
		{"a ttl below zero", "presence", func(e *wire.Envelope) { e.GetPresence().Ttl = -1 }, malformed, "ttl"},
		{"a ttl over an hour", "presence", func(e *wire.Envelope) { e.GetPresence().Ttl = int64(protocol.MaxTTL) + 1 }, malformed, "ttl"},
		{"a price below zero", "presence", func(e *wire.Envelope) { e.GetPresence().Min = -1 }, malformed, "minimum price"},
		{"properties below zero", "presence", func(e *wire.Envelope) { e.GetPresence().Properties.CpuSpeed = -1 }, malformed, "cpu speed"},
		{"too many modes", "presence", func(e *wire.Envelope) { e.GetPresence().Modes = make([]string, protocol.MaxModes+1) }, limit, "modes"},
		{"a currency in lower case", "presence", func(e *wire.Envelope) { e.GetPresence().Terms[0].Currency = "cur" }, malformed, "currency"},
		{"a bank that is no agent", "presence", func(e *wire.Envelope) { e.GetPresence().Terms[0].Bank = "bank" }, malformed, "bank"},
		{"an address that a terminal would obey", "presence", func(e *wire.Envelope) { e.GetPresence().Addresses[0] = "\x1b]0;" }, malformed, "address"},

		{"a document over its bound", "cfp", func(e *wire.Envelope) { e.GetCfp().Document = make([]byte, protocol.MaxDocument+1) }, limit, "document"},
		{"a round below zero", "cfp", func(e *wire.Envelope) { e.GetCfp().Round = -1 }, malformed, "round"},
		{"a round over the bound", "cfp", func(e *wire.Envelope) { e.GetCfp().Round = protocol.MaxRounds + 1 }, malformed, "round"},
		{"an objective that there is not", "cfp", func(e *wire.Envelope) { e.GetCfp().Objective = 4 }, malformed, "objective"},
		{"inputs below zero", "cfp", func(e *wire.Envelope) { e.GetCfp().Launch = &wire.Intent{Input: -1} }, malformed, "inputs"},
		{"a long name of an application", "cfp", func(e *wire.Envelope) {
			e.GetCfp().Launch = &wire.Intent{App: strings.Repeat("a", protocol.MaxName+1)}
		}, malformed, "application"},
		{"a ceiling below zero", "cfp", func(e *wire.Envelope) { e.GetCfp().Ceilings[0].Price = -1 }, malformed, "ceiling"},
		{"a ceiling for a unit that no document has", "cfp", func(e *wire.Envelope) { e.GetCfp().Ceilings[0].Unit = protocol.MaxUnits }, malformed, "unit"},
		{"a bundle's ceiling below zero", "cfp", func(e *wire.Envelope) { e.GetCfp().Bundles[0].Cost = -1 }, malformed, "ceiling"},

		{"an offer without an id", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Id = "" }, malformed, "offer ID is missing"},
		{"an offer without items", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items = nil }, malformed, "no items"},
		{"an offer without an end", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].ValidUntil = 0 }, malformed, "valid-until"},
		{"odds above one", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Queued = 1_000_002 }, malformed, "odds"},
		{"an offer for nothing", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Cost = 0 }, malformed, "cost of an offer"},
		{"an offer above its items", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Cost += 2 }, mismatch, "its items only"},
		{"an offer with a unit twice", "proposal", func(e *wire.Envelope) {
			items := e.GetProposal().Offers[0].Items
			items[1].Unit = items[0].Unit
		}, malformed, "twice"},
		{"a price of zero", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Price = 0 }, malformed, "price"},
		{"a price below zero", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Price = -1 }, malformed, "price"},
		{"a price that overflows", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Price = 1<<63 - 1 }, malformed, "too large"},
		{"a cost above the price", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Cost = 1e15 }, mismatch, "cost of unit"},
		{"a least payment above half of the cost", "proposal", func(e *wire.Envelope) {
			e.GetProposal().Offers[0].Items[0].Least = e.GetProposal().Offers[0].Items[0].Cost
		}, mismatch, "least payment"},
		{"no cores", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Cores = 0 }, malformed, "cores"},
		{"too many cores", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Cores = protocol.MaxCores + 1 }, malformed, "cores"},
		{"cores that an int32 would not notice", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Cores = 1<<32 + 4 }, malformed, "cores"},
		{"a slot that ends as it starts", "proposal", func(e *wire.Envelope) {
			x := e.GetProposal().Offers[0].Items[0]
			x.End = x.Start
		}, malformed, "slot"},
		{"a slot without a start", "proposal", func(e *wire.Envelope) { e.GetProposal().Offers[0].Items[0].Start = 0 }, malformed, "start"},
		{"a span that ends before it starts", "proposal", func(e *wire.Envelope) { e.GetProposal().Capacity[0].End = 1 }, malformed, "span"},
		{"an unknown reason", "proposal", func(e *wire.Envelope) { e.GetProposal().Refusals[0].Code = "mood" }, malformed, "mood"},
		{"no reason", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Code = "" }, malformed, "reason"},
		{"a reason for unit -2", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Unit = -2 }, malformed, "unit"},
		{"a reason that asks less than nothing", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Asks = -1 }, malformed, "asks"},
		{"a note over its bound", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Note = long }, malformed, "note"},
		{"a note that a terminal would obey", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Note = "\x1b[2J" }, malformed, "note"},
		{"a note with a C1 control character", "refusal", func(e *wire.Envelope) { e.GetRefusal().Reasons[0].Note = "\u009b2J" }, malformed, "note"},

		{"an acceptance of nothing", "acceptance", func(e *wire.Envelope) { e.GetAcceptance().Offer = nil }, malformed, "offer ID is missing"},
		{"a hold without an end", "acceptance", func(e *wire.Envelope) { e.GetAcceptance().HoldUntil = 0 }, malformed, "hold-until"},
		{"a reservation without a name", "vote", func(e *wire.Envelope) { e.GetVote().Reservations[0].Id = "" }, malformed, "reservation ID is missing"},
		{"a reservation of no cores", "vote", func(e *wire.Envelope) { e.GetVote().Reservations[0].Cores = 0 }, malformed, "cores"},
		{"a reservation with a quote in its name", "cancellation", func(e *wire.Envelope) { e.GetCancellation().Reservations[0] = `r"1` }, malformed, "reservation"},
		{"a contract that is no hash", "outcome-query", func(e *wire.Envelope) { e.GetOutcomeQuery().Contract = "c" }, malformed, "64 hex"},
		{"an unknown outcome", "decision", func(e *wire.Envelope) { e.GetDecision().Outcome = "maybe" }, malformed, "maybe"},
		{"a decision without a receipt", "decision", func(e *wire.Envelope) { e.GetDecision().Receipt = nil }, malformed, "receipt"},
		{"no decision with a receipt", "decision", func(e *wire.Envelope) { e.GetDecision().Outcome = "gathering" }, malformed, "receipt"},
		{"a decision that its receipt contradicts", "decision", func(e *wire.Envelope) { e.GetDecision().Outcome = "void" }, mismatch, "a receipt for"},
		{"a decision about another contract", "decision", func(e *wire.Envelope) { e.GetDecision().Contract = hex64 }, mismatch, "a receipt for"},
		{"less than nothing held", "balances", func(e *wire.Envelope) { e.GetBalances().Accounts[0].Held = -1 }, malformed, "held"},
		{"a statement of no lines", "statement-query", func(e *wire.Envelope) { e.GetStatementQuery().Limit = 0 }, malformed, "limit"},
		{"a statement of too many lines", "statement-query", func(e *wire.Envelope) { e.GetStatementQuery().Limit = message.MaxStatement + 1 }, malformed, "limit"},
		{"a proof of nothing", "proof", func(e *wire.Envelope) { e.GetProof().Document = nil }, malformed, "document"},
		{"a proof of a contract that is no hash", "proof-query", func(e *wire.Envelope) { e.GetProofQuery().Contract = "c" }, malformed, "64 hex"},
		{"a proof that is too long", "proof", func(e *wire.Envelope) { e.GetProof().Document = make([]byte, message.MaxProof+1) }, protocol.CodeLimit, "bytes"},
		{"a movement at no time", "statement", func(e *wire.Envelope) { e.GetStatement().Lines[0].Time = 0 }, malformed, "time"},
	}
	m := newMarket(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { refused(t, m, m.mangled(t, c.kind, c.change), c.code, c.reason) })
	}
}

func TestEveryListHasItsBound(t *testing.T) {
	cases := []struct {
		kind string
		most int
		set  func(e *wire.Envelope, n int)
	}{
		{"presence", protocol.MaxTerms, func(e *wire.Envelope, n int) { e.GetPresence().Terms = copies(e.GetPresence().Terms, n) }},
		{"presence", protocol.MaxModes, func(e *wire.Envelope, n int) { e.GetPresence().Modes = copies(e.GetPresence().Modes, n) }},
		{"presence", protocol.MaxAddresses, func(e *wire.Envelope, n int) { e.GetPresence().Addresses = copies(e.GetPresence().Addresses, n) }},
		{"cfp", protocol.MaxTerms, func(e *wire.Envelope, n int) { e.GetCfp().Terms = copies(e.GetCfp().Terms, n) }},
		{"cfp", protocol.MaxModes, func(e *wire.Envelope, n int) { e.GetCfp().Modes = copies(e.GetCfp().Modes, n) }},
		{"cfp", protocol.MaxUnits, func(e *wire.Envelope, n int) { e.GetCfp().Ceilings = copies(e.GetCfp().Ceilings, n) }},
		{"cfp", protocol.MaxOffers, func(e *wire.Envelope, n int) { e.GetCfp().Bundles = copies(e.GetCfp().Bundles, n) }},
		{"cfp", protocol.MaxUnits, func(e *wire.Envelope, n int) { e.GetCfp().Bundles[0].Units = copies(e.GetCfp().Bundles[0].Units, n) }},
		{"proposal", protocol.MaxOffers, func(e *wire.Envelope, n int) { e.GetProposal().Offers = copies(e.GetProposal().Offers, n) }},
		{"proposal", protocol.MaxSpans, func(e *wire.Envelope, n int) { e.GetProposal().Capacity = copies(e.GetProposal().Capacity, n) }},
		{"proposal", protocol.MaxReasons, func(e *wire.Envelope, n int) { e.GetProposal().Refusals = copies(e.GetProposal().Refusals, n) }},
		{"proposal", protocol.MaxUnits, func(e *wire.Envelope, n int) { setItems(e.GetProposal().Offers[0], n) }},
		{"refusal", protocol.MaxReasons, func(e *wire.Envelope, n int) { e.GetRefusal().Reasons = copies(e.GetRefusal().Reasons, n) }},
		{"vote", protocol.MaxUnits, func(e *wire.Envelope, n int) { e.GetVote().Reservations = copies(e.GetVote().Reservations, n) }},
		{"cancellation", protocol.MaxUnits, func(e *wire.Envelope, n int) {
			e.GetCancellation().Reservations = copies(e.GetCancellation().Reservations, n)
		}},
		{"balances", protocol.MaxAccounts, func(e *wire.Envelope, n int) { e.GetBalances().Accounts = copies(e.GetBalances().Accounts, n) }},
		{"statement", message.MaxStatement, func(e *wire.Envelope, n int) { e.GetStatement().Lines = copies(e.GetStatement().Lines, n) }},
	}
	m := newMarket(t)
	o := codec.Opener{Trust: m.trust}
	for _, c := range cases {
		got, err := o.Open(m.mangled(t, c.kind, func(e *wire.Envelope) { c.set(e, c.most) }), m.seller.ID, now)
		if err != nil {
			t.Errorf("%s with %d: %v", c.kind, c.most, err)
			continue
		}
		if _, err := codec.Encode(got); err != nil {
			t.Errorf("%s with %d was opened, but is not encoded: %v", c.kind, c.most, err)
		}
		b := m.mangled(t, c.kind, func(e *wire.Envelope) { c.set(e, c.most+1) })
		if _, err := o.Open(b, m.seller.ID, now); err == nil {
			t.Errorf("%s with %d was opened, want at most %d", c.kind, c.most+1, c.most)
		}
	}
}

func copies[T any](list []T, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = list[0]
	}
	return out
}

// setItems gives an offer n items, of different units as far as there are units.
func setItems(o *wire.Offer, n int) {
	first := o.Items[0]
	o.Items, o.Cost = nil, first.Cost
	for i := range n {
		x := proto.Clone(first).(*wire.Item)
		x.Unit = int64(i % protocol.MaxUnits)
		o.Items = append(o.Items, x)
	}
}

func TestEncodeRefusesWhatOpenWould(t *testing.T) {
	cases := []struct {
		name, kind string
		change     func(*protocol.Message)
	}{
		{"a document over its bound", "cfp", func(m *protocol.Message) {
			m.Body = message.CallForProposals{Round: 1, Document: make([]byte, protocol.MaxDocument+1)}
		}},
		{"too many offers", "proposal", func(m *protocol.Message) {
			m.Body = message.Proposal{Offers: copies(m.Body.(message.Proposal).Offers, protocol.MaxOffers+1)}
		}},
		{"a time after 2199", "vote", func(m *protocol.Message) { m.ReplyBy = now.AddDate(400, 0, 0) }},
		{"a time before 1970", "vote", func(m *protocol.Message) { m.ReplyBy = time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC) }},
		{"the first instant of 1970", "vote", func(m *protocol.Message) { m.ReplyBy = time.Unix(0, 0) }},
		{"a performative that is not allowed", "vote", func(m *protocol.Message) { m.Performative = protocol.Inform }},
		{"no receiver", "vote", func(m *protocol.Message) { m.Receivers = nil }},
		{"a name that is not UTF-8", "vote", func(m *protocol.Message) { m.ReplyWith = "\xff" }},
		{"a bundle that is not signed", "confirmation", func(m *protocol.Message) { m.Body = message.Confirmation{} }},
		{"a signature over its bound", "confirmation", func(m *protocol.Message) {
			m.Body = message.Confirmation{Bundle: contract.Verified{DER: make([]byte, protocol.MaxSignature+1)}}
		}},
		{"a receipt that is not signed", "decision", func(m *protocol.Message) {
			d := m.Body.(message.Decision)
			d.Receipt = &contract.VerifiedReceipt{Receipt: d.Receipt.Receipt}
			m.Body = d
		}},
		{"a body that is a pointer", "vote", func(m *protocol.Message) { m.Body = &message.Vote{} }},
		{"a message over its bound", "proposal", func(m *protocol.Message) {
			r := protocol.Reason{Code: protocol.CodeBusy, Note: strings.Repeat("a", protocol.MaxWords), Want: strings.Repeat("a", protocol.MaxWords),
				Have: strings.Repeat("a", protocol.MaxWords), Term: strings.Repeat("a", protocol.MaxWords)}
			m.Body = message.Proposal{Refusals: copies([]protocol.Reason{r}, protocol.MaxReasons)}
		}},
	}
	m := newMarket(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			msg := m.sampleOf(t, c.kind)
			c.change(&msg)
			if b, err := codec.Encode(msg); err == nil {
				t.Errorf("encoded in %d bytes", len(b))
			}
		})
	}
}

func TestUnknownFieldsAreIgnoredAndUnknownBodiesAreNot(t *testing.T) {
	m := newMarket(t)
	b, err := codec.Encode(m.sampleOf(t, "vote"))
	must(t, err)
	later := protowire.AppendString(protowire.AppendTag(b, 1000, protowire.BytesType), "new")
	if _, err := (codec.Opener{Trust: m.trust}).Open(later, m.seller.ID, now); err != nil {
		t.Errorf("an unknown field: %v", err)
	}
	agree := m.mangled(t, "vote", func(e *wire.Envelope) { e.Protocol, e.Body = protocol.ProtocolRequest, nil })
	if _, err := (codec.Opener{Trust: m.trust}).Open(agree, m.seller.ID, now); err != nil {
		t.Errorf("an agree without a body: %v", err)
	}
	agree = protowire.AppendString(protowire.AppendTag(agree, 59, protowire.BytesType), "new")
	refused(t, m, agree, protocol.CodeMalformed, "unknown kind")
}

func TestModesOfALaterVersionAreLeftOut(t *testing.T) {
	m := newMarket(t)
	for kind, change := range map[string]func(*wire.Envelope){
		"presence": func(e *wire.Envelope) { e.GetPresence().Modes = []string{"someday", "metered"} },
		"cfp":      func(e *wire.Envelope) { e.GetCfp().Modes = []string{"metered", "someday"} },
	} {
		got, err := codec.Opener{Trust: m.trust}.Open(m.mangled(t, kind, change), m.seller.ID, now)
		var modes []protocol.Mode
		switch b := got.Body.(type) {
		case message.Presence:
			modes = b.Modes
		case message.CallForProposals:
			modes = b.Modes
		}
		if err != nil || !slices.Equal(modes, []protocol.Mode{protocol.ModeMetered}) {
			t.Errorf("%s: modes %q, %v; want metered alone", kind, modes, err)
		}
	}
}

func TestTheSenderIsWhoWasAuthenticated(t *testing.T) {
	m := newMarket(t)
	b := m.mangled(t, "vote", func(e *wire.Envelope) { e.Sender = string(m.bank.ID) })
	got, err := codec.Opener{Trust: m.trust}.Open(b, m.seller.ID, now)
	if err != nil || got.Sender != m.seller.ID {
		t.Errorf("from %s, %v; want %s", got.Sender, err, m.seller.ID)
	}
}

func TestNoiseAndGreatMessagesAreRefused(t *testing.T) {
	m := newMarket(t)
	refused(t, m, []byte("GET / HTTP/1.1\r\n"), protocol.CodeMalformed, "not a message")
	refused(t, m, nil, protocol.CodeMalformed, "conversation")
	refused(t, m, make([]byte, 100<<20), protocol.CodeMalformed, "104857600 bytes")
	refused(t, m, bytes.Repeat([]byte{0xff}, protocol.MaxMessage), protocol.CodeMalformed, "not a message")
}

// Two bytes on the wire can become a hundred in memory.
func TestManyEmptyPartsCostLittleMemory(t *testing.T) {
	m := newMarket(t)
	offers := bytes.Repeat([]byte{2<<3 | 2, 0}, protocol.MaxMessage/2-100)
	items := protowire.AppendBytes([]byte{2<<3 | 2}, offers)
	for name, body := range map[string][]byte{"offers": offers, "items": items} {
		b := protowire.AppendBytes(protowire.AppendTag(nil, 18, protowire.BytesType), body[:min(len(body), protocol.MaxMessage-10)])
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		refused(t, m, b, protocol.CodeMalformed, "")
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 32<<20 {
			t.Errorf("%s: %d MiB were allocated", name, grown>>20)
		}
	}
}
