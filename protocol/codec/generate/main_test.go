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
	codes, err := render(desc)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range codes {
		have, err := os.ReadFile("../wire/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, []byte(code)) {
			t.Errorf("%s is not what wire.proto gives: run go generate in ../wire", name)
		}
	}
}
