package ledger

import (
	"encoding/binary"
	"fmt"

	"ramp/protocol"
)

// The tables of a ledger. Live tables are read by Load; the others are only
// looked things up in.
const (
	TableState       = "state"       // live: one row
	TableAccounts    = "accounts"    // live: agent ID -> name, lines
	TableLines       = "lines"       // live: line number -> account and currency
	TableBalances    = "balances"    // live: line number -> balance, overdraft, latest entries
	TableHolds       = "holds"       // live: hold number -> open hold
	TableGathering   = "gathering"   // live: contract -> undecided bundle
	TableCopies      = "copies"      // live: contract -> whose copies are there
	TableOutcomes    = "outcomes"    // live: entry number -> recent outcome
	TablePolicies    = "policies"    // live: currency -> policy
	TableGroups      = "groups"      // live: name -> group
	TableStanding    = "standing"    // live: agent ID -> frozen, closed
	TableAllowances  = "allowances"  // live: line number -> income
	TableRates       = "rates"       // live: two currencies -> rate
	TableQuotes      = "quotes"      // live: ID -> open quote
	TableRecovery    = "recovery"    // live: one row while the bank recovers
	TableInvitations = "invitations" // live: token's hash -> invitation
	TableEnrolments  = "enrolments"  // live: agent ID -> when it was let in, and by which
	TableEntries     = "entries"     // entry number -> entry
	TableIndex       = "index"       // line and last entry number -> entry numbers of a line
	TableContracts   = "contracts"   // contract -> number of the entry that decided
	TableRefunds     = "refunds"     // contract and unit -> number of the refund's entry
	TableSales       = "sales"       // entry number -> what the sellers of the bundle promised in it
	TableSoldBy      = "sold-by"     // block of entries, seller, end and entry: finds a seller's sales
	TableSold        = "sold"        // of an older program: seller, end and contract -> its reservations in it
	TableSoldFrom    = "sold-from"   // live: one row, the first entry whose sales are kept
)

// StateKey is the key of the one row of TableState.
const StateKey = "state"

// State is where a ledger stands.
type State struct {
	Bank        protocol.AgentID
	Entry       uint64 // number of the last entry
	time        int64  // of the last entry
	hold        uint64 // number of the last hold
	floorEntry  uint64 // number of the newest outcome that left memory
	floorSettle int64  // latest settle-by of those that left
}

func (s *State) encode() []byte {
	b := make([]byte, 0, 80)
	b = append(b, rowVersion)
	b = appendString(b, string(s.Bank))
	b = binary.AppendUvarint(b, s.Entry)
	b = appendTime(b, s.time)
	b = binary.AppendUvarint(b, s.hold)
	b = binary.AppendUvarint(b, s.floorEntry)
	return appendTime(b, s.floorSettle)
}

// DecodeState reads the record of TableState.
func DecodeState(value []byte) (State, error) {
	d := newDecoder(value)
	s := State{Bank: d.agent(), Entry: d.uvarint(), time: d.nanos(), hold: d.uvarint()}
	s.floorEntry = d.uvarint()
	s.floorSettle = d.nanos()
	if err := d.done(); err != nil {
		return State{}, fmt.Errorf("ledger state: %w", err)
	}
	return s, nil
}

func (a *account) encode() []byte {
	b := append(make([]byte, 0, 64), rowVersion)
	b = appendString(b, a.name)
	b = appendTime(b, a.opened)
	b = binary.AppendUvarint(b, uint64(len(a.lines)))
	for _, n := range a.lines {
		b = appendString(b, n.currency)
		b = binary.AppendUvarint(b, uint64(n.number))
	}
	return b
}

// DecodeAccount reads a record of TableAccounts: the account's name and the
// number of its line in each currency.
func DecodeAccount(value []byte) (name string, lines map[string]uint32, err error) {
	name, _, lines, err = decodeAccount(value)
	return name, lines, err
}

func decodeAccount(value []byte) (name string, opened int64, lines map[string]uint32, err error) {
	d := newDecoder(value)
	name, opened, lines = d.string(MaxName), d.nanos(), map[string]uint32{}
	for range d.count(MaxCurrencies) {
		currency := d.string(MaxCurrency)
		lines[currency] = uint32(d.uvarint())
	}
	if err := d.done(); err != nil {
		return "", 0, nil, fmt.Errorf("account: %w", err)
	}
	return name, opened, lines, nil
}

func (n *line) encode() []byte {
	b := append(make([]byte, 0, 80), rowVersion)
	b = appendString(b, string(n.account))
	return appendString(b, n.currency)
}

// DecodeLine reads a record of TableLines: whose balance in which currency a
// line is.
func DecodeLine(value []byte) (protocol.AgentID, string, error) {
	d := newDecoder(value)
	id, currency := d.agent(), d.string(MaxCurrency)
	if err := d.done(); err != nil {
		return "", "", fmt.Errorf("line: %w", err)
	}
	return id, currency, nil
}

// LineKey is the key of a line in TableLines and TableBalances, and what its
// keys in TableIndex begin with.
func LineKey(n uint32) string { return lineKey(n) }

// accruingVersion begins the balance of a line that has an income or decays.
const accruingVersion = 2

func (n *line) encodeBalance() []byte {
	b := append(make([]byte, 0, 64), rowVersion)
	b = binary.AppendVarint(b, int64(n.balance))
	b = binary.AppendVarint(b, int64(n.overdraft))
	b = appendNumbers(b, n.tail)
	if n.anchor != 0 {
		b[0] = accruingVersion
		b = appendTime(b, n.anchor)
		b = binary.BigEndian.AppendUint64(b, n.residue)
	}
	return b
}

// DecodeBalance reads a record of TableBalances: balance, overdraft limit, and
// the latest entries of the line, which the index does not have yet.
func DecodeBalance(value []byte) (balance, overdraft protocol.Credits, entries []uint64, err error) {
	var n line
	err = n.decodeBalance(value)
	return n.balance, n.overdraft, n.tail, err
}

func (n *line) decodeBalance(value []byte) error {
	version, d := newDecoderUpTo(value, accruingVersion)
	n.balance, n.overdraft, n.tail = d.credits(), d.credits(), d.numbers()
	if version == accruingVersion {
		n.anchor, n.residue = d.nanos(), d.uint64()
	}
	if err := d.done(); err != nil {
		return fmt.Errorf("balance: %w", err)
	}
	return nil
}

// DecodeIndex reads the value of a record of TableIndex: rising entry numbers.
func DecodeIndex(value []byte) ([]uint64, error) {
	d := newDecoder(value)
	ns := d.numbers()
	if err := d.done(); err != nil {
		return nil, fmt.Errorf("index: %w", err)
	}
	return ns, nil
}

// IndexKey is the key under which a block of entries of a line ends at entry
// last: the first key not below IndexKey(line, n) has the first entry of the
// line from n on.
func IndexKey(line uint32, last uint64) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 12), line)
	return string(binary.BigEndian.AppendUint64(b, last))
}

// DecodeNumber reads a value of TableContracts or TableRefunds: an entry number.
func DecodeNumber(value []byte) (uint64, error) {
	d := newDecoder(value)
	n := d.uvarint()
	if err := d.done(); err != nil {
		return 0, fmt.Errorf("entry number: %w", err)
	}
	return n, nil
}

func encodeNumber(n uint64) []byte {
	return binary.AppendUvarint(append(make([]byte, 0, 11), rowVersion), n)
}

func refundKey(k contractKey, unit int) string {
	return string(binary.BigEndian.AppendUint16(k[:], uint16(unit)))
}
