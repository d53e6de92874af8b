package control

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// CommandKey is a key for an order of this process, from which others on this machine can
// see whether the process still lives.
func CommandKey() string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // it never fails
	return fmt.Sprintf("%s.%d.%s.%x", machine(), os.Getpid(), begun(os.Getpid()), random)
}

// CommandLives reports whether the process of a CommandKey may still run. For a key of
// another machine, or of another form, nobody knows: then it may.
func CommandLives(key string) bool {
	part := strings.Split(key, ".")
	here := machine()
	switch {
	case len(part) != 4 || len(part[0]) != len(here) || part[0][:8] != here[:8]:
		return true
	case part[0] != here: // before the machine was restarted
		return false
	}
	pid, err := strconv.Atoi(part[1])
	hidden := stat(pid) == nil && pid > 0 && errors.Is(syscall.Kill(pid, 0), syscall.EPERM) // of another account
	return err != nil || begun(pid) == part[2] || hidden
}

// machine names this machine in its present run: a process number means nothing elsewhere
// or after a restart.
func machine() string {
	host, _ := os.Hostname()
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	name, run := sha256.Sum256([]byte(host)), sha256.Sum256(boot)
	return hex.EncodeToString(name[:4]) + hex.EncodeToString(run[:4])
}

// SessionEnv names the session of a command where there is no terminal.
const SessionEnv = "RAMP_SESSION"

// Session identifies where this command was given: the shell that called it, in its terminal
// session. It is "" without a terminal, unless the environment names a session.
func Session() string {
	key := os.Getenv(SessionEnv)
	if key == "" {
		me := stat(os.Getpid())
		if me == nil || me[statTerminal] == "0" {
			return ""
		}
		leader, _ := strconv.Atoi(me[statSession])
		key = strings.Join([]string{machine(), me[statTerminal], me[statSession], begun(leader), me[statParent], begun(os.Getppid())}, ".")
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

// Fields of /proc/PID/stat behind the process's name.
const statState, statParent, statSession, statTerminal, statStart = 0, 1, 3, 4, 19

// stat returns the fields of a process behind its name; nil if there is no such process.
func stat(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:])) // a name may have spaces
	if len(fields) <= statStart {
		return nil
	}
	return fields
}

// begun is when a process began, in clock ticks since the machine started; empty: there is
// no such process.
func begun(pid int) string {
	fields := stat(pid)
	if fields == nil || fields[statState] == "Z" {
		return ""
	}
	return fields[statStart]
}
