package words

import (
	"os/exec"
	"testing"
)

func TestShellWordsAreReadBackByAShell(t *testing.T) {
	for in, want := range map[string]string{
		"market/user": "market/user", "with space": "with space", "it's": "it's", `a"b$c;d`: `a"b$c;d`, "-rec": "./-rec", "": "", "é\nx": "é\nx", "~": "~", "*": "*",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+ShellWord(in)).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%q is read as %q, %v; want %q", in, out, err, want)
		}
	}
}
