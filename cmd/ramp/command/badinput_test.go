package command_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ramp/cmd/ramp/command"
	"ramp/rfql/jobfile"

	"github.com/spf13/cobra"
)

// place is a directory with an authority, another authority, and a bank of theirs, all
// made by commands in this process.
type place struct {
	t   *testing.T
	dir string
}

func newPlace(t *testing.T) place {
	t.Helper()
	p := place{t, t.TempDir()}
	p.good("ca init --dir DIR/ca")
	p.good("ca init --dir DIR/other --name other")
	p.good("ca issue ann --dir DIR/ca --out DIR/ann")
	p.good("ca issue eve --dir DIR/other --out DIR/eve")
	p.good("bank init --currency CPU --ca DIR/ca --uses 0 --dir DIR/bank")
	p.good("bank account open ann --cert DIR/ann/agent.pem --dir DIR/bank")
	return p
}

// run gives a command line; DIR is the place.
func (p place) run(line string) (code int, out, told string) {
	var o, e bytes.Buffer
	words := strings.Fields(strings.ReplaceAll(line, "DIR", p.dir))
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "''", "")
	}
	code = command.Main(words, strings.NewReader(""), &o, &e)
	return code, o.String(), strings.ReplaceAll(e.String(), p.dir, "DIR")
}

func (p place) good(line string) string {
	p.t.Helper()
	code, out, told := p.run(line)
	if code != 0 {
		p.t.Fatalf("ramp %s: %d: %s", line, code, told)
	}
	return out
}

// refused gives a line that must be refused with a code, in one line that has words,
// and with a hint below it if hint is not empty.
func (p place) refused(line string, want int, words, hint string) {
	p.t.Helper()
	code, _, told := p.run(line)
	lines := strings.Split(strings.TrimRight(told, "\n"), "\n")
	if code != want || !strings.HasPrefix(lines[0], "ramp: ") || !strings.Contains(lines[0], words) || len(lines) > 2 {
		p.t.Errorf("ramp %s: code %d and %q, want code %d and one line with %q", line, code, told, want, words)
	}
	if hint != "" && (len(lines) < 2 || !strings.HasPrefix(lines[1], "  hint: ") || !strings.Contains(lines[1], hint)) {
		p.t.Errorf("ramp %s: %q, want a hint with %q", line, told, hint)
	}
}

// What is wrong with a command line is told in the words of this program: what was
// given, what is allowed, and where more is said.
func TestAWrongCommandLineIsToldInOneLine(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, c := range []struct {
		line        string
		words, hint string
	}{
		{"user show", "0 arguments: want ramp user show ID", "ramp user show --help"},
		{"user cancel a b", "2 arguments: want ramp user cancel ID", ""},
		{"bank transfer a --dir DIR/bank", "1 argument: want ramp bank transfer FROM TO AMOUNT", ""},
		{"ca revoke --dir DIR/ca", "0 arguments: want ramp ca revoke CERT...", ""},
		{"user receipt x", "--out is required; usage: ramp user receipt ID --out DIR", ""},
		{"bank init --dir DIR/new", "--currency is required", ""},
		{"user list --limit x", `--limit "x": want a whole number`, "ramp user list --help"},
		{"bank statement ann --after -3", `--after "-3": want a whole number, zero or more`, ""},
		{"user list --watch 5", "user list: '5': this command takes no argument", "such as --watch=5s"},
		{"bank audit extra", "bank audit: 'extra': this command takes no argument", "ramp bank audit --help"},
		{"version extra", "version: 'extra': this command takes no argument", ""},
		{"user buy --max-wait soon", `--max-wait "soon": want a time such as`, ""},
		{"sim run --rate x", `--rate "x": want a number`, ""},
		{"sim run --adversaries odd", `--adversaries "odd": want NAME=NUMBER`, ""},
		{"demo --keep=maybe", `--keep "maybe": want true or false`, ""},
		{"user exchange CPU GPU -1", "AMOUNT -1: want a number that is not below zero", ""},
		{"user init --join DIR", "read DIR: is a directory", ""},
		{"user init --join /dev/zero", "/dev/zero: more than 262144 bytes", "right file"},
		{"user quote nosuch.xml", "cannot open nosuch.xml: no such file", "begins where the command runs"},
		{"user quote ''", `ramp: FILE "": want a path`, "begins where the command runs"},
		{"rfql validate ''", `ramp: FILE "": want a path`, "begins where the command runs"},
		{"ca show ''", `ramp: FILE "": want a path`, "begins where the command runs"},
		{"bank backup ''", `ramp: FILE "": want a path`, "begins where the command runs"},
		{"swf info ''", `workload log: FILE "": want a path`, "begins where the command runs"},
		{"user byu", `unknown command "byu"`, "ramp user buy"},
		{"user quote --corse 2", "unknown flag: --corse", "--cores"},
		{"user list --dir DIR/nowhere", "no configuration at", "ramp user init"},
		{"rfql new --cores 1 --wall 100000h --within 1d --max-price 1", `--wall "100000h": want a time such as 2h, 1d12h, 10 (minutes), 1:30:00 or 1-12 (days-hours), at most ten years`, ""},
		{"rfql new --cores 1 --wall 1h --within 1d --max-price 99999999999999", "at most 9223372036854.775807", ""},
		{"bank statement ann --from 2026-02-01T00:00:00Z --to 2026-01-01T00:00:00Z --dir DIR/bank", "--to must be later than --from", ""},
		{"bank report --from 2026-01-01T00:00:00Z --to 2026-01-01T00:00:00Z --dir DIR/bank", "--to must be later than --from", ""},
		{"user statement --from 2026-02-01T00:00:00Z --to 2026-01-01T00:00:00Z", "--to must be later than --from", ""},
		{"bank policy CPU --dir DIR/bank", "1 argument: want ramp bank policy", "ramp bank policy --help"},
		{"bank witness --heads DIR/none/heads.json --dir DIR/bank", "--heads DIR/none/heads.json: want a file in an existing directory", ""},
		{"bank witness --stale 1ms --dir DIR/bank", "--stale 1ms: want 1s or more", ""},
		{"bench bank --entries -1", "--entries -1: want zero or more", ""},
		{"bench ledger --accounts 10 --entries 19 --dir DIR/big", "--entries 19: want at least 20, two for each account", ""},
		{"bench auction --time 0s", "--time 0s: want more than 0s", ""},
		{"sim replay DIR/none", "no such file", "ramp sim explore"},
		{"sim run --faults DIR/none", "no such file", "none, light, forgetful, heavy"},
		{"sim experiment rounds --logs DIR/none", "no such file", "ramp swf synth"},
	} {
		p.refused(c.line, 2, c.words, c.hint)
	}
}

// A mistyped command, at every place where there is a choice: its last two letters
// exchanged, one left out, one too many. The command that was meant is suggested.
func TestAMistypedCommandIsTheOneThatIsSuggested(t *testing.T) {
	t.Parallel()
	mistyped := 0
	everyCommand(command.Root(), func(c *cobra.Command) {
		if c.Parent() == nil {
			return
		}
		for _, word := range typosOf(c) {
			var told bytes.Buffer
			line := append(strings.Fields(c.Parent().CommandPath())[1:], word)
			code := command.Main(line, strings.NewReader(""), &told, &told)
			lines := strings.Split(strings.TrimSpace(told.String()), "\n")
			if code != 2 || len(lines) != 2 || lines[0] != fmt.Sprintf("ramp: unknown command %q of %q", word, c.Parent().CommandPath()) {
				t.Errorf("ramp %v: %d: %q", line, code, lines)
				continue
			}
			if lines[1] != "  hint: did you mean '"+c.CommandPath()+"'?" {
				t.Errorf("ramp %v: %q, want %q", line, lines[1], c.CommandPath())
			}
			mistyped++
		}
	})
	if mistyped < 200 {
		t.Errorf("%d words were tried: the tree is not walked rightly", mistyped)
	}
}

// typosOf are words that mean a command and are none, nor as near to another one; of
// two that are as near, the one that the word begins is meant.
func typosOf(c *cobra.Command) (typed []string) {
	n := c.Name()
	swapped := n[:len(n)-2] + string(n[len(n)-1]) + string(n[len(n)-2])
	for _, w := range []string{swapped, n[:len(n)-1], n + "x", n[:1] + n[2:]} {
		nearer := func(other *cobra.Command) bool {
			return other != c && jobfile.Distance(other.Name(), w) <= jobfile.Distance(n, w) && !strings.HasPrefix(n, w)
		}
		if w != n && !slices.ContainsFunc(c.Parent().Commands(), func(other *cobra.Command) bool { return other.Name() == w || nearer(other) }) {
			typed = append(typed, w)
		}
	}
	return typed
}

// A wall time that does not fit is refused in the words of the flags.
func TestAWallTimeThatDoesNotFitIsRefusedPlainly(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	_, _, told := p.run("rfql new --cores 1 --wall 1h --within 1m --max-price 1")
	if !strings.Contains(told, "--wall 1h does not fit into --within 1m\n") {
		t.Errorf("told %q", told)
	}
}

// Of an authority: what it never issued it cannot revoke, and what would never be valid
// it does not sign.
func TestAnAuthorityRefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.refused("ca revoke DIR/eve/agent.pem --dir DIR/ca", 2, "was not issued by the authority in", "can revoke it")
	if _, err := os.Stat(filepath.Join(p.dir, "ca/revoked.pem")); err == nil {
		t.Error("a list was written")
	}
	p.good("ca revoke DIR/ann/agent.pem --dir DIR/ca")
	p.refused("ca init --lifetime -1h --dir DIR/c2", 2, "--lifetime -1h: want more than 0s", "")
	p.refused("ca issue bob --lifetime 0s --out DIR/bob --dir DIR/ca", 2, "--lifetime 0s: want more than 0s", "")
	p.good("ca request bob --out DIR/bob")
	p.refused("ca sign DIR/bob/agent.csr --lifetime 0s --dir DIR/ca", 2, "--lifetime 0s: want more than 0s", "")
	if code, out, _ := p.run("ca show --dir DIR/ca"); code != 0 || !strings.Contains(out, "agent        -") {
		t.Errorf("ca show: %d, %q", code, out)
	}
}

// An address that cannot be one is refused before anything is made of it, and so the
// command may be given again, rightly.
func TestABadAddressLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for line, want := range map[string]string{
		"bank init --currency CPU --listen 4101 --dir DIR/b2":                                            `--listen "4101": want an address`,
		"bank init --currency CPU --address bank.example.org --dir DIR/b2":                               `--address "bank.example.org": want an address with a port, such as /dns4/bank.example.org/tcp/4101`,
		"bank invite --address foo --out DIR/i --dir DIR/bank":                                           `address "foo": want an address with a port, such as /dns4/bank.example.org/tcp/4101`,
		"resource init --driver local --claims DIR/claims --listen 4101 --dir DIR/s2":                    `--listen "4101": want an address`,
		"resource init --driver local --claims DIR/claims --bootstrap /ip4/127.0.0.1/tcp/1 --dir DIR/s2": `--bootstrap "/ip4/127.0.0.1/tcp/1": `,
	} {
		p.refused(line, 2, want, "")
	}
	for _, name := range []string{"b2", "s2"} {
		if _, err := os.Stat(filepath.Join(p.dir, name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	p.good("bank init --currency CPU --dir DIR/b2")
	p.good("resource init --driver local --claims DIR/claims --dir DIR/s2")
}

// 'config check' finds addresses and times that no daemon could use.
func TestConfigCheckLooksAtAddressesAndTimes(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.dir, "bank/config.yaml")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	p.good("bank config check --dir DIR/bank")
	for _, c := range []struct{ from, to, words string }{
		{"listen:\n", "listen:\n  - 127.0.0.1:4101\n", `listen "127.0.0.1:4101": want an address with a port, such as /ip4/0.0.0.0/tcp/4001`},
		{"# report_within: 24h", "report_within: 10ms", `bank.report_within: 10ms: want 1s..24h`},
		{"# report_within: 24h", "report_within: 25h", `bank.report_within: 25h: want 1s..24h`},
		{"listen:\n", "announce: [foo]\nlisten:\n", `announce "foo": want an address with a port, such as /dns4/bank.example.org/tcp/4101`},
		{"listen:\n", "bootstrap: [foo]\nlisten:\n", `bootstrap "foo": want an address with a port, such as /ip4/192.0.2.7/tcp/4101/p2p/ID`},
		{"listen:\n", "bootstrap: [/ip4/127.0.0.1/tcp/4101]\nlisten:\n", `bootstrap "/ip4/127.0.0.1/tcp/4101"`},
	} {
		bad := strings.Replace(string(good), c.from, c.to, 1)
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		p.refused("bank config check --dir DIR/bank", 2, c.words, "")
	}
}

// Only banks and sites keep indexes; a user's configuration that wants one is refused.
func TestAUserKeepsNoIndex(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.dir, "ann/config.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("user: {}\n")
	p.good("user config check --dir DIR/ann")
	write("index: true\nuser: {}\n")
	p.refused("user config check --dir DIR/ann", 2, "configuration: index: only a bank or a site can be an index", "leave it out")
}

// What an operator orders wrongly is told in the operator's words.
func TestABankTellsWhatIsWrongWithAnOrder(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, c := range []struct {
		line        string
		code        int
		words, hint string
	}{
		{"bank recovery end", 4, "the bank is not in recovery", ""},
		{"bank group set Z --member ann=100", 4, "group:Z has no account here", ""},
		{"bank group set A --member ann=50", 2, "sum to 50 %, want 100 %", ""},
		{"bank policy CPU plain --decay 2", 2, "decay of 2 per day: only an allowance has one", ""},
		{"bank backup DIR/none/b.db", 2, "no such file", "a directory that is there"},
		{"bank backup DIR/ann/agent.pem", 2, "exists", "never overwrites"},
		{"bank restore DIR/ann/agent.pem --verify", 1, "agent.pem: ", ""},
		{"bank invite --uses 1 --out DIR/none/i.ramp", 2, "no such file", ""},
		{"bank credit ann 0", 2, `AMOUNT "0": want a positive number of credits, at most 9223372036854.775807`, ""},
		{"bank credit ann 99999999999999999999", 2, "at most 9223372036854.775807", ""},
		{"bank credit nobody 1", 2, `no account "nobody"`, "bank balance"},
		{"bank verify DIR/nowhere", 2, "no receipt at", "ramp user receipt ID"},
		{"bank verify DIR/ann", 2, "no receipt at", "ramp user receipt ID"},
	} {
		line := c.line
		if !strings.HasPrefix(line, "bank verify") {
			line += " --dir DIR/bank"
		}
		p.refused(line, c.code, c.words, c.hint)
	}
}
