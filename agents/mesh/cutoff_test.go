package mesh_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"ramp/agents/mesh"
	"ramp/protocol/identity"
)

// The reason for not joining is the certificate that was rejected, whatever silence
// follows it.
func TestWhoIsNotLetInIsToldSo(t *testing.T) {
	m, other := newMarket(t), newMarket(t)
	bank := m.start("bank", nil)
	// The bank does not take a certificate of another market ...
	stranger := other.start("stranger", func(c *mesh.Config) { c.Bootstrap = bank.Addresses() })
	awaitUnjoined(t, stranger, mesh.ErrCutOff)
	// ... and who does not take the bank's finds that by itself.
	wary := m.start("wary", func(c *mesh.Config) {
		c.Bootstrap, c.Trust = bank.Addresses(), other.config("wary", nil).Trust
	})
	awaitUnjoined(t, wary, identity.ErrForeign)
	if err := bank.Close(); err != nil {
		t.Fatal(err)
	}
	// Nobody is there any more: that is what is told then.
	eventually(t, "the bank's silence", func() bool {
		err := joined(stranger)
		return err != nil && !errors.Is(err, mesh.ErrCutOff)
	})
}

func awaitUnjoined(t *testing.T, a *agent, want error) {
	t.Helper()
	eventually(t, want.Error(), func() bool { return errors.Is(joined(a), want) })
}

// joined looks for a moment whether an agent has joined.
func joined(a *agent) error {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	return a.Joined(ctx)
}
