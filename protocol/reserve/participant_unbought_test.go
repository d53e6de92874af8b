package reserve_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/protocol/message"
	"ramp/protocol/reserve"
)

// debtBook is the oracle: what buyers hold, and what they have held and not bought, by the
// rule of the documentation, in floating point.
type debtBook struct {
	allowance float64
	debt      map[string]float64
	at        map[string]time.Time
	live      map[string]*heldSlot // by reservation
}

type heldSlot struct {
	buyer, conv  string
	cores        int
	since, until time.Time
	granted      bool
}

// weight of a slot of an hour: its core-seconds, times the minutes for which it was held.
func (s heldSlot) weight(held time.Duration) float64 { return float64(s.cores) * 3600 * held.Minutes() }

func (b *debtBook) owes(buyer string, now time.Time) float64 {
	return max(0, b.debt[buyer]-b.allowance*now.Sub(b.at[buyer]).Hours()/24)
}

func (b *debtBook) add(buyer string, now time.Time, weight float64) {
	b.debt[buyer], b.at[buyer] = min(max(0, b.owes(buyer, now)+weight), 8*b.allowance), now
}

func (b *debtBook) end(id string, now time.Time) {
	s := b.live[id]
	delete(b.live, id)
	if s.granted {
		b.add(s.buyer, now, s.weight(protocol.Earlier(now, s.until).Sub(s.since)))
	}
}

func (b *debtBook) pending(buyer string) (sum float64) {
	for _, s := range b.live {
		if s.buyer == buyer {
			sum += s.weight(max(s.until.Sub(s.since), time.Minute)) // a short hold blocks no more at once
		}
	}
	return sum
}

// pick draws a held reservation whose hold has so long left; "" if there is none.
func (b *debtBook) pick(t *rapid.T, granted bool, now time.Time, left time.Duration) string {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(b.live)) {
		if s := b.live[id]; s.granted == granted && s.until.Sub(now) > left {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return rapid.SampledFrom(ids).Draw(t, "reservation")
}

var reserves = regexp.MustCompile(`reserve (r\d+) `)

// A buyer is asked for a voucher exactly when what it holds, and has held and not bought,
// exceeds its allowance, whatever else happens, restarts included.
func TestWhatIsHeldAndNotBoughtCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		w.cfg.BuyerHolds, w.cfg.BuyerReserves = reserve.MaxUnsold, reserve.MaxUnsold
		w.cfg.Cancellation = reserve.CancelPolicy{Allowed: true}
		w.start(t, 1<<20)
		b := &debtBook{allowance: float64(w.cfg.BuyerCoreSeconds), debt: map[string]float64{}, at: map[string]time.Time{}, live: map[string]*heldSlot{}}
		talks, sold := 0, map[string]*heldSlot{}
		buy := func(rt *rapid.T, outcome string) {
			id := b.pick(rt, true, w.now, 26*time.Second)
			if id == "" {
				return
			}
			s := b.live[id]
			w.confirm(t, args{"r": id, "from": s.buyer, "conv": s.conv})
			w.reserved(t, true, args{"r": id})
			w.decide(t, args{"of": id, "outcome": outcome, "from": s.buyer})
			if outcome == "void" {
				b.end(id, w.now)
				return
			}
			delete(b.live, id)
			if b.debt[s.buyer] > 0 {
				b.add(s.buyer, w.now, -s.weight(time.Minute))
			}
			sold[id] = s
		}
		rt.Repeat(map[string]func(*rapid.T){
			"accept": func(rt *rapid.T) {
				talks++
				s := heldSlot{
					buyer: rapid.SampledFrom([]string{"ann", "bob"}).Draw(rt, "buyer"), conv: fmt.Sprint("c", talks),
					cores: rapid.IntRange(1, 60).Draw(rt, "cores"), since: w.now,
				}
				s.until = w.now.Add(time.Duration(rapid.IntRange(10, 60).Draw(rt, "hold")) * time.Second)
				o := args{"id": s.conv, "cores": fmt.Sprint(s.cores), "start": (w.now.Sub(dawn) + 2*time.Hour).String()}
				w.offer(o)
				out := w.accept(args{"offer": s.conv, "conv": s.conv, "from": s.buyer, "hold": s.until.Sub(w.now).String()})
				more := b.owes(s.buyer, w.now) + b.pending(s.buyer) + s.weight(max(s.until.Sub(w.now), time.Minute)) - b.allowance
				if asked := strings.Contains(out, ": voucher "); math.Abs(more) > 10 && asked != (more > 0) {
					rt.Fatalf("%s: %.0f core-seconds more than allowed: %s", s.buyer, more, out)
				}
				if id := reserves.FindStringSubmatch(out); id != nil {
					b.live[id[1]] = &s
				}
			},
			"grant": func(rt *rapid.T) {
				if id := b.pick(rt, false, w.now, 0); id != "" {
					w.reserved(t, false, args{"r": id})
					b.live[id].granted = true
				}
			},
			"refuse": func(rt *rapid.T) { // the batch system's fault
				if id := b.pick(rt, false, w.now, 0); id != "" {
					w.reserved(t, false, args{"r": id, "no": "busy"})
					b.end(id, w.now)
				}
			},
			"cancel": func(rt *rapid.T) {
				if id := b.pick(rt, true, w.now, 0); id != "" {
					w.receive(t, args{"from": b.live[id].buyer, "conv": b.live[id].conv}, protocol.Cancel, message.Cancellation{Reservations: []string{w.full(id)}})
					b.end(id, w.now)
				}
			},
			"buy":  func(rt *rapid.T) { buy(rt, "settled") },
			"void": func(rt *rapid.T) { buy(rt, "void") },
			"return": func(rt *rapid.T) {
				if len(sold) == 0 {
					return
				}
				id := rapid.SampledFrom(slices.Sorted(maps.Keys(sold))).Draw(rt, "sold")
				s := sold[id]
				delete(sold, id)
				if !strings.HasPrefix(w.giveBack(t, args{"of": id, "from": s.buyer}), "save") {
					return // too late
				}
				w.decide(t, args{"of": id, "outcome": "settled", "refund": "0"})
				b.add(s.buyer, w.now, s.weight(w.now.Sub(s.since)+time.Minute))
			},
			"time": func(rt *rapid.T) {
				most := rapid.SampledFrom([]int{20, 90, 40_000}).Draw(rt, "most")
				w.now = w.now.Add(time.Duration(rapid.IntRange(1, most).Draw(rt, "seconds")) * time.Second)
				for _, id := range slices.Sorted(maps.Keys(b.live)) {
					if !b.live[id].until.After(w.now) {
						b.end(id, w.now)
					}
				}
				w.show(w.p.Wake(w.now))
			},
			"crash": func(*rapid.T) { w.start(t, 1<<20) },
			"": func(rt *rapid.T) {
				list, _ := w.p.Unbought(w.now, 10)
				for _, name := range []string{"ann", "bob"} {
					got := 0.0
					if i := slices.IndexFunc(list, func(u reserve.Unbought) bool { return u.Buyer == w.id(name) }); i >= 0 {
						got = float64(list[i].CoreSeconds)
					}
					if want := b.owes(name, w.now); math.Abs(got-want) > 100 {
						rt.Fatalf("%s owes %.0f core-seconds, want %.0f", name, got, want)
					}
				}
			},
		})
	})
}

// A buyer that buys what it holds, all of the machine time after time, owes nothing, and
// is never refused: with a voucher for what exceeds the allowance.
func TestABuyerThatPaysIsNeverRefused(t *testing.T) {
	w := newWorld(t)
	w.start(t, 90)
	for i := range 20 {
		conv, id := fmt.Sprint("c", i), fmt.Sprint("r", i+1)
		w.offer(args{"id": conv, "cores": "90", "start": (w.now.Sub(dawn) + time.Hour).String(), "wall": "3h"})
		if out := w.accept(args{"offer": conv, "conv": conv, "voucher": "13500"}); !strings.Contains(out, "reserve "+id) {
			t.Fatalf("purchase %d: %s", i, out)
		}
		w.reserved(t, false, args{"r": id})
		w.confirm(t, args{"r": id, "conv": conv})
		w.reserved(t, true, args{"r": id})
		w.decide(t, args{"of": id, "outcome": "settled"})
		if list, _ := w.p.Unbought(w.now, 1); len(list) > 0 {
			t.Fatalf("purchase %d: %v", i, list)
		}
		w.now = w.now.Add(3 * time.Hour)
		w.show(w.p.Wake(w.now))
	}
}

// A voucher holds money at one bank for one bundle. A hold that rests on it is not sold for
// another bank's word, which may have no money behind it.
func TestAVoucherBindsTheBankOfTheBundle(t *testing.T) {
	for bank, sold := range map[string]bool{"bank": true, "mint": false} {
		w := newWorld(t)
		w.cfg.Terms = append(w.cfg.Terms, protocol.Terms{Bank: w.id("mint"), Currency: "CRD"})
		w.start(t, 90)
		w.offer(args{"id": "o1", "cores": "90"})
		w.accept(args{"offer": "o1", "voucher": "13500"})
		w.reserved(t, false, args{"r": "r1"})
		out := w.confirm(t, args{"r": "r1", "bank": bank})
		if kept := strings.Contains(out, "keep r1"); kept != sold || !sold && !strings.Contains(out, "voucher") {
			t.Errorf("a voucher of the bank, and a bundle for the %s: %s", bank, out)
		}
	}
}
