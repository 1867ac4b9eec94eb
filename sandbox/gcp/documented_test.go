package gcp

import (
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/config"
)

// row is a row of a table of a page: an edit, and its effect.
type row struct{ edits, effect string }

// tableOf reads the first table of a section of docs/guides/operations.md.
func tableOf(t *testing.T, heading string) []row {
	t.Helper()
	page, err := os.ReadFile("../../docs/guides/operations.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n"+heading+"\n")
	require.True(t, found, heading)
	var rows []row
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		switch {
		case strings.HasPrefix(line, "|") && len(cells) == 2:
			rows = append(rows, row{strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])})
		case len(rows) > 0:
			return rows[2:]
		}
	}
	require.Fail(t, "no table", heading)
	return nil
}

var code = regexp.MustCompile("`([^`]+)`")

// quoted returns the words of a text that are in code.
func quoted(text string) []string {
	var words []string
	for _, match := range code.FindAllStringSubmatch(text, -1) {
		words = append(words, match[1])
	}
	return words
}

// leaves returns the paths of the settings of a type. A list is one setting.
func leaves(of reflect.Type, prefix string) []string {
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return []string{strings.TrimSuffix(prefix, ".")}
	}
	var paths []string
	for _, field := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		paths = append(paths, leaves(field.Type, prefix+name+".")...)
	}
	return paths
}

// TestEveryClusterSettingIsInTheTable checks that docs/guides/operations.md describes a change of
// each setting of a cluster, once, and that this test has an edit of each.
func TestEveryClusterSettingIsInTheTable(t *testing.T) {
	listed := map[string]int{}
	var paths []string
	for _, path := range leaves(reflect.TypeFor[config.Cluster](), "") {
		if !strings.HasPrefix(path, "existing.") {
			paths = append(paths, path)
		}
	}
	paths = append(paths, "persia:project")
	for _, row := range tableOf(t, "## Change the cluster") {
		for _, name := range quoted(row.edits) {
			below := slices.DeleteFunc(slices.Clone(paths), func(path string) bool { return path != name && !strings.HasPrefix(path, name+".") })
			assert.NotEmpty(t, below, "there is no %s", name)
			for _, path := range below {
				listed[path]++
			}
		}
	}
	edits := clusterEdits()
	for _, path := range paths {
		assert.Equal(t, 1, listed[path], "rows with %s", path)
		assert.Contains(t, edits, path)
	}
	assert.Len(t, edits, len(paths))
}

// TestDocumentedEditsOfTheCluster makes the edits of the table one after another in a whole stack.
// The engine does exactly what the table says, and the next up finds nothing to do.
func TestDocumentedEditsOfTheCluster(t *testing.T) {
	edits := clusterEdits()
	e, file := newStack(t, "../.."), editable(t)
	e.up(configuration(t, file))
	for _, row := range tableOf(t, "## Change the cluster") {
		for _, name := range quoted(row.edits) {
			for _, path := range slices.Sorted(maps.Keys(edits)) {
				if path != name && !strings.HasPrefix(path, name+".") {
					continue
				}
				t.Run(path, func(t *testing.T) {
					e, file := e, file
					if before := edits[path].before; before != nil || strings.Contains(row.effect, "`replace`") || strings.HasPrefix(row.effect, "refused") {
						e, file = newStack(t, "../.."), editable(t)
						if before != nil {
							before(file)
						}
						e.up(configuration(t, file))
					}
					resources, nodes := len(e.state)+len(e.objects), e.nodes()
					edits[path].edit(file)
					if strings.HasPrefix(row.effect, "refused") {
						assert.ErrorContains(t, e.tryUp(configuration(t, file)), "persia:cluster."+path)
						assert.Empty(t, e.steps)
						return
					}
					if strings.Contains(row.effect, "everything in it") && file["persia:jobs"] != nil {
						assert.ErrorContains(t, e.tryUp(configuration(t, file)), "persia:cluster.replace: persia to end them")
						assert.Empty(t, e.steps)
						set("persia:cluster", "replace", "persia")(file)
						defer func() {
							if t.Failed() {
								return
							}
							assert.Contains(t, e.effects()[0], "this deletes the cluster persia with everything in it")
							assert.Contains(t, e.effects()[1], "persia:jobs[0]: the job criteo ends with the cluster persia, and begins in the new one")
							assert.Empty(t, e.saidToRestart(t))
						}()
					}
					e.up(configuration(t, file))
					assertEffect(t, row.effect, e, resources)
					assertNodes(t, e, nodes)
					assertStays(t, e)
				})
			}
		}
	}
	e.up(configuration(t, file))
	assert.Empty(t, e.steps, "a last up")
}

// TestRangesAreNotMoved: the range of the nodes may grow, as the table says. Any other change of
// it would replace the cluster under its objects, and Google Cloud refuses each change of the
// other ranges in the middle of the update. The program refuses them before anything happens.
func TestRangesAreNotMoved(t *testing.T) {
	e, file := newStack(t, "../.."), editable(t)
	e.up(configuration(t, file))
	for _, c := range []struct {
		name, key, wanted string
		refused           bool
	}{
		{"nodes moved", "nodes", "10.8.0.0/20", true},
		{"fewer nodes", "nodes", "10.0.0.0/21", true},
		{"more nodes", "nodes", "10.0.0.0/19", false},
		{"as few nodes as before", "nodes", "10.0.0.0/20", true},
		{"pods moved", "pods", "10.128.0.0/14", true},
		{"more pods", "pods", "10.64.0.0/13", true},
		{"the default range of pods", "pods", "10.64.0.0/14", false},
		{"services moved", "services", "10.2.0.0/20", true},
		{"the default range of services", "services", "10.1.0.0/20", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			edited := maps.Clone(file)
			set("persia:cluster", "network."+c.key, c.wanted)(edited)
			err := e.tryUp(configuration(t, edited))
			if !c.refused {
				require.NoError(t, err)
				file = edited
				return
			}
			assert.ErrorContains(t, err, `persia:cluster.network.`+c.key+`: Invalid value: "`+c.wanted+`"`)
			assert.Empty(t, e.steps)
		})
	}
}

var effectText = regexp.MustCompile("`(create|update|replace|delete)` of (the|an?|all) (\\w+?)s?\\b( and everything in it)?")

// assertEffect compares what an up did with the text of a page, such as "`replace` of all
// NodePools", given the number of resources before.
func assertEffect(t *testing.T, says string, e *engine, before int) {
	t.Helper()
	did := map[string]int{}
	for _, s := range e.steps {
		did[s.operation+" "+s.kind]++
	}
	want := map[string]int{}
	for _, effect := range effectText.FindAllStringSubmatch(says, -1) {
		operation, many, kind := effect[1], effect[2], effect[3]
		if effect[4] != "" {
			assertEverythingReplaced(t, e, before)
			return
		}
		count := 1
		if many == "all" {
			count = e.count(kind)
			if operation == "delete" {
				count = did[operation+" "+kind]
				assert.Zero(t, e.count(kind), "%ss that are left", kind)
			}
		}
		want[operation+" "+kind] = count
	}
	if says == "no change on its own" {
		assert.Empty(t, did)
		return
	}
	require.NotEmpty(t, want, "the effect is not readable: %s", says)
	assert.Equal(t, want, did, "%v", e.steps)
}

// count returns how many resources of a kind a stack has.
func (e *engine) count(kind string) int {
	count := 0
	for urn := range e.state {
		if string(urn.Type().Name()) == kind {
			count++
		}
	}
	for urn := range e.objects {
		if string(urn.Type().Name()) == kind {
			count++
		}
	}
	return count
}

// aroundTheCluster are kinds that a cluster needs or that outlive it, so a replacement of the
// cluster may leave them unchanged.
var aroundTheCluster = []string{
	"Network", "Subnetwork", "Router", "RouterNat", "Account", "IAMMember", "BucketIAMMember", "CryptoKeyIAMMember", "Bucket", "Instance", "BackupPlan",
}

// assertEverythingReplaced holds that the cluster is replaced or another one takes its
// place, and so are its pools and every object in it.
func assertEverythingReplaced(t *testing.T, e *engine, before int) {
	t.Helper()
	gone := map[string]bool{}
	for _, s := range e.steps {
		if s.operation == "replace" || s.operation == "delete" || s.operation == "keep" {
			gone[s.kind+" "+s.name] = true
		}
		if s.kind != "gcp" { // the provider, which stays and creates in the new project
			assert.NotEqual(t, "update", s.operation, "%v", s)
		}
	}
	assert.True(t, gone["Cluster persia"])
	for urn := range e.state {
		kind := string(urn.Type().Name())
		if !slices.Contains(aroundTheCluster, kind) && !created(e, kind, urn.Name()) {
			assert.True(t, gone[fmt.Sprint(kind, " ", urn.Name())], "%s stays", urn)
		}
	}
	for urn := range e.objects {
		if urn.Type().Package() == "kubernetes" && !created(e, string(urn.Type().Name()), urn.Name()) {
			assert.True(t, gone[fmt.Sprint(urn.Type().Name(), " ", urn.Name())], "%s stays", urn)
		}
	}
	assert.Greater(t, len(gone), before/2)
}

func created(e *engine, kind, name string) bool {
	return slices.ContainsFunc(e.steps, func(s step) bool { return s.operation == "create" && s.kind == kind && s.name == name })
}

// restarts are the roles whose pods restart, by what docs/guides/operations.md says.
var restarts = map[string][]string{
	"all of its roles":                {"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"},
	"all roles":                       {"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"},
	"all roles of all jobs":           {"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"},
	"that role":                       {"criteo-dataloader"},
	"the roles that mount them":       {"criteo-dataloader"},
	"that role and the nn-workers":    {"criteo-dataloader", "criteo-nn-worker"},
	"the embedding parameter servers": {"criteo-embedding-ps"},
	"the roles that mount the bucket": {"criteo-dataloader", "criteo-embedding-ps", "criteo-embedding-worker", "criteo-nn-worker"},
	"none":                            nil,
}

// notEdited are the rows that are not an edit of a stack file, or that another test covers.
var notEdited = []string{"`suspend`", "the program", "`name` of a job"}

// TestDocumentedEditsOfJobs makes the edits of the table one after another in a whole stack. A
// pod restarts if its template changes.
func TestDocumentedEditsOfJobs(t *testing.T) {
	edits := jobEdits()
	e, file := newStack(t, "../.."), editable(t)
	e.up(configuration(t, file))
	for _, row := range tableOf(t, "## Change a running training job") {
		if slices.Contains(notEdited, row.edits) {
			continue
		}
		says, _, _ := strings.Cut(row.effect, ",")
		says, _, _ = strings.Cut(says, ".")
		want, readable := restarts[says]
		require.True(t, readable, "the effect is not readable: %s", row.effect)
		for _, name := range editsOf(row.edits) {
			t.Run(name, func(t *testing.T) {
				require.Contains(t, edits, name, "write an edit of it")
				edits[name].edit(file)
				e.up(configuration(t, file))
				assert.NotEmpty(t, e.steps)
				assert.Equal(t, want, e.restarted(t))
				assert.Equal(t, want, e.saidToRestart(t))
			})
		}
	}
	e.up(configuration(t, file))
	assert.Empty(t, e.steps, "a last up")
}

// editsOf returns the edits that a row names: each setting in code, with what follows the
// last of them.
func editsOf(text string) []string {
	words := quoted(text)
	if len(words) == 0 {
		first, _, _ := strings.Cut(text, ",")
		return []string{first}
	}
	before, _, _ := strings.Cut(text, "`")
	rest := text[strings.LastIndex(text, "`")+1:]
	var names []string
	for _, word := range words {
		names = append(names, before+word+rest)
	}
	return names
}

// restarted returns what the last up restarts of the jobs that run before and after it: StatefulSets
// whose pods change, and the jobs whose pods it deletes and creates again.
func (e *engine) restarted(t *testing.T) []string {
	t.Helper()
	was, is := workloads(t, e.before), workloads(t, e.objects)
	var names []string
	for urn, had := range was {
		_, stays := is[urn]
		switch {
		case had.replicas == 0 || replicasOf(is, had.job) == 0: // nothing runs
		case !stays:
			names = append(names, had.job) // something else creates its pods
		case slices.ContainsFunc(e.steps, func(s step) bool { return s.restarts(urn) }):
			names = append(names, urn.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// restarts reports whether a step restarts the pods that an object has created. Only a StatefulSet
// replaces its pods when their template changes.
func (s step) restarts(urn resource.URN) bool {
	template := slices.ContainsFunc(s.paths, func(path string) bool { return strings.HasPrefix(path, "spec.template.") })
	return s.kind == string(urn.Type().Name()) && s.name == urn.Name() && (s.operation == "replace" || s.kind == "StatefulSet" && template)
}
