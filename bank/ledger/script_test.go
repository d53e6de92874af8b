package ledger_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// TestScripts plays the conversations in testdata/script with a bank. Amounts
// are credits, times are seconds since the bank's first start.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &script{bank: newBank(t), contracts: map[string]contract{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			return s.run(t, d)
		})
	})
}

type script struct {
	*bank
	contracts map[string]contract
}

// run plays one command: its answer, and the balances after it.
func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	commands := map[string]func(d *datadriven.TestData) (string, error){
		"open": s.open, "credit": s.credit, "overdraft": s.overdraft, "hold": s.hold, "post": s.post,
		"void-hold": s.voidHold, "bundle": s.bundle, "copy": s.doCopy, "void": s.doVoid, "refund": s.doRefund,
		"at": s.at, "clock": s.clock, "restart": s.restart, "outcome": s.outcome,
	}
	f := commands[d.Cmd]
	if f == nil {
		d.Fatalf(t, "unknown command %q", d.Cmd)
	}
	answer, err := f(d)
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	sound(t, s.bank)
	return strings.TrimSpace(answer+"\n"+s.balances()) + "\n"
}

// balances are those of all accounts, with what is held in brackets.
func (s *script) balances() string {
	var words []string
	for _, a := range s.Accounts() {
		for _, n := range a.Lines {
			if n.Currency != "cr" {
				continue
			}
			word := fmt.Sprintf("%s=%s", a.ID.Name(), n.Balance)
			if a.ID == ledger.Issuer {
				word = "issuer=" + n.Balance.String()
			}
			if n.Held != 0 {
				word += fmt.Sprintf("(%s held)", n.Held)
			}
			words = append(words, word)
		}
	}
	return strings.Join(words, " ")
}

// arg is the text of an argument; "" if it is not there.
func arg(d *datadriven.TestData, key string) string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return strings.Join(a.Vals, ",")
		}
	}
	return ""
}

func credits(d *datadriven.TestData, key string) protocol.Credits {
	c, err := protocol.ParseCredits(arg(d, key))
	if err != nil {
		panic(err)
	}
	return c
}

func number(d *datadriven.TestData, key string) int {
	n, err := strconv.Atoi(arg(d, key))
	if err != nil {
		panic(err)
	}
	return n
}

func (s *script) seconds(d *datadriven.TestData, key string) time.Time {
	return start().Add(time.Duration(number(d, key)) * time.Second)
}

func who(d *datadriven.TestData, key string) protocol.AgentID { return agent(arg(d, key)) }

func pays(d *datadriven.TestData, key string) []ledger.Payment {
	var ps []ledger.Payment
	for _, word := range strings.Split(arg(d, key), ",") {
		to, amount, _ := strings.Cut(word, ":")
		c, err := protocol.ParseCredits(amount)
		if err != nil {
			panic(err)
		}
		ps = append(ps, ledger.Payment{To: agent(to), Amount: c})
	}
	return ps
}

func entryLine(e ledger.Entry, err error) (string, error) {
	return fmt.Sprintf("entry %d %s", e.Number, e.Kind), err
}

func (s *script) open(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](s.bank)(s.Open(s.now, who(d, "id"), arg(d, "id"))))
}

func (s *script) credit(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](s.bank)(s.Credit(s.now, who(d, "to"), "cr", credits(d, "amount"), "")))
}

func (s *script) overdraft(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](s.bank)(s.SetOverdraft(s.now, who(d, "of"), "cr", credits(d, "limit"))))
}

func (s *script) hold(d *datadriven.TestData) (string, error) {
	h, err := saved[ledger.Hold](s.bank)(s.Hold(s.now, who(d, "from"), "cr", credits(d, "amount"), s.seconds(d, "until"), ""))
	return fmt.Sprintf("hold %d", h.Number), err
}

func (s *script) post(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](s.bank)(s.PostHold(s.now, uint64(number(d, "hold")), pays(d, "pays"), "")))
}

func (s *script) voidHold(d *datadriven.TestData) (string, error) {
	return entryLine(saved[ledger.Entry](s.bank)(s.VoidHold(s.now, uint64(number(d, "hold")), "")))
}

func (s *script) bundle(d *datadriven.TestData) (string, error) {
	name := arg(d, "id")
	s.contracts[name] = newContract(name, who(d, "user"), s.seconds(d, "settle-by"), pays(d, "pays")...)
	return "", nil
}

func receiptLine(r protocol.Receipt, err error) (string, error) {
	line := string(r.Outcome)
	if r.Reason != "" {
		line += "(" + string(r.Reason) + ")"
	}
	if r.Entry != 0 {
		line += fmt.Sprintf(" entry %d total %s", r.Entry, r.Total)
	}
	for _, e := range r.Ends {
		line += fmt.Sprintf(" %s %d:%s", e.How, e.Unit, e.Paid)
	}
	for _, f := range r.Refunds {
		line += fmt.Sprintf(" refund %d:%s", f.Unit, f.Amount)
	}
	return line, err
}

func (s *script) doCopy(d *datadriven.TestData) (string, error) {
	return receiptLine(s.copy(s.contracts[arg(d, "id")], who(d, "from")))
}

func (s *script) doVoid(d *datadriven.TestData) (string, error) {
	return receiptLine(s.void(s.contracts[arg(d, "id")], who(d, "by")))
}

func (s *script) doRefund(d *datadriven.TestData) (string, error) {
	return receiptLine(s.refund(s.contracts[arg(d, "id")], number(d, "unit"), credits(d, "amount"), who(d, "by")))
}

func (s *script) outcome(d *datadriven.TestData) (string, error) {
	return receiptLine(s.Outcome(contractID(arg(d, "id"))))
}

// at sets the clock and lets expire what is over.
func (s *script) at(d *datadriven.TestData) (string, error) {
	s.now = s.seconds(d, "s")
	var words []string
	done := s.expire()
	for _, r := range done.Voided {
		words = append(words, fmt.Sprintf("%s(%s) entry %d", r.Outcome, r.Reason, r.Entry))
	}
	for _, e := range done.Ended {
		words = append(words, fmt.Sprintf("unit %d %s, paid %s", e.Unit, e.How, e.Paid))
	}
	for _, h := range done.Holds {
		words = append(words, fmt.Sprintf("hold %d expired", h.Number))
	}
	return strings.Join(words, "\n"), nil
}

// clock sets the clock, and nobody looks yet at what is over.
func (s *script) clock(d *datadriven.TestData) (string, error) {
	s.now = s.seconds(d, "s")
	return "", nil
}

func (s *script) restart(*datadriven.TestData) (string, error) { return "", s.reload() }
