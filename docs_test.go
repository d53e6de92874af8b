package ramp_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ramp/cmd/ramp/command"
)

// help is what a command prints about itself.
func help(t *testing.T, args []string) string {
	t.Helper()
	var out, errOut bytes.Buffer
	if code := command.Main(append(args, "--help"), strings.NewReader(""), &out, &errOut); code != 0 {
		t.Fatalf("ramp %s --help: %d: %s", strings.Join(args, " "), code, errOut.String())
	}
	return out.String()
}

var (
	subcommand = regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`)
	flag       = regexp.MustCompile(`(?m)^ +(?:-[a-z], )?(--[a-z-]+)`)
)

// between is the part of s from one line to the next empty line.
func between(s, from string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, "\n\n")
	return s
}

// each calls f with every command of the tree and its own flags.
func each(t *testing.T, args []string, f func(name string, flags []string)) {
	text := help(t, args)
	var flags []string
	for _, m := range flag.FindAllStringSubmatch(between(text, "\nFlags:\n"), -1) {
		if m[1] != "--help" {
			flags = append(flags, m[1])
		}
	}
	f(strings.Join(append([]string{"ramp"}, args...), " "), flags)
	_, listed, _ := strings.Cut(text, "\nUsage:\n")
	_, listed, _ = strings.Cut(listed, "\n\n")
	listed, _, _ = strings.Cut(listed, "\nExamples:\n")
	listed, _, _ = strings.Cut(listed, "\nFlags:\n")
	for _, m := range subcommand.FindAllStringSubmatch(listed, -1) {
		if m[1] == "help" || m[1] == "completion" { // the library's own
			continue
		}
		each(t, append(args[:len(args):len(args)], m[1]), f)
	}
}

func TestEveryCommandAndFlagIsDocumented(t *testing.T) {
	doc := read(t, "docs/CLI.md")
	commands := 0
	each(t, nil, func(name string, flags []string) {
		commands++
		_, section, ok := strings.Cut(doc, "\n## "+name+"\n")
		if !ok {
			t.Errorf("docs/CLI.md has no section %q", "## "+name)
			return
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for _, f := range flags {
			if !strings.Contains(section, " "+f+" ") {
				t.Errorf("docs/CLI.md, %s: flag %s is missing", name, f)
			}
		}
	})
	if commands < 35 {
		t.Errorf("found %d commands: the help is not read rightly", commands)
	}
}

func TestEveryCommandTakesJSONAndQuiet(t *testing.T) {
	each(t, nil, func(name string, _ []string) {
		text := help(t, strings.Fields(name)[1:])
		for _, f := range []string{"--json", "--quiet"} {
			if !strings.Contains(text, f) {
				t.Errorf("%s has no %s", name, f)
			}
		}
	})
}

func TestNoCommandIsDocumentedThatIsNotThere(t *testing.T) {
	there := map[string]bool{}
	each(t, nil, func(name string, _ []string) { there[name] = true })
	for _, m := range regexp.MustCompile(`(?m)^## (ramp.*)$`).FindAllStringSubmatch(read(t, "docs/CLI.md"), -1) {
		if !there[m[1]] {
			t.Errorf("docs/CLI.md describes %q, which is not there", m[1])
		}
	}
}

func TestExitCodesAreDocumented(t *testing.T) {
	_, codes, ok := strings.Cut(help(t, nil), "Exit codes: ")
	if !ok {
		t.Fatal("ramp --help says nothing of exit codes")
	}
	codes, _, _ = strings.Cut(strings.Join(strings.Fields(codes), " "), ". ")
	for _, file := range []string{"README.md", "docs/CLI.md"} {
		doc := strings.Join(strings.Fields(read(t, file)), " ")
		for _, m := range regexp.MustCompile(`(\d) ([a-z ]+)`).FindAllStringSubmatch(codes, -1) {
			if row := "| " + m[1] + " | " + m[2]; !strings.Contains(doc, row) {
				t.Errorf("%s: no row %q for the exit code", file, row)
			}
		}
	}
}

func TestEveryKeyOfTheConfigurationIsDocumented(t *testing.T) {
	doc := read(t, "docs/OPERATIONS.md")
	keys := 0
	for _, file := range []string{"agents/config/config.go", "agents/config/resource.go", "agents/config/bank.go", "agents/config/log.go"} {
		for _, m := range regexp.MustCompile("yaml:\"([a-z_]+)").FindAllStringSubmatch(read(t, file), -1) {
			keys++
			if !regexp.MustCompile("\\| `([a-z_]+\\.)*" + m[1] + "` \\|").MatchString(doc) {
				t.Errorf("docs/OPERATIONS.md has no row for the key %q of %s", m[1], file)
			}
		}
	}
	if keys < 30 {
		t.Errorf("found %d keys: the configuration is not read rightly", keys)
	}
}

// docs/WIRE.md is for those who do not read the sources: it names each stream
// protocol, body of a message, and word that may stand in one.
func TestAllThatIsSentIsDocumented(t *testing.T) {
	doc := read(t, "docs/WIRE.md")
	body := regexp.MustCompile(`(?m)^    \w+ (\w+) = \d+;`)
	word := regexp.MustCompile(`(?m)^\t\w+ +(?:Code|Mode|Outcome|Performative)? *= "([a-z-]+)"`)
	count := 0
	for file, name := range map[string]*regexp.Regexp{
		"protocol/codec/wire/wire.proto": body, "protocol/reason.go": word, "protocol/bundle.go": word, "protocol/message.go": word,
		"agents/mesh/mesh.go": regexp.MustCompile(`"/(ramp/[a-z]+/\d+)"`), "agents/mesh/gossip.go": regexp.MustCompile(`"(ramp/[a-z]+/\d+)"`),
	} {
		for _, m := range name.FindAllStringSubmatch(read(t, file), -1) {
			count++
			if strings.Contains("ramp-queue ramp-control ramp/bare/1", m[1]) {
				continue // within a process, and of measurements
			}
			if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(doc) {
				t.Errorf("docs/WIRE.md does not name %s of %s", m[1], file)
			}
		}
	}
	if count < 90 {
		t.Errorf("found %d words: the sources are not read rightly", count)
	}
}

func TestLinksBetweenDocumentsLead(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)
	files, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := filepath.Glob("docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(append([]string{"README.md", "CONTRIBUTING.md", "CHANGELOG.md"}, files...), decisions...) {
		for _, m := range link.FindAllStringSubmatch(read(t, file), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: link to %s: %v", file, m[1], err)
			}
		}
	}
}

// What docs/JOBS.md shows is what the tests run.
func TestExamplesAreShownAsTheyAre(t *testing.T) {
	doc := read(t, "docs/JOBS.md")
	if !strings.Contains(doc, "\n"+read(t, "docs/examples/sum.py")+"```\n") {
		t.Error("docs/JOBS.md has not docs/examples/sum.py as it is")
	}
}

// The tests that the tables of RELIABILITY.md and SECURITY.md name in their last column
// must be there, and each row must name one.
func TestEveryRefusalInTheDocumentsNamesTestsThatAreThere(t *testing.T) {
	doc := read(t, "docs/RELIABILITY.md") + read(t, "docs/SECURITY.md")
	for heading, least := range map[string]int{
		"What a bank refuses": 20, "What a market refuses and survives": 40, "What a site refuses and contains": 20, "What commands and daemons refuse": 30,
		"From strangers and members": 40, "From bought jobs": 20, "From local accounts and files": 10,
	} {
		_, table, found := strings.Cut(doc, "\n## "+heading+"\n")
		table, _, _ = strings.Cut(table, "\n## ")
		tests := 0
		for line := range strings.Lines(table) {
			if cells := strings.Split(strings.Trim(line, "| \n"), "|"); strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| bad input") && !strings.HasPrefix(line, "| attack |") {
				tests += namedTests(t, cells[len(cells)-1])
			}
		}
		if !found || tests < least {
			t.Errorf("the table of %q names %d tests, want at least %d", heading, tests, least)
		}
	}
}

// namedTests counts the tests that a cell names, each behind its package; each must be
// there, and at least one.
func namedTests(t *testing.T, cell string) (tests int) {
	t.Helper()
	source := ""
	for _, m := range regexp.MustCompile("`(?:((?:[a-z]+/)*[a-z]+)|((?:Test|Fuzz)[A-Za-z0-9]+)(?:/([a-z-]+))?)`").FindAllStringSubmatch(cell, -1) {
		if m[1] != "" {
			source = sourceOfTests(t, m[1])
			continue
		}
		tests++
		if !strings.Contains(source, "func "+m[2]+"(") {
			t.Errorf("%s is not there: %s", m[2], cell)
		}
		if m[3] != "" {
			read(t, "testdata/script/"+m[3]+".txt")
		}
	}
	if tests == 0 {
		t.Errorf("no test is named: %s", cell)
	}
	return tests
}

// sourceOfTests are the test files of a package.
func sourceOfTests(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range files {
		b.WriteString(read(t, f))
	}
	return b.String()
}
