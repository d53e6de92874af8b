package slurmtest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// starter starts processes from one lasting thread: the kernel kills them with the
// thread that started them.
type starter struct {
	asked chan *exec.Cmd
	done  chan error
}

func newStarter() *starter {
	s := &starter{make(chan *exec.Cmd), make(chan error)}
	go func() {
		runtime.LockOSThread()
		for cmd := range s.asked {
			s.done <- cmd.Start()
		}
	}()
	return s
}

func (c *Cluster) start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true
	cmd.Dir = c.Dir
	c.starter.asked <- cmd
	return <-c.starter.done
}

// command is a program in the cluster's network.
func (c *Cluster) command(name string, args ...string) *exec.Cmd {
	argv := append(append(append([]string{}, c.Enter...), name), args...)
	return exec.Command(argv[0], argv[1:]...)
}

// StartController starts slurmctld and waits until it answers.
func (c *Cluster) StartController() error {
	c.control = c.command("slurmctld", "-D", "-f", c.Conf())
	if err := c.start(c.control); err != nil {
		return err
	}
	return c.await("slurmctld", func() error { _, err := c.Run("scontrol", "ping"); return err })
}

// KillController kills slurmctld at once, like a power cut.
func (c *Cluster) KillController() error {
	err := c.control.Process.Kill()
	_ = c.control.Wait() // it was killed
	return err
}

func (c *Cluster) startNodes() error {
	for i := range c.Nodes {
		name := fmt.Sprintf("node%d", i+1)
		if err := os.MkdirAll(filepath.Join(c.Dir, "spool", name), 0o755); err != nil {
			return err
		}
		cmd := c.command("slurmd", "-D", "-f", c.Conf(), "-N", name)
		if err := c.start(cmd); err != nil {
			return err
		}
		c.nodes = append(c.nodes, cmd)
	}
	return nil
}

// AwaitNodes waits until every node is usable.
func (c *Cluster) AwaitNodes() error {
	return c.await("nodes", func() error {
		out, err := c.Run("sinfo", "-h", "-N", "-o", "%T")
		if err != nil {
			return err
		}
		up := 0
		for _, state := range strings.Fields(out) {
			switch state {
			case "idle", "mixed", "allocated", "reserved", "planned":
				up++
			}
		}
		if up < c.Nodes {
			return fmt.Errorf("%d of %d nodes are up", up, c.Nodes)
		}
		return nil
	})
}

// await retries until f succeeds.
func (c *Cluster) await(what string, try func() error) error {
	const pause = 50 * time.Millisecond
	var err error
	for range upLimit / pause {
		if err = try(); err == nil {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("%s, after %s: %w", what, upLimit, err)
}

// Run runs one of Slurm's commands, in UTC, and returns its standard output. The error
// has its standard error.
func (c *Cluster) Run(name string, args ...string) (string, error) {
	var out, words bytes.Buffer
	cmd := c.command("timeout", append([]string{"60", name}, args...)...)
	cmd.Env = append(os.Environ(), "SLURM_CONF="+c.Conf(), "TZ=UTC")
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &words, c.Dir
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", name, err, strings.TrimSpace(words.String()))
	}
	return out.String(), nil
}

// Clear cancels all jobs and deletes all reservations.
func (c *Cluster) Clear() error {
	return c.await("clearing the cluster", func() error {
		jobs, err := c.Run("squeue", "-h", "-o", "%A")
		if err != nil {
			return err
		}
		if ids := strings.Fields(jobs); len(ids) > 0 {
			_, err := c.Run("scancel", ids...)
			return errors.Join(errors.New("jobs are ending"), err)
		}
		list, err := c.Run("scontrol", "-o", "show", "reservation")
		for line := range strings.Lines(list) {
			if rest, ok := strings.CutPrefix(line, "ReservationName="); ok {
				name, _, _ := strings.Cut(rest, " StartTime=")
				_, gone := c.Run("scontrol", "delete", "ReservationName="+name)
				err = errors.Join(err, gone)
			}
		}
		return err
	})
}

// Down stops the cluster and removes its directory.
func (c *Cluster) Down() error {
	if c.control != nil && c.control.ProcessState == nil {
		_ = c.Clear() // ends the jobs; the check below finds the rest
	}
	for _, cmd := range append(c.nodes, c.control, c.munged) {
		if cmd != nil && cmd.Process != nil && cmd.ProcessState == nil {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			late := time.AfterFunc(10*time.Second, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			late.Stop()
		}
	}
	close(c.starter.asked)
	return os.RemoveAll(c.Dir)
}

// Tally counts the reservations and jobs that slurmctld has logged.
func (c *Cluster) Tally() string {
	version, _ := c.Run("sinfo", "--version") // an empty version shows
	log, err := os.ReadFile(filepath.Join(c.Dir, "log", "slurmctld.log"))
	if err != nil {
		return err.Error()
	}
	reservations := bytes.Count(log, []byte("Created reservation"))
	jobs := bytes.Count(log, []byte("_slurm_rpc_submit_batch_job: JobId="))
	name, number, _ := strings.Cut(strings.TrimSpace(version), " ")
	name, _, _ = strings.Cut(name, "-") // Debian calls it slurm-wlm
	return fmt.Sprintf("%s %s: %d reservations, %d jobs", name, number, reservations, jobs)
}
