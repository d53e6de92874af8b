package config

import (
	"slices"
	"testing"
)

func TestEndpointsOfACluster(t *testing.T) {
	for _, c := range []struct {
		name  string
		hosts []string
		want  []string // nil: refused
	}{
		{"the port is 2379 if none is given", []string{"a", "10.0.0.1", " ::1 "}, []string{"a:2379", "10.0.0.1:2379", "[::1]:2379"}},
		{"a port stays", []string{"a:1", "[::1]:65535"}, []string{"a:1", "[::1]:65535"}},
		{"so does a URL", []string{"https://a", "http://a:2379"}, []string{"https://a", "http://a:2379"}},
		{"no name", []string{"a", ""}, nil},
		{"a port without a name", []string{":2379"}, nil},
		{"a port that is none", []string{"a:65536"}, nil},
		{"port zero", []string{"a:0"}, nil},
		{"a word for a port", []string{"http://a:etcd"}, nil},
	} {
		list, ok := Endpoints(c.hosts)
		if ok != (c.want != nil) || !slices.Equal(list, c.want) {
			t.Errorf("%s: %q, %t, want %q", c.name, list, ok, c.want)
		}
	}
}

func TestAnInvitationHasAddressesThatOthersReach(t *testing.T) {
	local, public := "/ip4/127.0.0.1/tcp/4101/p2p/Qm", "/ip4/140.88.0.1/tcp/4101/p2p/Qm"
	for _, c := range []struct{ given, want []string }{
		{[]string{local, "/ip6/::1/tcp/4101/p2p/Qm"}, []string{local, "/ip6/::1/tcp/4101/p2p/Qm"}},
		{[]string{local, public}, []string{public}},
		{nil, nil},
	} {
		if got := Elsewhere(c.given); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.given, got, c.want)
		}
	}
}
