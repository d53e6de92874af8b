package ledger

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"ramp/bank/row"
	"ramp/protocol"
)

// The tables of a ledger. Load reads the live ones; the others are for look-ups.
const (
	TableState       = "state"       // live: one row
	TableAccounts    = "accounts"    // live: agent ID -> name, lines
	TableLines       = "lines"       // live: line number -> account and currency
	TableBalances    = "balances"    // live: line number -> balance, overdraft, latest entries
	TableHolds       = "holds"       // live: hold number -> open hold
	TableGathering   = "gathering"   // live: contract -> undecided bundle
	TableCopies      = "copies"      // live: contract -> the copies that are there
	TableOutcomes    = "outcomes"    // live: entry number -> recent outcome
	TablePolicies    = "policies"    // live: currency -> policy
	TableGroups      = "groups"      // live: name -> group
	TableStanding    = "standing"    // live: agent ID -> frozen, closed
	TableAllowances  = "allowances"  // live: line number -> income
	TableRates       = "rates"       // live: two currencies -> rate
	TableQuotes      = "quotes"      // live: ID -> quote that is open, or was carried out
	TableOrders      = "orders"      // live: entry number -> key of the operator's order that made it
	TableRecovery    = "recovery"    // live: one row while the bank recovers
	TableInvitations = "invitations" // live: token's hash -> invitation
	TableEnrolments  = "enrolments"  // live: agent ID -> when it enrolled, and by which invitation
	TableEntries     = "entries"     // entry number -> entry
	TableIndex       = "index"       // line and last entry number -> entry numbers of a line
	TableContracts   = "contracts"   // contract -> number of the entry that decided
	TableRefunds     = "refunds"     // contract and unit -> number of the refund's entry
	TableSales       = "sales"       // entry number -> sold.Sale
	TableSoldBy      = "sold-by"     // sold.Key: finds a seller's sales
	TableSold        = "sold"        // of an early version: sold.Old
	TableSoldFrom    = "sold-from"   // live: one row, the first entry whose sales are kept
)

// StateKey is the key of the one row of TableState.
const StateKey = "state"

// State is the position of a ledger.
type State struct {
	Bank        protocol.AgentID
	Entry       uint64 // number of the last entry
	time        int64  // of the last entry
	hold        uint64 // number of the last hold
	floorEntry  uint64 // number of the newest outcome that left memory
	floorSettle int64  // latest settle-by of those that left
}

func (s *State) encode() []byte {
	return row.New(row.Version, 80).Agent(s.Bank).Uvarint(s.Entry).Time(s.time).Uvarint(s.hold).Uvarint(s.floorEntry).Time(s.floorSettle)
}

// DecodeState reads the record of TableState.
func DecodeState(value []byte) (State, error) {
	d := row.Read(value)
	s := State{Bank: d.Agent(), Entry: d.Uvarint(), time: d.Time(), hold: d.Uvarint()}
	s.floorEntry = d.Uvarint()
	s.floorSettle = d.Time()
	if err := d.Done(); err != nil {
		return State{}, fmt.Errorf("ledger state: %w", err)
	}
	return s, nil
}

func (a *account) encode() []byte {
	b := row.New(row.Version, 64).String(a.name).Time(a.opened).Count(len(a.lines))
	for _, n := range a.lines {
		b = b.String(n.currency).Uvarint(uint64(n.number))
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
	d := row.Read(value)
	name, opened, lines = d.String(MaxName), d.Time(), map[string]uint32{}
	for range d.Count(MaxCurrencies) {
		currency := d.String(MaxCurrency)
		lines[currency] = uint32(d.Uvarint())
	}
	return name, opened, lines, d.DoneWith("account")
}

func (n *line) encode() []byte { return row.New(row.Version, 80).Agent(n.account).String(n.currency) }

// DecodeLine reads a record of TableLines: whose balance in which currency a line is.
func DecodeLine(value []byte) (protocol.AgentID, string, error) {
	d := row.Read(value)
	id, currency := d.Agent(), d.String(MaxCurrency)
	return id, currency, d.DoneWith("line")
}

// accruingVersion begins the balance of a line that has an income or decays.
const accruingVersion = 2

func (n *line) encodeBalance() []byte {
	b := row.New(row.Version, 64).Credits(n.balance).Credits(n.overdraft).Rising(n.tail)
	if n.anchor != 0 {
		b[0] = accruingVersion
		b = b.Time(n.anchor).Uint64(n.residue)
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
	version, d := row.ReadUpTo(value, accruingVersion)
	n.balance, n.overdraft, n.tail = d.Credits(), d.Credits(), d.Rising(tailLen)
	if version == accruingVersion {
		n.anchor, n.residue = d.Time(), d.Uint64()
	}
	return d.DoneWith("balance")
}

// DecodeIndex reads the value of a record of TableIndex: rising entry numbers.
func DecodeIndex(value []byte) ([]uint64, error) {
	d := row.Read(value)
	ns := d.Rising(tailLen)
	return ns, d.DoneWith("index")
}

// DecodeNumber reads a value of TableContracts or TableRefunds: an entry number.
func DecodeNumber(value []byte) (uint64, error) {
	d := row.Read(value)
	n := d.Uvarint()
	if err := d.Done(); err != nil {
		return 0, fmt.Errorf("entry number: %w", err)
	}
	return n, nil
}

func encodeNumber(n uint64) []byte { return row.New(row.Version, 11).Uvarint(n) }

// contractKey is a contract ID as octets.
type contractKey [32]byte

func parseContract(id protocol.ContractID) (contractKey, error) {
	var k contractKey
	if len(id) != 2*len(k) {
		return k, refuse(protocol.CodeMalformed, "contract ID of %d characters, want %d", len(id), 2*len(k))
	}
	if _, err := hex.Decode(k[:], []byte(id)); err != nil || k.id() != id {
		return k, refuse(protocol.CodeMalformed, "contract ID %q: want lower-case hex", string(id))
	}
	return k, nil
}

func readContract(d *row.Reader) (k contractKey) {
	copy(k[:], d.Octets(len(k)))
	return k
}

func (k contractKey) id() protocol.ContractID {
	var b [2 * len(k)]byte // an audit does this for every entry: one allocation, not two
	hex.Encode(b[:], k[:])
	return protocol.ContractID(b[:])
}

// ContractKey is the key of a contract in TableContracts, and the prefix of the
// keys of its refunds in TableRefunds.
func ContractKey(id protocol.ContractID) (string, error) {
	k, err := parseContract(id)
	return string(k[:]), err
}

func refundKey(k contractKey, unit int) string {
	return string(binary.BigEndian.AppendUint16(k[:], uint16(unit)))
}

// NumberKey is the key of entry n in TableEntries and TableOutcomes. Keys are
// big-endian, so that the order of keys is the order of numbers.
func NumberKey(n uint64) string { return row.Key64(n) }

// LineKey is the key of a line in TableLines and TableBalances, and the prefix of
// its keys in TableIndex.
func LineKey(n uint32) string { return row.Key32(n) }

// IndexKey is the key under which a block of entries of a line ends at entry last: the first key
// not below IndexKey(line, n) has the first entry of the line from n on.
func IndexKey(line uint32, last uint64) string { return row.Key32(line) + row.Key64(last) }
