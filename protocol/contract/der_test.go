package contract_test

import (
	"bytes"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ramp/protocol"
	"ramp/protocol/contract"
)

// The shapes of RFC 5652 that are written, as encoding/asn1 would write them.
type contentInfo struct {
	Type    asn1.ObjectIdentifier
	Content signedData `asn1:"explicit,tag:0"`
}

type signedData struct {
	Version      int
	Digests      []pkix.AlgorithmIdentifier `asn1:"set"`
	Encapsulated encapsulated
	Certificates []asn1.RawValue `asn1:"tag:0,set,optional"`
	Signers      []signerInfo    `asn1:"set"`
}

type encapsulated struct {
	Type    asn1.ObjectIdentifier
	Content []byte `asn1:"explicit,optional,tag:0"`
}

type signerInfo struct {
	Version    int
	Issuer     issuerAndSerial
	Digest     pkix.AlgorithmIdentifier
	Attributes []attribute `asn1:"tag:0,set"`
	Algorithm  pkix.AlgorithmIdentifier
	Signature  []byte
}

type issuerAndSerial struct {
	Name   asn1.RawValue
	Serial *big.Int
}

type attribute struct {
	Type   asn1.ObjectIdentifier
	Values []asn1.RawValue `asn1:"set"`
}

func TestSealingGivesTheBytesOfTheLibrary(t *testing.T) {
	m := newMarket(t, "ann", "rsa-bob", "bank")
	for _, user := range []string{"ann", "rsa-bob"} {
		for _, units := range []int{1, 2, protocol.MaxUnits} {
			b := m.bundle(user, slices.Repeat([]string{"ann"}, units)...)
			for i := range b.Units {
				b.Units[i].Reservation = strconv.Itoa(i)
			}
			der, err := contract.Sign(m.agent[user], b, now)
			must(t, err)
			var shape contentInfo
			if rest, err := asn1.Unmarshal(der, &shape); err != nil || len(rest) > 0 {
				t.Fatalf("%d units of %s: %v, %d bytes left", units, user, err, len(rest))
			}
			if want, err := asn1.Marshal(shape); err != nil || !bytes.Equal(der, want) {
				t.Errorf("%d units of %s: sealed as %x, want %x, %v", units, user, der, want, err)
			}
		}
	}
}

func TestKnownObjectsAreThoseOfTheLibrary(t *testing.T) {
	known := contract.KnownObjects()
	if len(known) != 15 {
		t.Errorf("%d objects are known, want 15", len(known))
	}
	for numbers, der := range known {
		var id asn1.ObjectIdentifier
		for part := range strings.SplitSeq(numbers, ".") {
			n, err := strconv.Atoi(part)
			must(t, err)
			id = append(id, n)
		}
		if want, err := asn1.Marshal(id); err != nil || !bytes.Equal(der, want) {
			t.Errorf("%s is %x, want %x, %v", numbers, der, want, err)
		}
	}
}

// FuzzDER checks that reading by hand agrees with encoding/asn1.
func FuzzDER(f *testing.F) {
	for _, v := range []any{
		asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 7, 1}, asn1.ObjectIdentifier{2, 999, 1 << 30}, big.NewInt(1), big.NewInt(-129),
		new(big.Int).Lsh(big.NewInt(3), 150), bytes.Repeat([]byte{7}, 127), bytes.Repeat([]byte{7}, 128), bytes.Repeat([]byte{7}, 70_000),
	} {
		der, err := asn1.Marshal(v)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(der)
		f.Add(der[:len(der)-1])
	}
	for _, t := range []string{"250228235959Z", "490101000000Z", "500101000000Z", "250229000000Z", "2502282359Z", "250228235959+0100", "+00101000000Z"} {
		f.Add(append([]byte{0x17, byte(len(t))}, t...))
	}
	for _, b := range []string{"", "\x30", "\x30\x80\x00\x00", "\x30\x81\x7f", "\x30\x82\x00\xff", "\x1f\x81\x01\x00", "\x06\x02\x80\x01", "\x02\x02\x00\x01", "\x06\x00", "\x02\x00"} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v asn1.RawValue
		_, want := asn1.Unmarshal(b, &v)
		head, size, err := contract.Measure(b)
		if (err == nil) != (want == nil) || err == nil && (head+size != len(v.FullBytes) || size != len(v.Bytes)) {
			t.Fatalf("%x measures %d and %d, %v; want %d in total, %v", b, head, size, err, len(v.FullBytes), want)
		}
		checkOID(t, b)
		checkInteger(t, b)
		checkTime(t, b)
	})
}

func checkTime(t *testing.T, b []byte) {
	t.Helper()
	var want time.Time
	rest, wantErr := asn1.Unmarshal(b, &want)
	if len(b) == 0 {
		return // the caller knows that there is a value
	}
	got, err := contract.ReadTime(b)
	if (err == nil) != (wantErr == nil && len(rest) == 0) || err == nil && !got.Equal(want) {
		t.Fatalf("%x is %v, %v; want %v, %v", b, got, err, want, wantErr)
	}
}

func checkOID(t *testing.T, b []byte) {
	t.Helper()
	var want asn1.ObjectIdentifier
	rest, wantErr := asn1.Unmarshal(b, &want)
	got, err := contract.ReadOID(b)
	if (err == nil) != (wantErr == nil && len(rest) == 0) || err == nil && got != want.String() {
		t.Fatalf("%x is object %v, %v; want %v, %v", b, got, err, want, wantErr)
	}
}

func checkInteger(t *testing.T, b []byte) {
	t.Helper()
	want := new(big.Int)
	rest, wantErr := asn1.Unmarshal(b, &want)
	got, err := contract.ReadInteger(b)
	if (err == nil) != (wantErr == nil && len(rest) == 0) || err == nil && got.Cmp(want) != 0 {
		t.Fatalf("%x is %v, %v; want %v, %v", b, got, err, want, wantErr)
	}
}
