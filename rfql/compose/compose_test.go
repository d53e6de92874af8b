package compose_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ramp/protocol"
	"ramp/rfql"
	"ramp/rfql/compose"
)

var now = time.Date(2026, 11, 21, 17, 30, 12, 345, time.UTC)

// say gives the words of a command line to a builder: "cores=256 and ram=2G".
func say(t *testing.T, line string) (*compose.Builder, error) {
	t.Helper()
	b := compose.New(now)
	for _, w := range strings.Fields(line) {
		name, value, _ := strings.Cut(w, "=")
		err := error(nil)
		if name == "and" {
			err = b.And()
		} else {
			err = b.Set(compose.Word(name), strings.ReplaceAll(value, "~", " "))
		}
		if err != nil {
			return b, fmt.Errorf("%s: %w", name, err)
		}
	}
	return b, nil
}

const enough = "cores=256 wall=2h within=12h max-price=40 "

func document(t *testing.T, line string) rfql.Document {
	t.Helper()
	b, err := say(t, line)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := b.Document(now, 0)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestWordsMeanWhatTheySay(t *testing.T) {
	second := now.Truncate(time.Second)
	whole := rfql.Request{Price: 40 * protocol.Credit, Cores: 256, Wall: 2 * time.Hour, End: second.Add(12 * time.Hour)}
	with := func(f func(r *rfql.Request)) rfql.Request { r := whole; f(&r); return r }
	for _, c := range []struct {
		name, line string
		want       rfql.Request
	}{
		{"cores, wall time, end and price are enough", enough, whole},
		{"nodes in place of cores", enough + "nodes=4x16", with(func(r *rfql.Request) { r.Cores, r.Nodes, r.NodeCores = 64, 4, 16 })},
		{"what is said last counts", enough + "nodes=4x16 cores=7", with(func(r *rfql.Request) { r.Cores = 7 })},
		{"a wall time as batch systems write it", enough + "wall=1-02:30:00 within=2d", with(func(r *rfql.Request) {
			r.Wall, r.End = 26*time.Hour+30*time.Minute, second.Add(48*time.Hour)
		})},
		{"a wall time is rounded up to minutes", enough + "wall=89s", with(func(r *rfql.Request) { r.Wall = 2 * time.Minute })},
		{"minutes, as sbatch has them", enough + "wall=90", with(func(r *rfql.Request) { r.Wall = 90 * time.Minute })},
		{"hours, minutes and seconds", enough + "wall=1:30:00", with(func(r *rfql.Request) { r.Wall = 90 * time.Minute })},
		{"days and hours, as sbatch has them", enough + "wall=1-12 within=3d", with(func(r *rfql.Request) { r.Wall, r.End = 36*time.Hour, second.Add(72*time.Hour) })},
		{"days, hours and minutes, as sbatch has them", enough + "wall=1-2:30 within=3d", with(func(r *rfql.Request) { r.Wall, r.End = 26*time.Hour+30*time.Minute, second.Add(72*time.Hour) })},
		{"days and hours", enough + "wall=1d12h within=3d", with(func(r *rfql.Request) { r.Wall, r.End = 36*time.Hour, second.Add(72*time.Hour) })},
		{"an end at a time", enough + "by=2026-11-23T06:00", with(func(r *rfql.Request) { r.End = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC) })},
		{"an end at a time with a space", enough + "by=2026-11-23~06:00", with(func(r *rfql.Request) { r.End = time.Date(2026, 11, 23, 6, 0, 0, 0, time.UTC) })},
		{"an end at a time with a zone", enough + "by=2026-11-23T06:00+02:00", with(func(r *rfql.Request) { r.End = time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC) })},
		{"a clock time is today's", enough + "by=20:00", with(func(r *rfql.Request) { r.End = time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC) })},
		{"or tomorrow's", enough + "by=17:30", with(func(r *rfql.Request) { r.End = time.Date(2026, 11, 22, 17, 30, 0, 0, time.UTC) })},
		{"not before a time from now", enough + "not-before=+3h", with(func(r *rfql.Request) { r.NotBefore = second.Add(3 * time.Hour) })},
		{"a start that is taken back", enough + "not-before=+3h not-before=any", whole},
		{"memory by 1024", enough + "ram=2G", with(func(r *rfql.Request) { r.RAMPerCore = 2048 })},
		{"memory without a unit is megabytes", enough + "ram=1500", with(func(r *rfql.Request) { r.RAMPerCore = 1500 })},
		{"memory in parts, rounded up", enough + "ram=1.5GiB", with(func(r *rfql.Request) { r.RAMPerCore = 1536 })},
		{"a disk", enough + "disk=1T", with(func(r *rfql.Request) { r.TotalDisk = 1024 })},
		{"a disk on each node in place of it", enough + "disk=1T node-disk=50gb", with(func(r *rfql.Request) { r.NodeDisk = 50 })},
		{"speed and bandwidth by 1000", enough + "cpu-speed=2.4GHz bandwidth=10G", with(func(r *rfql.Request) { r.CPUSpeed, r.Bandwidth = 2400, 10000 })},
		{"no price", "cores=256 wall=2h within=12h", with(func(r *rfql.Request) { r.Price = 0 })},
		{"words", enough + "os=Linux os-version=5 arch=x86_64 name=a~b application=gromacs", with(func(r *rfql.Request) {
			r.OS, r.OSVersion, r.Arch, r.Name, r.Application = "Linux", "5", "x86_64", "a b", "gromacs"
		})},
		{"a word that is taken back", enough + "os=Linux os=any ram=2G ram=any", whole},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d := cmp.Diff(c.want, document(t, c.line).Request(0)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestAUnitIsLikeTheOneBeforeButForWhatIsSaid(t *testing.T) {
	doc := document(t, enough+"os=Linux and cores=64 ram=8G and os=any max-price=3")
	if doc.Len() != 3 {
		t.Fatalf("%d units", doc.Len())
	}
	first, second, third := doc.Request(0), doc.Request(1), doc.Request(2)
	want := first
	want.Unit, want.Cores, want.RAMPerCore = 1, 64, 8192
	if d := cmp.Diff(want, second); d != "" {
		t.Error(d)
	}
	want.Unit, want.OS, want.Price = 2, "", 3*protocol.Credit
	if d := cmp.Diff(want, third); d != "" {
		t.Error(d)
	}
}

func TestFaultsAreToldInTheWordsOfTheCommandLine(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{"nothing said", "", "missing --cores N (or --nodes), --wall 2h, --within 12h (or --by)"},
		{"a unit of several", "wall=1h within=2h max-price=1 and os=Linux", "unit 1: missing --cores N (or --nodes)"},
		{"no cores", enough + "cores=0", `cores: "0": want a whole number`},
		{"cores with a sign", enough + "cores=+1", `cores: "+1": want a whole number`},
		{"half a node", enough + "nodes=4", "want nodes and cores of each, such as 4x16"},
		{"a wall time of which nobody knows whether it is hours", enough + "wall=1:30", `wall: "1:30": want a time such as 2h, 1d12h, 10 (minutes), 1:30:00 or 1-12 (days-hours)`},
		{"no minutes at all", enough + "wall=0", `wall: "0": want`},
		{"days without hours", enough + "wall=1-", `wall: "1-": want`},
		{"minutes above 59", enough + "wall=00:61:00", "want a time such as"},
		{"a price of nothing", enough + "max-price=0", "want credits per core-hour, above 0"},
		{"memory of a strange unit", enough + "ram=2X", "want megabytes, or a number with M, G or T"},
		{"too much memory", enough + "ram=999999999T", "1 to"},
		{"a time that is none", enough + "by=tomorrow", "want a time such as 2026-11-22T18:00"},
		{"a window that is too short", enough + "wall=13h", "--wall 13h does not fit into --within 12h"},
		{"a window that buying uses up", enough + "wall=12h", "--wall 12h does not fit into --within 12h, since buying takes"},
		{"a wall time that does not fit after the start", enough + "wall=10h30m not-before=+2h", "--wall 10h30m does not fit into --within 12h after --not-before"},
		{"a second unit that is too long", enough + "and wall=3d by=+1d", "unit 2: --wall 72h does not fit into --by +1d"},
		{"an end that has passed", enough + "by=2020-01-01", "--within or --by: found an end at 2020-01-01"},
		{"an end before the start", enough + "not-before=+13h", "--within or --by: found an end at"},
		{"an empty word", enough + "os=", `os: "": want a word, or "any"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := say(t, c.line)
			if err == nil {
				_, err = b.Document(now, 0)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestOnlyTimesCountedFromNowMove(t *testing.T) {
	for line, want := range map[string]bool{
		enough: true, "by=2026-11-23": false, "by=18:00": false, "not-before=+1h": true, "not-before=2026-11-22": false,
	} {
		b, err := say(t, line)
		if err != nil || b.Moving() != want {
			t.Errorf("%s: moving %t, %v", line, b.Moving(), err)
		}
	}
}

// A unit without an end gets one that leaves it d to begin in, counted from now or from
// its own start; one with an end, or one that would last until it, is left as it was.
func TestWhatMayBeginWithinADayEndsAWallTimeLater(t *testing.T) {
	second := now.Truncate(time.Second)
	for _, c := range []struct {
		name, line string
		ends       []time.Time
	}{
		{"no end", "cores=4 wall=10m max-price=40", []time.Time{second.Add(24*time.Hour + 10*time.Minute)}},
		{"a start", "cores=4 wall=10m max-price=40 not-before=2026-12-01", []time.Time{time.Date(2026, 12, 2, 0, 10, 0, 0, time.UTC)}},
		{"a start that has passed", "cores=4 wall=10m max-price=40 not-before=2026-11-01", []time.Time{second.Add(24*time.Hour + 10*time.Minute)}},
		{"an end", enough, []time.Time{second.Add(12 * time.Hour)}},
		{"an end of the second unit", "cores=4 wall=10m max-price=40 and within=1h", []time.Time{second.Add(24*time.Hour + 10*time.Minute), second.Add(time.Hour)}},
		{"a start without a wall time", "cores=4 max-price=40 not-before=+1h", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := say(t, c.line)
			if err != nil {
				t.Fatal(err)
			}
			b.BeginWithin(24 * time.Hour)
			doc, err := b.Document(now, 0)
			if c.ends == nil {
				if err == nil || err.Error() != "missing --within 12h (or --by)" {
					t.Fatalf("got %v, want that it lacks its end", err)
				}
				return
			}
			if err != nil || doc.Len() != len(c.ends) || !b.Moving() {
				t.Fatalf("%d units, moving %t: %v", doc.Len(), b.Moving(), err)
			}
			for i, end := range c.ends {
				if got := doc.Request(i).End; !got.Equal(end) {
					t.Errorf("unit %d ends at %s, want %s", i+1, got, end)
				}
			}
		})
	}
}

func TestUnitsAreBounded(t *testing.T) {
	b := compose.New(now)
	for range protocol.MaxUnits - 1 {
		if err := b.And(); err != nil {
			t.Fatal(err)
		}
	}
	if b.And() == nil {
		t.Error("one unit too many was taken")
	}
}

// A duration that is written out with every unit is read back as it was.
func TestDurationsReadBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.IntRange(0, 3000).Draw(t, "days")
		h, m, s := rapid.IntRange(0, 23).Draw(t, "h"), rapid.IntRange(0, 59).Draw(t, "m"), rapid.IntRange(0, 59).Draw(t, "s")
		want := time.Duration(((days*24+h)*60+m)*60+s) * time.Second
		for _, text := range []string{
			fmt.Sprintf("%dd%dh%dm%ds", days, h, m, s), fmt.Sprintf("%d-%02d:%02d:%02d", days, h, m, s), fmt.Sprintf("%ds", want/time.Second),
		} {
			got, err := compose.Duration(text)
			if want == 0 && err == nil || want > 0 && (err != nil || got != want) {
				t.Fatalf("%s: %s, %v, want %s", text, got, err, want)
			}
		}
	})
}

// For any words, the resulting document is valid and can be read back.
func FuzzCompose(f *testing.F) {
	f.Add("cores=256 wall=2h within=12h max-price=40 and nodes=4x16 ram=2G")
	f.Add("cores=1 by=18:00 not-before=+1s max-price=0.000001 disk=1T cpu-speed=2.4GHz bandwidth=1G os=any")
	f.Add("wall=1-02:03:04 wall=1d and and cores=9999999999999999999")
	f.Fuzz(func(t *testing.T, line string) {
		b, err := say(t, line)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q: error of several lines: %q", line, err)
			}
			return
		}
		doc, err := b.Document(now, 0)
		if err != nil {
			return
		}
		again, err := rfql.Parse(doc.XML(), now)
		if err != nil || !again.Equal(doc) {
			t.Fatalf("%q: %s\nreads back as %v", line, doc.XML(), err)
		}
	})
}
