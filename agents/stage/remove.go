package stage

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// removeTree removes a directory with a job's files. The job may have nested directories
// deeper than files can be open, or removed their write permission, so removeTree uses
// the system's commands.
func removeTree(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	if os.Geteuid() != 0 {
		_ = exec.Command("chmod", "-R", "u+rwx", "--", dir).Run() // rm reports what is left
	}
	said, err := exec.Command("rm", "-rf", "--", dir).CombinedOutput()
	if err != nil {
		first, _, _ := bytes.Cut(said, []byte("\n"))
		return fmt.Errorf("rm: %w: %.300s", err, first)
	}
	return nil
}
