package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/doctor"
	"github.com/rootbound/rootbound/internal/guard"
)

// symptoms lists what `why` explains besides refusals, for its help.
func symptoms() string {
	var b strings.Builder
	for _, s := range doctor.Symptoms {
		fmt.Fprintf(&b, "  %-13s %s\n", s.Name, s.Means)
	}
	return b.String()
}

func symptomNames() []string {
	var names []string
	for _, s := range doctor.Symptoms {
		names = append(names, s.Name)
	}
	return names
}

// looked is how many of the newest runs are looked at for the last one of each server.
const looked = 200

// symptom explains a trouble by what is configured and logged on this machine.
func (a *app) symptom(s doctor.Symptom, flag, server string) error {
	m, files, err := a.machine(doctorOptions{})
	if err != nil {
		return err
	}
	dir, err := a.dirOf(flag)
	if err != nil {
		return err
	}
	ran, err := lastRuns(dir)
	if err != nil && (flag != "" || !errors.Is(err, fs.ErrNotExist)) {
		return err
	}
	p := &doctor.Printer{W: a.sheet(factAt), Color: a.color(), Home: m.Host.Home}
	return p.Explanation(doctor.Explain(s, doctor.Examine(m, files), ran, server))
}

// lastRuns reads the last run of each server.
func lastRuns(dir string) ([]doctor.Ran, error) {
	runs, err := calllog.Runs(dir)
	if err != nil {
		return nil, err
	}
	var list []doctor.Ran
	seen := map[string]bool{}
	for n := len(runs) - 1; n >= max(0, len(runs)-looked); n-- {
		ends, err := calllog.ReadEnds(runs[n].Path, 1)
		if err != nil || ends.Start.Kind == "" || seen[ends.Start.Server] {
			continue // of a log that is damaged `rootbound log verify` tells
		}
		seen[ends.Start.Server] = true
		ran, err := doctor.ReadRan(calllog.Read(runs[n].Path), guard.CodeDeclared)
		if err != nil && ran.Server == "" {
			continue
		}
		list = append(list, ran)
	}
	return list, nil
}
