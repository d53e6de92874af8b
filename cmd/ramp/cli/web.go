package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"ramp/agents/background"
	"ramp/agents/config"
	"ramp/agents/control"
	"ramp/agents/exit"
	"ramp/agents/web"
)

type webFlags struct {
	print, socket bool
	port          int
}

// NewWeb is the command that opens the pages of a kind of agent.
func NewWeb(kind, group string, paths func(c *cobra.Command) ([]string, error)) *cobra.Command {
	var f webFlags
	c := &cobra.Command{
		Use: "web", Short: "Open the agent's pages in a browser", Args: cobra.NoArgs, GroupID: group,
		Long: `Open the agent's pages in a browser, and serve them on a port of this machine's loopback until
the command is interrupted. Only this account can use the port. The link logs a browser in once,
within a minute; --print prints it instead.

From a laptop, for an agent on another machine (then open the link that is printed):
  ssh -t -L 8080:127.0.0.1:8080 login.example.org ramp ` + kind + ` web --print --port 8080

The daemon also serves the pages on the socket web.sock in its directory, for a proxy or for
ssh. --socket prints a link for that, and ends:
  ssh -L 8080:DIR/web.sock login.example.org ramp ` + kind + ` web --socket --port 8080`,
		Example: "  ramp " + kind + " web\n  ramp " + kind + " web --print",
		RunE: func(c *cobra.Command, _ []string) error {
			files, err := paths(c)
			if err != nil {
				return err
			}
			return f.run(c, kind, files[0])
		},
	}
	c.Flags().BoolVar(&f.print, "print", false, "print the link instead of opening a browser")
	c.Flags().BoolVar(&f.socket, "socket", false, "print a link through the daemon's socket, and end")
	c.Flags().IntVar(&f.port, "port", 0, "`PORT` of the loopback, 1..65535 (default: a free one)")
	return c
}

func (f webFlags) run(c *cobra.Command, kind, file string) error {
	if f.port < 0 || f.port > 65535 {
		return exit.Fail(exit.Usage, "", "--port %d: want 1..65535", f.port)
	}
	if err := config.Meant(file, kind); err != nil {
		return err
	}
	cfg, err := config.Read(file)
	if err != nil {
		return err
	}
	cred, err := cfg.Credential()
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return exit.WithCode(exit.Failed, err)
	}
	if cfg.StartsDaemon() {
		if _, err := background.Start(c.Context(), dir); err != nil {
			return err
		}
	}
	if f.socket {
		return f.socketLink(c, control.At(dir))
	}
	pages := web.New(web.Config{Kind: control.KindOf(kind), Agent: cred.ID, Client: control.At(dir), Command: web.CommandOf(kind, dir)})
	return f.serve(c, pages)
}

type webLink struct {
	URL string `json:"url"`
}

func (f webFlags) socketLink(c *cobra.Command, agent *control.Client) error {
	var l control.WebLink
	if err := control.Web.Ask(c.Context(), agent, control.None{}, &l); err != nil {
		return err
	}
	base := l.Origin
	if base == "" {
		base = fmt.Sprintf("http://localhost:%d", max(f.port, 1))
		if f.port == 0 {
			return exit.Fail(exit.Usage, "the port is the one that ssh or the proxy listens on", "--socket: without web.origin in the configuration, give --port")
		}
	}
	return ShowLine(c, webLink{base + l.Path}, "%s", base+l.Path)
}

// serve serves the pages until the command is interrupted.
func (f webFlags) serve(c *cobra.Command, pages *web.Server) error {
	l, err := web.ListenLoopback(f.port)
	if err != nil {
		return exit.Fail(exit.Usage, "leave --port out for a free one", "%w", err)
	}
	server := web.NewHTTPServer(pages)
	stop := context.AfterFunc(c.Context(), func() { _ = server.Close() })
	defer stop()
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	url := pages.Link("http://" + l.Addr().String())
	if f.print || !open(c, url) {
		if err := ShowLine(c, webLink{url}, "%s", url); err != nil {
			return errors.Join(err, server.Close(), <-served)
		}
	}
	fmt.Fprintln(Notes(c), "serving the pages until you press Ctrl-C; the link works once, within a minute")
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return exit.WithCode(exit.Failed, err)
	}
	return nil
}

// open opens a browser, if this machine shows how.
func open(c *cobra.Command, url string) bool {
	program, err := exec.LookPath("xdg-open")
	if err != nil || os.Getenv("DISPLAY")+os.Getenv("WAYLAND_DISPLAY") == "" {
		return false
	}
	b := exec.CommandContext(c.Context(), program, url) //nolint:gosec // a link that this program made
	b.Stdout, b.Stderr = io.Discard, io.Discard
	return b.Run() == nil
}
