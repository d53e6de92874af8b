package market

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"ramp/agents/bank"
	"ramp/agents/receipts"
	"ramp/agents/sim"
	proofs "ramp/bank/audit"
	"ramp/bank/ledger"
	"ramp/protocol"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// journal is the local correspondent History of a user or a site: its receipts.
type journal struct {
	world *sim.World
	name  string // of the host
}

// Receive answers a little later.
func (j journal) Receive(_ time.Time, m protocol.Message) []sim.Later {
	q, ok := m.Body.(receipts.Lookup)
	if !ok {
		return nil // a note, which Checks hears
	}
	found := receipts.Search(j.world.Host(j.name).Disk(), q)
	return []sim.Later{{After: time.Millisecond, Message: m.Reply(protocol.LocalHistory, protocol.Inform, found)}}
}

// Advance has nothing to do by itself.
func (journal) Advance(time.Time) ([]sim.Later, time.Time) { return nil, time.Time{} }

// entryLog is the bank's log of the entries on its disk.
type entryLog struct {
	tree  *proofs.Tree
	tiles map[string][]byte
	of    map[protocol.ContractID][]proofs.Proven // without paths
	head  contract.Head
	der   []byte
}

func newEntryLog() *entryLog {
	return &entryLog{tree: proofs.NewTree(), tiles: map[string][]byte{}, of: map[protocol.ContractID][]proofs.Proven{}}
}

func tileKey(row int, number uint64) string { return fmt.Sprint(row, " ", number) }

// Tile is a stored tile (proofs.Tiles).
func (l *entryLog) Tile(row int, number uint64) ([]byte, error) {
	return l.tiles[tileKey(row, number)], nil
}

// grow takes the entries that the disk has and the log lacks.
func (l *entryLog) grow(d *sim.Disk) error {
	for {
		key := ledger.NumberKey(l.tree.Size() + 1)
		value, err := d.Get(ledger.TableEntries, key)
		if value == nil {
			return err
		}
		e, err := ledger.DecodeEntry(key, value)
		if err != nil {
			return err
		}
		var r protocol.Receipt
		e.AddTo(&r)
		if _, err := e.Receipt(""); err == nil || len(r.Refunds)+len(r.Ends) > 0 {
			l.of[e.Contract] = append(l.of[e.Contract], proofs.Proven{Number: e.Number, Record: value})
		}
		if err := l.tree.Append(value, func(t proofs.Tile) error { l.tiles[tileKey(t.Row, t.Number)] = t.Hashes; return nil }); err != nil {
			return err
		}
	}
}

// prove answers a question about a contract under a head of all that the bank's disk has.
func (l *entryLog) prove(now time.Time, h *sim.Host, q message.ProofQuery) (f message.FoundProof, err error) {
	if err := l.grow(h.Disk()); err != nil {
		return f, err
	}
	if len(l.of[q.Contract]) == 0 {
		refused := message.Refused(protocol.CodeForbidden, "this bank has decided no such contract of yours")
		return message.FoundProof{Refusal: &refused}, nil
	}
	if size := l.tree.Size(); l.head.Size != size {
		root := l.tree.Root()
		l.head = contract.Head{
			Version: contract.HeadVersion, Bank: h.ID(), Size: size, Root: hex.EncodeToString(root[:]), Time: now, Previous: strings.Repeat("0", 64),
		}
		if l.der, err = contract.SignHead(h.Credential, l.head); err != nil {
			return f, err
		}
	}
	d := proofs.Document{Head: l.der, From: q.From}
	if d.From > l.head.Size {
		d.From = 0
	}
	var errs [2]error
	d.Growth, errs[0] = l.tree.Growth(d.From, l.head.Size, l)
	for _, e := range l.of[q.Contract] {
		e.Path, errs[1] = l.tree.Inclusion(e.Number, l.head.Size, l)
		d.Entries = append(d.Entries, e)
	}
	f.Document, err = d.Encode()
	return f, errors.Join(errs[0], errs[1], err)
}

// When a bank is restored: from a copy of this age, and for how long everybody must have
// been up before its operator ends the recovery.
const (
	copyAge  = 30 * time.Minute
	uptimeOf = 20 * time.Minute
)

// backup is a copy of the bank's records; nil: none is made.
type backup struct {
	disk       sim.Tables
	recovering bool
}

func (m *Market) backUp() {
	if m.cfg.Restore {
		m.World.After(max(0, m.cfg.Length-copyAge), func() { m.backup.disk = m.bank.Disk().Copy() })
	}
}

// restoreBank puts an older copy of its disk into the bank's machine, in recovery.
func (m *Market) restoreBank() {
	disk := m.backup.disk
	if disk == nil {
		return
	}
	l, err := ledger.Load(ledger.Config{Bank: m.bank.ID(), Currencies: m.cfg.currencies()}, m.World.Now(), disk)
	if err == nil {
		var records []protocol.Record
		if _, records, err = l.SetRecovery(m.World.Now(), true, "restored"); err == nil {
			err = disk.Append(records)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("market: the bank's backup: %v", err))
	}
	*m.log, m.backup.recovering = *newEntryLog(), true
	m.World.Leader(m.bank.ID()).Rewind(disk)
	m.World.After(uptimeOf, m.endRecovery)
}

// endRecovery ends the recovery once everybody has had the time to show receipts.
func (m *Market) endRecovery() {
	for _, h := range m.World.Hosts() {
		if m.World.Leader(h.ID()) == h && (!h.Up() || h.Uptime() < uptimeOf) {
			m.World.After(time.Minute, m.endRecovery)
			return
		}
	}
	h := m.World.Leader(m.bank.ID())
	m.backup.recovering = false
	m.World.Do(h, func(now time.Time) protocol.Output {
		_, out, err := h.Role().(*bank.Role).SetRecovery(now, false, "")
		if err != nil {
			panic(fmt.Sprintf("market: the end of the bank's recovery: %v", err))
		}
		return out
	})
}
