package codec

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"ramp/protocol"
	"ramp/protocol/acl"
	"ramp/protocol/contract"
)

func appendView(b []byte, v reflect.Value) []byte {
	switch x := v.Interface().(type) {
	case contract.Verified:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.ID, User: x.User.ID, Document: x.Bundle, DER: encoded(x.DER)}))
	case contract.Sale:
		return appendView(b, reflect.ValueOf(signedView{
			Contract: x.ID, User: x.User.ID, Seller: x.Seller.ID, Document: x.Bundle, DER: encoded(x.DER),
		}))
	case contract.VerifiedReceipt:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.Contract, Bank: x.Signer.ID, Document: x.Receipt, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.Cancel]:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.Note.Contract, User: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.Refund]:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.Note.Contract, Seller: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.JobRecord]:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.Note.Contract, Seller: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.Verdict]:
		return appendView(b, reflect.ValueOf(signedView{Contract: x.Note.Contract, User: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.Voucher]:
		return appendView(b, reflect.ValueOf(signedView{Bank: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case contract.VerifiedNote[contract.Quote]:
		return appendView(b, reflect.ValueOf(signedView{Bank: x.Signer.ID, Document: x.Note, DER: encoded(x.DER)}))
	case time.Duration:
		return appendString(b, x.String())
	case []byte:
		if utf8.Valid(x) {
			return appendString(b, string(x))
		}
		return appendView(b, reflect.ValueOf(encoded(x)))
	case json.Marshaler: // money and times
		return appendJSON(b, x)
	}
	return appendKind(b, v)
}

func appendKind(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Struct:
		return appendStruct(b, v)
	case reflect.Slice:
		b = append(b, '[')
		for i := range v.Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendView(b, v.Index(i))
		}
		return append(b, ']')
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(b, "null"...)
		}
		return appendView(b, v.Elem())
	}
	return appendJSON(b, v.Interface())
}

func appendStruct(b []byte, v reflect.Value) []byte {
	b = append(b, '{')
	for i, first := 0, true; i < v.NumField(); i++ {
		field := v.Type().Field(i)
		if !field.IsExported() || v.Field(i).IsZero() && field.Name != "Unit" { // the first unit is 0
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendString(b, keyOf(field)), ':')
		b = appendView(b, v.Field(i))
	}
	return append(b, '}')
}

// keyOf is the JSON name of a field, or else its Go name in lower case with underscores.
func keyOf(f reflect.StructField) string {
	if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
		return name
	}
	var out []rune
	runes := []rune(f.Name)
	for i, c := range runes {
		boundary := i > 0 && unicode.IsUpper(c) &&
			(unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if boundary {
			out = append(out, '_')
		}
		out = append(out, unicode.ToLower(c))
	}
	return string(out)
}

// signedView is the JSON form of a signed document.
type signedView struct {
	Contract           protocol.ContractID
	User, Seller, Bank protocol.AgentID
	Document           any
	DER                encoded
}

// encoded is written in Base64.
type encoded []byte

// MarshalJSON writes Base64.
func (e encoded) MarshalJSON() ([]byte, error) {
	return json.Marshal(base64.StdEncoding.EncodeToString(e))
}

func appendString(b []byte, s string) []byte { return appendJSON(b, s) }

// appendJSON writes a value without escapes for HTML, which make XML unreadable. A
// value that JSON cannot represent, which no field can hold, becomes null.
func appendJSON(b []byte, v any) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return append(b, "null"...)
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}

// The language and ontology of content from ToACL.
const (
	aclLanguage = "json"
	aclOntology = "ramp"
)

// ToACL converts m for other FIPA platforms and for people. The content is compact JSON of the body
// without its zero fields (a unit is always shown): an RFQL document as XML, times as RFC 3339,
// durations as in Go, money as decimal credits. A signed document has its content ("document"), the
// ID of its contract, its signers, and the SignedData in Base64 ("der").
//
// The result is valid if Encode accepts m and its sender is an agent. ToACL also
// converts local messages.
func ToACL(m protocol.Message) acl.Message {
	out := acl.Message{
		Performative: m.Performative,
		Sender:       acl.AID{Name: string(m.Sender)},
		Protocol:     m.Protocol, ConversationID: m.Conversation,
		ReplyWith: m.ReplyWith, InReplyTo: m.InReplyTo, ReplyBy: m.ReplyBy,
	}
	for _, a := range m.Receivers {
		out.Receivers = append(out.Receivers, acl.AID{Name: string(a)})
	}
	if m.Body != nil {
		out.Content.Text, out.Language, out.Ontology = string(appendView(nil, reflect.ValueOf(m.Body))), aclLanguage, aclOntology
	}
	return out
}
