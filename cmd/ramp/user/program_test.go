package user

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/exit"
)

// orderOf is the order that the words behind 'ramp user run' give.
func orderOf(t *testing.T, words ...string) (control.BuyCall, error) {
	t.Helper()
	c, f := &cobra.Command{Use: "run"}, &runFlags{}
	f.register(c)
	if err := c.ParseFlags(words); err != nil {
		return control.BuyCall{}, err
	}
	args := c.Flags().Args()
	if err := f.arguments(c, args); err != nil {
		return control.BuyCall{}, err
	}
	if err := f.read(c, args); err != nil {
		return control.BuyCall{}, err
	}
	if _, err := f.prepare(); err != nil {
		return control.BuyCall{}, err
	}
	return f.order(f.buy.firstID())
}

// What says which runs are the same, so that a command that is given again buys
// nothing: its request in words, its program and its inputs.
func TestTheSameCommandIsTheSameRun(t *testing.T) {
	t.Parallel()
	const first = "--cores 4 --wall 10m --max-price 40 -- ./program_test.go 1"
	was, err := orderOf(t, strings.Fields(first)...)
	if err != nil || was.Program.Key == "" || was.Name != "program_test.go" || !was.Moving || !was.Resume {
		t.Fatalf("got %+v, %v", was, err)
	}
	for line, same := range map[string]bool{
		first: true,
		"--cores 5 --wall 10m --max-price 40 -- ./program_test.go 1":       false,
		"--cores 4 --wall 10m --max-price 40 --and -- ./program_test.go 1": false,
		"--cores 4 --wall 10m --max-price 40 -- ./program_test.go 2":       false,
		"--cores 4 --wall 10m --max-price 40 --app ./program":              false,
	} {
		got, err := orderOf(t, strings.Fields(line)...)
		if err != nil || (got.Program.Key == was.Program.Key) != same {
			t.Errorf("%s: the same run %t, want %t: %v", line, !same, same, err)
		}
		if got.ID == was.ID {
			t.Errorf("%s: two orders have the ID %s", line, got.ID)
		}
	}
}

// What no site could be told is refused before it is bought: nothing would begin
// in the slot.
func TestAProgramThatNoSiteCouldBeToldIsNotBought(t *testing.T) {
	t.Parallel()
	request := []string{"--cores", "4", "--wall", "10m", "--max-price", "40"}
	for why, words := range map[string][]string{
		"without a program":        {"--", "", "x"},
		`--in "": want a path`:     {"--in", "", "--", "a"},
		`--in "=x": want a path`:   {"--in", "=x", "--", "a"},
		"arguments of 70001 bytes": {"--", "a", strings.Repeat("x", 70000)},
		"want at most 256":         append([]string{"--"}, slices.Repeat([]string{"x"}, 257)...),
		`application "a b"`:        {"--app", "a b"},
		`parameter "a b"`:          {"--app", "a", "--param", "a b=1"},
		"a zero byte":              {"--app", "a", "--param", "a=\x00"},
	} {
		_, err := orderOf(t, append(slices.Clone(request), words...)...)
		e := &exit.Error{}
		if !errors.As(err, &e) || e.Code != exit.Usage || !strings.Contains(err.Error(), why) {
			t.Errorf("%.60q: got %v, want one that says %q", words, err, why)
		}
	}
	if _, err := orderOf(t, append(request, "--", "echo", "", "a\nb;$(id) \"'")...); err != nil {
		t.Errorf("odd but possible words: %v", err)
	}
}
