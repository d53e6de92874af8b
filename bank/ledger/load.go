package ledger

import (
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"ramp/protocol"
)

// Load restores a ledger from the live tables of its store; from an empty one
// it begins a new ledger. A currency in which somebody has money must not be left
// out of the configuration. Expiry then waits for the configured grace, so that
// an outage takes nobody's hold away.
func Load(cfg Config, now time.Time, t protocol.Tables) (*Ledger, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	l := empty(cfg, now)
	reads := []struct {
		table string
		read  func(key string, value []byte) error
	}{
		{TableInvitations, l.loadInvitation}, {TableEnrolments, l.loadEnrolment},
		{TableState, l.loadState}, {TableAccounts, l.loadAccount}, {TableLines, l.loadLine},
		{TablePolicies, l.loadPolicy}, {TableStanding, l.loadStanding}, {TableGroups, l.loadGroup},
		{TableBalances, l.loadBalance}, {TableAllowances, l.loadAllowance}, {TableRates, l.loadRate},
		{TableQuotes, l.loadQuote}, {TableRecovery, l.loadRecovery}, {TableHolds, l.loadHold}, {TableGathering, l.loadGathering},
		{TableCopies, l.loadCopies}, {TableOutcomes, l.loadOutcome}, {TableSoldFrom, l.loadSoldFrom},
	}
	for _, r := range reads {
		if err := t.Each(r.table, r.read); err != nil {
			return nil, fmt.Errorf("load ledger: table %s: %w", r.table, err)
		}
	}
	if !l.soldBegun && l.state.floorEntry == 0 && l.outcomes.len() == 0 {
		l.soldFrom = 0 // nothing was ever decided
	}
	if err := l.leftOut(); err != nil {
		return nil, err
	}
	return l, nil
}

// leftOut is an error if somebody has money, or something held, in a currency that
// the configuration leaves out: no seller could be paid out of such a hold.
func (l *Ledger) leftOut() error {
	for _, n := range l.lines {
		if (n.balance != 0 || n.held != 0) && n.account != Issuer && !l.knows(n.currency) {
			return fmt.Errorf("load ledger: %s has %s %s, %s held, and %s is not among the bank's currencies %s: put it back",
				ownerWords(n.account), n.balance, n.currency, n.held, n.currency, strings.Join(l.cfg.Currencies, ", "))
		}
	}
	return nil
}

func empty(cfg Config, now time.Time) *Ledger {
	if cfg.Grace == 0 {
		cfg.Grace = DefaultGrace
	}
	if cfg.ReportWithin == 0 {
		cfg.ReportWithin = protocol.ReportWithin
	}
	return &Ledger{
		cfg: cfg, state: State{Bank: cfg.Bank}, graceEnds: nanos(now.Add(cfg.Grace)),
		accounts: map[protocol.AgentID]*account{}, sums: map[string]protocol.Credits{},
		holds: map[uint64]*hold{}, gathering: map[contractKey]*gathering{}, gathers: map[protocol.AgentID]int{},
		policies: map[string]Policy{}, groups: map[string]*group{}, memberOf: map[protocol.AgentID]*group{},
		sellsFor: map[protocol.AgentID]*group{}, deals: map[dealKey]uint64{}, vouchers: map[voucherKey]uint64{},
		vouched: map[protocol.AgentID]int{}, rates: map[pair]protocol.Credits{}, quotes: map[quoteKey]Quote{},
		quoted: map[protocol.AgentID]quoteCount{}, invitations: map[TokenHash]*invited{}, enrolled: map[string]Enrolment{},
		outcomes: archive{index: map[contractKey]uint64{}}, recalled: map[contractKey]*outcome{}, absent: map[contractKey]uint64{},
	}
}

func (l *Ledger) loadState(_ string, value []byte) error {
	s, err := DecodeState(value)
	if err != nil {
		return err
	}
	if s.Bank != l.cfg.Bank {
		return fmt.Errorf("the ledger belongs to bank %s, not %s", s.Bank, l.cfg.Bank)
	}
	l.state = s
	l.soldFrom = s.Entry + 1 // unless there is a row that says otherwise
	return nil
}

func (l *Ledger) loadAccount(key string, value []byte) error {
	name, opened, _, err := decodeAccount(value)
	if err != nil {
		return fmt.Errorf("%q: %w", key, err)
	}
	id := protocol.AgentID(key)
	l.accounts[id] = &account{id: id, name: name, opened: opened}
	return nil
}

func (l *Ledger) loadLine(key string, value []byte) error {
	number, err := key32(key)
	if err != nil {
		return err
	}
	id, currency, err := DecodeLine(value)
	if err != nil {
		return err
	}
	a := l.accounts[id]
	if a == nil || uint64(number) != uint64(len(l.lines))+1 {
		return fmt.Errorf("line %d of account %q is out of place", number, id)
	}
	n := l.newLine(a, currency)
	n.account = a.id // one string for both
	return nil
}

func (l *Ledger) lineAt(number uint32) (*line, error) {
	if number < 1 || uint64(number) > uint64(len(l.lines)) {
		return nil, fmt.Errorf("there is no line %d", number)
	}
	return l.lines[number-1], nil
}

func (l *Ledger) loadBalance(key string, value []byte) error {
	number, err := key32(key)
	if err != nil {
		return err
	}
	n, err := l.lineAt(number)
	if err != nil {
		return err
	}
	err = n.decodeBalance(value)
	l.sums[n.currency] += n.balance
	return err
}

func (l *Ledger) loadGathering(key string, value []byte) error {
	g, err := decodeGathering(value)
	if err != nil {
		return err
	}
	if len(key) != len(contractKey{}) {
		return fmt.Errorf("contract key of %d octets", len(key))
	}
	l.keepGathering(contractKey([]byte(key)), g)
	return nil
}

func (l *Ledger) loadCopies(key string, value []byte) error {
	if len(key) != len(contractKey{}) {
		return fmt.Errorf("contract key of %d octets", len(key))
	}
	g := l.gathering[contractKey([]byte(key))]
	if g == nil || len(value) != 1+len(g.got) || value[0] != rowVersion {
		return fmt.Errorf("copies of contract %x do not belong to an undecided bundle", key)
	}
	for i := range g.pays {
		if value[1+i/8]&(1<<(i%8)) != 0 {
			g.take(i)
		}
	}
	return nil
}

func (l *Ledger) loadOutcome(key string, value []byte) error {
	k, o, err := decodeOutcome(key, value)
	if err != nil {
		return err
	}
	l.outcomes.add(k, o.entry, value)
	return nil
}

func (g *gathering) encode() []byte {
	b := append(make([]byte, 0, 192), rowVersion)
	b = appendString(b, string(g.user))
	b = appendString(b, g.currency)
	b = binary.AppendVarint(b, int64(g.total))
	b = appendTime(b, g.settleBy)
	b = binary.AppendUvarint(b, uint64(len(g.pays)))
	for _, p := range g.pays {
		b = appendString(b, string(p.To))
		b = binary.AppendVarint(b, int64(p.Amount))
	}
	return b
}

func decodeGathering(value []byte) (*gathering, error) {
	d := newDecoder(value)
	g := &gathering{user: d.agent(), currency: d.string(MaxCurrency), total: d.credits(), settleBy: d.nanos()}
	for range d.count(protocol.MaxUnits) {
		g.pays = append(g.pays, Payment{To: d.agent(), Amount: d.credits()})
	}
	g.got, g.missing = make([]byte, (len(g.pays)+7)/8), len(g.pays)
	if err := d.done(); err != nil {
		return nil, fmt.Errorf("undecided bundle: %w", err)
	}
	return g, nil
}
