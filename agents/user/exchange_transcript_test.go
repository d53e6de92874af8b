package user_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/agents/markettest"
	"ramp/agents/user"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// The transcripts are orders to exchange money as the agent sends them to a bank.
func TestExchangeTranscripts(t *testing.T) {
	cast := markettest.NewCast(t, 1)
	datadriven.Walk(t, "testdata/exchange", func(t *testing.T, path string) {
		s := &exchangeScript{cfg: user.Config{Credential: cast.Credential(markettest.User), Trust: cast.Trust}, bank: cast.ID(markettest.Bank), now: markettest.Dawn, store: markettest.Store{}}
		s.do("restart", nil)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			a := map[string]string{}
			for _, arg := range d.CmdArgs {
				a[arg.Key] = strings.Join(arg.Vals, ",")
			}
			return s.do(d.Cmd, a)
		})
	})
}

type exchangeScript struct {
	cfg   user.Config
	bank  protocol.AgentID
	now   time.Time
	store markettest.Store
	role  *user.Role
	said  strings.Builder
}

func (s *exchangeScript) do(cmd string, a map[string]string) string {
	s.said.Reset()
	words := "15 of 10"
	if a["least"] != "" {
		words = "16 of 10"
	}
	x := &user.Exchanges{}
	if s.role != nil {
		x = &s.role.Exchanges
	}
	var o *user.Exchange
	var out protocol.Output
	switch cmd {
	case "order":
		var dead []string
		if a["dead"] != "" {
			dead = []string{a["dead"]}
		}
		quote := contract.Quote{}
		if a["quote"] != "" {
			quote = s.quote(a["quote"])
		}
		if o, out = x.Order(s.now, user.Exchange{Key: a["key"], Words: words, Least: 15, Quote: quote}, dead); o != nil {
			fmt.Fprintf(&s.said, "the order has quote %s: %s\n", o.Quote.ID, o.State)
		}
	case "confirm":
		out = x.Confirm(a["key"])
	case "pass":
		d, _ := time.ParseDuration(a["time"])
		s.now = s.now.Add(d)
		out = s.role.Wake(s.now)
	case "restart":
		var err error
		if s.role, out, err = user.New(s.cfg, s.store, s.now); err != nil {
			return err.Error()
		}
	case "refuse":
		out = s.answer(a, message.Refused(protocol.Code(a["code"]), ""))
	case "carried-out":
		n := s.quote(a["quote"])
		n.Entry = 7
		if a["gives"] != "" {
			n.Gives = 11
		}
		out = s.answer(a, message.Quoted{Signed: contract.VerifiedNote[contract.Quote]{Note: n, Signer: identity.Peer{ID: s.bank}}})
	}
	s.tell(out)
	return s.said.String()
}

func (s *exchangeScript) quote(id string) contract.Quote {
	return contract.Quote{Bank: s.bank, ID: id, User: s.role.ID(), From: "CPU", To: "GPU", Gives: 10, Gets: 20, Until: s.now.Add(protocol.QuoteValidity)}
}

func (s *exchangeScript) answer(a map[string]string, body protocol.Body) protocol.Output {
	m := protocol.Message{Sender: s.bank, InReplyTo: "exchange-" + a["quote"], Body: body}
	if a["from"] != "" {
		m.Sender = s.role.ID()
	}
	return s.role.Receive(s.now, m)
}

func (s *exchangeScript) tell(out protocol.Output) {
	_ = s.store.Append(out.Save)
	for _, r := range out.Save {
		o := s.role.Exchanges.ByID(r.Key)
		if r.Value == nil {
			o = &user.Exchange{State: "forgotten"}
		}
		fmt.Fprintf(&s.said, "saved %s: %s\n", r.Key, strings.TrimSpace(o.Key+" "+o.State+" "+o.Why))
	}
	for _, m := range out.Send {
		r, ok := m.Body.(message.ExchangeRequest)
		if !ok {
			continue // a question about receipts
		}
		fmt.Fprintf(&s.said, "to %s: exchange %s for at least %d\n", m.Receivers[0].Name(), r.ID, r.Least)
	}
	if !out.WakeAt.IsZero() {
		fmt.Fprintf(&s.said, "wakes after %s\n", out.WakeAt.Sub(s.now))
	}
}
