package auction_test

import (
	"fmt"
	"reflect"
	"testing"

	"ramp/protocol/auction"
)

// What is remembered is what would be read again, also when more comes than is remembered,
// and after the bytes that were read have been used for something else.
func TestAReaderThatRemembersReadsTheSame(t *testing.T) {
	read := auction.NewReader()
	padded := func(i int) []byte {
		return append(document([]string{fmt.Sprintf("70 8:00 12:00 60 %d", i+1)}), fmt.Sprintf("<!--%*s-->", i*100, "")...)
	}
	for range 2 {
		for i := range 200 {
			in := padded(i)
			got, err := read(in)
			clear(in)
			want, wantErr := auction.Read(padded(i))
			if !reflect.DeepEqual(got, want) || err != nil || wantErr != nil {
				t.Fatalf("document %d: %+v (%v), want %+v (%v)", i, got, err, want, wantErr)
			}
			again, err := read(padded(i))
			if !reflect.DeepEqual(again, want) || err != nil || wantErr != nil {
				t.Fatalf("document %d again: %+v (%v), want %+v", i, again, err, want)
			}
		}
	}
	if _, err := read([]byte("<no>")); err == nil {
		t.Fatal("garbage was read")
	}
}
