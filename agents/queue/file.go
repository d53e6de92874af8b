package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds a state file in bytes.
const maxFile = 64 << 20

// ReadFile reads a driver's state into v. A file that is not there leaves v as
// it is.
func ReadFile(path string, v any) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("state of the batch system: %w", err)
	case info.Size() > maxFile:
		return fmt.Errorf("state of the batch system: %s has %d bytes, at most %d", path, info.Size(), maxFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("state of the batch system: %w", err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("state of the batch system: %s: %w", path, err)
	}
	return nil
}

// WriteFile makes a driver's state durable before it returns: after a crash the
// file is as it was, or as it is now.
func WriteFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("state of the batch system: %w", err)
	}
	if err := replace(path, b); err != nil {
		return fmt.Errorf("state of the batch system: %w", err)
	}
	return nil
}

// replace writes beside the file, and then puts the new one in its place. What a
// crash leaves beside it is overwritten the next time.
func replace(path string, b []byte) error {
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
