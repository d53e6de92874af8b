package real

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"ramp/protocol/message"
)

// Now is the time at which users of the trial buy.
func (t *Trial) Now() time.Time { return time.Now() }

// Bought is a purchase of a trial.
type Bought struct {
	Purchase  message.Purchase
	Responses []time.Duration // from a call for proposals to each answer, as the user agent saw them
}

// Buy buys what a document asks for through a user's daemon, from 0, and follows
// it to its end. The ID must be new.
func (t *Trial) Buy(ctx context.Context, user int, id string, document []byte, options message.Options) (Bought, error) {
	u := t.users()[user]
	body := map[string]any{"id": id, "name": id, "document": string(document), "options": options}
	resp, err := post(ctx, u.disk.dir, "/v1/buy", body)
	if err != nil {
		return Bought{}, fmt.Errorf("%s: %w", u.name, err)
	}
	defer resp.Body.Close()
	p, err := follow(resp.Body)
	if err != nil {
		return Bought{}, fmt.Errorf("%s: purchase %s: %w", u.name, id, err)
	}
	var said []traced
	if err := call(ctx, u.disk.dir, "/v1/trace", map[string]string{"id": id}, &said); err != nil {
		return Bought{}, fmt.Errorf("%s: trace of %s: %w", u.name, id, err)
	}
	return Bought{p, responses(said)}, nil
}

// follow reads what is told of a purchase until it is over.
func follow(r io.Reader) (message.Purchase, error) {
	d := json.NewDecoder(io.LimitReader(r, maxStream))
	for {
		var line struct {
			Done     bool
			Purchase message.Purchase
		}
		if err := d.Decode(&line); err != nil || line.Done {
			return line.Purchase, err
		}
	}
}

// traced is a message of a user's trace: when, "in" or "out", and as FIPA-ACL.
type traced struct {
	At   time.Time
	Dir  string
	Text string
}

// responses are the times from each call for proposals to the answers that came
// before the next: a round ends when all have answered.
func responses(said []traced) []time.Duration {
	var list []time.Duration
	var called time.Time
	for _, m := range said {
		act, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "("), "\n")
		switch {
		case m.Dir == "out" && act == "cfp":
			called = m.At
		case m.Dir == "in" && !called.IsZero() && (act == "propose" || act == "refuse"):
			list = append(list, m.At.Sub(called))
		}
	}
	return list
}
