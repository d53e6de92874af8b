package local

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ramp/protocol/message"
)

// names of the machine, which a job on its network needs in an image too.
func names() []string { return []string{"/etc/hosts", "/etc/resolv.conf"} }

// system mounts the system that a job sees: the machine's, or an image.
func (p plan) system(job message.Job) ([]string, error) {
	if p.Image == "" {
		return systemDirs(), nil
	}
	places := append([]string{"/proc", "/dev", "/sys", "/etc/passwd", "/etc/group"}, p.Read...)
	for _, d := range private() {
		places = append(places, d[1])
	}
	if job.Dir != "" {
		places = append(places, filepath.Join(job.Dir, workDir))
	}
	var argv []string
	if p.Network {
		places = append(places, names()...)
		for _, name := range names() {
			argv = append(argv, "--ro-bind-try", name, name)
		}
	}
	image, err := imageDirs(p.Image, "/", places)
	return append(image, argv...), err
}

// imageDirs mounts a directory of an image. Nothing can be mounted on a read-only image, so
// directories above a place for another mount are made, and their entries mounted one by one.
func imageDirs(image, dir string, places []string) (argv []string, err error) {
	entries, err := os.ReadDir(filepath.Join(image, dir))
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		above := slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(place, path+"/") })
		switch {
		case slices.Contains(places, path):
		case above && !e.IsDir(): // a link or a file would be in the way
		case above:
			below, err := imageDirs(image, path, places)
			if err != nil {
				return nil, err
			}
			argv = append(append(argv, "--dir", path), below...)
		case e.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(filepath.Join(image, path))
			if err != nil {
				return nil, err
			}
			argv = append(argv, "--symlink", to, path)
		default:
			argv = append(argv, "--ro-bind", filepath.Join(image, path), path)
		}
	}
	return argv, err
}
