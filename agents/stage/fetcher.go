package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"ramp/agents"
	"ramp/protocol"
	"ramp/protocol/message"
)

// fetchOut brings what a launch has left into a directory, which appears whole, and retries until it
// has or cannot.
func (p *Porter) fetchOut(ctx context.Context, r message.StageOut) {
	rest, told := protocol.RetryFirst, ""
	for {
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := p.fetchOnce(ctx, r)
		<-p.places
		var no *Refusal
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.report(message.StagedOut{Launch: r.Launch})
			return
		case errors.Is(err, ErrRelayed) || errors.As(err, &no) && no.Code != protocol.CodeUnavailable && no.Code != protocol.CodeBusy:
			p.report(message.StagedOut{Launch: r.Launch, Why: protocol.Words(err.Error())})
			return
		case err.Error() != told:
			told = err.Error()
			p.report(message.StagedOut{Launch: r.Launch, Why: protocol.Words(told), Again: true, Here: Ours(err)})
		}
		p.log.Warn("files: cannot fetch the outputs now; trying again", "launch", r.Launch, "site", r.Seller.Name(), "err", err)
		if !agents.Pause(ctx, rest) {
			return
		}
		rest = min(2*rest, protocol.RetryMost)
	}
}

// Names of a program's printed output, beside its files.
const (
	stdoutName = "stdout.txt"
	stderrName = "stderr.txt"
)

// fetchOnce fetches over one exchange. What came before a break stays, and is not fetched again.
func (p *Porter) fetchOnce(ctx context.Context, r message.StageOut) error {
	half := filepath.Join(r.Dir, ".ramp-"+r.Launch)
	if err := os.MkdirAll(half, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(half)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	err = Exchange(ctx, p.open, r.Seller, func(s Stream) error {
		k := Key{Contract: r.Contract, Unit: r.Unit, Launch: r.Launch}
		for _, f := range r.Files {
			err := leaves(half, missing(root, f))
			if err == nil {
				err = Get(s, k, f, root)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", f.Path, nameless(err))
			}
		}
		return nameless(printed(s, k, root, half))
	})
	if err != nil {
		return err
	}
	return publish(half, filepath.Join(r.Dir, filepath.FromSlash(r.Name)))
}

// printed writes what a program has printed to files, instead of files that it left by these names.
func printed(s Stream, k Key, root *os.Root, dir string) error {
	var files []*bounded
	for _, name := range []string{stdoutName, stderrName} {
		if err := root.RemoveAll(name); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		defer f.Close() //nolint:errcheck // synced, or incomplete
		files = append(files, &bounded{File: f, dir: dir})
	}
	var out, errs int64
	if err := Log(s, k, &out, &errs, false, files[0], files[1]); err != nil && !errors.Is(err, ErrKept) {
		return err
	}
	return errors.Join(files[0].Sync(), files[1].Sync())
}

// bounded is a file that leaves room on its disk, however much is written.
type bounded struct {
	*os.File
	dir  string
	left int64 // bytes that fit for certain
}

const roomStep = 16 << 20

func (b *bounded) Write(p []byte) (int, error) {
	if b.left < int64(len(p)) {
		if err := leaves(b.dir, int64(len(p))); err != nil {
			return 0, err
		}
		b.left = roomStep
	}
	b.left -= int64(len(p))
	return b.File.Write(p)
}

// leaves returns an error if a disk has no room for so many bytes and some more, spare if possible: a
// site tells how long outputs are, and the agent's journal may be beside them.
func leaves(dir string, need int64) error {
	if free, err := freeOf(dir); err != nil || free-min(spare, free/4) >= need {
		return nil //nolint:nilerr // who writes says what is wrong with the directory
	}
	return &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}
}

// missing is how much of a file has not come in an earlier exchange.
func missing(root *os.Root, f protocol.StagedFile) int64 {
	to := filepath.FromSlash(f.Path)
	for _, name := range []string{to, filepath.Join(filepath.Dir(to), halfName(f))} {
		if info, err := root.Stat(name); err == nil && info.Mode().IsRegular() {
			return max(0, f.Size-info.Size())
		}
	}
	return f.Size
}

// nameless is an error that ends the fetch, instead of one about names that no file can have beside the
// others of its launch: they come from the site.
func nameless(err error) error {
	for _, why := range []error{syscall.EISDIR, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.EEXIST, syscall.ENOTEMPTY, syscall.ELOOP} {
		if errors.Is(err, why) {
			return refuse(protocol.CodeMalformed, "its files cannot be beside each other: %v", err)
		}
	}
	return err
}

// publish renames a directory into place, over that of an earlier time.
func publish(half, to string) error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.RemoveAll(to)); err != nil {
		return err
	}
	return os.Rename(half, to)
}

// Ours reports whether a file of this machine is at fault, such as one on a disk that is full.
func Ours(err error) bool {
	var file *fs.PathError
	var name *os.LinkError
	return errors.As(err, &file) || errors.As(err, &name)
}

// save writes a file whole, at once or when it can be written.
func (p *Porter) save(r message.SaveFile) {
	p.mu.Lock()
	p.saves[r.Path]++
	n := p.saves[r.Path]
	p.mu.Unlock()
	err := p.write(r, n)
	if err == nil {
		return
	}
	p.begin(fmt.Sprintf("save %d %s", n, r.Path), func(ctx context.Context) {
		for rest := protocol.RetryFirst; err != nil; rest = min(2*rest, protocol.RetryMost) {
			p.log.Error("files: cannot write; trying again", "file", r.Path, "err", err)
			p.report(message.StagedOut{Launch: r.Sweep, Why: protocol.Words(err.Error()), Again: true, Here: true})
			if !agents.Pause(ctx, rest) {
				return
			}
			err = p.write(r, n)
		}
		p.report(message.StagedOut{Launch: r.Sweep})
	})
}

// write writes a file, unless a later content was to be written since.
func (p *Porter) write(r message.SaveFile, n int) error {
	p.saving.Lock()
	defer p.saving.Unlock()
	p.mu.Lock()
	latest := p.saves[r.Path]
	p.mu.Unlock()
	if n != latest {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(r.Path), 0o755); err != nil {
		return err
	}
	return renameio.WriteFile(r.Path, r.Content, 0o644, renameio.WithTempDir(filepath.Dir(r.Path)))
}
