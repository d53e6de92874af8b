package books

import (
	"fmt"
	"io"
	"strings"

	"ramp/bank/ledger"
	"ramp/protocol"
)

// Names are the accounts and currencies that a journal has declared so far. Programs
// in strict mode refuse others.
type Names struct {
	accounts, currencies map[string]bool
}

// Preamble writes the beginning of a journal: its bank, and its currencies with all six places.
func Preamble(w io.Writer, bank protocol.AgentID, currencies []string) (*Names, error) {
	n := &Names{map[string]bool{}, map[string]bool{}}
	var b strings.Builder
	fmt.Fprintf(&b, "; books of %s, by ramp bank export\n", bank)
	for _, c := range currencies {
		n.currency(&b, c)
	}
	_, err := io.WriteString(w, b.String())
	return n, err
}

// Declare writes the directives that a transaction needs and no earlier one had. A
// transaction without an amount needs no directive.
func (n *Names) Declare(w io.Writer, account protocol.AgentID, currency string, amount protocol.Credits) error {
	if amount == 0 {
		return nil
	}
	var b strings.Builder
	n.currency(&b, currency)
	if name := accountName(account); !n.accounts[name] {
		n.accounts[name] = true
		fmt.Fprintf(&b, "\naccount %s\n", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// currency is declared in the one form that both hledger and ledger read.
func (n *Names) currency(b *strings.Builder, currency string) {
	if !n.currencies[currency] {
		n.currencies[currency] = true
		fmt.Fprintf(b, "commodity \"%s\"\n    format 1000.000000 \"%s\"\n", currency, currency)
	}
}

// Journal writes an entry as a transaction that hledger and ledger read, with the balance of each
// account after it as an assertion that they check. An entry that moves no money writes nothing.
func Journal(w io.Writer, e ledger.Entry) error {
	var b strings.Builder
	for _, leg := range e.Legs {
		if leg.Amount != 0 {
			fmt.Fprintf(&b, "    %s  %s = %s\n", accountName(leg.Account), money(leg.Amount, leg.Currency), money(leg.After, leg.Currency))
		}
	}
	if b.Len() == 0 {
		return nil
	}
	t := e.Time.UTC()
	_, err := fmt.Fprintf(w, "\n%s * (%d) %s\n    ; time:%s\n", t.Format("2006-01-02"), e.Number, title(&e), t.Format("15:04:05.000000000"))
	if err == nil && e.Contract != "" {
		_, err = fmt.Fprintf(w, "    ; contract:%s\n", e.Contract)
	}
	if err == nil {
		_, err = io.WriteString(w, b.String())
	}
	return err
}

// accountName is an account's place in the tree of a journal.
func accountName(id protocol.AgentID) string {
	switch group, ok := strings.CutPrefix(string(id), string(ledger.GroupID(""))); {
	case ok:
		return "bank:groups:" + plain(group)
	case id == ledger.Issuer:
		return "bank:issuer"
	case id == ledger.House:
		return "bank:exchange"
	}
	return "bank:agents:" + plain(string(id))
}

// money is an amount with all of its places, by which programs round.
func money(c protocol.Credits, currency string) string {
	whole, rest := c/protocol.Credit, c%protocol.Credit
	sign := ""
	if c < 0 {
		sign, whole, rest = "-", -whole, -rest
	}
	return fmt.Sprintf("%s%d.%06d \"%s\"", sign, int64(whole), int64(rest), currency)
}

func title(e *ledger.Entry) string {
	if e.Ref == "" {
		return e.Kind.String()
	}
	return e.Kind.String() + " " + plain(e.Ref)
}

// plain removes characters that would end a line or begin a comment, and double spaces,
// which end the name of an account.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ';' || r == '|' {
			return ','
		}
		return r
	}, protocol.Words(s))
	return strings.Join(strings.Fields(s), " ")
}
