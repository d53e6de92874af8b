package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// pendingName is the directory of acts that were ordered and not answered yet, in that
// of the bank.
const pendingName = "pending"

// pendingAct is an order that moves money, noted before it is given: the same command
// after a crash then asks for what it ordered, and does not order it twice. The note
// has the number of the last entry before it. Who gives the same order while another
// command still waits for its answer means a second one.
type pendingAct struct {
	file  *os.File // nil: it is a second one
	after uint64
	there uint64 // last entry when an older note was found; 0: there was none
}

// noteAct finds the note of an order, or makes one.
func noteAct(ctx context.Context, agent *caller, dir, path string, body any) (*pendingAct, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(path+"\n"), b...))
	if err := os.MkdirAll(filepath.Join(dir, pendingName), 0o700); err != nil {
		return nil, err
	}
	f, err := lockNote(filepath.Join(dir, pendingName, hex.EncodeToString(sum[:8])))
	if f == nil || err != nil {
		return &pendingAct{}, err
	}
	p := &pendingAct{file: f}
	if err := p.read(ctx, agent); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// lockNote opens a note that nobody else has open; nil: somebody has.
func lockNote(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			return nil, f.Close()
		}
		if current(f) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

// current reports whether a file is still at its path. A note that another command
// removed between the opening and the locking was that command's.
func current(f *os.File) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.Name())
	return err == nil && os.SameFile(mine, there)
}

// read reads a note that is whole, and otherwise writes it: what is cut off was
// written before the order was given, and what names an entry that the ledger does not
// have was ordered of one that was lost since.
func (p *pendingAct) read(ctx context.Context, agent *caller) error {
	var b [32]byte
	n, _ := p.file.ReadAt(b[:], 0) // a short one is cut off, or new
	words, whole := strings.CutSuffix(string(b[:n]), "\n")
	var last operatorEntry
	if err := agent.call(ctx, "POST", "/v1/last", nil, &last); err != nil && whole {
		return givenBefore(err)
	} else if err != nil {
		return err
	}
	if whole {
		after, err := strconv.ParseUint(words, 10, 64)
		if err != nil || after <= last.Entry {
			p.after, p.there = after, last.Entry
			return err
		}
	}
	return p.write(last.Entry)
}

// givenBefore warns of an order that may have been carried out, where this agent cannot
// look: another one, which leads, does not know what was ordered here.
func givenBefore(err error) error {
	var refused *exitError
	code := exitUnreachable
	if errors.As(err, &refused) {
		code = refused.code
	}
	return fail(code, "this order was given before, and may have been carried out: look at 'ramp bank statement' where one leads before you give it there; it is found here once this one leads", "%w", err)
}

func (p *pendingAct) write(after uint64) error {
	p.after = after
	err := p.file.Truncate(0)
	if err == nil {
		_, err = p.file.WriteAt([]byte(strconv.FormatUint(after, 10)+"\n"), 0)
	}
	return errors.Join(err, p.file.Sync())
}

// close forgets the note once it was answered whether the order was carried out, and the
// answer told; without that it stays, and the same command asks again.
func (p *pendingAct) close(answered bool) {
	if p.file == nil {
		return
	}
	if answered {
		_ = os.Remove(p.file.Name()) // a note too many only finds what was answered
	}
	closeNote(p.file)
}

// closeNote unlocks a note before it closes it: a process that is just being started
// here has the file too, until it has become another program.
func closeNote(f *os.File) {
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}

// orderMoney gives a bank an order that moves money, once, and tells its answer: body
// with what is noted of it.
func orderMoney(c *cobra.Command, path string, body any, since func(n noted) any, tell func(e operatorEntry) error) error {
	dir, err := dirOf(c, "bank")
	if err != nil {
		return err
	}
	agent, done, err := openBank(c, dir)
	if err != nil {
		return err
	}
	defer done()
	p, err := noteAct(c.Context(), agent, dir, path, body)
	if err != nil {
		return err
	}
	var e operatorEntry
	err = agent.call(c.Context(), "POST", path, since(noted{p.after, p.there == 0}), &e)
	known := decided(err)
	if e.Again = err == nil && e.Entry <= p.there; e.Again {
		fmt.Fprintf(stderr(c), "note: this is entry %d of %s, which a command that was interrupted had ordered; give it again for one more\n",
			e.Entry, secondTime(e.Time))
	}
	if err == nil {
		err = tell(e)
		known = wasShown(c)
	}
	p.close(known)
	return err
}

// decided reports whether an answer tells if an order was carried out: it was, or the bank
// refused it. Of one that failed, as with an agent that does not lead any more, an earlier
// attempt may have been.
func decided(err error) bool {
	var refused *exitError
	return err == nil || errors.As(err, &refused) && refused.code != exitUnreachable && refused.code != exitFailed
}
