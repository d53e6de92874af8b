package command

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ramp/protocol"
)

// exchangesName is the directory of exchanges that were ordered, in that of the user.
const exchangesName = "exchanges"

// exchangeNote is an exchange on the disk before it is ordered: the same command after
// a crash carries it on. One without a name of its owner's is forgotten when its answer
// was told; one with a name is kept with its answer, for ever.
type exchangeNote struct {
	file   *os.File      // nil: another command is about it, this is a second one
	size   int64         // of its whole lines
	Order  exchangeCall  `json:"order"`
	Tries  []exchangeTry `json:"tries,omitempty"`
	Answer *exchanged    `json:"answer,omitempty"`
}

// exchangeTry is a quote that may have been carried out.
type exchangeTry struct {
	ID   string           `json:"id"`
	Bank protocol.AgentID `json:"bank"`
	At   time.Time        `json:"at"`
}

// maxTries bounds the quotes of one command that the bank forgets before they are
// carried out.
const maxTries = 3

// maxNote bounds a note in bytes.
const maxNote = 1 << 16

// noteExchange finds the note of an order, or makes an empty one.
func noteExchange(dir string, q exchangeCall) (*exchangeNote, error) {
	n := &exchangeNote{Order: q}
	key := []byte("named\n" + q.ID)
	if q.ID == "" {
		b, err := json.Marshal(q)
		if err != nil {
			return nil, err
		}
		key = append([]byte("order\n"), b...)
	}
	sum := sha256.Sum256(key)
	if err := os.MkdirAll(filepath.Join(dir, exchangesName), 0o700); err != nil {
		return nil, err
	}
	f, err := lockNote(filepath.Join(dir, exchangesName, hex.EncodeToString(sum[:8])))
	switch {
	case err != nil:
		return nil, err
	case f == nil && q.ID != "":
		return nil, fail(exitRefused, "", "another command carries exchange %s out", q.ID)
	case f == nil:
		return n, nil
	}
	n.file = f
	n.read()
	if !sameOrder(n.Order, q) {
		n.close(false)
		return nil, fail(exitUsage, "give another --id, or the same amounts",
			"exchange %s was ordered as %s %s for at least %s %s", q.ID, n.Order.Gives, n.Order.From, n.Order.Least, n.Order.To)
	}
	return n, nil
}

// read takes the last line that is whole: one that is cut off was not written when
// what rests on it was done.
func (n *exchangeNote) read() {
	b := make([]byte, maxNote)
	size, _ := n.file.ReadAt(b, 0) // a short one is cut off, or new
	whole := bytes.LastIndexByte(b[:size], '\n') + 1
	lines := bytes.Split(bytes.TrimSuffix(b[:whole], []byte("\n")), []byte("\n"))
	var found exchangeNote
	if json.Unmarshal(lines[len(lines)-1], &found) == nil {
		n.size, n.Order, n.Tries, n.Answer = int64(whole), found.Order, found.Tries, found.Answer
	}
}

// write makes the note durable, in a line behind those on which something may rest.
func (n *exchangeNote) write() error {
	if n.file == nil {
		return nil
	}
	b, err := json.Marshal(n)
	if err != nil {
		return err
	}
	if err := n.file.Truncate(n.size); err != nil { // what was cut off
		return err
	}
	if _, err := n.file.WriteAt(append(b, '\n'), n.size); err != nil {
		return err
	}
	n.size += int64(len(b)) + 1
	return n.file.Sync()
}

// close forgets a note on which nothing rests.
func (n *exchangeNote) close(forget bool) {
	if n.file == nil {
		return
	}
	if forget {
		_ = os.Remove(n.file.Name()) // a note too many only finds what was answered
	}
	_ = n.file.Close()
}

// runExchange quotes, or exchanges once.
func runExchange(c *cobra.Command, q exchangeCall) error {
	dir, err := dirOf(c, "user")
	if err != nil {
		return err
	}
	agent, done, err := openUser(c)
	if err != nil {
		return err
	}
	defer done()
	ask := func(q exchangeCall) (x exchanged, err error) {
		defer awaiting(c, "asking the bank", answerTime)()
		err = agent.call(c.Context(), "POST", "/v1/exchange", q, &x)
		return x, err
	}
	if q.Least == 0 {
		q.ID = newQuoteID(q.ID)
		x, err := ask(q)
		if err != nil {
			return err
		}
		return printExchange(c, x)
	}
	n, err := noteExchange(dir, q)
	if err != nil {
		return err
	}
	x, err := n.exchange(time.Now, ask)
	if err == nil {
		err = tellExchange(c, q, x)
	}
	n.close(len(n.Tries) == 0 || err == nil && wasShown(c) && q.ID == "")
	return err
}

func tellExchange(c *cobra.Command, q exchangeCall, x exchanged) error {
	switch {
	case x.Again && q.ID == "":
		fmt.Fprintf(stderr(c), "note: this is entry %d, which an earlier command had ordered and did not tell to be done; give it again for one more\n", x.Entry)
	case x.Again:
		fmt.Fprintf(stderr(c), "note: exchange %s was done before, as entry %d\n", q.ID, x.Entry)
	}
	return printExchange(c, x)
}

// newQuoteID names a quote, for its bank, as none was before.
func newQuoteID(name string) string {
	if name == "" {
		return newPurchaseID(false)
	}
	return name + "." + newPurchaseID(false)[1:9]
}

// exchange carries an order on, or out. That a quote may be carried out is on the disk
// before the bank is asked to do it; and another quote is asked for only when the bank
// has said that the last one is lapsed.
func (n *exchangeNote) exchange(now func() time.Time, ask func(q exchangeCall) (exchanged, error)) (x exchanged, err error) {
	if n.Answer != nil {
		x = *n.Answer
		x.Again = true
		return x, nil
	}
	if len(n.Tries) > 0 {
		if x, err = n.carry(ask); err != nil || !x.Lapsed {
			x.Again = err == nil
			return x, err
		}
	}
	for range maxTries {
		if err = n.quote(now(), ask); err != nil {
			return x, err
		}
		if x, err = n.carry(ask); err != nil || !x.Lapsed {
			return x, err
		}
	}
	return exchanged{}, fail(exitRefused, "", "the bank forgets its quotes before they can be carried out")
}

// quote asks for a quote, and writes down that it may be carried out.
func (n *exchangeNote) quote(now time.Time, ask func(q exchangeCall) (exchanged, error)) error {
	q := n.Order
	q.ID = newQuoteID(n.Order.ID)
	x, err := ask(q)
	if err != nil {
		return err
	}
	if x.Gets < q.Least {
		return fail(exitNothing, "", "%s %s buys %s %s, which is less than %s", x.Gives, x.From, x.Gets, x.To, q.Least)
	}
	n.size, n.Tries = 0, []exchangeTry{{q.ID, x.Bank, now.UTC()}} // nothing rests on one that is lapsed
	return n.write()
}

// carry has the last quote carried out, or finds that one was.
func (n *exchangeNote) carry(ask func(q exchangeCall) (exchanged, error)) (exchanged, error) {
	last := n.Tries[len(n.Tries)-1]
	q := n.Order
	q.ID, q.Bank, q.Carry, q.Since = last.ID, string(last.Bank), true, n.Tries[0].At
	for _, t := range n.Tries {
		if t.Bank == last.Bank {
			q.Tries = append(q.Tries, t.ID)
		}
	}
	x, err := ask(q)
	if err != nil || x.Lapsed || n.Order.ID == "" {
		return x, err
	}
	answer := x
	n.Answer = &answer
	return x, n.write()
}

// sameOrder reports whether a note is about an order.
func sameOrder(a, b exchangeCall) bool {
	return a.From == b.From && a.To == b.To && a.Gives == b.Gives && a.Least == b.Least && a.Bank == b.Bank
}
