package invitation

import (
	"bytes"
	"encoding/json"
	"fmt"

	"ramp/protocol"
)

// Bounds of the exchange, in bytes.
const (
	MaxRequest = 16 << 10 // a PKCS#10 request of an RSA key of 8192 bits is 3 KiB
	MaxAnswer  = 64 << 10 // a certificate and those between it and the root
)

// exchangeVersion is the version of request and answer.
const exchangeVersion = 1

// Request asks a bank to let a newcomer in.
type Request struct {
	Version int    `json:"version"`
	Token   Token  `json:"token"`
	CSR     string `json:"csr"` // PKCS#10, PEM; its key is that of the channel
}

// Answer is the bank's: a certificate, or why not.
type Answer struct {
	Version     int              `json:"version"`
	Agent       protocol.AgentID `json:"agent,omitempty"`
	Certificate string           `json:"certificate,omitempty"` // PEM, with those between it and the root
	Credit      protocol.Credits `json:"credit,omitempty"`
	Currency    string           `json:"currency,omitempty"`
	Again       bool             `json:"again,omitempty"` // the newcomer had been let in before
	Refused     protocol.Code    `json:"refused,omitempty"`
	Note        string           `json:"note,omitempty"` // of a refusal, for people
}

// Encode writes the request.
func (q Request) Encode() []byte {
	q.Version = exchangeVersion
	b, _ := json.Marshal(q) // it has only strings and a number
	return b
}

// Encode writes the answer.
func (a Answer) Encode() []byte {
	a.Version = exchangeVersion
	b, _ := json.Marshal(a) // likewise
	return b
}

// ParseRequest reads a request that a stranger has sent.
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

// ParseAnswer reads an answer. One that is neither a refusal nor names an agent
// and its certificate is an error.
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
