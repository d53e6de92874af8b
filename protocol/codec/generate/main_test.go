package main

import (
	"bytes"
	"os"
	"testing"
)

func TestTheGeneratedCodeIsThatOfTheFile(t *testing.T) {
	desc, err := compile("../wire", "wire.proto")
	if err != nil {
		t.Fatal(err)
	}
	code, err := render(desc)
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../wire/wire.pb.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, []byte(code)) {
		t.Error("wire.pb.go is not what wire.proto gives: run go generate in ../wire")
	}
}
