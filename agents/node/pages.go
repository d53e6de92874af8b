package node

import (
	"errors"
	"net/http"

	"ramp/agents/control"
	"ramp/agents/web"
)

// serveRest serves the monitor and the pages until stop is called.
func (n *Node) serveRest(calls *http.ServeMux) (stop func(), err error) {
	stopMonitor, err := n.monitor.serve(n.Cfg.Monitor)
	if err != nil {
		return nil, err
	}
	stopPages, err := n.servePages(calls)
	if err != nil {
		stopMonitor()
		return nil, err
	}
	return func() { stopPages(); stopMonitor() }, nil
}

// servePages serves the agent's pages on their socket until stop is called. They make the
// calls of a mux, which learns to make links.
func (n *Node) servePages(calls *http.ServeMux) (stop func(), err error) {
	pages := web.New(web.Config{
		Kind: control.KindOf(n.Cfg.Kind()), Agent: n.Cred.ID, Client: control.Local(calls), Command: web.CommandOf(n.Cfg.Kind(), n.Cfg.Dir),
		Origin: n.Cfg.Web.Origin, Prefix: n.Cfg.Web.Prefix,
	})
	control.Web.Answer(calls, pages.LinkTo(control.WebSocketPath(n.Cfg.Dir)))
	l, err := control.ListenWeb(n.Cfg.Dir)
	if err != nil {
		return nil, err
	}
	server := web.NewHTTPServer(pages)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	return func() { _ = errors.Join(server.Close(), <-done) }, nil // browsers see that it is gone
}
