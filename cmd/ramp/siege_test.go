package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"ramp/agents/mesh"
	"ramp/agents/sim/adversary"
	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// The bounds of a seller under attack, in bytes: what protocol/limits.go allows, and as much
// again for the program.
const (
	mostMemory  = 512 << 20
	mostJournal = 128 << 20
)

// siegeTime is how long honest users trade beside an attack: a few purchases, or RAMP_SIEGE
// (such as 5m), which also wants 99 of 100 settled.
func siegeTime(t *testing.T) time.Duration {
	d, err := time.ParseDuration(os.Getenv("RAMP_SIEGE") + "0s")
	must(t, err)
	return d
}

// Beside each attack on real daemons honest purchases settle, and nothing of it is left.
func TestHonestTradeBesideAttacks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts four daemons for each of five attacks")
	}
	for name, attack := range map[string]func(s *siege) (felt func() bool){
		"hoarder": hoarding, "void flood": voidFlood, "silent groups": silentGroups, "stall": stalling, "strangers": strangers,
	} {
		t.Run(name, func(t *testing.T) {
			m := openMarket(t, func(m *market) {
				m.edit(t, "user", ", hold: 15s, settle: 3s", "") // a slow machine needs longer
				m.edit(t, "atlas", "rounds: 3", "rounds: 3\n  hold: 12s")
				m.edit(t, "borea", "rounds: 3", "rounds: 3\n  hold: 12s")
			}, "atlas", "borea")
			ctx, stop := context.WithCancel(context.Background())
			s := &siege{t: t, m: m, ctx: ctx}
			t.Cleanup(func() { stop(); s.wg.Wait() }) // also if the test ends early
			felt := attack(s)
			must(t, until(untilTime, func() (bool, error) { return felt(), fmt.Errorf("nobody has felt the attack") }))
			s.trade()
			stop()
			s.wg.Wait()
			m.settleDown(t)
			m.verify(t)
			s.bounded()
		})
	}
}

// siege is an attack on a market.
type siege struct {
	t   *testing.T
	m   *market
	ctx context.Context // of the attack
	wg  sync.WaitGroup
}

// edit replaces a part of an agent's configuration.
func (m *market) edit(t *testing.T, name, old, text string) {
	t.Helper()
	path := filepath.Join(m.path(name), "config.yaml")
	b, err := os.ReadFile(path)
	must(t, err)
	if !strings.Contains(string(b), old) {
		t.Fatalf("%s has no %q", path, old)
	}
	must(t, os.WriteFile(path, []byte(strings.Replace(string(b), old, text, 1)), 0o600))
}

// trade buys one core for siegeWall again and again, within the hour that a hoarder wants.
func (s *siege) trade() {
	tried, settled, began := 0, 0, time.Now()
	for ; time.Since(began) < siegeTime(s.t) || settled < 3 && time.Since(began) < untilTime; tried++ {
		s.m.document = siegeDocument(time.Now())
		s.m.bought++
		watching, stop := context.WithTimeout(context.Background(), untilTime)
		s.m.watch(watching, fmt.Sprintf("p%d", s.m.bought), func(p message.Purchase) {
			if p.State == "awaiting approval" { // nothing else counts as bought
				must(s.t, call(watching, s.m.path("user"), "/v1/approve", map[string]any{"id": p.ID, "yes": false}, new(any)))
			}
		})
		stop()
		settled = s.m.count(s.t)
	}
	if settled < 3 || siegeTime(s.t) > 0 && settled*100 < tried*99 {
		s.t.Errorf("%d of %d purchases were settled", settled, tried)
	}
	s.t.Logf("%d of %d purchases were settled", settled, tried)
}

// siegeWall is short, so that an hour of two sites has room for what is bought in five minutes.
const siegeWall = 2 * time.Minute

// siegeDocument asks for a core for siegeWall within the hoarded hour.
func siegeDocument(now time.Time) string {
	x := requestXML("siege", 1, 60)
	from := now.UTC().Add(15 * time.Minute).Truncate(time.Second)
	end := from.Add(40 * time.Minute)
	for tag, text := range map[string]string{
		"StartDate": from.Format(time.DateOnly), "StartTime": from.Format("15:04:05Z"),
		"EndDate": end.Format(time.DateOnly), "EndTime": end.Format("15:04:05Z"), "WallTime": strconv.Itoa(int(siegeWall / time.Minute)),
	} {
		before, rest, _ := strings.Cut(x, "<"+tag+">")
		_, after, _ := strings.Cut(rest, "</"+tag+">")
		x = before + "<" + tag + ">" + text + "</" + tag + ">" + after
	}
	return document(x)
}

// bounded checks the sellers' memory and disk, and that all daemons still run.
func (s *siege) bounded() {
	for _, name := range []string{"atlas", "borea", "bank", "user"} {
		d := s.m.daemons[name]
		select {
		case <-d.ended:
			s.t.Errorf("%s has ended\n%s", name, d.lastLines())
			continue
		default:
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
		if err != nil {
			s.t.Log("no /proc: memory is not checked")
			return
		}
		_, rest, _ := strings.Cut(string(status), "VmHWM:")
		kB, err := strconv.Atoi(strings.Fields(rest)[0])
		must(s.t, err)
		size := int64(0)
		if info, err := os.Stat(filepath.Join(s.m.path(name), "journal.db")); err == nil {
			size = info.Size()
		}
		s.t.Logf("%s: %d MB of memory at most, %d kB of journal", name, kB>>10, size>>10)
		if kB<<10 > mostMemory || size > mostJournal {
			s.t.Errorf("%s took %d MB of memory and %d MB of disk", name, kB>>10, size>>20)
		}
	}
}

// often does something at once and then again and again while the attack lasts.
func (s *siege) often(pause time.Duration, act func(n int)) {
	s.wg.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for n := 0; s.ctx.Err() == nil; n++ {
			act(n)
			select {
			case <-tick.C:
			case <-s.ctx.Done():
			}
		}
	})
}

// attacker is an agent whose role is not honest.
type attacker struct {
	*mesh.Mesh
	cred  *identity.Credential
	trust *identity.Trust

	mu    sync.Mutex
	heard int // messages that role answered
}

// attacker joins the market with a credential of an authority. Its role gets what arrives,
// one message at a time.
func (s *siege) attacker(name string, ca *identity.CA, role func(a *attacker, now time.Time, m protocol.Message) []protocol.Message) *attacker {
	s.t.Helper()
	cred, err := ca.Credential(name, time.Now(), time.Hour, rand.Reader)
	must(s.t, err)
	trust, err := identity.NewTrust(s.m.ca.CertPEM(), nil)
	must(s.t, err)
	a := &attacker{cred: cred, trust: trust}
	joined := make(chan struct{})
	a.Mesh, err = mesh.Listen(mesh.Config{
		Credential: cred, Trust: trust, Codec: mesh.Wire(codec.NewOpener(trust, 16)),
		Bootstrap: s.m.daemons["bank"].ready.Addresses, HearPresence: true, HearCalls: true,
		Deliver: func(m protocol.Message) error {
			<-joined
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, answer := range role(a, time.Now(), m) {
				a.heard++
				a.say(answer)
			}
			return nil
		},
	})
	must(s.t, err)
	close(joined)
	s.t.Cleanup(func() { _ = a.Close() })
	return a
}

func (a *attacker) say(m protocol.Message) {
	m.Sender = a.cred.ID
	a.Send(m)
}

// answered reports whether its role had something to answer.
func (a *attacker) answered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heard > 0
}

func (s *siege) terms() protocol.Terms {
	return protocol.Terms{Bank: s.m.ids["bank"], Currency: "CPU"}
}

func (s *siege) sites() []protocol.AgentID {
	return []protocol.AgentID{s.m.ids["atlas"], s.m.ids["borea"]}
}

// hoarding accepts every offer for the next hours, and buys nothing.
func hoarding(s *siege) func() bool {
	a := s.attacker("mallory", s.m.ca, func(a *attacker, now time.Time, m protocol.Message) []protocol.Message {
		return adversary.Hoarder{Self: a.cred.ID, Hold: adversary.HoardHolds[1]}.Receive(now, m).Send
	})
	s.often(time.Second, func(n int) {
		now := time.Now()
		a.say(adversary.Call(now, a.cred.ID, s.sites(), s.terms(), fmt.Sprintf("hoard-%d", n), adversary.Today(now)))
	})
	return a.answered
}

// voidFlood has contracts countersigned that it cannot pay, and the bank void a hundred a
// second.
func voidFlood(s *siege) func() bool {
	var v *adversary.Voider
	a := s.attacker("mallory", s.m.ca, func(_ *attacker, now time.Time, m protocol.Message) []protocol.Message {
		if v == nil {
			return nil
		}
		return v.Receive(now, m).Send
	})
	a.mu.Lock()
	v = adversary.NewVoider(a.cred, a.trust, s.terms())
	a.mu.Unlock()
	s.often(200*time.Millisecond, func(n int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		list := v.Flood(time.Now(), s.m.ids["atlas"], 20)
		if n%10 == 0 {
			list = append(list, v.Call(time.Now(), s.sites()))
		}
		for _, m := range list {
			a.say(m)
		}
	})
	return a.answered
}

// silentGroups offers each unit a hundred times for nearly nothing, and never votes.
func silentGroups(s *siege) func() bool {
	asked := 0
	a := s.attacker("mallory", s.m.ca, func(a *attacker, now time.Time, m protocol.Message) []protocol.Message {
		switch body := m.Body.(type) {
		case message.Acceptance:
			asked++
		case message.CallForProposals:
			p := message.Proposal{Round: body.Round}
			from := now.UTC().Add(30 * time.Minute).Truncate(time.Second)
			for i := range 100 {
				slot := protocol.Slot{Start: from, End: from.Add(siegeWall), Cores: 1}
				price := protocol.Credit/1000 + protocol.Credits(i)
				cost, _ := protocol.Cost(price, 1, slot.Wall())
				p.Offers = append(p.Offers, protocol.Offer{
					ID: fmt.Sprint("o", i), Group: fmt.Sprint("g", i), ValidUntil: now.Add(time.Hour), Cost: cost,
					Items: []protocol.Item{{Slot: slot, Price: price, Cost: cost}},
				})
			}
			return []protocol.Message{m.Reply(a.cred.ID, protocol.Propose, p)}
		}
		return nil
	})
	s.often(500*time.Millisecond, func(int) {
		a.say(protocol.Message{
			Performative: protocol.Inform, Receivers: []protocol.AgentID{protocol.Everyone}, Protocol: protocol.ProtocolPresence, Conversation: "presence",
			Body: message.Presence{
				Agent: protocol.KindResource, Properties: protocol.Properties{OS: "LINUX", Arch: "x86_64", Cores: sellerCores}, Start: protocol.Credit, Min: 1,
				Terms: []protocol.Terms{s.terms()}, Modes: []protocol.Mode{protocol.ModeOnReservation}, TTL: time.Minute, Counter: uint64(time.Now().UnixMicro()),
			},
		})
	})
	s.t.Cleanup(func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if s.t.Logf("it was asked for %d votes", asked); asked == 0 {
			s.t.Error("nobody asked the silent seller for a vote: this test cannot fail")
		}
	})
	return func() bool {
		var known []struct{ ID protocol.AgentID }
		err := call(context.Background(), s.m.path("user"), "/v1/resources", nil, &known)
		return err == nil && len(known) == 3
	}
}

// stalling keeps a thousand silent connections to the bank and to each seller, from many
// addresses, and opens them anew every two seconds.
func stalling(s *siege) func() bool {
	var mu sync.Mutex
	opened := 0
	for i := range 60 {
		to := s.address([]string{"bank", "atlas", "borea"}[i%3])
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: netip.AddrFrom4([4]byte{127, 0, 1, byte(1 + i)}).AsSlice()}}
		var open []net.Conn
		end := func() {
			for _, c := range open {
				_ = c.Close()
			}
			open = nil
		}
		s.t.Cleanup(end)
		s.often(2*time.Second, func(int) {
			end()
			for range 50 {
				c, err := d.DialContext(s.ctx, "tcp", to)
				if err != nil {
					return // refused, as it should be
				}
				open = append(open, c)
				mu.Lock()
				opened++
				mu.Unlock()
			}
		})
	}
	return func() bool {
		mu.Lock()
		defer mu.Unlock()
		return opened >= 1000
	}
}

// address is where an agent listens.
func (s *siege) address(name string) string {
	a, err := ma.NewMultiaddr(s.m.daemons[name].ready.Addresses[0])
	must(s.t, err)
	a, _ = ma.SplitFunc(a, func(c ma.Component) bool { return c.Protocol().Code == ma.P_P2P })
	to, err := manet.ToNetAddr(a)
	must(s.t, err)
	return to.String()
}

// strangers have certificates of an authority that nobody trusts, and call for proposals.
func strangers(s *siege) func() bool {
	ca, err := identity.NewCA("foreign", time.Now(), time.Hour, rand.Reader)
	must(s.t, err)
	for i := range 8 {
		a := s.attacker(fmt.Sprint("stranger", i), ca, func(*attacker, time.Time, protocol.Message) []protocol.Message { return nil })
		s.often(10*time.Millisecond, func(n int) {
			now := time.Now()
			to := append(s.sites(), s.m.ids["bank"], s.m.ids["user"])
			a.say(adversary.Call(now, a.cred.ID, to, s.terms(), fmt.Sprintf("stranger-%d-%d", i, n), adversary.Today(now)))
		})
	}
	return func() bool { return true }
}
