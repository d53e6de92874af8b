package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// maxFile bounds a state file in bytes.
const maxFile = 64 << 20

// ErrDamaged means that a state file is not as WriteFile wrote it.
var ErrDamaged = errors.New("damaged, or cut short")

// ReadFile reads a driver's state into v. A missing file leaves v as it is.
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
	if json.Unmarshal(b, v) != nil {
		return fmt.Errorf("state of the batch system: %s: %w", path, ErrDamaged)
	}
	return nil
}

// WriteFile makes a driver's state durable before it returns: a crash leaves either the
// old or the new file.
func WriteFile(path string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = replace(path, b)
	}
	if err != nil {
		return fmt.Errorf("state of the batch system: %w", err)
	}
	return nil
}

// replace replaces a file and makes that durable: renameio does not sync the directory.
func replace(path string, b []byte) error {
	dir := filepath.Dir(path)
	if err := renameio.WriteFile(path, b, 0o600, renameio.WithTempDir(dir)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
