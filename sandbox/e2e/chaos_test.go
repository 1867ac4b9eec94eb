package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/sandbox"
)

// chaosPoints is how many faults TestChaos injects.
const chaosPoints = 67

// keptKinds are the kinds of storage that the stack keeps, as the simulated Google
// Cloud names them.
var keptKinds = []string{"storage.bucket", "compute.disk"}

// takeOver is the variable with which docs/guides/operations.md tells an operator to take
// over objects that the stack has made without knowing it.
const takeOver = "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"

// TestChaos injects each kind of fault several times, at random moments of up, update and destroy. After
// each fault the next command leads to the objects that it leads to without faults, nothing is left after
// destroy, kept storage is the storage that it was, and no operation stays pending.
func TestChaos(t *testing.T) {
	nightly(t)
	t.Parallel()
	random := rand.New(rand.NewPCG(firstSeed(t), 0))
	series := manyFaults(chaosPoints, random)
	x := newChaosStack(t)
	x.measure()
	hit := map[string]int{}
	for i, fault := range series {
		p := x.draw(random, fault)
		t.Run(fmt.Sprintf("%d_%s", i+1, p), func(t *testing.T) {
			x.use(t)
			x.inject(p, hit)
			x.converge(p.next, p.fault.losesAnswers)
		})
		if t.Failed() {
			return // the stack is not in the state that the next point begins with
		}
	}
	for _, fault := range faults {
		assert.Positive(t, hit[fault.name], "%s during a command", fault.name)
	}
	x.use(t)
	x.converge("destroy", false)
	report(t, "%d commands; faults during a command: %v; %d needed %s", len(series), hit, x.tookOver, takeOver)
}

// chaosStack is a small stack with storage that is kept, in two variants: "small"
// and "large". The third state that it is brought to is "destroy".
type chaosStack struct {
	t       *testing.T
	dir     string
	stack   storageStack
	sandbox *sandbox.Sandbox
	printed *output
	// current is the state that the stack is in.
	current string
	// lines is how much each kind of command prints.
	lines map[string]int
	// worlds has the objects and resources of each state.
	worlds   map[string]world
	tookOver int
}

func newChaosStack(t *testing.T) *chaosStack {
	t.Helper()
	x := &chaosStack{t: t, dir: t.TempDir(), current: "destroy",
		lines: map[string]int{}, worlds: map[string]world{}}
	x.stack = newStorageStack(t, []object{
		volume("bucket", "gcsFuse", object{"bucket": "madeup-checkpoints", "create": object{}}),
		volume("disk", "persistentDisk", object{"disk": "madeup-disk", "create": object{}}),
	})
	x.write("small")
	x.sandbox, x.printed = x.stack.sandbox(x.dir)
	return x
}

// use has t fail when something is not as it should be.
func (x *chaosStack) use(t *testing.T) { x.t, x.stack.t = t, t }

// write writes the stack file of a variant. From one variant to the next, resources of Google Cloud
// and of Kubernetes come, go and change.
func (x *chaosStack) write(variant string) {
	x.t.Helper()
	jobs, nodes := []object{job("one", object{"embeddingWorker": role("work", 1, "1", "1Gi")})}, 2
	jobs[0]["mounts"] = mounts("bucket", "/bucket")
	if variant == "large" {
		jobs, nodes = append(jobs, job("two", object{"embeddingWorker": role("work", 2, "1", "1Gi")})), 3
	}
	x.stack.configuration["persia:jobs"] = jobs
	x.stack.configuration["persia:nodePools"] = []object{
		{"name": "rest", "machineType": "n2-standard-8", "nodes": 2},
		{"name": "work", "machineType": "n2-standard-8", "nodes": nodes},
	}
	x.stack.write()
}

// measure brings the stack to each state without a fault.
func (x *chaosStack) measure() {
	x.t.Helper()
	require.NoError(x.t, x.sandbox.Cluster().Start(x.t.Context(), x.t.Output()))
	for _, next := range []string{"small", "large", "destroy"} {
		run, _ := x.start(next, 0)
		require.NoError(x.t, run.wait(), next)
		x.lines[kindOf(x.current, next)] = run.lines
		if x.current == "destroy" {
			x.mark()
		}
		x.current = next
		x.worlds[next] = x.await(func(w world) bool { return len(w.Unready) == 0 })
		require.Empty(x.t, x.worlds[next].Unready, "after %s", next)
	}
	require.False(x.t, x.t.Failed())
}

// kindOf names the change from one state of a stack to another.
func kindOf(from, to string) string {
	switch {
	case to == "destroy":
		return "destroy"
	case from == "destroy":
		return "up"
	default:
		return "update"
	}
}

// converge brings the stack to a state, and checks that all is as without faults.
func (x *chaosStack) converge(to string, answersLost bool) {
	x.t.Helper()
	// A lost control plane is a managed one, which comes up again.
	require.NoError(x.t, x.sandbox.Cluster().Start(x.t.Context(), x.t.Output()))
	if err := x.reach(to); err != nil {
		require.True(x.t, answersLost && strings.Contains(x.printed.String(), "already exists"), "%s: %v", to, err)
		x.tookOver++
		run, _ := x.start(to, 0, takeOver+"=true")
		require.NoError(x.t, run.wait(), "with %s", takeOver)
		require.NoError(x.t, x.reach(to))
	}
	x.current = to
	x.settle()
	x.assertNoChanges()
	assert.Empty(x.t, x.sandbox.State().Locks(), "an update is under way")
	_, pending, err := x.sandbox.State().Resources()
	require.NoError(x.t, err)
	assert.Zero(x.t, pending, "operations are pending")
}

// reach runs the command that brings the stack to a state.
func (x *chaosStack) reach(to string) error {
	x.t.Helper()
	x.printed.reset()
	if to == "destroy" {
		return x.sandbox.Destroy(x.t.Context())
	}
	x.write(to)
	return x.sandbox.Apply(x.t.Context())
}

// settle waits until the world is as it is without faults, and all of it is ready:
// lost nodes and pods come back by themselves.
func (x *chaosStack) settle() {
	x.t.Helper()
	now := x.await(func(w world) bool { return reflect.DeepEqual(x.worlds[x.current], w) })
	assert.Equal(x.t, x.worlds[x.current], now)
}

// await returns the world once it is good, when it can no longer become good, or when patience is over.
func (x *chaosStack) await(good func(world) bool) (now world) {
	x.t.Helper()
	// To look at all that there is takes the API server some time.
	const pause = 500 * time.Millisecond
	var looked time.Time
	why, holds := eventually(patience, nothingLost, func() bool {
		if time.Since(looked) < pause {
			return false
		}
		seen, err := x.look(x.t.Context())
		looked = time.Now()
		if err == nil {
			now = seen
		}
		return err == nil && good(seen)
	})
	if !holds {
		x.t.Logf("what there is: %s", why)
	}
	return now
}

// assertNoChanges checks that the stack file agrees with what there is.
func (x *chaosStack) assertNoChanges() {
	x.t.Helper()
	if x.current == "destroy" {
		return
	}
	_, err := x.sandbox.Refresh(x.t.Context())
	require.NoError(x.t, err)
	assert.Empty(x.t, upChanges(x.t, x.sandbox), "changes of one more up")
}

// mark changes the kept storage without the program's knowledge, as a
// training does: storage that is created again has no mark.
func (x *chaosStack) mark() {
	x.t.Helper()
	for _, path := range x.keptFiles() {
		text, err := os.ReadFile(path)
		require.NoError(x.t, err)
		marked := strings.Replace(string(text), `"body": {`, `"body": {"checkpoint": "of step 1000",`, 1)
		require.NotEqual(x.t, string(text), marked)
		require.NoError(x.t, os.WriteFile(path, []byte(marked), 0o600))
	}
}

func (x *chaosStack) keptFiles() []string {
	x.t.Helper()
	var files []string
	for _, kind := range keptKinds {
		found, err := filepath.Glob(filepath.Join(x.dir, "storage", kind, "*.json"))
		require.NoError(x.t, err)
		require.Len(x.t, found, 1, kind)
		files = append(files, found...)
	}
	return files
}
