package mesh_test

import (
	"context"
	"errors"
	"testing"

	"ramp/agents/mesh"
)

// Refused requests on one exchange count like exchanges: whoever makes too many is cut off.
func TestRefusedRequestsCountLikeStreams(t *testing.T) {
	allowed := make(chan int, 1)
	m := newMarket(t)
	site := m.start("site", func(c *mesh.Config) {
		c.Limits.Streams.Burst, c.Limits.Streams.PerSecond = 40, 0
		c.Files = func(s *mesh.Stream) error {
			for n := 0; ; n++ {
				if err := s.Refused(); err != nil {
					allowed <- n
					return err
				}
			}
		}
	})
	key := m.credential("mallory")
	r := newRaw(t, key, site)
	_, _ = r.open(mesh.ProtocolFiles).Write(frame(cardOf(key)))
	if n := <-allowed; n > 40 {
		t.Errorf("%d refused requests, want at most 40", n)
	}
	r.awaitCutOff()
}

// What the library says of a dead agent is for the log.
func TestFilesOfADeadAgent(t *testing.T) {
	m := newMarket(t)
	site := m.start("site", nil)
	user := m.start("user", func(c *mesh.Config) { c.Bootstrap = site.Addresses() })
	user.awaitKnown(site.Self())
	if err := site.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the connection is lost", func() bool {
		left, leave := context.WithCancel(context.Background())
		leave()
		if _, err := user.OpenFiles(left, site.Self()); errors.Is(err, mesh.ErrUnreached) {
			t.Errorf("%v after the caller has left", err)
		}
		_, err := user.OpenFiles(context.Background(), site.Self())
		return errors.Is(err, mesh.ErrUnreached) && err.Error() == "files of site: it cannot be reached"
	})
}
