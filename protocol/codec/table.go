package codec

import (
	"reflect"
	"slices"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"ramp/protocol"
	"ramp/protocol/codec/wire"
)

// row describes one kind of body: its types, how to copy its fields to the wire and back, and with
// which performatives and protocols it may come. Local bodies have no row.
type row struct {
	body   reflect.Type             // of package message
	field  protoreflect.FieldNumber // of wire.Envelope
	holder reflect.Type             // of the field, generated
	rules  []rule
	write  func(*coder, protocol.Body) any // a pointer to the wire type
	read   func(*coder, any) protocol.Body
}

// rule allows some performatives under one protocol token.
type rule struct {
	token string
	acts  []protocol.Performative
}

func on(token string, acts ...protocol.Performative) rule { return rule{token, acts} }

// body is the row of the body type B, whose wire type W is in that field of the
// envelope. The function fields copies one to the other, in either direction.
func body[B protocol.Body, W any, P interface {
	*W
	proto.Message
}](field protoreflect.FieldNumber, fields func(*coder, *B, *W), rules ...rule) row {
	return row{
		body: reflect.TypeFor[B](), field: field, rules: rules,
		write: func(c *coder, b protocol.Body) any {
			m, w := b.(B), new(W)
			fields(c, &m, w)
			return w
		},
		read: func(c *coder, w any) protocol.Body {
			var m B
			fields(c, &m, w.(P))
			return m
		},
	}
}

// table finds rows by the type of a body, and by the type that holds one in the generated envelope.
type table struct {
	byType   map[reflect.Type]row
	byHolder map[reflect.Type]row
}

var bodies = newTable(presenceBodies, auctionBodies, commitBodies, settlementBodies, accountBodies, bankBodies, launchBodies, recoveryBodies, indexBodies, englishBodies)

func newTable(parts ...[]row) table {
	t := table{map[reflect.Type]row{}, map[reflect.Type]row{}}
	for _, r := range slices.Concat(parts...) {
		e := &wire.Envelope{}
		x := e.ProtoReflect()
		x.Mutable(x.Descriptor().Fields().ByNumber(r.field)) // makes the holder
		r.holder = reflect.TypeOf(e.Body).Elem()
		t.byType[r.body], t.byHolder[r.holder] = r, r
	}
	return t
}

func (r row) put(e *wire.Envelope, body any) {
	holder := reflect.New(r.holder)
	holder.Elem().Field(0).Set(reflect.ValueOf(body))
	assign(&e.Body, holder.Interface())
}

// assign sets a variable of a type without a name here, which reflection does at many
// times the price.
func assign[T any](to *T, v any) { *to = v.(T) }

func (t table) bodyOf(e *wire.Envelope) (row, any) {
	holder := reflect.ValueOf(e.Body).Elem()
	return t.byHolder[holder.Type()], holder.Field(0).Interface()
}

// The protocol tokens of rules.
const (
	auction = protocol.ProtocolAuction
	commit  = protocol.ProtocolCommit
	request = protocol.ProtocolRequest
	index   = protocol.ProtocolIndex
)

// bare is the row of messages without a body: plain agreements.
var bare = row{rules: []rule{on(request, protocol.Agree)}}

// allows reports whether a body may come with a performative under a protocol token.
// The roles decide what may come when.
func (r row) allows(act protocol.Performative, token string) bool {
	return slices.ContainsFunc(r.rules, func(x rule) bool { return x.token == token && slices.Contains(x.acts, act) })
}
