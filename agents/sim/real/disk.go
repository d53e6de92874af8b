package real

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	mkfs        = "mkfs.ext4"
	loopControl = "/dev/loop-control"
	ballastName = ".ballast" // fills the disk
	mountsEnv   = "RAMP_SOAK_OWN_MOUNTS"
	loopTries   = 20 // another process may take the free device first
)

// OwnMounts moves this process into a mount namespace of its own by executing it again with the
// same arguments, process ID and terminal. All disks of a soak then disappear with its last
// process, even after SIGKILL. Call it before anything else; it returns only in the new namespace.
func OwnMounts() error {
	if os.Getenv(mountsEnv) == "1" {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	runtime.LockOSThread() // not unlocked: the thread becomes the process
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	return syscall.Exec(exe, os.Args, append(os.Environ(), mountsEnv+"=1"))
}

// disk is an agent's file system.
type disk struct{ image, dir string }

// makeDisk creates a file system in an image and mounts it.
func makeDisk(image, dir string) (disk, error) {
	d := disk{image, dir}
	f, err := os.OpenFile(image, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return d, err
	}
	if err := errors.Join(f.Truncate(diskSize), f.Close(), os.MkdirAll(dir, 0o700)); err != nil {
		return d, err
	}
	if out, err := exec.Command(mkfs, "-q", "-m", "0", "-F", image).CombinedOutput(); err != nil {
		return d, fmt.Errorf("%s %s: %w: %s", mkfs, image, err, out)
	}
	return d, d.mount()
}

// mount mounts the image through a loop device that detaches by itself.
func (d disk) mount() error {
	loop, err := attach(d.image)
	if err != nil {
		return fmt.Errorf("loop device for %s: %w", d.image, err)
	}
	defer loop.Close()
	if err := unix.Mount(loop.Name(), d.dir, "ext4", unix.MS_NOATIME, ""); err != nil {
		return fmt.Errorf("mount %s: %w", d.image, err)
	}
	return nil
}

// attach returns a loop device attached to the image.
func attach(image string) (*os.File, error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer control.Close()
	for range loopTries {
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return nil, err
		}
		loop, err := os.OpenFile(fmt.Sprintf("/dev/loop%d", n), os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		conf := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR}}
		err = unix.IoctlLoopConfigure(int(loop.Fd()), &conf)
		if err == nil {
			return loop, nil
		}
		if loop.Close(); !errors.Is(err, unix.EBUSY) {
			return nil, err
		}
	}
	return nil, errors.New("other processes took every free loop device")
}

// unmount unmounts the file system. The image stays.
func (d disk) unmount() error { return unix.Unmount(d.dir, unix.MNT_DETACH) }

// fill takes all free space: the next write of a block fails with ENOSPC.
func (d disk) fill() error {
	f, err := os.OpenFile(filepath.Join(d.dir, ballastName), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size, step := int64(0), int64(64<<20); step >= 512; {
		switch err := unix.Fallocate(int(f.Fd()), 0, size, step); {
		case err == nil:
			size += step
		case errors.Is(err, unix.ENOSPC):
			step /= 2
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("fill %s: %w", d.dir, err)
		}
	}
	return nil
}

// free frees the space again.
func (d disk) free() error {
	err := os.Remove(filepath.Join(d.dir, ballastName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
