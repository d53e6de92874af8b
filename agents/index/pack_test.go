package index_test

import (
	"crypto/rand"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/agents/index"
	"ramp/protocol/codec"
	"ramp/protocol/identity"
	"ramp/protocol/message"
)

// packed are records of a few sellers, as a journal keeps them.
func packed(t testing.TB) (*identity.Trust, []message.Record) {
	t.Helper()
	ca, err := identity.NewCA("ca", noon, time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	trust, err := identity.NewTrust(ca.CertPEM(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []message.Record
	for i := range 3 {
		cred, err := ca.Credential("seller", noon, time.Hour, rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		r := record(i, 16, "")
		r.Presence.Counter = 1
		if r, err = codec.SealRecord(cred, r); err != nil {
			t.Fatal(err)
		}
		if r, err = codec.OpenRecord(trust, r.Signed, noon); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return trust, list
}

func TestAShortlistOutlivesItsProcess(t *testing.T) {
	trust, list := packed(t)
	got, err := index.Unpack(trust, index.Pack(list), noon)
	if diff := cmp.Diff(list, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got, err := index.Unpack(trust, index.Pack(list), noon.Add(2*time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("%d records of sellers whose certificates have expired: %v", len(got), err)
	}
	if _, err := index.Unpack(trust, []byte(`{"no":"list"}`), noon); err == nil {
		t.Error("a damaged shortlist was read")
	}
}

// Whatever bytes come, a record that is opened is what its seller has signed.
func FuzzUnpack(f *testing.F) {
	trust, list := packed(f)
	f.Add(index.Pack(list))
	f.Add([]byte("[]"))
	whose := map[string]message.Record{}
	for _, r := range list {
		whose[r.Seller.Fingerprint()] = r
		f.Add(r.Signed)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		one, err := json.Marshal([][]byte{b})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range [][]byte{b, one} {
			got, err := index.Unpack(trust, text, noon)
			if err == nil && len(got) > index.Shortlist {
				t.Errorf("%d records, want at most %d", len(got), index.Shortlist)
			}
			for _, r := range got {
				want := whose[r.Seller.Fingerprint()]
				want.Signed, r.Signed = nil, nil // a chain may have more certificates than it needs
				if diff := cmp.Diff(want, r); diff != "" {
					t.Error(diff)
				}
			}
		}
	})
}
