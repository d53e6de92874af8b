package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ramp/agents/config"
	"ramp/agents/queue/local"
)

// What a site chooses of programs is in its configuration, and readable; a driver that
// cannot contain programs refuses to.
func TestASiteChoosesThePrograms(t *testing.T) {
	t.Parallel()
	own := "as-user:" + config.AccountName()
	for _, c := range []struct {
		driver, programs, has, refused string
	}{
		{"local", "", "# jobs:", ""},
		{"local", "no", "# jobs:", ""},
		{"local", "contained", `- {agent: "*", commands: true}`, ""},
		{"slurm", own, `user: "` + config.AccountName() + `", commands: true}`, ""},
		{"slurm", "contained", "", "only the driver local"},
		{"local", "all", "", "want contained"},
		{"local", "as-user:nobody-of-this-name", "", "nobody-of-this-name"},
	} {
		terms := config.SiteTerms{Start: "2", Least: "1", Programs: c.programs}
		if err := terms.CheckPrograms(c.driver); err != nil || c.refused != "" {
			if c.refused == "" || err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s, %q: %v; want %q", c.driver, c.programs, err, c.refused)
			}
			continue
		}
		text, err := config.Text(config.Inspection{Driver: c.driver}, config.Found{Name: "batch", Cores: 4}, terms, time.Now())
		if err != nil || !strings.Contains(string(text), c.has) {
			t.Errorf("%s, %q: %v, no %q in\n%s", c.driver, c.programs, err, c.has, text)
		}
	}
}

// A site that runs programs as an account accepts what its machine lacks, and says so, but never that they
// read the agent's key unseen.
func TestASiteAcceptsOnlyWhatItsMachineLacks(t *testing.T) {
	t.Parallel()
	own, guest := "as-user:"+config.AccountName(), "as-user:guest"
	ns, cg := local.Lack{Protection: local.Namespaces, Why: "no bwrap"}, local.Lack{Protection: local.Cgroup, Why: "not delegated"}
	for _, c := range []struct {
		driver, programs string
		lacks            []local.Lack
		accepts, says    string
	}{
		{"local", own, nil, "", ""},
		{"local", own, []local.Lack{cg}, "cgroup", "without the protection cgroup"},
		{"local", own, []local.Lack{ns, cg}, "", "are refused until this machine can contain them: no bwrap"},
		{"local", guest, []local.Lack{ns, cg}, "namespaces cgroup", "without the protection namespaces"},
		{"local", config.Contained, []local.Lack{cg}, "", "are refused until this machine can contain them: not delegated"},
		{"local", config.Contained, nil, "", ""},
		{"local", config.NoPrograms, []local.Lack{cg}, "", ""},
		{"slurm", own, nil, "uids", "can read its key"},
		{"slurm", guest, nil, "", ""},
	} {
		terms := config.SiteTerms{Programs: c.programs, Lacks: c.lacks}
		if got := strings.Join(terms.Accepts(c.driver), " "); got != c.accepts {
			t.Errorf("%s, %s, lacking %v: accepts %q", c.driver, c.programs, c.lacks, got)
		}
		said := strings.Join(terms.Exposed(c.driver), "\n")
		if !strings.Contains(said, c.says) || c.says == "" && said != "" {
			t.Errorf("%s, %s, lacking %v: says %q", c.driver, c.programs, c.lacks, said)
		}
	}
}

// Where an agent of root has jobs run as other accounts, which cannot enter its directory, their files are
// elsewhere: each agent has a directory of its own.
func TestJobsOfOtherAccountsHaveADirectoryThatTheyCanEnter(t *testing.T) {
	private := filepath.Join(t.TempDir(), "site")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	root := os.Geteuid() == 0
	for _, c := range []struct {
		driver, programs, dir string
		elsewhere             bool
	}{
		{"local", "contained", private, root},
		{"local", "contained", filepath.Join(private, "new"), root},
		{"local", "contained", "/", false},
		{"local", "no", private, false},
		{"local", "as-user:root", private, false},
		{"slurm", "as-user:nobody", private, false},
	} {
		if got := (config.SiteTerms{Programs: c.programs}).JobsOf(c.driver, c.dir); (got != "") != c.elsewhere || got != "" && got == (config.SiteTerms{Programs: c.programs}).JobsOf(c.driver, c.dir+"2") {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// What is written to a device or a pipe does not take its place.
func TestAPipeIsWrittenToAndStays(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		b, err := os.ReadFile(pipe)
		got <- fmt.Sprint(string(b), err)
	}()
	if err := config.ReplaceFile(pipe, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(pipe)
	if err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Fatalf("it is %v, %v", info.Mode(), err)
	}
	if s := <-got; s != "text<nil>" {
		t.Errorf("read %q", s)
	}
}
