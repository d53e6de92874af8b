package mesh_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"ramp/agents/mesh"
	"ramp/protocol"
	"ramp/protocol/identity"
)

func newKey(t testing.TB) crypto.Signer {
	t.Helper()
	key, err := identity.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// door is an agent that lets in whoever says "please", and counts.
type door struct {
	*agent
	asked, throttled atomic.Int64
	keys             chan []byte
}

func (m *market) door(name string) *door {
	d := &door{keys: make(chan []byte, 1<<10)}
	d.agent = m.start(name, func(c *mesh.Config) {
		c.Enrol = func(_ context.Context, a mesh.Applicant) ([]byte, bool) {
			if a.Request == nil {
				d.throttled.Add(1)
				return []byte("later"), false
			}
			d.asked.Add(1)
			d.keys <- a.Key
			if string(a.Request) != "please" {
				return []byte("no"), true
			}
			return []byte("welcome"), false
		}
	})
	return d
}

func (m *market) apply(key crypto.Signer, to protocol.AgentID, at []string, request string) (string, error) {
	answer, err := mesh.Apply(context.Background(), mesh.Application{Key: key, Trust: m.trust, To: to, At: at, Request: []byte(request)})
	return string(answer), err
}

func TestAStrangerMayApplyForACertificate(t *testing.T) {
	m := newMarket(t)
	bank, key := m.door("bank"), newKey(t)
	got, err := m.apply(key, bank.Self(), bank.Addresses(), "please")
	if err != nil || got != "welcome" {
		t.Fatalf("%q, %v", got, err)
	}
	want, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	if asked := <-bank.keys; !bytes.Equal(asked, want) {
		t.Error("the agent was told another key than that of the channel")
	}
}

func TestARequestGoesToTheOneWhoIsMeantOnly(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	bank, site := m.door("bank"), m.start("site", nil)
	twin, foreign := m.door("bank"), other.door("bank")
	for _, c := range []struct {
		name string
		at   []string
		want error
	}{
		{"an agent that lets nobody in", site.Addresses(), mesh.ErrNotThisBank},
		{"another agent of the same name", twin.Addresses(), mesh.ErrNotThisBank},
		{"an agent of another authority", foreign.Addresses(), identity.ErrForeign},
		{"the same, where somebody else is silent", append([]string{"/ip4/127.0.0.1/tcp/1/p2p/" + peerOf(bank)}, foreign.Addresses()...), mesh.ErrNotVouched},
		{"nobody", []string{"/ip4/127.0.0.1/tcp/1/p2p/" + peerOf(bank)}, mesh.ErrNotThere},
		{"an address without a peer", []string{"/ip4/127.0.0.1/tcp/1"}, mesh.ErrNoPeerID},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := m.apply(newKey(t), bank.Self(), c.at, "please"); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	if n := twin.asked.Load() + foreign.asked.Load(); n != 0 {
		t.Errorf("%d requests reached somebody else", n)
	}
	all := append(append(site.Addresses(), twin.Addresses()...), bank.Addresses()...)
	if got, err := m.apply(newKey(t), bank.Self(), all, "please"); err != nil || got != "welcome" {
		t.Errorf("with its address among others: %q, %v", got, err)
	}
}

func peerOf(d *door) string {
	_, id, _ := strings.Cut(d.Addresses()[0], "/p2p/")
	return id
}

func TestWhoAsksTooOftenIsToldToComeLater(t *testing.T) {
	m := newMarket(t)
	bank := m.door("bank")
	for range 200 {
		got, err := m.apply(newKey(t), bank.Self(), bank.Addresses(), "let me guess")
		if err != nil {
			t.Fatal(err)
		}
		if got == "later" {
			break
		}
	}
	if asked := bank.asked.Load(); asked < 4 || asked > 16 || bank.throttled.Load() != 1 {
		t.Errorf("%d wrong requests were looked at, %d were not", asked, bank.throttled.Load())
	}
	friend := m.joined("friend", bank.agent)
	friend.awaitKnown(bank.Self())
	friend.Send(query(1, bank.Self()))
	bank.awaitQuery(1) // those who are known go on
}

// Applicants that open an exchange and say nothing take no place: a newcomer is
// served beside more of them than there are places. (After enrolPatience their address,
// which is everybody's here, is charged, so all of them are prepared first.)
func TestStallingApplicantsKeepNobodyOut(t *testing.T) {
	m := newMarket(t)
	bank := m.door("bank")
	var all []*raw
	for i := range 9 {
		all = append(all, newRaw(t, m.credential(fmt.Sprint("stall", i)), bank.agent))
	}
	newcomers := []crypto.Signer{newKey(t), newKey(t), newKey(t)}
	for _, r := range all {
		if _, err := readRawFrame(bufio.NewReader(r.open(mesh.ProtocolEnrolment))); err != nil { // the bank's card: the exchange has begun
			t.Fatal(err)
		}
	}
	for _, key := range newcomers {
		if got, err := m.apply(key, bank.Self(), bank.Addresses(), "please"); err != nil || got != "welcome" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestATooLongRequestIsNotRead(t *testing.T) {
	m := newMarket(t)
	bank := m.door("bank")
	if got, err := m.apply(newKey(t), bank.Self(), bank.Addresses(), strings.Repeat("x", mesh.MaxEnrol+1)); err == nil {
		t.Errorf("answered %q", got)
	}
	if bank.asked.Load() != 0 {
		t.Error("it was looked at")
	}
	if got, err := m.apply(newKey(t), bank.Self(), bank.Addresses(), "please"); err != nil || got != "welcome" {
		t.Errorf("the next one: %q, %v", got, err)
	}
}

func TestAddressesAreKnownBeforeAnAgentListens(t *testing.T) {
	m := newMarket(t)
	cred := m.credential("bank")
	for listen, want := range map[string]int{"/ip4/127.0.0.1/tcp/0": 0, "/ip4/127.0.0.1/tcp/4101": 1} {
		got, err := mesh.AddressesAt([]string{listen}, cred.PrivateKey())
		if err != nil || len(got) != want || want == 1 && !strings.HasPrefix(got[0], listen+"/p2p/") {
			t.Errorf("%s: %q, %v", listen, got, err)
		}
	}
	a := m.start("any", func(c *mesh.Config) { c.Credential = cred; c.Listen = []string{"/ip4/127.0.0.1/tcp/0"} })
	listen, id, _ := strings.Cut(a.Addresses()[0], "/p2p/")
	got, err := mesh.AddressesAt([]string{listen}, cred.PrivateKey())
	if err != nil || len(got) != 1 || got[0] != listen+"/p2p/"+id {
		t.Errorf("%q, %v, want %s", got, err, a.Addresses()[0])
	}
	if got, err := mesh.AddressesAt([]string{"/ip4/0.0.0.0/tcp/4101"}, cred.PrivateKey()); err != nil || len(got) == 0 || strings.Contains(strings.Join(got, " "), "/0.0.0.0/") {
		t.Errorf("all interfaces: %q, %v", got, err)
	}
}
