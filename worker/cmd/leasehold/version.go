package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/leasestore"
)

type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	Schema  int64  `json:"schema"`
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Show the version of this program and of the schema that it needs",
		Example: "  leasehold version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if c.output == "json" {
				return c.printJSON(v)
			}
			_, err := fmt.Fprintf(c.out, "leasehold %s (schema %d, %s)\n", v.Version, v.Schema, v.Go)
			return err
		},
	}
}

func buildVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Schema: leasestore.SchemaVersion()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		v.Version = info.Main.Version
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			v.Commit = setting.Value
		}
	}
	return v
}
