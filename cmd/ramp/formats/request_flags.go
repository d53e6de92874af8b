package formats

import (
	"github.com/spf13/cobra"

	"ramp/cmd/ramp/cli"
)

func newRFQLNew() *cobra.Command {
	var q cli.RequestFlags
	var optimize string
	c := &cobra.Command{
		Use: "new --cores N --wall D --within D", Short: "Print the document that the flags of 'ramp user buy' produce", Args: cobra.NoArgs,
		Long: `Print an RFQL document that asks for what the flags describe.

` + cli.RequestHelp,
		Example: "  ramp rfql new --cores 256 --wall 2h --within 12h > job.xml",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := cli.ParseOptimize(optimize)
			if err != nil {
				return err
			}
			doc, err := q.Document(o)
			if err != nil {
				return err
			}
			if cli.WantsJSON(c) {
				return showDraft(c, "flags", doc.Draft(), nil)
			}
			_, err = cli.Stdout(c).Write(doc.XML())
			return err
		},
	}
	q.Register(c)

	c.Flags().StringVar(&optimize, "optimize", "", "optimize for `GOAL`: cost, time or cost-time")
	cli.Optimize(c)
	return c
}
