package codec_test

import (
	"go/ast"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"ramp/protocol/codec"
	"ramp/protocol/codec/wire"
)

// The bodies of package message are found in its source, so that a new one without
// a row, or without a sample for the round trips, fails here.
func TestEveryBodyHasARowAndASample(t *testing.T) {
	rows, sampled := codec.Rows(), map[string]bool{}
	for _, s := range samples() {
		sampled[reflect.TypeOf(s.body).Name()] = true
	}
	fields := (*wire.Envelope)(nil).ProtoReflect().Descriptor().Fields()
	kinds := bodyKinds(t)
	for body, kind := range kinds {
		number, found := rows[body]
		if local := strings.HasPrefix(kind, "local-"); found == local {
			t.Errorf("%s of kind %q: has a row: %t, is local: %t; want one of them", body, kind, found, local)
		} else if local {
			continue
		}
		if !sampled[body] {
			t.Errorf("%s has no sample", body)
		}
		if f := fields.ByNumber(number); f == nil || strings.ReplaceAll(kind, "-", "_") != string(f.Name()) {
			t.Errorf("%s of kind %q is in field %d of the envelope, which is %v", body, kind, number, f)
		}
		delete(rows, body)
	}
	if len(rows) > 0 {
		t.Errorf("rows without a body in package message: %v", rows)
	}
}

// A field without a row could not be read.
func TestEveryBodyOfTheEnvelopeHasOneRow(t *testing.T) {
	rows := map[protoreflect.FieldNumber]int{}
	for _, number := range codec.Rows() {
		rows[number]++
	}
	fields := (*wire.Envelope)(nil).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); rows[f.Number()] != 1 {
			t.Errorf("%s has %d rows, want 1", f.Name(), rows[f.Number()])
		}
	}
	if len(rows) != fields.Len() {
		t.Errorf("%d fields have rows, want %d", len(rows), fields.Len())
	}
}

// bodyKinds are the body types of package message with their kinds.
func bodyKinds(t *testing.T) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	each(t, "../message", func(n ast.Node) bool {
		if d, ok := n.(*ast.FuncDecl); ok && d.Name.Name == "Kind" && d.Recv != nil {
			words := map[string]bool{}
			ast.Inspect(d, func(n ast.Node) bool { return literal(n, words) })
			for kind := range words {
				kinds[d.Recv.List[0].Type.(*ast.Ident).Name] = kind
			}
		}
		return true
	})
	if len(kinds) == 0 {
		t.Fatal("package message has no bodies")
	}
	return kinds
}
