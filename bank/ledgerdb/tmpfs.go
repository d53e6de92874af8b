package ledgerdb

import (
	"fmt"
	"path/filepath"
	"syscall"
)

// tmpfsMagic and ramfsMagic are what Linux calls file systems in memory.
const (
	tmpfsMagic = 0x01021994
	ramfsMagic = 0x858458f6
)

// InMemory reports whether a file at path would be kept in memory, so that no
// flush of it means anything. The file need not be there; its directory must.
func InMemory(path string) (bool, error) {
	var fs syscall.Statfs_t
	dir := filepath.Dir(path)
	if err := syscall.Statfs(dir, &fs); err != nil {
		return false, fmt.Errorf("file system of %s: %w", dir, err)
	}
	return fs.Type == tmpfsMagic || fs.Type == ramfsMagic, nil
}
