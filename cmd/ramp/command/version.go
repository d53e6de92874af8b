package command

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"ramp/agents/mesh"
	"ramp/protocol/invitation"
)

// versionAnswer is what the program says of itself.
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

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Say which version this is, and which protocols it speaks", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := thisVersion()
			if wantsJSON(c) {
				return printJSON(stdout(c), v)
			}
			commit := orDash(v.Commit)
			if v.Modified {
				commit += " (with changes)"
			}
			fmt.Fprintln(stdout(c), "ramp "+v.Version)
			table(stdout(c), []string{"commit", commit}, []string{"built with", v.Go + " for " + v.Platform},
				[]string{"protocols", strings.Join(v.Protocols, " ")}, []string{"control socket", fmt.Sprintf("version %d", v.Control)},
				[]string{"invitations", fmt.Sprintf("up to version %d", v.Invitation)})
			return nil
		},
	}
}

// thisVersion reads what the compiler has left in the program.
func thisVersion() versionAnswer {
	v := versionAnswer{
		Version: "unreleased", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Protocols: mesh.Protocols(), Control: controlVersion, Invitation: invitation.Version,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
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
