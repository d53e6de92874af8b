package ledger

import (
	"errors"
	"fmt"

	"ramp/bank/row"
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
	return h.parts[0].append(row.New(row.Version, 64)).Time(h.until).String(h.ref)
}

func (p part) append(b row.Value) row.Value {
	return b.Uvarint(uint64(p.line.number)).Credits(p.amount)
}

func (h *hold) encodeShared() []byte {
	b := row.New(sharedVersion, 160).Count(len(h.parts))
	for _, p := range h.parts {
		b = p.append(b)
	}
	b = b.Time(h.until).String(h.ref)
	switch {
	case h.voucher != nil:
		return b.Byte(forVoucher).Agent(h.voucher.user).String(h.voucher.conversation)
	case h.deal != nil:
		return h.deal.append(b.Byte(forDeal))
	}
	return b.Byte(forNothing)
}

func (d *deal) append(b row.Value) row.Value {
	b = b.Octets(d.key.contract[:]).Count(d.key.unit).Agent(d.user).Agent(d.seller).String(string(d.mode))
	return b.Byte(byte(d.stage)).Credits(d.due)
}

// holdRow is a record of TableHolds as stored: the lines of its parts are only numbers.
type holdRow struct {
	hold
	lines []uint32
}

func decodeHold(key string, value []byte) (holdRow, error) {
	n, err := row.Number64(key)
	if err != nil {
		return holdRow{}, fmt.Errorf("hold: %w", err)
	}
	version, d := row.ReadUpTo(value, sharedVersion)
	h := holdRow{hold: hold{number: n}}
	parts := 1
	if version == sharedVersion {
		parts = d.Count(maxParts)
	}
	for range parts {
		h.lines = append(h.lines, uint32(d.Uvarint()))
		h.parts = append(h.parts, part{amount: d.Credits()})
	}
	h.until = d.Time()
	h.ref = d.String(MaxRef)
	if version == sharedVersion {
		h.readPurpose(d)
	}
	if len(h.parts) == 0 {
		d.Fail(errors.New("hold on no account"))
	}
	if err := d.Done(); err != nil {
		return holdRow{}, fmt.Errorf("hold %d: %w", n, err)
	}
	return h, nil
}

func (h *holdRow) readPurpose(d *row.Reader) {
	switch what := d.Byte(); what {
	case forNothing:
	case forVoucher:
		h.voucher = &voucherKey{user: d.Agent(), conversation: d.String(protocol.MaxConversation)}
	case forDeal:
		h.deal = &deal{key: dealKey{readContract(d), d.Unit()}, user: d.Agent(), seller: d.Agent()}
		h.deal.mode, h.deal.stage = protocol.Mode(d.String(maxCode)), stage(d.Byte())
		h.deal.due = d.Credits()
	default:
		d.Fail(fmt.Errorf("hold for %d", what))
	}
}

func (hs *holds) load(key string, value []byte) (*hold, error) {
	stored, err := decodeHold(key, value)
	if err != nil {
		return nil, err
	}
	h := &stored.hold
	for i, number := range stored.lines {
		n, err := hs.books.lineAt(number)
		if err != nil {
			return nil, fmt.Errorf("hold %d: %w", h.number, err)
		}
		h.parts[i].line = n
		n.held += h.parts[i].amount
	}
	if h.voucher != nil {
		h.voucher.currency = h.currency()
	}
	hs.keep(h)
	return h, nil
}
