// Package web serves an agent's pages to the browser of its owner. It knows the agent only
// through the calls of package control that are open to browsers, so pages work in the
// daemon, where they answer on a unix socket, and in 'ramp user web' beside it, where they
// answer on a temporary loopback port and outlive a restart of the daemon.
//
// Every request passes the guard before a handler sees it: the right host, no foreign
// origin, a small body, and a session. A session begins with a link that works once.
//
// A page is a list of blocks (facts, tables, forms, charts) that one template writes: page.templ,
// from which page_templ.go is generated. Whatever a peer may have written is text, with control
// characters made visible. Pages are complete without JavaScript; with it, they fetch themselves
// again at every event of the agent that they name.
package web

//go:generate go tool templ generate -f page.templ
