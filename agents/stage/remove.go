package stage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// removeTree removes a directory and all that a job has put below it. That may be deeper
// than files can be open, and in directories that not even their owner may change: the
// system's own commands take those apart.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		_ = exec.Command("chmod", "-R", "u+rwx", "--", dir).Run() // rm tells what is left
	}
	said, err := exec.Command("rm", "-rf", "--", dir).CombinedOutput()
	if err != nil {
		first, _, _ := bytes.Cut(said, []byte("\n"))
		return fmt.Errorf("rm: %w: %.300s", err, first)
	}
	return nil
}
