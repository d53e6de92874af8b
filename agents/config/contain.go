package config

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ramp/agents/exit"
	"ramp/agents/queue"
	"ramp/agents/queue/local"
)

// Bounds of the uids of jobs: a range has no account of the system's.
const (
	leastUID = 1000
	mostUID  = 1<<32 - 3 // the last two mean nobody in particular
)

// containment says how jobs of the driver local are kept from the machine and from each other.
func (c *Config) containment() (local.Containment, error) {
	j := c.Resource.Jobs
	k := local.Containment{Network: j.Network, Image: j.Image, Accept: j.Accept}
	for i, name := range j.Accept {
		if !slices.Contains(local.Protections(), name) {
			return k, exit.Fail(exit.Usage, "", "configuration: resource.jobs.accept[%d] %q: want %s", i, name, strings.Join(local.Protections(), " or "))
		}
	}
	if c.Resource.Driver != "local" && (j.Network || len(j.Read) > 0 || j.Image != "" || j.UIDs != "") {
		return k, exit.Fail(exit.Usage, "", "configuration: resource.jobs: network, read, image and uids need the driver local")
	}
	for i, dir := range j.Read {
		if why := c.unreadable(dir); why != "" {
			return k, exit.Fail(exit.Usage, "", "configuration: resource.jobs.read[%d] %q: %s", i, dir, why)
		}
		k.Read = append(k.Read, filepath.Clean(dir))
	}
	if why := c.unreadable(j.Image); j.Image != "" && why != "" {
		return k, exit.Fail(exit.Usage, "", "configuration: resource.jobs.image %q: %s", j.Image, why)
	}
	if j.UIDs == "" {
		k.First, k.Last = subordinate()
		return k, nil
	}
	k.Named = true
	var ok bool
	if k.First, k.Last, ok = uidRange(j.UIDs); !ok {
		return k, exit.Fail(exit.Usage, "", "configuration: resource.jobs.uids %q: want a range within %d-%d, such as 100000-100999", j.UIDs, leastUID, int64(mostUID))
	}
	return k, nil
}

// unreadable says why jobs must not see a directory; "" if they may.
func (c *Config) unreadable(dir string) string {
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case !filepath.IsAbs(dir):
		return "want an absolute path"
	case err != nil:
		return "it does not exist"
	}
	for _, path := range []string{c.Dir, c.Path(c.Key)} {
		secret, err := filepath.EvalSymlinks(path)
		if err == nil {
			secret, err = filepath.Abs(secret)
		}
		if in, outside := filepath.Rel(real, secret); err == nil && outside == nil && filepath.IsLocal(in) {
			return "the agent's own files are below it"
		}
	}
	return ""
}

func uidRange(text string) (first, last int, ok bool) {
	from, to, _ := strings.Cut(text, "-")
	first, err1 := strconv.Atoi(from)
	last, err2 := strconv.Atoi(to)
	return first, last, err1 == nil && err2 == nil && leastUID <= first && first <= last && last <= mostUID
}

// subordinate is the range that /etc/subuid gives to the agent's account, or 0, 0.
func subordinate() (first, last int) {
	self, err := user.Current()
	if err != nil {
		return 0, 0
	}
	b, _ := os.ReadFile("/etc/subuid") // without it there is no range
	for line := range strings.Lines(string(b)) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || f[0] != self.Username && f[0] != self.Uid {
			continue
		}
		if n, err := strconv.Atoi(f[2]); err == nil {
			from, _ := strconv.Atoi(f[1]) // 0 is no range
			if first, last, ok := uidRange(fmt.Sprintf("%d-%d", from, from+n-1)); ok {
				return first, last
			}
		}
	}
	return 0, 0
}

// ownUIDs reports whether jobs run under uids of a range, not under accounts.
func (c *Config) ownUIDs() bool {
	k, err := c.containment()
	return err == nil && c.Resource.Driver == "local" && os.Geteuid() == 0 && k.First > 0
}

// runsNothing says why no program can run in sold slots, or "" if it can, and what the machine lacks
// of what should contain it.
func (c *Config) runsNothing() (why string, lacks []local.Lack, err error) {
	k, err := c.containment()
	switch {
	case err != nil:
		return "", nil, err
	case c.Resource.Driver == "swf":
		return "the driver swf is a model", nil, nil
	case c.Resource.Driver == "local":
		why, lacks = k.Try()
		return why, lacks, nil
	case slices.Contains(k.Accept, local.UIDs):
		return "", nil, nil
	}
	for _, a := range c.Resource.Jobs.Accounts {
		own := func(name string) bool {
			who, err := queue.AccountOf(name)
			return err == nil && who.UID == os.Geteuid()
		}
		if a.Commands && slices.ContainsFunc(c.Resource.Jobs.users(a), own) {
			return local.UIDs + ": commands of " + a.Agent + " would run as the agent itself, and could read its key", nil, nil
		}
	}
	return "", nil, nil
}

// users are the local accounts of an entry: one, or those of its pool.
func (j *Jobs) users(a Account) []string {
	if pool := j.Pools[a.User]; len(pool) > 0 {
		return pool
	}
	return []string{a.User}
}

// uncontained helps where programs do not run.
const uncontained = "docs/JOBS.md#containment says what contains programs, and what a site may accept"
