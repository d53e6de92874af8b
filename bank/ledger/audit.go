package ledger

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"ramp/bank/row"
	"ramp/bank/voids"
	"ramp/protocol"
)

// MaxBad bounds the faults that an audit lists; a last line then says "and more".
const MaxBad = 100

// Report is what an audit found.
type Report struct {
	Entries  uint64            `json:"entries"`
	Signed   uint64            `json:"signed"`   // the operator's acts with a verified signature
	Accounts int               `json:"accounts"` // the issuer's included
	Sum      map[string]string `json:"sum"`      // of all balances per currency, in credits
	Bad      []string          `json:"bad"`      // faults; empty: the ledger is right
}

// Audit recomputes a ledger from its entries alone, and compares everything else in the store with
// that: balances, holds, outcomes, indexes. An error means that the store could not be read.
func Audit(t protocol.Tables) (Report, error) { return AuditSigned(t, nil) }

// AuditSigned is Audit, and verifies the signature of every act of the operator over
// Entry.Octets, if verify is not nil.
func AuditSigned(t protocol.Tables, verify func(octets, signature []byte) error) (Report, error) {
	a := newAuditor()
	a.verify = verify
	tables := []struct {
		table string
		read  func(key string, value []byte)
	}{
		{TableSoldFrom, a.soldFrom}, {TableOrders, a.order}, {TableState, a.state}, {TableLines, a.line}, {TableAccounts, a.account}, {TableEntries, a.entry},
		{TablePolicies, a.setRow(TablePolicies)}, {TableGroups, a.setRow(TableGroups)}, {TableStanding, a.setRow(TableStanding)},
		{TableAllowances, a.setRow(TableAllowances)}, {TableRates, a.setRow(TableRates)}, {TableRecovery, a.setRow(TableRecovery)},
		{TableInvitations, a.setRow(TableInvitations)}, {TableEnrolments, a.setRow(TableEnrolments)},
		{TableBalances, a.balance}, {TableHolds, a.hold}, {TableGathering, a.undecided}, {voids.Table, a.lapsed},
		{TableOutcomes, a.outcome}, {TableContracts, a.contract}, {TableRefunds, a.refund}, {TableIndex, a.index},
		{TableSales, a.saleRow}, {TableSoldBy, a.soldByRow}, {TableSold, a.oldSoldRow},
	}
	for _, r := range tables {
		if r.table == TablePolicies {
			a.endEntries()
		}
		each := func(key string, value []byte) error { r.read(key, value); return nil }
		if err := t.Each(r.table, each); err != nil {
			return Report{}, fmt.Errorf("audit: table %s: %w", r.table, err)
		}
	}
	a.end()
	return a.report, nil
}

// audited is a line as computed from its entries.
type audited struct {
	line
	trail   trail // entries that touch it
	indexed trail // entries in its index
	row     bool  // it has a balance
	owned   bool  // an account lists it
}

// trail stands for a list of numbers, in order.
type trail struct {
	n    uint64
	last uint64
	hash uint64
}

func (t *trail) add(n uint64) {
	const prime = 1099511628211 // FNV-1a's
	t.n, t.last, t.hash = t.n+1, n, (t.hash^n)*prime
}

// mark is a contract, or a unit of one, and the entry that decided or ended it.
type mark struct {
	contract contractKey
	unit     uint16
	entry    uint64
}

func compareMarks(x, y mark) int {
	return cmp.Or(bytes.Compare(x.contract[:], y.contract[:]), cmp.Compare(x.unit, y.unit))
}

// openHold is a hold as computed from its entries.
type openHold []openPart

type openPart struct {
	line   uint32
	amount protocol.Credits
}

func (h openHold) amount() (sum protocol.Credits) {
	for _, p := range h {
		sum += p.amount
	}
	return sum
}

type auditor struct {
	report   Report
	stored   State
	states   int
	time     int64
	lines    map[uint32]*audited
	verify   func(octets, signature []byte) error
	policies map[string]Policy
	rows     map[string]string // table and key -> value, as the operator's acts set it
	holds    map[uint64]openHold
	lastHold uint64
	decided  []mark
	refunds  []mark

	orders map[uint64]*order // by entry; those whose entry was not read yet
	keys   map[string]bool   // of orders

	sold auditSold

	contracts, refunded int // rows that agree with decided and with refunds
}

func newAuditor() *auditor {
	return &auditor{
		report:   Report{Sum: map[string]string{}, Bad: []string{}},
		policies: map[string]Policy{}, rows: map[string]string{},
		orders: map[uint64]*order{}, keys: map[string]bool{}, lines: map[uint32]*audited{}, holds: map[uint64]openHold{},
	}
}

func (a *auditor) bad(format string, args ...any) {
	switch n := len(a.report.Bad); {
	case n < MaxBad:
		a.report.Bad = append(a.report.Bad, fmt.Sprintf(format, args...))
	case n == MaxBad:
		a.report.Bad = append(a.report.Bad, "and more")
	}
}

func (a *auditor) state(_ string, value []byte) {
	s, err := DecodeState(value)
	if err != nil {
		a.bad("%s", err)
	}
	a.stored = s
	a.states++
}

func (a *auditor) line(key string, value []byte) {
	n, err := row.Number32(key)
	if err != nil {
		a.bad("line: %s", err)
		return
	}
	id, currency, err := DecodeLine(value)
	if err != nil {
		a.bad("line %d: %s", n, err)
		return
	}
	a.lines[n] = &audited{line: line{account: id, currency: currency}}
}

func (a *auditor) account(key string, value []byte) {
	a.report.Accounts++
	_, lines, err := DecodeAccount(value)
	if err != nil {
		a.bad("account %q: %s", key, err)
		return
	}
	for _, currency := range slices.Sorted(maps.Keys(lines)) {
		n := a.lines[lines[currency]]
		if n == nil || n.account != protocol.AgentID(key) || n.currency != currency {
			a.bad("account %s: its line %d is not its own", key, lines[currency])
			continue
		}
		n.owned = true
	}
}

// endEntries compares the totals once all entries have been read.
func (a *auditor) endEntries() {
	if a.report.Entries != a.stored.Entry {
		a.bad("there are %d entries, the last should be %d", a.report.Entries, a.stored.Entry)
	}
	if a.states != 1 && (a.states > 1 || a.report.Entries > 0) {
		a.bad("there are %d rows of state, want one", a.states)
	}
	if a.lastHold != a.stored.hold {
		a.bad("the last hold is %d, want %d", a.lastHold, a.stored.hold)
	}
	a.decided = a.once(a.decided, "contract %x was decided by entry %d and by entry %d")
	a.refunds = a.once(a.refunds, "a unit of contract %x was refunded by entry %d and by entry %d")
}

// once sorts marks and reports duplicates.
func (a *auditor) once(ms []mark, format string) []mark {
	slices.SortStableFunc(ms, compareMarks)
	for i := 1; i < len(ms); i++ {
		if compareMarks(ms[i-1], ms[i]) == 0 {
			a.bad(format, ms[i].contract, ms[i-1].entry, ms[i].entry)
		}
	}
	return ms
}

// end compares the rest after the last table.
func (a *auditor) end() {
	if a.contracts != len(a.decided) || a.refunded != len(a.refunds) {
		a.bad("the entries have %d decisions and %d refunds, their tables %d and %d", len(a.decided), len(a.refunds), a.contracts, a.refunded)
	}
	sums := map[string]*big.Int{}
	for _, n := range slices.Sorted(maps.Keys(a.lines)) {
		l := a.lines[n]
		a.endLine(n, l)
		if sums[l.currency] == nil {
			sums[l.currency] = new(big.Int)
		}
		sums[l.currency].Add(sums[l.currency], big.NewInt(int64(l.balance)))
	}
	for currency, sum := range sums {
		a.report.Sum[currency] = creditString(sum)
	}
	for _, currency := range slices.Sorted(maps.Keys(sums)) {
		if sums[currency].Sign() != 0 {
			a.bad("%s sums to %s, not to zero", currency, creditString(sums[currency]))
		}
	}
	a.endSold()
	for _, n := range slices.Sorted(maps.Keys(a.orders)) {
		a.bad("order %q: there is no entry %d", a.orders[n].key, n)
	}
	for _, n := range slices.Sorted(maps.Keys(a.holds)) {
		a.bad("hold %d of %s is open, but missing from the open holds", n, a.holds[n].amount())
	}
	for _, row := range slices.Sorted(maps.Keys(a.rows)) {
		a.bad("%q was set by the operator, but is missing", row)
	}
}

// creditString is a sum of micro-credits in credits. Only in a wrong ledger can it
// exceed 63 bits; it then stays in micro-credits.
func creditString(sum *big.Int) string {
	if sum.IsInt64() {
		return protocol.Credits(sum.Int64()).String()
	}
	return sum.String() + "e-6"
}

func (a *auditor) endLine(n uint32, l *audited) {
	for _, entry := range l.tail {
		l.indexed.add(entry)
	}
	if !l.row || !l.owned {
		a.bad("line %d (%s, %s) has no balance or no account", n, l.account, l.currency)
	}
	if l.held != 0 {
		a.bad("%s has %s %s held beyond its open holds", l.account, l.held, l.currency)
	}
	if l.trail != l.indexed {
		a.bad("the index of %s in %s does not list its %d entries", l.account, l.currency, l.trail.n)
	}
}
