package user

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/user"
	"ramp/protocol/message"
)

// showing is an agent that has one purchase, or none.
func showing(p message.Purchase) *control.Client {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/purchase", func(w http.ResponseWriter, _ *http.Request) {
		if p.ID == "" {
			control.Refuse(w, exit.Fail(exit.Usage, "", "no purchase"))
			return
		}
		_ = json.NewEncoder(w).Encode(p)
	})
	return control.Local(mux)
}

// The same command goes on with what it has noted, unless that came to nothing or is
// over: then it means a new purchase.
func TestACommandThatIsGivenAgainGoesOnWithItsPurchase(t *testing.T) {
	t.Parallel()
	until := func(d time.Duration) []message.PurchasedUnit {
		return []message.PurchasedUnit{{End: time.Now().Add(d)}}
	}
	for _, c := range []struct {
		name string
		was  message.Purchase
		want string
	}{
		{"killed before it was ordered", message.Purchase{}, "first"},
		{"bidding", message.Purchase{ID: "first", State: user.StateBidding}, "first"},
		{"deciding", message.Purchase{ID: "first", State: user.StateDeciding}, "first"},
		{"bought", message.Purchase{ID: "first", State: user.StateSettled, Settled: true, Units: until(time.Hour)}, "first"},
		{"bought and given back", message.Purchase{ID: "first", State: user.StateSettled, Settled: true, Units: []message.PurchasedUnit{{End: time.Now().Add(time.Hour), State: user.StateCancelled}}}, "second"},
		{"bought, and its slot is over", message.Purchase{ID: "first", State: user.StateSettled, Settled: true, Units: until(-time.Hour)}, "second"},
		{"failed", message.Purchase{ID: "first", State: user.StateFailed}, "second"},
		{"void", message.Purchase{ID: "first", State: user.StateVoid}, "second"},
		{"interrupted", message.Purchase{ID: "first", State: user.StateInterrupted}, "second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for i, want := range []string{"first", c.want} {
				n, err := noteBuy(dir, "order", []string{"first", "second"}[i])
				if err != nil || n.old != (i == 1) {
					t.Fatalf("%+v, %v", n, err)
				}
				got, err := n.resume(context.Background(), showing(c.was), []string{"first", "second"}[i])
				if err != nil || got != want {
					t.Errorf("the order gets %q (%v), want %q", got, err, want)
				}
				n.close(false) // as when it is killed
			}
			n, err := noteBuy(dir, "order", "third")
			if err != nil || n.id != c.want {
				t.Errorf("noted is %q (%v), want %q", n.id, err, c.want)
			}
			n.close(true)
			if n, err = noteBuy(dir, "order", "fourth"); err != nil || n.old || n.id != "fourth" {
				t.Errorf("once it was shown, noted is %+v (%v)", n, err)
			}
			n.close(true)
		})
	}
}

// Another order, another note; while a command is at it, the same order has none.
func TestANoteIsOfOneOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, errA := noteBuy(dir, "an order", "a")
	b, errB := noteBuy(dir, "another", "b")
	again, errC := noteBuy(dir, "an order", "c")
	if err := errors.Join(errA, errB, errC); err != nil || a.id != "a" || b.id != "b" || again.file != nil || again.id != "c" {
		t.Errorf("%+v, %+v, %+v: %v", a, b, again, err)
	}
	inherited, err := syscall.Dup(int(a.file.Fd())) // as a process has it that is being started
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(inherited) //nolint:errcheck // it is a copy
	a.close(false)
	if a, err = noteBuy(dir, "an order", "d"); err != nil || a.file == nil || a.id != "a" {
		t.Errorf("after a command that was killed, the note is %+v (%v)", a, err)
	}
	a.close(true)
	b.close(true)
	again.close(true)
	if x, y := (buyFlags{maxCost: "1"}).noted("doc"), (buyFlags{maxCost: "2"}).noted("doc"); x == y {
		t.Error("what may be paid makes no difference")
	}
}
