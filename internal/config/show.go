package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rootbound/rootbound/internal/results"
)

// Row is one line of what holds.
type Row struct {
	Key, Value, Origin string
}

// Changed returns the rows of p that are not those of before, and the keys that are gone, with an empty value.
func (p *Plan) Changed(before *Plan) []Row {
	old := map[string]string{}
	for _, r := range before.Show() {
		old[r.Key] = r.Value
	}
	for name, value := range before.Command.Env { // Show does not say them
		old["env."+name] = value
	}
	for name, value := range before.Headers.Value {
		old["headers."+name] = value
	}
	var changed []Row
	for _, r := range p.Show() {
		value := r.Value
		if name, ok := strings.CutPrefix(r.Key, "env."); ok {
			value = p.Command.Env[name]
		} else if name, ok := strings.CutPrefix(r.Key, "headers."); ok {
			value = p.Headers.Value[name]
		}
		if was, ok := old[r.Key]; !ok || was != value {
			changed = append(changed, r)
		}
		delete(old, r.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		changed = append(changed, Row{Key: key})
	}
	return changed
}

// Show returns what holds, one row for each value, in a fixed order.
func (p *Plan) Show() []Row {
	var rows []Row
	add := func(key, value string, origin any) {
		rows = append(rows, Row{key, value, fmt.Sprint(origin)})
	}
	if p.Server != "" {
		add("server", p.Server, p.CommandOrigin)
	}
	if c := p.Command; c.Path != "" {
		add("command", c.Path, p.CommandOrigin)
		for i, arg := range c.Args {
			add(fmt.Sprintf("args[%d]", i), arg, p.CommandOrigin)
		}
		for _, name := range slices.Sorted(maps.Keys(c.Env)) {
			add("env."+name, "(set)", p.CommandOrigin) // values may be secrets
		}
		if c.Dir != "" {
			add("cwd", c.Dir, p.CommandOrigin)
		}
	}
	if p.URL.Given() {
		value := p.URL.Value
		if u, err := ParseURL(value); err == nil {
			value = PlainURL(u)
		}
		add("url", value, p.URL.Origin)
		for _, name := range slices.Sorted(maps.Keys(p.Headers.Value)) {
			add("headers."+name, "(set)", p.Headers.Origin)
		}
	}
	for i, d := range p.Roots.Dirs() {
		value := d.Path + " " + word(accessWords, d.Access)
		if d.Name != "" {
			value = d.Name + "=" + value
		}
		if d.Pinned {
			value += " pin"
		}
		add(fmt.Sprintf("roots[%d]", i), value, d.Origin)
	}
	if p.Roots.Len() == 0 {
		add("roots", "(none)", p.Source)
	}
	if p.Active.Given() {
		add("active", p.Active.Value, p.Active.Origin)
	}
	add("client_roots", word(clientRootsWords, p.ClientRoots.Value), p.ClientRoots.Origin)
	add("list_changed", strconv.FormatBool(p.ListChanged.Value), p.ListChanged.Origin)
	add("on_change", p.OnChange.Value.String(), p.OnChange.Origin)
	add("paths", p.Paths.Value.String(), p.Paths.Origin)
	add("allow_broad", strconv.FormatBool(p.AllowBroad.Value), p.AllowBroad.Origin)
	add("share_roots", strconv.FormatBool(p.ShareRoots.Value), p.ShareRoots.Origin)
	for i, root := range p.RemoteRoots.Value {
		add(fmt.Sprintf("remote_roots[%d]", i), root, p.RemoteRoots.Origin)
	}
	add("forward_authorization", strconv.FormatBool(p.ForwardAuthorization.Value), p.ForwardAuthorization.Origin)
	add("server_protocol", p.ServerProtocol.Value, p.ServerProtocol.Origin)
	add("client_protocol", p.ClientProtocol.Value, p.ClientProtocol.Origin)
	add("strict_protocol", strconv.FormatBool(p.StrictProtocol.Value), p.StrictProtocol.Origin)
	p.showConfined(add)
	for _, c := range results.Checks() {
		add("results."+c.String(), p.Results.Actions[c].Value.String(), p.Results.Actions[c].Origin)
	}
	add("results.max_mb", strconv.Itoa(p.Results.MaxMB.Value), p.Results.MaxMB.Origin)
	add("results.max_depth", strconv.Itoa(p.Results.MaxDepth.Value), p.Results.MaxDepth.Origin)
	add("results.max_parts", strconv.Itoa(p.Results.MaxParts.Value), p.Results.MaxParts.Origin)
	add("ask", p.Ask.Value.String(), p.Ask.Origin)
	add("approval.wait", strconv.Itoa(p.Approval.Wait.Value), p.Approval.Wait.Origin)
	add("approval.pending", strconv.Itoa(p.Approval.Pending.Value), p.Approval.Pending.Origin)
	add("approval.claude_always_ask", strconv.FormatBool(p.Approval.ClaudeAlwaysAsk.Value), p.Approval.ClaudeAlwaysAsk.Origin)
	add("preset", p.Preset.Value, p.Preset.Origin)
	add("trust_annotations", strconv.FormatBool(p.TrustAnnotations.Value), p.TrustAnnotations.Origin)
	add("publish_annotations", strconv.FormatBool(p.PublishAnnotations.Value), p.PublishAnnotations.Origin)
	for i, r := range p.Policy.Rows {
		add(fmt.Sprintf("rule[%d]", i), r.Value, r.Origin)
	}
	add("pins", p.Pins.Value, p.Pins.Origin)
	for _, name := range slices.Sorted(maps.Keys(p.Tools)) {
		t := p.Tools[name]
		if t.Paths.Given() {
			add("tool."+name+".paths", strings.Join(t.Paths.Value, " "), t.Paths.Origin)
		}
		if t.NotPaths.Given() {
			add("tool."+name+".not_paths", strings.Join(t.NotPaths.Value, " "), t.NotPaths.Origin)
		}
		if t.Effect.Given() {
			add("tool."+name+".effect", t.Effect.Value.String(), t.Effect.Origin)
		}
		for _, arg := range slices.Sorted(maps.Keys(t.Defaults.Value)) {
			add("tool."+name+".defaults."+arg, t.Defaults.Value[arg], t.Defaults.Origin)
		}
	}
	l := p.Log
	add("log.enabled", strconv.FormatBool(l.Enabled.Value), l.Enabled.Origin)
	if l.Dir.Given() {
		add("log.dir", l.Dir.Value, l.Dir.Origin)
	}
	add("log.bodies", strconv.FormatBool(l.Bodies.Value), l.Bodies.Origin)
	add("log.sync", strconv.FormatBool(l.Sync.Value), l.Sync.Origin)
	if l.KeepDays.Given() {
		add("log.keep_days", strconv.Itoa(l.KeepDays.Value), l.KeepDays.Origin)
	}
	if l.MaxMB.Given() {
		add("log.max_mb", strconv.Itoa(l.MaxMB.Value), l.MaxMB.Origin)
	}
	return rows
}
