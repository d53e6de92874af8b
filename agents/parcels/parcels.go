// Package parcels carries files between an agent and callers that have no path to give, such as
// a browser: uploads for a program that is not bought yet, piece by piece, and outputs of a
// program, from their site through a verified copy.
//
// Uploads stay until their program has ended. Those that nothing was bought for go after an hour.
package parcels

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/stage"
	"ramp/agents/words"
	"ramp/protocol"
	"ramp/protocol/message"
)

// Bounds of parcels.
const (
	MaxPiece  = 1 << 20  // bytes
	MaxUpload = 2 << 30  // bytes of a file
	MaxAll    = 32 << 30 // bytes of all parcels
	countStep = 64 << 20 // bytes of an upload after which all are counted again
	unclaimed = time.Hour
	unsent    = 24 * time.Hour // a copy that a crash has left
)

const (
	inPrefix   = "in-"
	outPrefix  = "out-"
	halfPrefix = ".ramp-" // of an upload that is not complete
)

// Shelf has the parcels of a user agent.
type Shelf struct {
	Dir    string
	Room   int64                             // for all parcels, in bytes; 0: MaxAll
	Needed func() ([]message.Program, error) // of purchases and runs that are not over
	Run    func(ctx context.Context, q control.RunCall) (message.Run, error)
	Open   func(ctx context.Context, site protocol.AgentID) (stage.Stream, error)
}

// Take adds a piece to a file, and describes the file when it is complete.
func (s Shelf) Take(_ context.Context, q control.UploadCall) (in message.RunInput, err error) {
	if err := check(q); err != nil {
		return in, exit.WithCode(exit.Usage, err)
	}
	dir := filepath.Join(s.Dir, inPrefix+q.ID)
	if q.At == 0 {
		s.clear(time.Now(), q.ID)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return in, unwritten(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return in, unwritten(err)
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	if end := q.At + int64(len(q.Data)); q.At == 0 || q.At/countStep != end/countStep {
		if err := s.room(int64(len(q.Data))); err != nil {
			return in, err
		}
	}
	half := halfPrefix + q.Part
	if err := appendTo(root, half, q); err != nil {
		return in, unwritten(errors.Join(err, root.Remove(half)))
	}
	if !q.Last {
		keepFor(dir, time.Now()) // one file may take more than an hour
		return in, nil
	}
	if in.Source, err = filepath.Abs(filepath.Join(dir, filepath.FromSlash(q.Path))); err == nil { // it is opened after a restart too
		in.File, err = put(root, half, in.Source, q.Path)
	}
	if err != nil {
		return in, unwritten(err)
	}
	return in, nil
}

var putting sync.Mutex // two uploads of one path would replace each other

// put moves a whole upload to its path. It never replaces a file: the same form may have been sent
// before, and its order may need that one.
func put(root *os.Root, half, source, name string) (protocol.StagedFile, error) {
	sent, err := stage.Describe(filepath.Join(root.Name(), half), name)
	if err != nil {
		return sent, err
	}
	putting.Lock()
	defer putting.Unlock()
	there, err := stage.Describe(source, name)
	if errors.Is(err, fs.ErrNotExist) {
		return sent, errors.Join(root.MkdirAll(path.Dir(name), 0o700), root.Rename(half, name))
	}
	if err == nil && there != sent {
		err = exit.Fail(exit.Usage, "open 'New request' again", "this form was sent before with another %s, or has two", name)
	}
	return sent, errors.Join(err, root.Remove(half))
}

// room refuses what would not fit beside all other parcels.
func (s Shelf) room(more int64) error {
	most := cmp.Or(s.Room, MaxAll)
	err := filepath.WalkDir(s.Dir, func(_ string, e fs.DirEntry, err error) error {
		if info, gone := e.Info(); err == nil && gone == nil && info.Mode().IsRegular() { // another caller may remove it now
			more += info.Size()
		}
		return nil
	})
	if err == nil && more > most {
		err = exit.Fail(exit.Failed, "wait until some of these programs have ended; 'ramp run' sends files without a copy", "files of programs from browsers may have %d bytes in total, and this would make %d", most, more)
	}
	return err
}

func check(q control.UploadCall) error {
	switch raw, err := hex.DecodeString(q.Part); {
	case q.ID == "" || len(q.ID) > 64 || strings.Trim(q.ID, "abcdefghijklmnopqrstuvwxyz0123456789") != "":
		return errors.New("id: want 1..64 letters in lower case and digits")
	case err != nil || len(raw) != 16:
		return errors.New("part: want 32 hex digits")
	case len(q.Data) > MaxPiece:
		return errors.New("data: want at most 1 MiB at a time")
	case q.At < 0 || q.At > MaxUpload-int64(len(q.Data)):
		return errors.New("a file that is uploaded may have at most 2 GiB")
	}
	return protocol.CheckPath(q.Path)
}

// appendTo writes a piece behind the others of its upload. The last one may come again: its sender may
// have lost the answer.
func appendTo(root *os.Root, half string, q control.UploadCall) error {
	flags := os.O_RDWR
	if q.At == 0 {
		flags |= os.O_CREATE
	}
	f, err := root.OpenFile(half, flags, 0o600)
	if err != nil {
		return err
	}
	switch end, err := f.Seek(0, io.SeekEnd); {
	case err != nil:
		return errors.Join(err, f.Close())
	case end > q.At && end == q.At+int64(len(q.Data)):
		there := make([]byte, len(q.Data))
		if _, err := f.ReadAt(there, q.At); err == nil && bytes.Equal(there, q.Data) {
			return f.Close()
		}
		fallthrough
	case end != q.At:
		return errors.Join(exit.Fail(exit.Usage, "begin the upload again", "%s: a piece for byte %d came when %d bytes were there", q.Path, q.At, end), f.Close())
	}
	_, err = f.Write(q.Data)
	if q.At == 0 && (bytes.HasPrefix(q.Data, []byte("#!")) || bytes.HasPrefix(q.Data, []byte("\x7fELF"))) {
		err = errors.Join(err, f.Chmod(0o700)) // browsers do not say that a file is a program
	}
	return errors.Join(err, f.Close())
}

// unwritten says what to do about a disk that is full, or a directory that is read-only.
func unwritten(err error) error {
	var here *exit.Error
	if errors.As(err, &here) {
		return here
	}
	return exit.Fail(exit.Failed, "the file is kept on the agent's machine until its program has ended: make room there and send it again", "%w", err)
}

// keepFor has clear not look at a directory for an hour.
func keepFor(dir string, now time.Time) {
	_ = os.Chtimes(dir, now, now) // else it is checked again sooner
}

// clear removes what nobody needs any more. mine is the upload that begins now.
func (s Shelf) clear(now time.Time, mine string) {
	list, err := os.ReadDir(s.Dir)
	if err != nil { // nothing was uploaded yet
		return
	}
	needed := sync.OnceValues(s.needed)
	for _, e := range list {
		info, err := e.Info()
		id, in := strings.CutPrefix(e.Name(), inPrefix)
		age := unclaimed
		if !in {
			age = unsent
		}
		if err != nil || now.Sub(info.ModTime()) < age || in && id == mine {
			continue
		}
		if in {
			dirs, err := needed()
			if err != nil { // kept until that is known
				continue
			}
			if dirs[e.Name()] {
				keepFor(filepath.Join(s.Dir, e.Name()), now)
				continue
			}
		}
		_ = os.RemoveAll(filepath.Join(s.Dir, e.Name())) // the next upload tries again
	}
}

// needed has the directories of uploads that programs need. One order may need those of another:
// it may ask for the same again, with a change.
func (s Shelf) needed() (map[string]bool, error) {
	programs, err := s.Needed()
	dirs := map[string]bool{}
	for _, p := range programs {
		for _, in := range p.Inputs {
			for name := range strings.SplitSeq(filepath.ToSlash(in.Source), "/") { // whatever s.Dir was called then
				dirs[name] = true
			}
		}
	}
	return dirs, err
}

// Send sends an output of a run: first copied here, so that what is sent is verified.
func (s Shelf) Send(ctx context.Context, q control.RunFileCall, send func(control.FilePiece) error) error {
	run, err := s.Run(ctx, control.RunCall{ID: q.ID})
	if err != nil {
		return err
	}
	unit, f, err := output(run, q)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return unwritten(err)
	}
	if err := s.room(f.Size); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Dir, outPrefix)
	if err != nil {
		return unwritten(err)
	}
	defer os.RemoveAll(dir) //nolint:errcheck // clear removes it later
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	if err := s.copyOf(ctx, run, unit, f, root); err != nil {
		return err
	}
	file, err := root.Open(filepath.FromSlash(f.Path))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // only read
	return sendAll(file, f.Size, send)
}

// output finds an output of a run that its site still keeps.
func output(run message.Run, q control.RunFileCall) (unit message.RunUnit, f protocol.StagedFile, err error) {
	i := slices.IndexFunc(run.Units, func(u message.RunUnit) bool { return u.Unit == q.Unit-1 })
	if i < 0 {
		return unit, f, exit.Fail(exit.Usage, "", "unit %d of %s: want 1..%d", q.Unit, q.ID, len(run.Units))
	}
	unit = run.Units[i]
	k := slices.IndexFunc(unit.Status.Outputs, func(f protocol.StagedFile) bool { return f.Path == q.Path })
	switch {
	case k < 0:
		return unit, f, exit.Fail(exit.Nothing, "", "unit %d of %s has left no file %q", q.Unit, q.ID, q.Path)
	case !unit.Status.Keep.After(time.Now()):
		return unit, f, exit.Fail(exit.Nothing, "", "%s kept the outputs of %s until %s", unit.Resource, q.ID, words.At(unit.Status.Keep))
	}
	return unit, unit.Status.Outputs[k], nil
}

func (s Shelf) copyOf(ctx context.Context, run message.Run, unit message.RunUnit, f protocol.StagedFile, root *os.Root) error {
	stream, err := s.Open(ctx, unit.Seller)
	if err != nil {
		return exit.Fail(exit.Unreachable, "try again when the site answers; it keeps the file until "+words.At(unit.Status.Keep), "%s: %w", f.Path, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = stream.Close() }) // what hangs ends with it
	defer stop()
	defer stream.Close() //nolint:errcheck // all was read
	contract, number := run.Bought(unit)
	err = stage.Get(stream, stage.Key{Contract: contract, Unit: number, Launch: unit.Launch}, f, root)
	var here *os.PathError
	switch {
	case errors.As(err, &here):
		return exit.Fail(exit.Failed, "make room on the agent's machine, where the file is verified before it is sent", "%s: %w", f.Path, err)
	case err != nil:
		return exit.Fail(exit.Unreachable, "try again; the site keeps the file until "+words.At(unit.Status.Keep), "%s: %w", f.Path, err)
	}
	return nil
}

// sendAll sends a file in pieces, and an empty one too.
func sendAll(file io.Reader, size int64, send func(control.FilePiece) error) error {
	buffer := make([]byte, MaxPiece/4)
	for sent := int64(0); ; {
		n, err := io.ReadFull(file, buffer)
		if sent += int64(n); n > 0 || size == 0 {
			if err := send(control.FilePiece{Size: size, Data: buffer[:n]}); err != nil {
				return err
			}
		}
		if sent >= size || err != nil {
			return nil //nolint:nilerr // the file was verified, so its end is that of its size
		}
	}
}
