package invitation

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ramp/protocol"
)

// Bounds of the exchange, in bytes.
const (
	MaxRequest = 16 << 10 // a PKCS#10 request for an RSA key of 8192 bits has 3 KiB
	MaxAnswer  = 64 << 10 // a certificate and those between it and the root
)

// exchangeVersion is the version of request and answer.
const exchangeVersion = 1

// Request asks a bank to enrol a newcomer.
type Request struct {
	Version int    `json:"version"`
	Token   Token  `json:"token"`
	CSR     string `json:"csr"` // PKCS#10, PEM, for the key of the channel
}

// Answer is the bank's answer: a certificate or a refusal.
type Answer struct {
	Version     int              `json:"version"`
	Agent       protocol.AgentID `json:"agent,omitempty"`
	Certificate string           `json:"certificate,omitempty"` // PEM, with those between it and the root
	Credit      protocol.Credits `json:"credit,omitempty"`
	Currency    string           `json:"currency,omitempty"`
	Again       bool             `json:"again,omitempty"` // the newcomer was enrolled before
	Refused     protocol.Code    `json:"refused,omitempty"`
	Note        string           `json:"note,omitempty"` // of a refusal, for people
}

// Encode writes the request.
func (q Request) Encode() []byte {
	q.Version = exchangeVersion
	b, _ := json.Marshal(q) // strings and a number cannot fail
	return b
}

// Encode writes the answer.
func (a Answer) Encode() []byte {
	a.Version = exchangeVersion
	b, _ := json.Marshal(a) // cannot fail either
	return b
}

// ParseRequest reads a request from a stranger.
func ParseRequest(b []byte) (Request, error) {
	var q Request
	if err := decode(b, MaxRequest, &q); err != nil {
		return Request{}, fmt.Errorf("request to enrol: %w", err)
	}
	if q.Version != exchangeVersion {
		return Request{}, fmt.Errorf("request to enrol of version %d: want %d", q.Version, exchangeVersion)
	}
	return q, q.Token.Validate()
}

// ParseAnswer reads an answer. It must be a refusal or name an agent and its certificate.
func ParseAnswer(b []byte) (Answer, error) {
	var a Answer
	if err := decode(b, MaxAnswer, &a); err != nil {
		return Answer{}, fmt.Errorf("answer of the bank: %w", err)
	}
	switch {
	case a.Version != exchangeVersion:
		return Answer{}, fmt.Errorf("answer of the bank of version %d: want %d", a.Version, exchangeVersion)
	case a.Refused == "" && (a.Certificate == "" || a.Agent.Validate() != nil):
		return Answer{}, fmt.Errorf("answer of the bank: neither a certificate nor a refusal")
	}
	return a, nil
}

func decode(b []byte, most int, v any) error {
	if len(b) > most {
		return fmt.Errorf("%d bytes, at most %d", len(b), most)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one value")
	}
	return nil
}
