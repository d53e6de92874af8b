package control_test

import (
	"strings"
	"testing"

	"ramp/agents/control"
)

func TestAKeyTellsWhetherItsCommandLives(t *testing.T) {
	key := control.CommandKey()
	if !control.CommandLives(key) || key == control.CommandKey() {
		t.Errorf("%q is of this process, which lives, and is unique", key)
	}
	part := strings.Split(key, ".")
	for name, c := range map[string]struct {
		part  int
		value string
		lives bool
	}{
		"another process with its number": {2, "1", false},
		"a process that has ended":        {1, "4194303", false},
		"this machine before its restart": {0, part[0][:8] + "00000000", false},
		"another machine":                 {0, "00000000" + part[0][8:], true},
	} {
		other := append([]string(nil), part...)
		other[c.part] = c.value
		if got := control.CommandLives(strings.Join(other, ".")); got != c.lives {
			t.Errorf("%s: lives %t, want %t", name, got, c.lives)
		}
	}
	if len(key) > 64 || !control.CommandLives("somebody's own key") {
		t.Errorf("key of %d bytes, or a key of another form is dead", len(key))
	}
}

// The environment names a session where there is no terminal: the same for the same name.
func TestTheEnvironmentNamesASession(t *testing.T) {
	t.Setenv(control.SessionEnv, "nightly")
	nightly := control.Session()
	t.Setenv(control.SessionEnv, "weekly")
	if weekly := control.Session(); nightly == "" || nightly == weekly {
		t.Errorf("sessions %q and %q", nightly, weekly)
	}
}
