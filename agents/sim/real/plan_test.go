package real_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ramp/agents/sim/real"
)

// kinds are all that a plan may have.
var kinds = []real.Kind{real.Kill, real.Stop, real.CutOneWay, real.CutBoth, real.Isolate, real.DiskFull}

func TestASeedIsAPlan(t *testing.T) {
	plan := func(seed uint64) []real.Fault { return real.Plan(seed, 16, 15*time.Minute, 2*time.Second) }
	if !reflect.DeepEqual(plan(1), plan(1)) || reflect.DeepEqual(plan(1), plan(2)) {
		t.Error("a plan is not what its seed says")
	}
	count := map[real.Kind]int{}
	bank := 0
	for _, f := range plan(1) {
		count[f.Kind]++
		if f.Agent == 0 {
			bank++
		}
	}
	for _, k := range kinds {
		if count[k] < 20 {
			t.Errorf("%d faults of kind %s in 15 minutes", count[k], k)
		}
	}
	if bank < 20 {
		t.Errorf("the bank is hit %d times in 15 minutes", bank)
	}
}

func TestFaultsFitTheirTimeAndTheirAgents(t *testing.T) {
	for seed := range uint64(200) {
		const agents, length = 4, 2 * time.Minute
		plan := real.Plan(seed, agents, length, 500*time.Millisecond)
		if !slices.IsSorted(real.Acts(plan)) {
			t.Fatalf("seed %d: not in order of time", seed)
		}
		for i, f := range plan {
			if f.At < 0 || f.At+f.For > length || f.Agent < 0 || f.Agent >= agents || f.Peer < 0 || f.Peer >= agents || !slices.Contains(kinds, f.Kind) {
				t.Fatalf("seed %d: %+v", seed, f)
			}
			if strings.HasPrefix(string(f.Kind), "cut") && f.Peer == f.Agent {
				t.Fatalf("seed %d: %+v cuts nobody off", seed, f)
			}
			for _, g := range plan[:i] {
				own := f.Kind == real.Kill || f.Kind == real.Stop || f.Kind == real.DiskFull
				if own && g.Kind == f.Kind && g.Agent == f.Agent && g.At+g.For > f.At {
					t.Fatalf("seed %d: %+v while %+v", seed, f, g)
				}
			}
		}
	}
}

// A full disk refuses the next block with ENOSPC, and takes it when it has room.
func TestADiskFillsAndEmpties(t *testing.T) {
	if err := real.Available(); err != nil {
		t.Skip(err)
	}
	runtime.LockOSThread() // never given back: its mounts go with the thread
	must(t, unix.Unshare(unix.CLONE_NEWNS))
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	dir := t.TempDir()
	at := filepath.Join(dir, "disk")
	fill, free, unmount, err := real.Disk(filepath.Join(dir, "image"), at)
	must(t, err)
	defer func() { must(t, unmount()) }()
	f, err := os.Create(filepath.Join(at, "journal"))
	must(t, err)
	defer f.Close()
	write := func() error {
		_, err := f.Write(make([]byte, 64<<10))
		return errors.Join(err, f.Sync())
	}
	must(t, write())
	must(t, fill())
	if err := write(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a full disk: %v", err)
	}
	must(t, free())
	must(t, write())
	must(t, free()) // it has room already
}

func TestWrongConfigurationsAreNamed(t *testing.T) {
	full := t.TempDir()
	must(t, os.WriteFile(filepath.Join(full, "x"), nil, 0o600))
	good := real.Config{Dir: t.TempDir(), Resources: 1, Users: 1, Length: time.Minute, Every: time.Second}
	if len(good.Dir) < 60 {
		must(t, good.Validate())
	}
	for want, change := range map[string]func(c *real.Config){
		"--resources 0":    func(c *real.Config) { c.Resources = 0 },
		"--users 51":       func(c *real.Config) { c.Users = 51 },
		"--minutes -0.0":   func(c *real.Config) { c.Length = -time.Second },
		"--every 0s":       func(c *real.Config) { c.Every = 0 },
		"is not empty":     func(c *real.Config) { c.Dir = full },
		"no such file":     func(c *real.Config) { c.Dir = "/nowhere" },
		"want at most 60,": func(c *real.Config) { c.Dir = "/" + strings.Repeat("x", 60) },
	} {
		c := good
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", c, err, want)
		}
	}
}
