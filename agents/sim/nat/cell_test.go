package nat_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"ramp/agents/sim/nat"
	"ramp/agents/sim/wan"
)

// kindOf is a kind of NAT by its name.
func kindOf(t *testing.T, name string) wan.NAT {
	t.Helper()
	for _, k := range wan.NATs() {
		if k.String() == name {
			return k
		}
	}
	t.Fatalf("%q is no kind of NAT", name)
	return 0
}

func TestOne(t *testing.T) {
	pair := strings.Split(os.Getenv("NAT_PAIR"), ",")
	dir, _ := os.MkdirTemp("", "n")
	c, err := nat.Run(context.Background(), nat.Config{Program: os.Getenv("NAT_PROGRAM"), Dir: dir, User: kindOf(t, pair[0]), Site: kindOf(t, pair[1]), Delay: 10 * time.Millisecond, KillRelay: os.Getenv("NAT_KILL") != ""})
	t.Logf("%s %+v %v", dir, c, err)
}
