package ledger_test

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/protocol"
)

func token(word string) ledger.TokenHash { return sha256.Sum256([]byte(word)) }

// guest is an agent with a key of its own.
func guest(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + (name + strings.Repeat("b", protocol.FingerprintLen))[:protocol.FingerprintLen])
}

// inviting is a bank with one invitation, for two, with 5 credits.
func inviting(t testing.TB) *bank {
	t.Helper()
	b := newBank(t)
	v := ledger.Invitation{Token: token("t"), Uses: 2, Expires: b.now.Add(time.Hour), Credit: 5, Currency: "cr"}
	_, err := saved[ledger.Entry](b)(b.Invitations.Invite(b.now, v, "course"))
	b.must(t, "invite", err)
	return b
}

func enrol(b *bank, word, id, name string) (ledger.Enrolment, error) {
	return saved[ledger.Enrolment](b)(b.Invitations.Enrol(b.now, token(word), guest(id), name))
}

func TestWhoHoldsATokenGetsAnAccountOnce(t *testing.T) {
	b := inviting(t)
	first, err := enrol(b, "t", "ann", "ann")
	b.must(t, "enrol", err)
	entries := b.LastEntry()
	b.now = b.now.Add(2 * time.Hour) // the invitation is over: who was let in is answered all the same
	b.must(t, "reload", b.reload())
	again, err := enrol(b, "t", "ann", "ann")
	if err != nil || !again.Again || !again.At.Equal(first.At) || b.LastEntry() != entries {
		t.Errorf("asked again: %+v, %v, first %+v; entries %d, before %d", again, err, first, b.LastEntry(), entries)
	}
	a, _ := b.Account(guest("ann"))
	if a.Name != "ann" || a.Lines[0].Balance != 5 {
		t.Errorf("account %+v", a)
	}
	sound(t, b)
}

func TestAnEnrolmentThatIsRefusedChangesNothing(t *testing.T) {
	for _, c := range []struct {
		name     string
		word, id string
		as       string
		first    func(b *bank)
		want     protocol.Code
	}{
		{"a token that nobody gave", "guess", "eve", "eve", func(*bank) {}, protocol.CodeUnknown},
		{"a token whose time is over", "t", "eve", "eve", func(b *bank) { b.now = b.now.Add(time.Hour) }, protocol.CodeExpired},
		{"a token that is used up", "t", "eve", "eve", func(b *bank) {
			_, _ = enrol(b, "t", "ann", "ann")
			_, _ = enrol(b, "t", "bob", "bob")
		}, protocol.CodeLimit},
		{"a name that another has", "t", "eve", "ann", func(b *bank) { _, _ = enrol(b, "t", "ann", "ann") }, protocol.CodeMismatch},
		{"a key that was let in under another name", "t", "ann", "new", func(b *bank) {
			_, _ = saved[ledger.Enrolment](b)(b.Invitations.Enrol(b.now, token("t"), protocol.AgentID("x"+string(guest("ann"))), "x"))
		}, protocol.CodeMismatch},
		{"an agent that has an account by other means", "t", "eve", "new", func(b *bank) {
			_, _ = saved[ledger.Entry](b)(b.Open(b.now, guest("eve"), "eve"))
		}, protocol.CodeMismatch},
		{"an invitation that was withdrawn", "t", "eve", "eve", func(b *bank) {
			_, _ = saved[ledger.Entry](b)(b.Invitations.Withdraw(b.now, token("t"), ""))
		}, protocol.CodeExpired},
		{"a bank in recovery", "t", "eve", "eve", func(b *bank) { _, _ = saved[ledger.Entry](b)(b.SetRecovery(b.now, true, "")) }, protocol.CodeUnavailable},
		{"no name", "t", "eve", "", func(*bank) {}, protocol.CodeMalformed},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := inviting(t)
			c.first(b)
			before := fmt.Sprint(b.store, b.LastEntry())
			if _, err := enrol(b, c.word, c.id, c.as); code(err) != c.want {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if fmt.Sprint(b.store, b.LastEntry()) != before {
				t.Error("the refusal left something behind")
			}
			sound(t, b)
		})
	}
}

func TestAnInvitationThatMakesNoSenseIsRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(v *ledger.Invitation)
		want  protocol.Code
	}{
		{"for nobody", func(v *ledger.Invitation) { v.Uses = 0 }, protocol.CodeMalformed},
		{"for too many", func(v *ledger.Invitation) { v.Uses = ledger.MaxUses + 1 }, protocol.CodeMalformed},
		{"over already", func(v *ledger.Invitation) { v.Expires = start() }, protocol.CodeMalformed},
		{"for years", func(v *ledger.Invitation) { v.Expires = start().Add(ledger.MaxInvited + time.Hour) }, protocol.CodeMalformed},
		{"with a debt", func(v *ledger.Invitation) { v.Credit = -1 }, protocol.CodeMalformed},
		{"in another currency", func(v *ledger.Invitation) { v.Currency = "usd" }, protocol.CodeNoBank},
		{"twice", func(v *ledger.Invitation) { v.Token = token("t") }, protocol.CodeMismatch},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := inviting(t)
			v := ledger.Invitation{Token: token("u"), Uses: 1, Expires: b.now.Add(time.Hour), Currency: "cr"}
			c.spoil(&v)
			if _, err := saved[ledger.Entry](b)(b.Invitations.Invite(b.now, v, "")); code(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// guests is what a bank should make of invitations, kept in the plainest way.
type guests struct {
	left  map[string]int
	until map[string]time.Time
	by    map[string]string // agent -> token
}

// may says whether an agent is let in, and whether that is new.
func (g *guests) may(now time.Time, word, id string) (in, fresh bool) {
	if _, open := g.left[word]; !open {
		return false, false
	}
	if by, ok := g.by[id]; ok {
		return by == word, false
	}
	if !now.Before(g.until[word]) || g.left[word] == 0 {
		return false, false
	}
	g.left[word]--
	g.by[id] = word
	return true, true
}

// Whatever is asked in which order, and however often the bank crashes: as many
// are let in as an invitation is for, each is credited once, and the books add up.
func TestInvitationsLetInWhomTheySay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b, g := newBank(t), guests{map[string]int{}, map[string]time.Time{}, map[string]string{}}
		paid := 0
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			word := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "token")
			switch rapid.IntRange(0, 9).Draw(rt, "step") {
			case 0:
				v := ledger.Invitation{Token: token(word), Uses: rapid.IntRange(1, 3).Draw(rt, "uses"), Expires: b.now.Add(time.Hour), Credit: 7, Currency: "cr"}
				_, there := g.until[word] // a token is given once
				if !there {
					_, err := saved[ledger.Entry](b)(b.Invitations.Invite(b.now, v, ""))
					b.must(t, "invite", err)
					g.left[word], g.until[word] = v.Uses, v.Expires
				}
			case 1:
				_, there := g.left[word]
				if _, err := saved[ledger.Entry](b)(b.Invitations.Withdraw(b.now, token(word), "")); (err == nil) != there {
					rt.Fatalf("withdraw: %v, there: %t", err, there)
				}
				delete(g.left, word)
			case 2:
				b.now = b.now.Add(rapid.SampledFrom([]time.Duration{time.Minute, time.Hour}).Draw(rt, "pause"))
			case 3:
				b.must(t, "reload", b.reload())
			default:
				id := rapid.SampledFrom([]string{"ann", "bob", "eve", "zoe"}).Draw(rt, "agent")
				in, fresh := g.may(b.now, word, id)
				e, err := enrol(b, word, id, id)
				if (err == nil) != in || err == nil && e.Again == fresh {
					rt.Fatalf("%s with %s: %+v, %v; should be let in: %t, new: %t", id, word, e, err, in, fresh)
				}
				if fresh {
					paid++
				}
			}
		}
		if issuer, ok := b.Account(ledger.Issuer); ok && issuer.Lines[0].Balance != protocol.Credits(-7*paid) || !ok && paid > 0 {
			rt.Fatalf("%d were let in with 7 each; the issuer has %+v", paid, issuer)
		}
		sound(t, b)
	})
}
