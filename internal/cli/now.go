package cli

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rootbound/rootbound/internal/approval"
	"github.com/rootbound/rootbound/internal/calllog"
	"github.com/rootbound/rootbound/internal/config"
	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/launch"
	"github.com/rootbound/rootbound/internal/transport"
	"github.com/rootbound/rootbound/roots"
)

// now is what r is at the moment, but for what is counted and for what waits.
func (r *running) now() approval.Now {
	plan := r.plan.Load()
	n := approval.Now{
		Version: version(), Log: cmp.Or(r.log.Path(), r.loggedBy), Source: plan.Source.String(), SourceCode: plan.Source.Code(),
		Roots: []approval.Root{}, Layers: r.layers(), Clients: []approval.Client{},
	}
	if url := r.listening.Load(); url != nil {
		n.Listening = *url
	}
	n.List = listOf(plan)
	if plan.Command.Path != "" && !r.ours {
		n.Command = calllog.RedactArgs(append([]string{plan.Command.Path}, plan.Command.Args...))
	}
	if u, err := config.ParseURL(plan.URL.Value); err == nil {
		n.URL = calllog.RedactText(config.PlainURL(u))
	}
	all := r.posts.all()
	for _, one := range all {
		list, more := one.guard.Clients(approval.MaxClients - len(n.Clients))
		for _, c := range list {
			c.ServerRevision = c.Revision
			if one.revision != nil {
				era := exchange.Legacy
				if transport.IsModern(c.Revision) {
					era = exchange.Modern
				}
				c.ServerRevision = one.revision(era)
			}
			n.Clients = append(n.Clients, c)
		}
		n.More += more
	}
	switch {
	case len(n.Clients) > 0:
		n.Roots, n.Why, n.WhyCode = n.Clients[0].Roots, n.Clients[0].Why, n.Clients[0].WhyCode
	case len(all) > 0:
		would := all[0].guard.Would()
		n.Roots, n.Why, n.WhyCode = would.Roots, would.Why, would.WhyCode
	}
	return n
}

// listOf is what of a file the roots of a plan follow.
func listOf(plan *config.Plan) *approval.List {
	active := func(d roots.Dir) bool { return strings.Contains(d.Origin, " "+launch.Active+", ") }
	switch {
	case plan.Source == config.FromFile && plan.OwnRoots:
		return &approval.List{File: plan.RootsFile, Server: plan.Server}
	case plan.Source == config.FromFile:
		return &approval.List{File: plan.RootsFile}
	case plan.Source == config.FromFlags && slices.ContainsFunc(plan.Roots.Dirs(), active):
		return &approval.List{File: plan.Active.Origin.File, Active: true}
	}
	return nil
}

// held are the names of the layers that hold, as the log has them.
func held(layers []approval.Layer) []string {
	var names []string
	for _, l := range layers {
		if l.Holds {
			names = append(names, l.Name)
		}
	}
	return names
}

// The names of the layers.
const (
	layerTold      = "told"
	layerChecked   = "checked"
	layerContained = "contained"
	layerConfined  = "confined"
)

// childLayers say by what a server is held that runs here: confined is nil for one that is not.
func childLayers(confined *confinement) []approval.Layer {
	last := approval.Layer{Name: layerConfined, Text: "not confined"}
	if confined != nil {
		last.Holds, last.Text = confined.learn == nil, confined.String()
		if confined.partsOpen.Load() {
			last.Text += "; " + partsOpen
		}
	}
	return []approval.Layer{{Name: layerTold, Holds: true, Text: "told"}, {Name: layerChecked, Holds: true, Text: "checked"}, last}
}

// childWords say that in the start line.
func childWords(confined *confinement) string {
	l, separator := childLayers(confined), ", "
	if confined != nil {
		separator = "; "
	}
	return l[0].Text + " and " + l[1].Text + separator + l[2].Text
}

// all are the posts, the oldest first.
func (p *posts) all() []*post {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*post, 0, len(p.stops))
	for one := range p.stops {
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b *post) int { return cmp.Compare(a.n, b.n) })
	return list
}

// command is how a server is started or reached, for a person; "" for one of ours.
func commandOf(n *approval.Now) string { return cmp.Or(n.URL, strings.Join(n.Command, " ")) }
