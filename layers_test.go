// Package ramp_test holds what no single package can: who may import whom, and
// that the documents say what the program does.
package ramp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layer is a row of the table of imports: a package, whether it is pure, and
// what its files (tests apart) may import of this module and of others.
type layer struct {
	pkg     string
	purity  purity
	ours    string // packages of this module, with spaces between
	outside string // prefixes of import paths of other modules, likewise
}

type purity int

const (
	impure   purity = iota
	pure            // no I/O, no clock, no chance, no goroutines
	lockable        // pure, but behind a mutex, for several workers
	support         // for tests: no other package's program imports it
)

// table is the whole table; docs/ARCHITECTURE.md explains it.
func table() []layer {
	return []layer{
		{"protocol", pure, "", ""},
		{"rfql", pure, "protocol", ""},
		{"rfql/compose", pure, "protocol rfql", ""},
		{"rfql/jobfile", pure, "", "go.yaml.in/yaml"},
		{"protocol/acl", pure, "protocol", ""},
		{"protocol/identity", lockable, "protocol", ""},
		{"protocol/contract", pure, "protocol protocol/identity", ""},
		{"protocol/invitation", pure, "protocol protocol/identity", ""},
		{"protocol/message", pure, "protocol protocol/contract", ""},
		{"protocol/codec", pure, "protocol protocol/acl protocol/codec/wire protocol/contract protocol/identity protocol/message", "google.golang.org/protobuf"},
		{"protocol/codec/wire", impure, "", "google.golang.org/protobuf github.com/planetscale/vtprotobuf"}, // generated
		{"protocol/clearing", pure, "protocol protocol/clearing/lp", ""},
		{"protocol/clearing/lp", pure, "", ""},
		{"protocol/auction", pure, "protocol protocol/clearing protocol/message rfql", ""},
		{"protocol/english", pure, "protocol protocol/message", ""},
		{"protocol/english/rules", pure, "protocol protocol/english protocol/message rfql/jobfile", "go.yaml.in/yaml"},
		{"protocol/reserve", pure, "protocol protocol/contract protocol/message", ""},
		{"bank/row", pure, "protocol", ""},
		{"bank/decay", pure, "protocol", ""},
		{"bank/sold", pure, "protocol bank/row", ""},
		{"bank/voids", pure, "protocol bank/row", ""},
		{"bank/archive", pure, "", ""},
		{"bank/ledger", pure, "protocol bank/archive bank/decay bank/row bank/sold bank/voids", ""},
		{"bank/audit", pure, "protocol protocol/contract bank/ledger", "github.com/transparency-dev/merkle"},
		{"bank/boltfile", impure, "bank/row", "go.etcd.io/bbolt"},
		{"bank/ledgerdb", impure, "protocol protocol/contract bank/audit bank/boltfile bank/ledger bank/row bank/sold", "go.etcd.io/bbolt"},
		{"bank/ledgeretcd", impure, "protocol bank/boltfile bank/ledgerdb bank/row", ""},
		{"bank/ledgeretcd/etcdtest", support, "agents/porttest", ""},
		{"bank/books", pure, "protocol bank/ledger", ""},
		{"agents", impure, "protocol protocol/message", ""},
		{"agents/workload", pure, "", "gonum.org/v1/gonum"},
		{"agents/workload/published", impure, "", ""},
		{"agents/receipts", pure, "bank/audit protocol protocol/contract protocol/identity protocol/message protocol/reserve", ""},
		{"agents/index", pure, "protocol protocol/codec protocol/identity protocol/message", ""},
		{"agents/user/sweep", pure, "protocol", ""},
		{"agents/user/sweep/plan", pure, "agents/user/sweep protocol protocol/message rfql rfql/compose rfql/jobfile", "go.yaml.in/yaml"},
		{"agents/user/sweep/chart", pure, "protocol protocol/message", "gonum.org/v1/plot"},
		{"agents/user/runway", pure, "bank/ledger protocol protocol/message", ""},
		{"agents/user/sweeper", pure, "agents/user/sweep agents/user/sweep/plan protocol protocol/message rfql", ""},
		{"agents/user", pure, "agents/index agents/receipts agents/user/sweeper protocol protocol/auction protocol/contract protocol/identity protocol/message protocol/reserve rfql", ""},
		{"agents/resource", pure, "agents/receipts protocol protocol/auction protocol/contract protocol/identity protocol/message protocol/reserve agents/resource/calendar agents/resource/federation agents/resource/forecast agents/resource/launch agents/resource/pricing agents/workload", ""},
		{"agents/resource/federation", pure, "protocol protocol/english protocol/english/rules protocol/message", ""},
		{"agents/sim/federation", impure, "agents agents/resource/federation agents/sim protocol protocol/english protocol/english/rules protocol/identity protocol/message", ""},
		{"agents/resource/calendar", pure, "protocol agents/workload", ""},
		{"agents/resource/forecast", pure, "agents/workload", "gonum.org/v1/gonum"},
		{"agents/resource/launch", pure, "protocol protocol/message protocol/reserve", ""},
		{"agents/resource/pricing", pure, "protocol", ""},
		{"agents/bank", pure, "protocol protocol/contract protocol/message bank/ledger", ""},
		{"agents/queue", impure, "protocol protocol/message", "github.com/google/renameio golang.org/x/sys"},
		{"agents/queue/local", impure, "protocol protocol/message agents/queue", "github.com/google/renameio golang.org/x/sys"},
		{"agents/queue/escape", impure, "protocol protocol/message agents/queue", "golang.org/x/sys"},
		{"agents/queue/script", impure, "protocol protocol/message agents/queue", ""},
		{"agents/queue/slurm", impure, "protocol protocol/message agents/queue agents/queue/script", ""},
		{"agents/queue/pbs", impure, "protocol protocol/message agents/queue agents/queue/script", ""},
		{"agents/queue/command", impure, "protocol protocol/message agents/queue agents/queue/script", ""},
		{"agents/queue/swf", impure, "protocol protocol/message agents/queue agents/workload", ""},
		{"agents/journal", impure, "protocol bank/boltfile", "go.etcd.io/bbolt"},
		{"agents/stage", impure, "agents protocol protocol/message", "github.com/google/renameio lukechampine.com/blake3"},
		{"agents/framing", impure, "", ""},
		{"agents/mesh", impure, "agents/framing protocol protocol/codec protocol/identity protocol/message agents", "github.com/libp2p github.com/multiformats go.uber.org/fx"},
		{"agents/sim", impure, "protocol protocol/codec protocol/identity protocol/message agents", "github.com/cespare/xxhash"},
		{"agents/sim/market", impure, "agents/receipts bank/audit protocol protocol/auction protocol/codec protocol/contract protocol/identity protocol/message protocol/reserve rfql agents agents/bank agents/queue agents/resource agents/resource/forecast agents/resource/launch agents/resource/pricing agents/sim agents/user agents/user/sweep agents/user/sweep/plan agents/user/sweeper bank/ledger bank/row bank/voids", ""},
		{"agents/sim/adversary", impure, "protocol protocol/codec protocol/contract protocol/identity protocol/message rfql agents agents/resource agents/resource/pricing agents/sim agents/sim/market agents/user", ""},
		{"agents/sim/explore", impure, "agents/sim agents/sim/adversary agents/sim/market", ""},
		{"agents/sim/dbc", pure, "agents/user/sweep protocol", ""},
		{"agents/sim/nat", impure, "agents agents/control agents/sim/wan", ""},
		{"agents/sim/experiment", impure, "agents/index agents/sim/dbc agents/user/sweep agents/user/sweep/plan protocol protocol/auction protocol/codec protocol/message rfql agents agents/bank agents/queue/swf agents/resource agents/resource/forecast agents/resource/pricing agents/sim agents/sim/federation agents/sim/market agents/sim/nat agents/sim/real agents/sim/wan agents/user agents/workload agents/workload/published", "gonum.org/v1"},
		{"agents/sim/wan", impure, "", "golang.org/x/sys"},
		{"agents/sim/real", impure, "agents protocol protocol/contract protocol/identity protocol/message protocol/reserve rfql agents/control agents/journal agents/resource agents/resource/pricing agents/sim/wan agents/user bank/boltfile bank/ledger bank/ledgerdb", "golang.org/x/sys"},
		{"agents/sim/mutants", support, "", ""},
		{"agents/queue/queuetest", support, "protocol protocol/message agents/queue", "golang.org/x/sys"},
		{"agents/queue/slurm/slurmtest", support, "agents/porttest", ""},
		{"agents/porttest", support, "", ""},
		{"agents/storetest", support, "protocol agents", "golang.org/x/sys"},
		{"agents/markettest", support, "protocol protocol/codec protocol/contract protocol/identity protocol/message protocol/reserve rfql agents agents/bank agents/queue agents/resource agents/resource/pricing agents/sim agents/user bank/ledger", ""},

		{"agents/exit", impure, "protocol", ""},
		{"agents/words", impure, "agents/exit bank/ledger protocol", "github.com/rivo/uniseg"},
		{"agents/config", impure, "agents/resource/federation protocol/english/rules rfql/jobfile agents/exit agents/mesh agents/queue agents/queue/command agents/queue/local agents/queue/pbs agents/queue/slurm agents/queue/swf agents/resource agents/resource/forecast agents/resource/launch agents/resource/pricing agents/stage agents/user agents/words agents/workload bank/ledger protocol protocol/auction protocol/identity protocol/reserve", "github.com/google/renameio go.yaml.in/yaml golang.org/x/sys"},
		{"agents/control", impure, "agents/config agents/exit agents/words bank/boltfile bank/books protocol protocol/acl protocol/message rfql", ""},
		{"agents/again", impure, "agents/control agents/exit agents/journal agents/user agents/words protocol protocol/message rfql", ""},
		{"agents/hub", impure, "", ""},
		{"agents/recent", impure, "agents/control agents/user protocol", ""},
		{"agents/parcels", impure, "agents/control agents/exit agents/stage agents/words protocol protocol/message", ""},
		{"agents/web", impure, "agents agents/config agents/control agents/exit agents/proof agents/user agents/words bank/audit protocol protocol/contract protocol/message rfql rfql/compose", "github.com/a-h/templ"},
		{"agents/meters", impure, "agents/control protocol protocol/message", "github.com/prometheus/client_golang"},
		{"agents/background", impure, "agents agents/config agents/control agents/exit bank/boltfile protocol", "github.com/coreos/go-systemd golang.org/x/sys"},
		{"agents/join", impure, "agents/config agents/exit agents/mesh agents/words protocol protocol/identity protocol/invitation", ""},
		{"agents/proof", impure, "agents/config agents/control agents/exit agents/receipts agents/words bank/audit protocol protocol/contract protocol/identity", ""},
		{"agents/federated", impure, "agents agents/control agents/exit agents/recent agents/resource agents/user protocol protocol/message", ""},
		{"agents/node", impure, "agents agents/again agents/federated agents/bank agents/config agents/control agents/exit agents/hub agents/index agents/join agents/journal agents/mesh agents/meters agents/proof agents/queue agents/queue/slurm agents/parcels agents/receipts agents/recent agents/resource agents/resource/launch agents/stage agents/user agents/user/runway agents/user/sweep/plan agents/user/sweeper agents/web agents/words bank/audit bank/boltfile bank/books bank/ledger bank/ledgerdb bank/ledgeretcd protocol protocol/acl protocol/codec protocol/contract protocol/identity protocol/invitation protocol/message protocol/reserve rfql agents/background", "github.com/coreos/go-systemd github.com/prometheus/client_golang"},
		{"agents/doctor", impure, "agents/background agents/config agents/control agents/exit agents/join agents/journal agents/mesh agents/node agents/words bank/boltfile bank/ledgerdb protocol protocol/codec protocol/identity", ""},
		{"agents/order", impure, "agents/again agents/control agents/exit agents/node agents/stage agents/user agents/user/sweep/plan agents/user/sweeper agents/words protocol protocol/message rfql rfql/compose rfql/jobfile", ""},
		{"agents/bench", impure, "agents agents/bank agents/config agents/control agents/demo agents/exit agents/index agents/join agents/journal agents/mesh agents/node agents/resource/federation agents/stage agents/user agents/user/sweep agents/user/sweep/plan bank/ledger bank/ledgerdb bank/ledgeretcd bank/voids protocol protocol/clearing protocol/codec protocol/contract protocol/english/rules protocol/identity protocol/message protocol/reserve rfql agents/background", "go.etcd.io/bbolt"},
		{"agents/demo", impure, "agents agents/config agents/control agents/exit agents/join agents/node agents/order agents/sim/experiment agents/words agents/workload/published bank/boltfile protocol protocol/identity protocol/message rfql agents/background", ""},
		{"cmd/ramp/cli", impure, notCommands, "github.com/spf13/cobra github.com/spf13/pflag golang.org/x/sys"},
		{"cmd/ramp/user", impure, notCommands, "github.com/spf13/cobra github.com/spf13/pflag"},
		{"cmd/ramp/resource", impure, notCommands, "github.com/spf13/cobra"},
		{"cmd/ramp/bank", impure, notCommands, "github.com/spf13/cobra gonum.org/v1/plot"},
		{"cmd/ramp/ca", impure, notCommands, "github.com/spf13/cobra"},
		{"cmd/ramp/formats", impure, notCommands, "github.com/spf13/cobra"},
		{"cmd/ramp/agent", impure, notCommands, "github.com/spf13/cobra"},
		{"cmd/ramp/lab", impure, notCommands, "github.com/spf13/cobra go.yaml.in/yaml golang.org/x/sys"},
		{"cmd/ramp/command", impure, everything, "github.com/spf13/cobra"},
		{"cmd/ramp", impure, "cmd/ramp/command", ""},
	}
}

// everything is any package of this module but test support.
const everything = "*"

// notCommands is any package but test support and the commands, and what commands share.
const notCommands = "-"

// source is one Go file, its path from the module's root.
type source struct {
	path string
	text []byte
}

func TestImportsFollowTheTable(t *testing.T) {
	files := sources(t)
	for _, v := range violations(t, files) {
		t.Error(v)
	}
	there := map[string]bool{}
	for _, f := range files {
		there[path.Dir(f.path)] = true
	}
	for _, l := range table() {
		if !there[l.pkg] {
			t.Errorf("the table has a row for %s, which is not there", l.pkg)
		}
	}
}

// TestViolationsAreSeen proves that the test above can fail.
func TestViolationsAreSeen(t *testing.T) {
	for name, c := range map[string]struct{ path, text, want string }{
		"a machine that reads the clock":      {"protocol/auction/x.go", `import "time"; var _ = time.Now()`, "time.Now"},
		"a clock under another name":          {"protocol/auction/x.go", `import clock "time"; var _ = clock.Now`, "time.Now"},
		"everything of the clock":             {"protocol/auction/x.go", `import . "time"; var _ = Now`, "dot import"},
		"a duration is no clock":              {"protocol/auction/x.go", `import "time"; const _ = time.Second`, ""},
		"global chance":                       {"agents/workload/x.go", `import "math/rand/v2"; var _ = rand.IntN(3)`, "rand.IntN"},
		"chance from outside":                 {"agents/workload/x.go", `import "math/rand/v2"; func f(r *rand.Rand) {}`, ""},
		"a file in the ledger":                {"bank/ledger/x.go", `import "os"`, "os"},
		"a request in the ledger":             {"bank/ledger/x.go", `import "net/http"`, "net/http"},
		"a mutex in a role":                   {"agents/user/x.go", `import "sync"`, "sync"},
		"a mutex in the memory of chains":     {"protocol/identity/x.go", `import "sync"`, ""},
		"a goroutine in a role":               {"agents/user/x.go", `func f() { go f() }`, "goroutine"},
		"a role that knows the network":       {"agents/user/x.go", `import "ramp/agents/mesh"`, "ramp/agents/mesh"},
		"libp2p outside the mesh":             {"agents/x.go", `import "github.com/libp2p/go-libp2p/core/peer"`, "libp2p"},
		"bbolt in a command":                  {"cmd/ramp/user/buy.go", `import "go.etcd.io/bbolt"`, "bbolt"},
		"bbolt in a benchmark":                {"agents/bench/bank.go", `import "go.etcd.io/bbolt"`, ""},
		"a command in another":                {"cmd/ramp/user/buy.go", `import "ramp/cmd/ramp/bank"`, "cmd/ramp/bank"},
		"cobra outside the commands":          {"agents/x.go", `import "github.com/spf13/cobra"`, "cobra"},
		"test support in a program":           {"cmd/ramp/cli/x.go", `import "ramp/agents/storetest"`, "storetest"},
		"a package without a row":             {"protocol/unheard/x.go", ``, "no row"},
		"a library whose name only resembles": {"agents/mesh/x.go", `import "github.com/libp2pfoo/x"`, "libp2pfoo"},
	} {
		t.Run(name, func(t *testing.T) {
			got := violations(t, []source{{c.path, []byte("package x\n" + c.text)}})
			switch {
			case c.want == "" && len(got) > 0:
				t.Errorf("allowed, but got %v", got)
			case c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)):
				t.Errorf("want one violation about %q, got %v", c.want, got)
			}
		})
	}
}

// violations are the breaches of the table, one line each.
func violations(t *testing.T, files []source) []string {
	t.Helper()
	var list []string
	for _, f := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), f.path, f.text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(table(), func(l layer) bool { return l.pkg == path.Dir(f.path) })
		if i < 0 {
			list = append(list, f.path+": its package has no row in the table of imports")
			continue
		}
		list = append(list, table()[i].check(f.path, tree)...)
	}
	return list
}

func (l layer) check(file string, tree *ast.File) []string {
	var list []string
	add := func(format string, args ...any) {
		list = append(list, file+": "+fmt.Sprintf(format, args...))
	}
	for _, spec := range tree.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		switch {
		case !l.allows(file, p):
			add("%s may not import %s", l.pkg, p)
		case l.isPure() && spec.Name != nil && spec.Name.Name == ".":
			add("dot import of %s, whose functions could not be told from our own", p)
		}
	}
	if l.isPure() {
		for _, what := range impurities(tree) {
			add("%s is pure and may not use %s", l.pkg, what)
		}
	}
	return list
}

func (l layer) isPure() bool { return l.purity == pure || l.purity == lockable }

// allows reports whether the row lets a file import a path.
func (l layer) allows(file, p string) bool {
	if of, ok := strings.CutPrefix(p, "ramp/"); ok {
		if l.ours == everything || l.ours == notCommands {
			i := slices.IndexFunc(table(), func(x layer) bool { return x.pkg == of })
			command := strings.HasPrefix(of, "cmd/ramp/") && of != "cmd/ramp/cli"
			return i < 0 || table()[i].purity != support && (l.ours == everything || !command)
		}
		return slices.Contains(strings.Fields(l.ours), of)
	}
	first, _, _ := strings.Cut(p, "/")
	if strings.Contains(first, ".") {
		return under(p, l.outside)
	}
	return !l.isPure() || !under(p, l.forbidden())
}

// forbidden are the parts of the standard library that a pure package is without.
func (l layer) forbidden() string {
	const world = "os net syscall context log crypto/rand unsafe plugin runtime testing"
	if l.purity == lockable {
		return world
	}
	return world + " sync"
}

// under reports whether a path is one of the prefixes or below it.
func under(p, prefixes string) bool {
	return slices.ContainsFunc(strings.Fields(prefixes), func(x string) bool {
		return p == x || strings.HasPrefix(p, x+"/")
	})
}

// impurities are the uses of a clock, of global chance and of goroutines.
func impurities(tree *ast.File) []string {
	names := map[string]string{} // local name -> path
	for _, spec := range tree.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := strings.TrimSuffix(p, "/v2")
		name = path.Base(name)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = p
	}
	var list []string
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			list = append(list, "a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && impureUse(names[x.Name], n.Sel.Name) {
				list = append(list, path.Base(strings.TrimSuffix(names[x.Name], "/v2"))+"."+n.Sel.Name)
			}
		}
		return true
	})
	return list
}

// impureUse reports whether a name of a package reads a clock, waits, or draws
// from the global source.
func impureUse(pkg, name string) bool {
	switch pkg {
	case "time":
		return slices.Contains(strings.Fields("Now Sleep After AfterFunc Tick Since Until NewTimer NewTicker Timer Ticker Local"), name)
	case "math/rand", "math/rand/v2":
		return !slices.Contains(strings.Fields("New NewPCG NewChaCha8 NewSource NewZipf Rand Source Source64 PCG ChaCha8 Zipf"), name)
	}
	return false
}

// sources are the module's Go files, tests apart.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir(".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(p)
		list = append(list, source{filepath.ToSlash(p), text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 100 {
		t.Fatalf("found %d files: want all of the module's", len(list))
	}
	return list
}

// read is a file of the module.
func read(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
