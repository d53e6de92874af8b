package jobfile

import (
	"bytes"
	"strings"
)

// Directive has the words of one #RAMP or #SBATCH line of a script: flags, as on a command line.
type Directive struct {
	Line  int
	Words []string
}

// IsScript reports whether a text is a script.
func IsScript(text []byte) bool { return bytes.HasPrefix(text, []byte("#!")) }

// Directives reads the #RAMP lines before the first command of a script; later ones mean
// nothing. Its errors are Faults.
func Directives(text []byte) ([]Directive, error) { return marked(text, "#RAMP") }

// BatchDirectives reads the #SBATCH lines likewise.
func BatchDirectives(text []byte) ([]Directive, error) { return marked(text, "#SBATCH") }

// marked reads the lines that begin with a mark.
func marked(text []byte, mark string) ([]Directive, error) {
	var list []Directive
	var faults Faults
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if number == 1 && strings.HasSuffix(line, "\r\n") { // no site has the interpreter "/bin/sh\r"
			return nil, Faults{{Line: number, Text: "DOS line endings: remove the carriage returns, as with dos2unix"}}
		}
		line = strings.TrimSpace(line)
		if line != "" && line[0] != '#' {
			break
		}
		rest, ok := strings.CutPrefix(line, mark)
		if !ok || rest != "" && !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
			continue
		}
		words, fault := split(rest)
		switch {
		case fault != "":
			faults = append(faults, Fault{Line: number, Text: fault})
		case len(words) > 0:
			list = append(list, Directive{number, words})
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return list, nil
}

// split reads words as a shell does: quotes and backslashes keep spaces, and a word that
// begins with '#' begins a comment. Nothing is expanded.
func split(s string) (words []string, fault string) {
	var word strings.Builder
	inside, quote := false, byte(0)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'':
			if i++; i == len(s) {
				return nil, `a '\' at the end of the line: a directive has one line`
			}
			word.WriteByte(s[i])
			inside = true
		case quote != 0:
			word.WriteByte(c)
		case c == '\'' || c == '"':
			quote, inside = c, true
		case c == ' ' || c == '\t':
			if inside {
				words = append(words, word.String())
			}
			word.Reset()
			inside = false
		case c == '#' && !inside:
			return words, ""
		case c == 0:
			return nil, "a zero byte"
		default:
			word.WriteByte(c)
			inside = true
		}
	}
	if quote != 0 {
		return nil, "a quote that is not closed"
	}
	if inside {
		words = append(words, word.String())
	}
	return words, ""
}
