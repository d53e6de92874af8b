package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"

	"ramp/protocol"
)

// sharedVersion begins the row of a hold that is on several accounts, or is a
// voucher's or a unit's.
const sharedVersion = 2

// What a hold is for. The numbers are stored.
const (
	forNothing byte = 0
	forVoucher byte = 1
	forDeal    byte = 2
)

func (h *hold) encode() []byte {
	if len(h.parts) > 1 || h.voucher != nil || h.deal != nil {
		return h.encodeShared()
	}
	b := append(make([]byte, 0, 64), rowVersion)
	b = h.parts[0].append(b)
	b = appendTime(b, h.until)
	return appendString(b, h.ref)
}

func (p part) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(p.line.number))
	return binary.AppendVarint(b, int64(p.amount))
}

func (h *hold) encodeShared() []byte {
	b := append(make([]byte, 0, 160), sharedVersion)
	b = binary.AppendUvarint(b, uint64(len(h.parts)))
	for _, p := range h.parts {
		b = p.append(b)
	}
	b = appendTime(b, h.until)
	b = appendString(b, h.ref)
	switch {
	case h.voucher != nil:
		b = append(b, forVoucher)
		b = appendString(b, string(h.voucher.user))
		return appendString(b, h.voucher.conversation)
	case h.deal != nil:
		return h.deal.append(append(b, forDeal))
	}
	return append(b, forNothing)
}

func (d *deal) append(b []byte) []byte {
	b = append(b, d.key.contract[:]...)
	b = binary.AppendUvarint(b, uint64(d.key.unit))
	b = appendString(b, string(d.user))
	b = appendString(b, string(d.seller))
	b = appendString(b, string(d.mode))
	b = append(b, byte(d.stage))
	return binary.AppendVarint(b, int64(d.due))
}

// holdRow is a record of TableHolds as stored: the lines of its parts are only
// numbers.
type holdRow struct {
	hold
	lines []uint32
}

func decodeHold(key string, value []byte) (holdRow, error) {
	n, err := key64(key)
	if err != nil {
		return holdRow{}, fmt.Errorf("hold: %w", err)
	}
	version, d := newDecoderUpTo(value, sharedVersion)
	h := holdRow{hold: hold{number: n}}
	parts := 1
	if version == sharedVersion {
		parts = d.count(maxParts)
	}
	for range parts {
		h.lines = append(h.lines, uint32(d.uvarint()))
		h.parts = append(h.parts, part{amount: d.credits()})
	}
	h.until = d.nanos()
	h.ref = d.string(MaxRef)
	if version == sharedVersion {
		h.readPurpose(d)
	}
	if len(h.parts) == 0 {
		d.fail(errors.New("hold on no account"))
	}
	if err := d.done(); err != nil {
		return holdRow{}, fmt.Errorf("hold %d: %w", n, err)
	}
	return h, nil
}

func (h *holdRow) readPurpose(d *decoder) {
	switch what := d.byte(); what {
	case forNothing:
	case forVoucher:
		h.voucher = &voucherKey{user: d.agent(), conversation: d.string(protocol.MaxConversation)}
	case forDeal:
		h.deal = &deal{key: dealKey{d.contract(), d.unit()}, user: d.agent(), seller: d.agent()}
		h.deal.mode, h.deal.stage = protocol.Mode(d.string(maxCode)), stage(d.byte())
		h.deal.due = d.credits()
	default:
		d.fail(fmt.Errorf("hold for %d", what))
	}
}

func (l *Ledger) loadHold(key string, value []byte) error {
	row, err := decodeHold(key, value)
	if err != nil {
		return err
	}
	h := row.hold
	for i, number := range row.lines {
		n, err := l.lineAt(number)
		if err != nil {
			return fmt.Errorf("hold %d: %w", row.number, err)
		}
		h.parts[i].line = n
		n.held += h.parts[i].amount
	}
	if h.voucher != nil {
		h.voucher.currency = h.currency()
	}
	l.keepHold(&h)
	return nil
}
