package words_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"ramp/agents/words"
)

func TestALogForPeopleIsPlain(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log := slog.New(words.PlainLog{W: &b}).With("agent", "ann")
	log.Info("connected")
	log.Warn("cannot save peers", "err", errors.New("disk full"), "tries", 3)
	if want := "warning: cannot save peers: disk full (agent ann, tries 3)\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}
