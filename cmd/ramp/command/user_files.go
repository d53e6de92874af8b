package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"ramp/agents/stage"
	"ramp/protocol"
	"ramp/protocol/message"
)

// carry lets the agent bring inputs to sites.
func (n *node) carry() {
	p := stage.NewPorter(n.cred.ID, func(ctx context.Context, to protocol.AgentID) (stage.Stream, error) {
		return n.mesh.OpenFiles(ctx, to)
	}, func(m protocol.Message) { _ = n.runner.Deliver(m) }, n.log) // the role has stopped: so has the agent
	n.files, n.porter = p.Send, p
}

// inputsOf are the files that --in names, described.
func inputsOf(paths []string) ([]message.RunInput, error) {
	var list []message.RunInput
	for _, p := range paths {
		source, to := sourceOf(p)
		found, err := inputsBelow(source, to)
		if err != nil {
			return nil, fail(exitUsage, "", "--in %s: %w", p, err)
		}
		list = append(list, found...)
	}
	if len(list) > protocol.MaxStaged {
		return nil, fail(exitUsage, "pack them into an archive", "--in: %d files, at most %d", len(list), protocol.MaxStaged)
	}
	files := make([]protocol.StagedFile, len(list))
	for i, in := range list {
		files[i] = in.File
	}
	if err := protocol.CheckTree(files); err != nil {
		return nil, fail(exitUsage, "--in PATH=NAME gives a file another name", "--in: %w", err)
	}
	return list, nil
}

// sourceOf splits PATH=NAME. A path may have such signs itself (lr=0.1/data.csv), so
// the longest that is there is the path; if none is, the first sign ends it.
func sourceOf(p string) (source, name string) {
	for end := len(p); end > 0; end = strings.LastIndexByte(p[:end], '=') {
		if _, err := os.Lstat(p[:end]); err != nil {
			continue
		}
		if end == len(p) {
			return p, filepath.Base(filepath.Clean(p))
		}
		return p[:end], p[end+1:]
	}
	source, name, named := strings.Cut(p, "=")
	if !named {
		name = filepath.Base(filepath.Clean(source))
	}
	return source, name
}

// inputsBelow is a file, or every file of a directory.
func inputsBelow(source, to string) ([]message.RunInput, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	var list []message.RunInput
	err = filepath.WalkDir(abs, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		if path != abs && !e.Type().IsRegular() {
			return fmt.Errorf("%s is no plain file", path)
		}
		rest, err := filepath.Rel(abs, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(to, rest))
		if err := protocol.CheckPath(name); err != nil {
			return err
		}
		f, err := stage.Describe(path, name)
		list = append(list, message.RunInput{File: f, Source: path})
		return err
	})
	return list, err
}

// outDir is where what a unit has left is written to.
func outDir(dir string, units, unit int) string {
	if units == 1 {
		return dir
	}
	return filepath.Join(dir, fmt.Sprintf("unit-%d", unit+1))
}

// outRoot opens a directory to write to; it is made if it is not there. That a file can
// be made in it is tried: whoever may open a directory may not write to it yet.
func outRoot(dir string) (*os.Root, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".ramp-")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// checkOut makes sure that what a program leaves can be written down, before anything
// is bought for it.
func checkOut(dir string) error {
	if dir == "" {
		return nil
	}
	root, err := outRoot(dir)
	if err == nil {
		err = root.Close()
	}
	if err != nil {
		return fail(exitUsage, "", "--out: %w", err)
	}
	return nil
}

// unwritten tells what a file of this machine is at fault for, such as a disk that is
// full, from what the site is.
func unwritten(id string, err error) error {
	var file *fs.PathError
	var name *os.LinkError
	if !errors.As(err, &file) && !errors.As(err, &name) {
		return err
	}
	return fail(exitFailed, "'ramp user fetch "+id+" --out DIR' goes on where it was", "%w", err)
}

// fetchUnit fetches what a unit has left.
func fetchUnit(ctx context.Context, open func(context.Context, protocol.AgentID) (stage.Stream, error), run message.Run, u message.RunUnit, dir string) error {
	root, err := outRoot(dir)
	if err != nil {
		return fail(exitUsage, "'ramp user fetch "+run.ID+" --out DIR' writes them elsewhere", "%w", err)
	}
	defer root.Close() //nolint:errcheck // it holds nothing back
	s, err := open(ctx, u.Seller)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() }) // what hangs ends with it
	defer stop()
	defer s.Close() //nolint:errcheck // all was read
	contract, unit := run.Bought(u)
	k := stage.Key{Contract: contract, Unit: unit, Launch: u.Launch}
	for _, f := range u.Status.Outputs {
		if err := stage.Get(s, k, f, root); err != nil {
			return unwritten(run.ID, fmt.Errorf("%s: %w", f.Path, err))
		}
	}
	return nil
}
