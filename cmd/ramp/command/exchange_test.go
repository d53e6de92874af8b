package command_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/bank/ledger"
	"ramp/cmd/ramp/command"
	"ramp/protocol"
	"ramp/protocol/message"
)

var errKilled = errors.New("killed")

// changer is a bank that exchanges, and a command that is killed now and then.
type changer struct {
	t    *rapid.T
	l    *ledger.Ledger
	now  time.Time
	late []string // orders that are under way
	done []ledger.Entry
}

// agent has a name and a fingerprint that is none.
func agent(name string) protocol.AgentID {
	return protocol.AgentID(name + "@" + strings.Repeat("a", protocol.FingerprintLen))
}

func changing() protocol.AgentID { return agent("ann") }

func newChanger(t *rapid.T) *changer {
	b := &changer{t: t, now: time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)}
	var err error
	b.l, err = ledger.Load(ledger.Config{Bank: agent("bank"), Currencies: []string{"CPU", "GPU"}}, b.now, noTables{})
	b.must(err)
	_, _, err = b.l.Open(b.now, changing(), "ann")
	b.must(err)
	_, _, err = b.l.SetRate(b.now, "CPU", "GPU", 2*protocol.Credit, "")
	b.must(err)
	for currency, to := range map[string]protocol.AgentID{"CPU": changing(), "GPU": ledger.House} {
		_, _, err = b.l.Credit(b.now, to, currency, 1000*protocol.Credit, "")
		b.must(err)
	}
	return b
}

type noTables struct{}

func (noTables) Each(string, func(string, []byte) error) error { return nil }

func (b *changer) must(err error) {
	if err != nil {
		b.t.Fatal(err)
	}
}

// pass lets time pass, often longer than a quote is good for; what is under way may
// arrive meanwhile.
func (b *changer) pass() {
	b.now = b.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(b.t, "seconds")) * time.Second)
	for len(b.late) > 0 && rapid.Bool().Draw(b.t, "arrives") {
		id := b.late[0]
		b.late = b.late[1:]
		_, _ = b.carry(id) // nobody waits for the answer
	}
	b.l.Expire(b.now)
}

func (b *changer) carry(id string) (ledger.Quote, error) {
	before := b.l.LastEntry()
	q, _, err := b.l.Exchange(b.now, changing(), id)
	if b.l.LastEntry() > before {
		b.done = append(b.done, ledger.Entry{Number: b.l.LastEntry(), Time: b.now, Ref: id})
	}
	return q, err
}

func (b *changer) quoted(body protocol.Body) (ledger.Quote, error) {
	b.pass()
	switch r := body.(type) {
	case message.QuoteRequest:
		q, _, err := b.l.Quote(b.now, changing(), r.ID, r.From, r.To, r.Gives)
		return q, err
	case message.ExchangeRequest:
		if rapid.IntRange(0, 3).Draw(b.t, "killed") == 0 {
			b.late = append(b.late, r.ID)
			return ledger.Quote{}, errKilled
		}
		q, err := b.carry(r.ID)
		if rapid.IntRange(0, 3).Draw(b.t, "killed before it was told") == 0 {
			return ledger.Quote{}, errKilled
		}
		return q, err
	}
	return ledger.Quote{}, errors.New("another question")
}

// lines are the account's entries of exchanges, two lines each, beside others.
func (b *changer) lines(from time.Time, after uint64, limit int) message.Statement {
	b.pass()
	var s message.Statement
	for _, e := range b.done {
		if e.Number <= after || e.Time.Before(from) {
			continue
		}
		if len(s.Lines) > 0 && (len(s.Lines) >= limit || rapid.Bool().Draw(b.t, "page ends")) {
			s.More = true
			break
		}
		for currency, amount := range map[string]protocol.Credits{"CPU": -10 * protocol.Credit, "GPU": 20 * protocol.Credit} {
			s.Lines = append(s.Lines, message.StatementLine{Entry: e.Number, Time: e.Time, What: ledger.KindExchange.String(), Amount: amount, Currency: currency, Ref: e.Ref})
		}
	}
	return s
}

// However often the command is killed, however late what it sent arrives, and however
// soon the bank forgets its quotes: each order is carried out once.
func TestAnExchangeIsDoneOnceWhateverIsKilled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newChanger(t)
		for range 2 {
			x := command.NewExchange()
			for tries := 0; ; tries++ {
				entry, gives, gets, names, err := x.Run(func() time.Time { return b.now }, command.Desk{Quoted: b.quoted, Lines: b.lines})
				if err == nil {
					b.once(names, entry, gives, gets)
					break
				}
				if tries == 100 {
					t.Fatalf("after %d times: %v", tries, err)
				}
			}
		}
		for len(b.late) > 0 {
			b.pass()
		}
		if len(b.done) != 2 {
			t.Fatalf("two orders were carried out %d times: %+v", len(b.done), b.done)
		}
	})
}

func (b *changer) once(names []string, entry uint64, gives, gets protocol.Credits) {
	n := 0
	for _, e := range b.done {
		if slices.Contains(names, e.Ref) {
			n++
			if e.Number != entry {
				b.t.Fatalf("%s was entry %d, and is told as %d", e.Ref, e.Number, entry)
			}
		}
	}
	if n != 1 || gives != 10*protocol.Credit || gets != 20*protocol.Credit {
		b.t.Fatalf("%s was carried out %d times, %s for %s", names, n, gives, gets)
	}
}

// Wherever a note is cut off, what was whole before is still known.
func TestANoteThatIsCutOffKeepsWhatWasOrdered(t *testing.T) {
	dir := t.TempDir()
	_, _, first, both, err := command.NotedTries(dir, -1)
	if err != nil {
		t.Fatal(err)
	}
	for size := range both + 1 {
		tries, answered, _, _, err := command.NotedTries(dir, size)
		if err != nil || answered != (size == both) || (len(tries) == 1) != (size >= first) {
			t.Fatalf("of %d bytes %d are left: %v, answered %t, %v", both, size, tries, answered, err)
		}
	}
}
