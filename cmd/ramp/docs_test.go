package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A page of the documents is played from its first block of commands to its last, in
// one shell and a new directory. Comments, which a reader does not see, stand before a
// block:
//
//	<!-- play: …        shell that prepares what the page takes for granted;
//	let WORD = COMMAND  what COMMAND prints is meant by WORD in all blocks behind -->
//	<!-- not played: REASON -->
//	<!-- slow: REASON -->            played if RAMP_TEST_SLOW is set
//	<!-- needs PROGRAM -->           played where it is installed
//	<!-- exits CODE -->              what its one command ends with

// docBlock is a block of commands of a page, or what prepares one.
type docBlock struct {
	line    int // in the page
	text    string
	why     string // it is not played, or ""
	slow    bool
	exits   string
	hidden  bool
	printed bool // commands stand behind "$ ", and what they print beside
}

var (
	docCommand = regexp.MustCompile(`(?m)^(\$ )?(bin/)?(ramp|make|curl|xmllint|systemctl|apt|hledger) `)
	docLet     = regexp.MustCompile(`(?m)^let (\S+) = (.*)$`)
)

// docBlocks reads a page: its blocks without a language, or of a console, that have
// commands, and the comments before them.
func docBlocks(page string) (blocks []docBlock) {
	next := docBlock{}
	lines := strings.SplitAfter(page, "\n")
	for i := 0; i < len(lines); i++ {
		first, end := i, ""
		switch {
		case strings.HasPrefix(lines[i], "<!-- "):
			end = "-->"
		case strings.HasPrefix(lines[i], "```"):
			end, i = "```", i+1
		default:
			continue
		}
		for i < len(lines) && !strings.HasSuffix(strings.TrimSpace(lines[i]), end) {
			i++
		}
		if end == "-->" {
			if b, ok := next.told(strings.Join(lines[first:i+1], "")); ok {
				b.line = first + 1
				blocks = append(blocks, b)
			}
			continue
		}
		text, kind := strings.Join(lines[first+1:i], ""), strings.TrimSpace(lines[first])
		if (kind == "```" || kind == "```console") && docCommand.MatchString(text) {
			next.line, next.text, next.printed = first+1, text, strings.Contains("\n"+text, "\n$ ")
			blocks = append(blocks, next)
		}
		next = docBlock{}
	}
	return blocks
}

// told notes what a comment says of the block behind it; one that prepares it is a
// block of its own.
func (b *docBlock) told(comment string) (hidden docBlock, ok bool) {
	comment = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(comment), "<!-- "), "-->")
	kind, rest := comment, ""
	if i := strings.IndexAny(comment, " \n"); i >= 0 {
		kind, rest = comment[:i], strings.TrimSpace(comment[i+1:])
	}
	switch kind {
	case "play:":
		return docBlock{text: rest + "\n", hidden: true}, true
	case "not":
		b.why = strings.TrimPrefix(rest, "played: ")
	case "slow:":
		b.slow, b.why = true, rest
	case "needs":
		if _, err := exec.LookPath(rest); err != nil {
			b.why = rest + " is not installed"
		}
	case "exits":
		b.exits = rest
	}
	return docBlock{}, false
}

// commands are the lines that are typed. One that ends with what it does not say,
// such as a daemon's, goes on in the background.
func (b docBlock) commands() string {
	var s strings.Builder
	daemon := regexp.MustCompile(`^(.*\bserve\b.*--dir (\S+)[^#&]*?)( *#.*)?$`)
	for line := range strings.Lines(b.text) {
		if b.printed {
			typed, ok := strings.CutPrefix(line, "$ ")
			if !ok {
				continue
			}
			line = typed
		}
		if m := daemon.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil && !b.hidden {
			line = m[1] + " 2>>" + m[2] + ".log &\n"
		}
		if b.exits != "" {
			line = fmt.Sprintf("code=0; %s || code=$?; test $code = %s\n", strings.TrimSpace(line), b.exits)
		}
		s.WriteString(paced(line))
	}
	return s.String()
}

// docScript is a page as a shell plays it, and what of it is not played, and why.
func docScript(blocks []docBlock, slow bool) (script string, left []string) {
	var b strings.Builder
	b.WriteString(scriptHead)
	lets := strings.NewReplacer()
	words := []string{}
	for _, block := range blocks {
		if block.why != "" && (!block.slow || !slow) {
			left = append(left, fmt.Sprintf("line %d: %s", block.line, block.why))
			continue
		}
		fmt.Fprintf(&b, "echo '== line %d'\n", block.line)
		if !block.hidden {
			b.WriteString(lets.Replace(block.commands()))
			continue
		}
		for line := range strings.Lines(block.text) {
			if m := docLet.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				name := fmt.Sprintf("let%d", len(words))
				fmt.Fprintf(&b, "%s=$(%s)\n", name, lets.Replace(m[2]))
				words = append(words, m[1], "$"+name)
				lets = strings.NewReplacer(words...)
				continue
			}
			b.WriteString(paced(lets.Replace(line)))
		}
	}
	return b.String(), left
}

// Every block of commands in the documents is played as it is printed, but for those
// that say why not.
func TestTheCommandsOfTheDocumentsWorkAsPrinted(t *testing.T) {
	if testing.Short() {
		t.Skip("starts several markets")
	}
	t.Parallel()
	pages, err := filepath.Glob("../../docs/*.md")
	must(t, err)
	played := 0
	for _, page := range append(pages, "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(page)
		must(t, err)
		blocks := docBlocks(string(text))
		if len(blocks) == 0 {
			continue
		}
		played++
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			playDocument(t, blocks)
		})
	}
	if played < 8 {
		t.Errorf("%d pages have commands: they are not read rightly", played)
	}
}

func playDocument(t *testing.T, blocks []docBlock) {
	t.Helper()
	script, left := docScript(blocks, os.Getenv("RAMP_TEST_SLOW") != "")
	for _, l := range left {
		t.Log("not played: " + l)
	}
	playPage(t, script)
	t.Logf("%d blocks, %d of them not played", len(blocks), len(left))
}

func TestWhatIsNotPlayedOfADocumentIsMarked(t *testing.T) {
	page := "<!-- play: true\nlet ID = echo p7 -->\ntext\n\n```\nramp a ID   # why\n```\n\n<!-- not played: it has no end -->\n```\nramp b\n```\n\n```\n$ ramp c\nprinted\n```\n```\nnothing to run\n```\n"
	script, left := docScript(docBlocks(page), false)
	for _, want := range []string{"ramp a $let0   # why\n", "ramp c\n", "let0=$(echo p7)\n"} {
		if !strings.Contains(script, want) {
			t.Errorf("no %q in\n%s", want, script)
		}
	}
	if strings.Contains(script, "ramp b") || strings.Contains(script, "printed") || len(left) != 1 || left[0] != "line 10: it has no end" {
		t.Errorf("left %q of\n%s", left, script)
	}
}
