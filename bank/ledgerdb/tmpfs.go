package ledgerdb

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// tmpfsMagic and ramfsMagic are Linux's numbers for file systems in memory.
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// InMemory reports whether a file at path would be in memory, so that flushing it means
// nothing. The file need not exist; its directory must.
func InMemory(path string) (bool, error) {
	var fs syscall.Statfs_t
	dir := filepath.Dir(path)
	if err := syscall.Statfs(dir, &fs); err != nil {
		return false, fmt.Errorf("file system of %s: %w", dir, err)
	}
	return fs.Type == tmpfsMagic || fs.Type == ramfsMagic, nil
}
