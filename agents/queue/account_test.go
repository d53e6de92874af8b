package queue_test

import (
	"os"
	"path/filepath"
	"testing"

	"ramp/agents/queue/queuetest"
)

// A job renames a directory of a tree that is being given to its account, and puts a link
// to another in its place. Links and names are not followed even if the account can enter
// the tree.
func TestOnlyTheTreeIsGivenAway(t *testing.T) {
	who := queuetest.Nobody(t)
	for _, mode := range []os.FileMode{0o700, 0o777} {
		for range 5 {
			tree := queuetest.NewTree(t, t.TempDir(), mode)
			stop := tree.Attack(t, who)
			err := who.Own(tree.Dir(), "work")
			stop()
			if err != nil && mode == 0o700 {
				t.Error(err)
			}
		}
	}
}

func TestAHardLinkIsNotGivenAway(t *testing.T) {
	who := queuetest.Nobody(t)
	dir := t.TempDir()
	work, secret := filepath.Join(dir, "work"), filepath.Join(dir, "secret")
	if err := os.Mkdir(work, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(secret, filepath.Join(work, "input")); err != nil {
		t.Fatal(err)
	}
	if err := who.Own(dir, "work"); err == nil {
		t.Error("a file with a second name outside the tree is given away")
	}
}
