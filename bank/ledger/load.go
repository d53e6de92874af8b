package ledger

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"ramp/bank/archive"
	"ramp/bank/row"
	"ramp/bank/voids"
	"ramp/protocol"
)

// Load restores a ledger from the live tables of its store; from empty ones it begins a new ledger.
// The configuration must not leave out a currency in which an account has money. Expiry then waits
// for the configured grace, so that no hold is lost to an outage.
func Load(cfg Config, now time.Time, t protocol.Tables) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := empty(cfg, now)
	bk, iv, gs, ex := l.books, l.Invitations, l.Groups, l.Exchange
	reads := []struct {
		table string
		read  func(key string, value []byte) error
	}{
		{voids.Table, l.outcomes.voids.Load},
		{TableInvitations, iv.loadInvitation}, {TableEnrolments, iv.loadEnrolment},
		{TableState, bk.loadState}, {TableAccounts, bk.loadAccount}, {TableLines, bk.loadLine},
		{TablePolicies, bk.loadPolicy}, {TableStanding, bk.loadStanding}, {TableGroups, gs.load},
		{TableBalances, bk.loadBalance}, {TableAllowances, bk.loadAllowance}, {TableRates, ex.loadRate},
		{TableQuotes, ex.loadQuote}, {TableRecovery, l.recovery.load}, {TableHolds, l.deals.loadHold},
		{TableGathering, l.bundles.loadGathering}, {TableCopies, l.bundles.loadCopies},
		{TableOutcomes, l.outcomes.load}, {TableSoldFrom, l.sales.load},
		{TableOrders, l.Orders.load},
	}
	for _, r := range reads {
		if err := t.Each(r.table, r.read); err != nil {
			return nil, fmt.Errorf("load ledger: table %s: %w", r.table, err)
		}
	}
	if decided := bk.state.floorEntry != 0 || l.outcomes.archive.Len() != 0; decided && !l.sales.begun {
		l.sales.from = bk.state.Entry + 1
	}
	if err := bk.leftOut(); err != nil {
		return nil, err
	}
	return l, nil
}

// leftOut fails if an account has money, or a hold, in a currency that the configuration
// leaves out: no seller could be paid out of such a hold.
func (bk *books) leftOut() error {
	for _, n := range bk.lines {
		if (n.balance != 0 || n.held != 0) && n.account != Issuer && !bk.knows(n.currency) {
			return fmt.Errorf("load ledger: %s has %s %s, %s held, and %s is not among the bank's currencies %s: put it back",
				ownerWords(n.account), n.balance, n.currency, n.held, n.currency, strings.Join(bk.cfg.Currencies, ", "))
		}
	}
	return nil
}

func empty(cfg Config, now time.Time) *Ledger {
	cfg.Grace = cmp.Or(cfg.Grace, DefaultGrace)
	cfg.ReportWithin = cmp.Or(cfg.ReportWithin, protocol.ReportWithin)
	bk := &books{cfg: cfg, state: State{Bank: cfg.Bank}, accounts: map[protocol.AgentID]*account{}, sums: map[string]protocol.Credits{}, policies: map[string]Policy{}}
	dl, rc, sl := &deadlines{graceEnds: row.Nanos(now.Add(cfg.Grace))}, &recovery{}, &sales{}
	hs := &holds{books: bk, deadlines: dl, recovery: rc, open: map[uint64]*hold{}, vouchers: map[voucherKey]uint64{}, vouched: map[protocol.AgentID]int{}}
	gs := &Groups{books: bk, holds: hs, byName: map[string]*group{}, memberOf: map[protocol.AgentID]*group{}, sellsFor: map[protocol.AgentID]*group{}}
	oc := &outcomes{books: bk, voids: voids.New(), archive: archive.New(), recalled: map[contractKey]*outcome{}, absent: map[contractKey]uint64{}}
	ds := &deals{books: bk, deadlines: dl, recovery: rc, holds: hs, groups: gs, outcomes: oc, open: map[dealKey]*hold{}}
	l := &Ledger{
		books: bk, deadlines: dl, recovery: rc, holds: hs, outcomes: oc, sales: sl, deals: ds, Groups: gs,
		bundles: &bundles{
			books: bk, deadlines: dl, recovery: rc, holds: hs, groups: gs, outcomes: oc, sales: sl, deals: ds,
			byContract: map[contractKey]*gathering{}, perUser: map[protocol.AgentID]int{},
		},
		Exchange: &Exchange{
			books: bk, deadlines: dl, recovery: rc,
			rates: map[pair]protocol.Credits{}, quotes: map[quoteKey]Quote{}, perUser: map[protocol.AgentID]quoteCount{},
		},
		Orders:      &Orders{byKey: map[string]*order{}},
		Invitations: &Invitations{books: bk, recovery: rc, open: map[TokenHash]*Invitation{}, enrolled: map[string]Enrolment{}},
	}
	dl.current = l.current
	return l
}

func (bk *books) loadState(_ string, value []byte) error {
	s, err := DecodeState(value)
	if err != nil {
		return err
	}
	if s.Bank != bk.cfg.Bank {
		return fmt.Errorf("the ledger belongs to bank %s, not %s", s.Bank, bk.cfg.Bank)
	}
	bk.state = s
	return nil
}

func (bk *books) loadAccount(key string, value []byte) error {
	name, opened, _, err := decodeAccount(value)
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	id := protocol.AgentID(key)
	bk.accounts[id] = &account{id: id, name: name, opened: opened}
	return nil
}

func (bk *books) loadLine(key string, value []byte) error {
	number, err := row.Number32(key)
	if err != nil {
		return err
	}
	id, currency, err := DecodeLine(value)
	if err != nil {
		return err
	}
	a := bk.accounts[id]
	if a == nil || uint64(number) != uint64(len(bk.lines))+1 {
		return fmt.Errorf("line %d of account %q is out of place", number, id)
	}
	n := bk.newLine(a, currency)
	n.account = a.id // one string for both
	return nil
}

func (bk *books) lineAt(number uint32) (*line, error) {
	if number < 1 || uint64(number) > uint64(len(bk.lines)) {
		return nil, fmt.Errorf("there is no line %d", number)
	}
	return bk.lines[number-1], nil
}

func (bk *books) lineOf(key string) (*line, error) {
	number, err := row.Number32(key)
	if err != nil {
		return nil, err
	}
	return bk.lineAt(number)
}

func (bk *books) loadBalance(key string, value []byte) error {
	n, err := bk.lineOf(key)
	if err != nil {
		return err
	}
	err = n.decodeBalance(value)
	bk.sums[n.currency] += n.balance
	return err
}

func (bs *bundles) loadGathering(key string, value []byte) error {
	g, err := decodeGathering(value)
	if err != nil {
		return err
	}
	if len(key) != len(contractKey{}) {
		return fmt.Errorf("contract key of %d octets", len(key))
	}
	bs.keep(contractKey([]byte(key)), g)
	return nil
}

func (bs *bundles) loadCopies(key string, value []byte) error {
	var k contractKey
	copy(k[:], key)
	g := bs.byContract[k]
	if len(key) != len(k) || g == nil || len(value) != 1+len(g.got) || value[0] != row.Version {
		return fmt.Errorf("copies of contract %x do not belong to an undecided bundle", key)
	}
	for i := range g.pays {
		if value[1+i/8]&(1<<(i%8)) != 0 {
			g.take(i)
		}
	}
	return nil
}

func (oc *outcomes) load(key string, value []byte) error {
	k, o, err := decodeOutcome(key, value)
	if err != nil {
		return err
	}
	oc.archive.Add(archive.Key(k), o.entry, value)
	oc.counted(o)
	return nil
}

func (g *gathering) encode() []byte {
	b := row.New(row.Version, 192).Agent(g.user).String(g.currency).Credits(g.total).Time(g.settleBy).Count(len(g.pays))
	for _, p := range g.pays {
		b = b.Agent(p.To).Credits(p.Amount)
	}
	return b
}

func decodeGathering(value []byte) (*gathering, error) {
	d := row.Read(value)
	g := &gathering{user: d.Agent(), currency: d.String(MaxCurrency), total: d.Credits(), settleBy: d.Time()}
	for range d.Count(protocol.MaxUnits) {
		g.pays = append(g.pays, Payment{To: d.Agent(), Amount: d.Credits()})
	}
	g.got, g.missing = make([]byte, (len(g.pays)+7)/8), len(g.pays)
	return g, d.DoneWith("undecided bundle")
}
