package command

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"
)

// EchoControl is the control socket's front with calls that answer what they
// read: everything between the socket and the roles.
func EchoControl() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/buy", handler(func(_ context.Context, q buyCall) (buyCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/cancel", handler(func(_ context.Context, q idCall) (idCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/check", handler(func(_ context.Context, q checkCall) (checkCall, error) { return q, nil }))
	mux.HandleFunc("POST /v1/offers", handler(func(_ context.Context, q lastCall) (lastCall, error) { return q, nil }))
	return versioned(mux)
}

// Root is the tree of commands.
func Root() *cobra.Command { return newRoot() }
