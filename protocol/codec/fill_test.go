package codec_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ramp/protocol"
	"ramp/protocol/codec"
	"ramp/protocol/contract"
	"ramp/protocol/message"
)

// filler sets every field of a body to a different value other than zero, so that a
// round trip reveals forgotten and mixed-up fields.
type filler struct {
	*market
	n int
}

func (f *filler) next() int {
	f.n++
	return f.n
}

func (f *filler) fill(v reflect.Value, field string) {
	if x, ok := f.special(v.Interface(), field); ok {
		v.Set(reflect.ValueOf(x).Convert(v.Type()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0), field)
		f.fill(v.Index(1), field)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), field)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(f.next()))
	case reflect.Uint64:
		v.SetUint(uint64(f.next()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf("word-%d", f.next()))
	default:
		panic("no rule to fill a " + v.Type().String())
	}
}

// special are values for types and fields with rules.
func (f *filler) special(x any, field string) (any, bool) {
	switch x.(type) {
	case protocol.AgentID:
		return protocol.AgentID(fmt.Sprintf("agent-%d@%s", f.next(), strings.Repeat("a", protocol.FingerprintLen))), true
	case protocol.ContractID:
		return fmt.Sprintf("%064x", f.next()), true
	case time.Time:
		return now.Add(time.Duration(f.next()) * time.Hour), true
	case protocol.Slot:
		nodes := f.next()
		return protocol.Slot{Start: now.Add(time.Duration(f.next())), End: now.Add(time.Hour + time.Duration(f.next())), Cores: 2 * nodes, Nodes: nodes}, true
	case protocol.Span:
		return protocol.Span{Start: now.Add(time.Duration(f.next())), End: now.Add(time.Hour + time.Duration(f.next())), Cores: f.next()}, true
	case protocol.Item:
		nodes := f.next()
		slot := protocol.Slot{Start: now, End: now.Add(time.Hour + time.Duration(f.next())), Cores: 2 * nodes, Nodes: nodes}
		return protocol.Item{Unit: f.next(), Slot: slot, Price: protocol.Credits(1000 + f.next()), Cost: protocol.Credits(100 + f.next()), Least: protocol.Credits(1 + f.next()%49)}, true
	case protocol.Offer:
		return f.offer(), true
	case protocol.Code:
		return []protocol.Code{protocol.CodeBusy, protocol.CodePrice, protocol.CodeOS}[f.next()%3], true
	case protocol.Mode:
		return protocol.ModeOnReservation, true
	case protocol.Outcome:
		return protocol.OutcomeSettled, true
	case protocol.Kind:
		return protocol.KindResource, true
	case protocol.Objective:
		return protocol.ObjectiveCostTime, true
	case []byte:
		return []byte(fmt.Sprintf("<xml n=\"%d\"/>", f.next())), true
	case message.Shard:
		return message.Shard{Terms: protocol.Terms{Bank: f.bank.ID, Currency: "CUR"}, Class: 1 + f.next()%9, Bits: 10, Prefix: 1 + f.next()%1023}, true
	case message.Record:
		return f.record(), true
	case message.IndexRow:
		return message.IndexRow{Seller: strings.Repeat("b", protocol.FingerprintLen), Start: protocol.Credits(f.next()), Min: protocol.Credits(f.next()), Cores: f.next(), Load: 1 + f.next()%7}, true
	case message.JobTerms:
		return message.JobTerms{Level: 2, Least: f.next(), Most: 100 + f.next(), Wall: time.Duration(f.next()), Bytes: int64(f.next()), Where: protocol.AgentID("w@" + strings.Repeat("c", protocol.FingerprintLen))}, true
	case message.Victims:
		return message.Victims{Level: 1 + f.next()%4, Modules: f.next()}, true
	case message.JobState:
		return message.JobSuspended, true
	case message.JobVerb:
		return message.JobRerun, true
	case protocol.JobState:
		return protocol.JobSuspended, true
	case message.LaunchVerb:
		return message.VerbJoin, true
	case message.LaunchStage:
		return message.StageGathering, true
	case string:
		if field == "SHA256" || field == "BLAKE3" {
			return fmt.Sprintf("%064x", f.next()), true
		}
		if field == "Issuer" { // the transport fills it in
			return "", true
		}
		if field == "Sellers" {
			return strings.Repeat(string(rune('a'+f.next()%26)), protocol.FingerprintLen), true
		}
		if field == "Currency" || field == "From" || field == "To" {
			return "CUR" + string(rune('A'+f.next()%26)), true
		}
	}
	return f.document(x)
}

func (f *filler) document(x any) (any, bool) {
	switch x.(type) {
	case contract.Verified:
		return f.bundle, true
	case contract.Sale:
		return f.sale, true
	case *contract.VerifiedReceipt:
		return &f.receipt, true
	case contract.VerifiedNote[contract.Cancel]:
		return f.cancel, true
	case contract.VerifiedNote[contract.Refund]:
		return f.refund, true
	case contract.VerifiedReceipt:
		return f.receipt, true
	case contract.VerifiedNote[contract.JobRecord]:
		return f.job, true
	case contract.VerifiedNote[contract.Verdict]:
		return f.verdict, true
	case contract.VerifiedNote[contract.Voucher]:
		return f.voucher, true
	case *contract.VerifiedNote[contract.Voucher]:
		return &f.voucher, true
	case contract.VerifiedNote[contract.Quote]:
		return f.quote, true
	}
	return nil, false
}

func (f *filler) offer() protocol.Offer {
	var o protocol.Offer
	f.fill(reflect.ValueOf(&o.Items).Elem(), "Items")
	f.fill(reflect.ValueOf(&o.ID).Elem(), "ID")
	f.fill(reflect.ValueOf(&o.ValidUntil).Elem(), "ValidUntil")
	f.fill(reflect.ValueOf(&o.Group).Elem(), "Group")
	o.Cost, o.Voucher, o.Queued = o.Items[0].Cost+o.Items[1].Cost-1, true, protocol.Odds(f.next())
	return o
}

// record is a signed record with every field filled.
func (f *filler) record() message.Record {
	var p message.Presence
	f.fill(reflect.ValueOf(&p).Elem(), "Presence")
	r, err := codec.SealRecord(f.seller, message.Record{Issued: now.Add(time.Duration(f.next())), Load: 1 + f.next()%7, Presence: p})
	if err != nil {
		panic(err)
	}
	return r
}

// sample is a message that Encode accepts.
type sample struct {
	act   protocol.Performative
	token string
	body  protocol.Body
}

func samples() []sample {
	const auction, commit, request = protocol.ProtocolAuction, protocol.ProtocolCommit, protocol.ProtocolRequest
	return []sample{
		{protocol.Inform, protocol.ProtocolPresence, message.Presence{}},
		{protocol.CFP, auction, message.CallForProposals{}},
		{protocol.Propose, auction, message.Proposal{}},
		{protocol.Refuse, auction, message.Refusal{}},
		{protocol.AcceptProposal, commit, message.Acceptance{}},
		{protocol.Agree, commit, message.Vote{}},
		{protocol.Confirm, commit, message.Confirmation{}},
		{protocol.Confirm, commit, message.Countersigned{}},
		{protocol.Cancel, commit, message.Cancellation{}},
		{protocol.QueryRef, request, message.ProofQuery{}},
		{protocol.Inform, request, message.Proof{}},
		{protocol.Request, request, message.Settlement{}},
		{protocol.Request, request, message.Annulment{}},
		{protocol.QueryRef, request, message.OutcomeQuery{}},
		{protocol.Inform, request, message.Decision{}},
		{protocol.Request, request, message.UnitCancellation{}},
		{protocol.Request, request, message.RefundRequest{}},
		{protocol.QueryRef, request, message.BalanceQuery{}},
		{protocol.Inform, request, message.Balances{}},
		{protocol.QueryRef, request, message.StatementQuery{}},
		{protocol.Inform, request, message.Statement{}},
		{protocol.Request, request, message.JobReport{}},
		{protocol.Request, request, message.JobVerdict{}},
		{protocol.Request, request, message.VoucherRequest{}},
		{protocol.Agree, request, message.Vouched{}},
		{protocol.Request, request, message.QuoteRequest{}},
		{protocol.Request, request, message.ExchangeRequest{}},
		{protocol.Agree, request, message.Quoted{}},
		{protocol.Request, request, message.Readmission{}},
		{protocol.Request, request, message.Launch{}},
		{protocol.Request, request, message.LaunchOrder{}},
		{protocol.Inform, request, message.LaunchStatus{}},
		{protocol.QueryRef, request, message.SoldQuery{}},
		{protocol.Inform, request, message.SoldList{}},
		{protocol.QueryRef, request, message.BundleQuery{}},
		{protocol.Inform, request, message.BundleCopy{}},
		{protocol.Request, protocol.ProtocolIndex, message.Records{}},
		{protocol.QueryRef, protocol.ProtocolIndex, message.IndexQuery{}},
		{protocol.Inform, protocol.ProtocolIndex, message.IndexRows{}},
		{protocol.QueryRef, protocol.ProtocolIndex, message.IndexFetch{}},
		{protocol.Inform, protocol.ProtocolIndex, message.IndexDigest{}},
		{protocol.Request, protocol.ProtocolEnglish, message.JobOffer{}},
		{protocol.Inform, protocol.ProtocolEnglish, message.AuctionOpen{}},
		{protocol.Propose, protocol.ProtocolEnglish, message.JobBid{}},
		{protocol.Inform, protocol.ProtocolEnglish, message.Standing{}},
		{protocol.AcceptProposal, protocol.ProtocolEnglish, message.JobAward{}},
		{protocol.Inform, protocol.ProtocolEnglish, message.JobProgress{}},
		{protocol.Request, protocol.ProtocolEnglish, message.JobOrder{}},
		{protocol.Inform, protocol.ProtocolEnglish, message.JobHistory{}},
	}
}

// filled is the message of a sample with every field set.
func (m *market) filled(s sample) protocol.Message {
	f := &filler{market: m}
	v := reflect.New(reflect.TypeOf(s.body)).Elem()
	f.fill(v, "")
	body := v.Interface().(protocol.Body)
	if d, ok := body.(message.Decision); ok { // its receipt must be about it
		d.Contract = m.bundle.ID
		body = d
	}
	return protocol.Message{
		Performative: s.act, Sender: m.seller.ID, Receivers: []protocol.AgentID{m.user.ID, protocol.Everyone},
		Protocol: s.token, Conversation: "c1", ReplyWith: "r2", InReplyTo: "r1", ReplyBy: now.Add(123456789), Body: body,
	}
}

// equal compares messages; signed documents by bytes and content.
func equal() cmp.Option {
	return cmp.Options{
		cmp.Comparer(func(a, b contract.Verified) bool { return sameBundle(a, b) && a.Checked() == b.Checked() }),
		cmp.Comparer(func(a, b contract.Sale) bool {
			return sameBundle(a.Verified, b.Verified) && bytes.Equal(a.DER, b.DER) && a.Checked() == b.Checked() && a.Seller.ID == b.Seller.ID
		}),
		cmp.Comparer(func(a, b contract.VerifiedReceipt) bool {
			return cmp.Equal(a.Receipt, b.Receipt) && bytes.Equal(a.DER, b.DER) && a.Checked() == b.Checked() && a.Signer.ID == b.Signer.ID
		}),
		sameNote[contract.Cancel](), sameNote[contract.Refund](), sameNote[contract.JobRecord](),
		sameNote[contract.Verdict](), sameNote[contract.Voucher](), sameNote[contract.Quote](),
	}
}

func sameBundle(a, b contract.Verified) bool {
	return a.ID == b.ID && cmp.Equal(a.Bundle, b.Bundle) && bytes.Equal(a.DER, b.DER) && a.User.ID == b.User.ID
}

func sameNote[N contract.Note]() cmp.Option {
	return cmp.Comparer(func(a, b contract.VerifiedNote[N]) bool {
		return cmp.Equal(a.Note, b.Note) && bytes.Equal(a.DER, b.DER) && a.Checked() == b.Checked() && a.Signer.ID == b.Signer.ID
	})
}

func TestTheFillerLeavesNoFieldOut(t *testing.T) {
	m := newMarket(t)
	for _, s := range samples() {
		full(t, reflect.ValueOf(m.filled(s)), s.body.Kind())
	}
}

// full fails for a zero field, except for unit 0 of a signed document.
func full(t *testing.T, v reflect.Value, path string) {
	switch v.Interface().(type) {
	case time.Time, contract.Verified, contract.Sale, contract.VerifiedNote[contract.Cancel], contract.VerifiedNote[contract.Refund], message.BalanceQuery,
		message.Record, contract.VerifiedReceipt, contract.VerifiedNote[contract.JobRecord], contract.VerifiedNote[contract.Verdict],
		contract.VerifiedNote[contract.Voucher], contract.VerifiedNote[contract.Quote]:
		return
	}
	if v.IsZero() && !strings.HasSuffix(path, ".Issuer") {
		t.Errorf("%s is not filled", path)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			full(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		for i := range v.Len() {
			full(t, v.Index(i), path+"["+strconv.Itoa(i)+"]")
		}
	case reflect.Interface:
		full(t, v.Elem(), path)
	}
}

func literal(n ast.Node, words map[string]bool) bool {
	if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		if s, err := strconv.Unquote(lit.Value); err == nil {
			words[s] = true
		}
	}
	return true
}

func each(t *testing.T, dir string, f func(ast.Node) bool) {
	t.Helper()
	files, err := filepath.Glob(dir + "/*.go")
	must(t, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		must(t, err)
		parsed, err := parser.ParseFile(token.NewFileSet(), file, src, 0)
		must(t, err)
		ast.Inspect(parsed, f)
	}
}
