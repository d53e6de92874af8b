// Package wire is the protobuf form of messages, generated from wire.proto. Only
// package codec uses it: nothing in these types is checked.
package wire

//go:generate go test . -run Generated -update
