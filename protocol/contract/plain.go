package contract

import (
	"bytes"
	"strconv"
	"time"

	"ramp/protocol"
)

// A bank reads more bundles than anything else, and encoding/json takes a quarter of a
// settlement's time. So those without tariffs and without characters that JSON escapes
// are read and written here; all others, and all that are not canonical, by it.

// decodePlain reads a plain bundle. The reader takes more than the canonical form, so what
// it reads is written again and compared.
func decodePlain(octets []byte) (b bundle, plain bool) {
	n := bytes.Count(octets, []byte(`{"unit":`))
	if len(octets) > MaxOctets || n > protocol.MaxUnits {
		return b, false
	}
	b.Units = make([]protocol.BundleUnit, n)
	r := plainForm{octets: octets, plain: true}
	r.bundle(&b)
	again, plain := b.appendPlain(len(octets))
	return b, r.plain && plain && bytes.Equal(again, octets)
}

// appendPlain writes a plain bundle of about size bytes as encoding/json does.
func (b bundle) appendPlain(size int) (octets []byte, plain bool) {
	w := plainForm{make([]byte, 0, size), true, b.Units != nil}
	w.bundle(&b)
	return w.octets, w.plain
}

// plainForm reads the values behind their keys, or writes both.
type plainForm struct {
	octets []byte // still to read, or written
	writes bool
	plain  bool
}

func (f *plainForm) bundle(b *bundle) {
	f.number(`{"version":`, &b.Version)
	f.text(`,"conversation":"`, &b.Conversation)
	f.text(`,"user":"`, (*string)(&b.User))
	f.text(`,"bank":"`, (*string)(&b.Bank))
	f.text(`,"currency":"`, &b.Currency)
	f.text(`,"mode":"`, (*string)(&b.Mode))
	f.text(`,"rfq_sha256":"`, &b.RFQ)
	f.key(`,"units":[`)
	for i := range b.Units {
		if i > 0 {
			f.key(`,`)
		}
		f.unit(&b.Units[i])
	}
	f.credits(`],"total":`, &b.Total)
	f.text(`,"nonce":"`, &b.Nonce)
	f.time(`,"settle_by":"`, &b.SettleBy)
	f.key(`}`)
}

func (f *plainForm) unit(u *protocol.BundleUnit) {
	f.number(`{"unit":`, &u.Unit)
	f.text(`,"seller":"`, (*string)(&u.Seller))
	f.text(`,"reservation":"`, &u.Reservation)
	f.time(`,"slot":{"start":"`, &u.Slot.Start)
	f.time(`,"end":"`, &u.Slot.End)
	f.number(`,"cores":`, &u.Slot.Cores)
	if u.Slot.Nodes != 0 || !f.writes && bytes.HasPrefix(f.octets, []byte(`,"nodes":`)) {
		f.number(`,"nodes":`, &u.Slot.Nodes)
	}
	f.credits(`},"price_core_hour":`, &u.Price)
	f.credits(`,"cost":`, &u.Cost)
	f.key(`}`)
	f.plain = f.plain && u.Tariff == protocol.Tariff{}
}

func (f *plainForm) key(key string) {
	switch {
	case f.writes:
		f.octets = append(f.octets, key...)
	case len(f.octets) >= len(key) && string(f.octets[:len(key)]) == key:
		f.octets = f.octets[len(key):]
	default:
		f.plain = false
	}
}

// value reads up to one of the characters in ends, which is not read.
func (f *plainForm) value(ends string) []byte {
	n := bytes.IndexAny(f.octets, ends)
	if f.plain = f.plain && n >= 0; !f.plain {
		return nil
	}
	value := f.octets[:n]
	f.octets = f.octets[n:]
	return value
}

func (f *plainForm) text(key string, s *string) {
	f.key(key)
	if !f.writes {
		*s = string(f.value(`"`))
	}
	for _, c := range []byte(*s) {
		f.plain = f.plain && ' ' <= c && c <= '~' && c != '"' && c != '\\'
	}
	if f.writes {
		f.octets = append(f.octets, *s...)
	}
	f.key(`"`)
}

func (f *plainForm) number(key string, n *int) {
	f.key(key)
	if f.writes {
		f.octets = strconv.AppendInt(f.octets, int64(*n), 10)
		return
	}
	var err error
	*n, err = strconv.Atoi(string(f.value(`,}`)))
	f.plain = f.plain && err == nil
}

func (f *plainForm) credits(key string, c *protocol.Credits) {
	f.key(key)
	if f.writes {
		f.octets = c.Append(f.octets)
		return
	}
	var err error
	*c, err = protocol.ParseCredits(string(f.value(`,}`)))
	f.plain = f.plain && err == nil
}

func (f *plainForm) time(key string, t *time.Time) {
	f.key(key)
	var err error
	if f.writes {
		f.octets, err = t.AppendText(f.octets)
	} else {
		err = t.UnmarshalText(f.value(`"`))
	}
	f.plain = f.plain && err == nil
	f.key(`"`)
}
