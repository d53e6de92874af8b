package agent

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/control"
	"ramp/agents/mesh"
	"ramp/agents/words"
	"ramp/cmd/ramp/cli"
	"ramp/protocol/invitation"
)

// The linker sets the commit in packages and in 'make build' (-X ramp/cmd/ramp/agent.commit=…);
// elsewhere it comes from Go's build information. .packaging/build reads the version here.
var (
	version = "0.1.0"
	commit  = ""
)

type versionAnswer struct {
	Version    string   `json:"version"`
	Commit     string   `json:"commit,omitempty"`
	Modified   bool     `json:"modified,omitempty"` // built from a tree with changes
	Go         string   `json:"go"`
	Platform   string   `json:"platform"`
	Protocols  []string `json:"protocols"`
	Control    int      `json:"control"`
	Invitation int      `json:"invitation"`
}

func NewVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program and of its protocols", Args: cobra.NoArgs, GroupID: "program",
		Long: `Show the version of this program, the commit it was built from, and the versions of the
protocols between agents, of the control socket and of invitations that it supports.`,
		Example: "  ramp version\n  ramp version --json",
		RunE: func(c *cobra.Command, _ []string) error {
			v := thisVersion()
			commit := words.OrDash(v.Commit)
			if v.Modified {
				commit += " (with changes)"
			}
			return cli.Show(c, v, func(w io.Writer) {
				fmt.Fprintln(w, "ramp "+v.Version)
				cli.Table(w, []string{"commit", commit}, []string{"built with", v.Go + " for " + v.Platform},
					[]string{"protocols", strings.Join(v.Protocols, " ")}, []string{"control socket", fmt.Sprintf("version %d", v.Control)},
					[]string{"invitations", fmt.Sprintf("up to version %d", v.Invitation)})
			})
		},
	}
}

// thisVersion adds what the compiler recorded in the program.
func thisVersion() versionAnswer {
	v := versionAnswer{
		Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocols: mesh.Protocols(), Control: control.Version, Invitation: invitation.Version,
	}
	v.Commit, v.Modified = strings.CutSuffix(commit, "-changed")
	info, ok := debug.ReadBuildInfo()
	if !ok || commit != "" {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
