package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/hugelab/hugelab/hw"
	"github.com/hugelab/hugelab/internal/kernel"
	"github.com/hugelab/hugelab/internal/probe"
	"github.com/hugelab/hugelab/internal/record"
)

// doctorOutput is what doctor writes with --json.
type doctorOutput struct {
	Checks []probe.Check `json:"checks"`
}

func newDoctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what hugelab can do on this machine, why not, and what to type",
		Long: `Ask this machine what hugelab can do on it: record programs, see page maps, read
and change huge page settings, boot virtual machines. Each answer is yes, no or
unknown, with the reason and, where there is one, the command that changes it.

Nothing is changed. The exit code is 0 whatever the answers are.`,
		Example: "  hugelab doctor --json",
		Args:    argsUsage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			checks := append(probe.Run(probe.Live()), recorderCheck(), profileCheck())
			if !asJSON {
				return probe.Write(cmd.OutOrStdout(), checks)
			}
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			enc.SetEscapeHTML(false)
			return enc.Encode(doctorOutput{checks})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON; 'hugelab schema doctor' describes it")
	return cmd
}

// recorderCheck is the recorder's own choice of method, which counts.
func recorderCheck() probe.Check {
	c := probe.Check{Name: "record", What: "so record will use", Answer: probe.Yes}
	method, why := record.Choose()
	if method == "" {
		c.Answer, c.Why = probe.No, why
		return c
	}
	c.Why = fmt.Sprintf("method %s", method)
	if why != "" {
		c.Why += ": " + why
	}
	return c
}

// profileCheck is whether predict has costs that were measured here.
func profileCheck() probe.Check {
	c := probe.Check{Name: "profile", What: "kernel time as priced here",
		Answer: probe.No, Do: "hugelab calibrate (20 seconds)"}
	path, err := machineProfile()
	if err != nil {
		c.Why, c.Do = err.Error(), "hugelab calibrate --out FILE, then predict --profile FILE"
		return c
	}
	file, err := os.Open(path)
	if err != nil {
		c.Why = "no machine profile: predict takes a preset, whose kernel times may be several times off"
		return c
	}
	defer file.Close()
	p, err := hw.Load(file)
	kernel := kernel.LiveFacts().Release
	switch {
	case err != nil:
		c.Why = fmt.Sprintf("%s: %v", path, err)
	case p.Made == nil:
		c.Why = path + " is not of a calibration"
	case p.Made.Kernel != kernel:
		c.Why = fmt.Sprintf("%s was measured on Linux %s, this is %s", path, p.Made.Kernel, kernel)
	default:
		c.Answer, c.Do = probe.Yes, ""
		c.Why = fmt.Sprintf("%s, of %s", path, p.Made.Date)
	}
	return c
}

// doctorSchema describes doctorOutput.
const doctorSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "hugelab doctor --json",
  "type": "object",
  "required": ["checks"],
  "properties": {
    "checks": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["name", "what", "answer"],
        "properties": {
          "name": {"type": "string", "description": "stable name, such as record.root"},
          "what": {"type": "string", "description": "the question, for people"},
          "answer": {"enum": ["yes", "no", "unknown"]},
          "why": {"type": "string", "description": "a fact or a reason"},
          "do": {"type": "string", "description": "what to type or do to change the answer"}
        },
        "additionalProperties": false
      }
    }
  },
  "additionalProperties": false
}
`
