package contract

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"ramp/protocol"
)

// quickBundle reads the octets of a bundle as Encode writes them, without the
// reflection of encoding/json, in a sixth of the time. What it makes of them is a
// guess: it counts if the very same octets come of writing it again. It reports
// false of any other document, of one with a fault, and of bundles that have
// tariffs, which decode then reads and names the faults of.
func quickBundle(octets []byte) (bundle, bool) {
	if len(octets) > MaxOctets {
		return bundle{}, false
	}
	r := quickReader{rest: string(octets)}
	b := r.bundle()
	if r.strange || r.rest != "" {
		return bundle{}, false
	}
	again, ok := appendBundle(make([]byte, 0, len(octets)), b)
	return b, ok && bytes.Equal(again, octets)
}

// quickReader reads text from left to right. What it does not know makes it
// strange, and what it reads then means nothing.
type quickReader struct {
	rest    string
	strange bool
}

func (r *quickReader) bundle() (b bundle) {
	b.Version = r.integer(`{"version":`)
	b.Conversation = r.text(`,"conversation":`)
	b.User = protocol.AgentID(r.text(`,"user":`))
	b.Bank = protocol.AgentID(r.text(`,"bank":`))
	b.Currency = r.text(`,"currency":`)
	b.Mode = protocol.Mode(r.text(`,"mode":`))
	b.RFQ = r.text(`,"rfq_sha256":`)
	for before := `,"units":[`; len(b.Units) == 0 || strings.HasPrefix(r.rest, ","); before = "," {
		if r.strange || len(b.Units) == protocol.MaxUnits {
			r.strange = true
			return b
		}
		b.Units = append(b.Units, r.unit(before))
	}
	b.Total = r.credits(`],"total":`)
	b.Nonce = r.text(`,"nonce":`)
	b.SettleBy = r.instant(`,"settle_by":`)
	r.skip("}")
	return b
}

func (r *quickReader) unit(before string) (u protocol.BundleUnit) {
	r.skip(before)
	u.Unit = r.integer(`{"unit":`)
	u.Seller = protocol.AgentID(r.text(`,"seller":`))
	u.Reservation = r.text(`,"reservation":`)
	u.Slot.Start = r.instant(`,"slot":{"start":`)
	u.Slot.End = r.instant(`,"end":`)
	u.Slot.Cores = r.integer(`,"cores":`)
	u.Price = r.credits(`},"price_core_hour":`)
	u.Cost = r.credits(`,"cost":`)
	r.skip("}")
	return u
}

// skip goes past a text that must follow.
func (r *quickReader) skip(text string) {
	rest, ok := strings.CutPrefix(r.rest, text)
	r.rest, r.strange = rest, r.strange || !ok
}

// text reads what is in quotes after before, into memory of its own: who keeps it
// does not keep the document.
func (r *quickReader) text(before string) string { return strings.Clone(r.quoted(before)) }

func (r *quickReader) quoted(before string) (s string) {
	r.skip(before)
	r.skip(`"`)
	s, rest, ok := strings.Cut(r.rest, `"`)
	r.rest, r.strange = rest, r.strange || !ok
	return s
}

// figure reads what there is after before until the value ends.
func (r *quickReader) figure(before string) (s string) {
	r.skip(before)
	n := strings.IndexAny(r.rest, ",}")
	if n < 0 {
		r.strange = true
		return ""
	}
	s, r.rest = r.rest[:n], r.rest[n:]
	return s
}

func (r *quickReader) integer(before string) int {
	n, err := strconv.Atoi(r.figure(before))
	r.strange = r.strange || err != nil
	return n
}

func (r *quickReader) credits(before string) protocol.Credits {
	c, err := protocol.ParseCredits(r.figure(before))
	r.strange = r.strange || err != nil
	return c
}

func (r *quickReader) instant(before string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, r.quoted(before))
	r.strange = r.strange || err != nil
	return t
}

// appendBundle writes the octets of a bundle as encoding/json does. It reports
// false if that would escape a character or write a tariff, or refuse a time.
func appendBundle(b []byte, d bundle) ([]byte, bool) {
	w := quickWriter{b: b, plain: len(d.Units) > 0}
	w.number(`{"version":`, d.Version)
	w.text(`,"conversation":`, d.Conversation)
	w.text(`,"user":`, string(d.User))
	w.text(`,"bank":`, string(d.Bank))
	w.text(`,"currency":`, d.Currency)
	w.text(`,"mode":`, string(d.Mode))
	w.text(`,"rfq_sha256":`, d.RFQ)
	before := `,"units":[`
	for _, u := range d.Units {
		w.raw(before)
		w.unit(u)
		before = ","
	}
	w.credits(`],"total":`, d.Total)
	w.text(`,"nonce":`, d.Nonce)
	w.instant(`,"settle_by":`, d.SettleBy)
	w.raw("}")
	return w.b, w.plain
}

// quickWriter appends to b; plain is whether all of it is as encoding/json
// would write it.
type quickWriter struct {
	b     []byte
	plain bool
}

func (w *quickWriter) unit(u protocol.BundleUnit) {
	w.plain = w.plain && u.Tariff == (protocol.Tariff{})
	w.number(`{"unit":`, u.Unit)
	w.text(`,"seller":`, string(u.Seller))
	w.text(`,"reservation":`, u.Reservation)
	w.instant(`,"slot":{"start":`, u.Slot.Start)
	w.instant(`,"end":`, u.Slot.End)
	w.number(`,"cores":`, u.Slot.Cores)
	w.credits(`},"price_core_hour":`, u.Price)
	w.credits(`,"cost":`, u.Cost)
	w.raw("}")
}

func (w *quickWriter) raw(s string) { w.b = append(w.b, s...) }

func (w *quickWriter) number(before string, n int) {
	w.raw(before)
	w.b = strconv.AppendInt(w.b, int64(n), 10)
}

func (w *quickWriter) text(before, s string) {
	for _, c := range []byte(s) {
		w.plain = w.plain && c >= ' ' && c < 0x7f && c != '"' && c != '\\'
	}
	w.raw(before)
	w.raw(`"`)
	w.raw(s)
	w.raw(`"`)
}

func (w *quickWriter) credits(before string, c protocol.Credits) {
	w.raw(before)
	w.raw(c.String())
}

// instant writes a time in UTC; years of four digits are what there is to write.
func (w *quickWriter) instant(before string, t time.Time) {
	w.plain = w.plain && t.Location() == time.UTC && t.Year() >= firstYear && t.Year() <= lastYear
	w.raw(before)
	w.raw(`"`)
	w.b = t.AppendFormat(w.b, time.RFC3339Nano)
	w.raw(`"`)
}
