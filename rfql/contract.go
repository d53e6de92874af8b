package rfql

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ramp/protocol"
)

// Contract asks for a metered request (001): price functions of the usage determine the payment,
// not the reservation. The zero Contract asks for no metering. CPUHourCost remains the most that a
// core-hour may cost in total; rounds of bidding lower the maximum of P.
type Contract struct {
	TimeLimit time.Duration // wall time; 0: the request's
	P         protocol.Ramp // price of a core-hour used, by the rate of use
	Q         protocol.Ramp // price of an hour, by the least share; optional
	Prepay    bool          // the ceiling is a prepayment: the job stops when it is used up
}

// The elements and attributes of a contract, in our own namespace.
const (
	ContractElement Term = "Contract"
	TimeLimit       Term = "timeLimit"
	Prepay          Term = "prepay"
	priceOfUse      Term = "P"
	priceOfShare    Term = "Q"
)

// Metered reports whether a request has a contract.
func (r Request) Metered() bool { return r.Contract != Contract{} }

// WithContracts is d with a contract in every request: where there is none, a core-hour of
// processor time costs what is bid for, at most the price of the request, however busy the
// cores are.
func (d Document) WithContracts() Document {
	d.requests = slices.Clone(d.requests)
	for i := range d.requests {
		if r := &d.requests[i]; !r.Metered() {
			r.Contract = Contract{P: protocol.Ramp{Top: r.Price}}
		}
	}
	return d
}

// Tariff is the contract of a unit at an offered price per core-hour: the maximum of Q
// is subtracted from the price, and P gets the rest, at most its own maximum. Without a
// contract the Tariff is zero.
func (r Request) Tariff(it protocol.Item) protocol.Tariff {
	if !r.Metered() {
		return protocol.Tariff{}
	}
	c := r.Contract
	t := protocol.Tariff{TimeLimit: it.Slot.Wall(), P: c.P, Q: c.Q, Least: it.Least}
	if c.TimeLimit > 0 {
		t.TimeLimit = min(t.TimeLimit, c.TimeLimit)
	}
	cores := protocol.Credits(max(1, it.Slot.Cores))
	t.P.Top = max(0, min(c.P.Top, it.Price-upTo(c.Q.Top, cores)))
	if c.Prepay {
		t.Prepay = it.Cost
	}
	return t
}

// upTo is a / n, rounded up.
func upTo(a, n protocol.Credits) protocol.Credits {
	q := a / n
	if a%n > 0 {
		q++
	}
	return q
}

// contract reads our own element in a request. Its faults are of class Meaning, since the
// schema ignores elements of other namespaces.
func (q *requestReader) contract(t token) error {
	if q.Contract != (Contract{}) {
		q.fault(Meaning, t.line, ContractElement, "a second one", "one", "")
		return q.skip()
	}
	line := t.line
	q.lines[ContractElement.position()] = line
	for _, a := range t.attributes {
		q.contractAttribute(line, a)
	}
	for {
		c, err := q.next()
		switch {
		case err != nil:
			return err
		case c.kind == endToken:
			q.priced(line)
			return nil
		case c.kind == textToken:
			if text := collapse(c.text); text != "" {
				q.fault(Meaning, c.line, ContractElement, "text "+quote(text), "elements only", "")
			}
			continue
		}
		if q.ramp(c); q.full() {
			return nil
		}
		if err := q.skip(); err != nil {
			return err
		}
	}
}

func (q *requestReader) contractAttribute(line int, a attribute) {
	value := collapse(a.value)
	switch term := Term(a.local); {
	case a.foreign():
	case a.space == "" && term == TimeLimit:
		n, ok := parseNumber(WallTime, value)
		if q.Contract.TimeLimit = minutes(n); !ok {
			q.fault(Meaning, line, TimeLimit, quote(value), numberAllowed(WallTime), "")
		}
	case a.space == "" && term == Prepay:
		q.Contract.Prepay = value == "true" || value == "1" // the forms of xs:boolean
		if !q.Contract.Prepay && value != "false" && value != "0" {
			q.fault(Meaning, line, Prepay, quote(value), "true or false", "")
		}
	default:
		q.fault(Meaning, line, ContractElement, "attribute "+a.name.String(), "timeLimit and prepay", a.unprefixed())
	}
}

// foreign reports whether a name is of an unknown namespace. One of our own names in the
// wrong place is most likely a mistake.
func (n name) foreign() bool {
	return n.space != "" && n.space != Namespace && n.space != ExtensionNamespace
}

// unprefixed is a hint for an attribute that must not have a prefix.
func (n name) unprefixed() string {
	if n.space == "" {
		return ""
	}
	return "write it without a prefix"
}

// rampNames are the attributes of P and Q: two rates in cores and a price.
func rampNames(t Term) []string {
	if t == priceOfUse {
		return []string{"rmin", "rmax", "Pmax"}
	}
	return []string{"Smin", "Smax", "Qmax"}
}

func (q *requestReader) ramp(t token) {
	var into *protocol.Ramp
	switch t.name {
	case name{ExtensionNamespace, string(priceOfUse)}:
		into = &q.Contract.P
	case name{ExtensionNamespace, string(priceOfShare)}:
		into = &q.Contract.Q
	default:
		q.fault(Meaning, t.line, ContractElement, "element "+t.name.String(), "P and Q of the same namespace", "")
		return
	}
	term := Term(t.local)
	if *into != (protocol.Ramp{}) {
		q.fault(Meaning, t.line, term, "a second one", "one", "")
	}
	var values [3]protocol.Credits
	names := rampNames(term)
	for _, a := range t.attributes {
		if a.foreign() {
			continue
		}
		i := slices.Index(names, a.local)
		ok := i >= 0 && a.space == ""
		if ok {
			values[i], ok = parseMicro(collapse(a.value))
		}
		if !ok {
			q.fault(Meaning, t.line, term, a.local+"="+quote(collapse(a.value)), strings.Join(names, ", ")+": decimal numbers of at least 0, with at most 6 decimal places", a.unprefixed())
		}
	}
	*into = protocol.Ramp{Lo: int64(values[0]), Hi: int64(values[1]), Top: values[2]}
}

func (q *requestReader) priced(line int) {
	if q.Contract == (Contract{}) {
		q.fault(Meaning, line, ContractElement, "no price", "P with a Pmax above 0, or Q with a Qmax", "")
	}
}

// parseMicro reads a decimal number of at least zero in millionths.
func parseMicro(s string) (protocol.Credits, bool) {
	if strings.Trim(s, "0.+") == "" && s != "" && s != "." && s != "+" {
		return 0, strings.Count(s, ".") < 2 && strings.Count(s, "+") == 0
	}
	return parsePrice(s)
}

func (c *checker) contract(i int, d *DraftRequest, r Request) {
	if first := c.draft.Requests[0].Contract != (Contract{}); first != r.Metered() {
		c.fault(Meaning, i, ContractElement, "a contract in some requests", "one in each, or in none: they are settled together", "")
		return
	}
	if !r.Metered() {
		return
	}
	slot := protocol.Slot{Cores: r.Cores, Start: time.Unix(0, 0), End: time.Unix(0, 0).Add(max(r.Wall, time.Nanosecond))}
	if err := r.Tariff(protocol.Item{Slot: slot, Price: r.Price}).Validate(); err != nil {
		c.fault(Meaning, i, ContractElement, err.Error(), "rmin <= rmax, Smin <= Smax, prices of at least 0", "")
	}
	switch limit := d.Contract.TimeLimit; {
	case limit < 0 || limit > MaxWall || limit%time.Minute != 0 || r.Wall > 0 && limit > r.Wall:
		c.fault(Meaning, i, TimeLimit, limit.String(), fmt.Sprintf("whole minutes, at most the wall time of %s", r.Wall), "")
	case d.Contract.P.Top == 0 && d.Contract.Q.Top == 0:
		c.fault(Meaning, i, ContractElement, "no price", "P with a Pmax above 0, or Q with a Qmax", "")
	}
}

func (w *writer) contract(c Contract) {
	if c == (Contract{}) {
		return
	}
	w.WriteString("    <r:Contract")
	if c.TimeLimit > 0 {
		fmt.Fprintf(w, ` timeLimit="%d"`, c.TimeLimit/time.Minute)
	}
	if c.Prepay {
		w.WriteString(` prepay="true"`)
	}
	w.WriteString(">")
	w.ramp(priceOfUse, c.P)
	w.ramp(priceOfShare, c.Q)
	w.WriteString("</r:Contract>\n")
}

func (w *writer) ramp(t Term, r protocol.Ramp) {
	if r == (protocol.Ramp{}) {
		return
	}
	n := rampNames(t)
	fmt.Fprintf(w, `<r:%s %s="%s" %s="%s" %s="%s"/>`, t, n[0], protocol.Credits(r.Lo), n[1], protocol.Credits(r.Hi), n[2], r.Top)
}
