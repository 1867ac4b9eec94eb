package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto/events"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
	"persia/internal/testkit"
	"persia/sandbox"
)

type object = map[string]any

// madeUp is the file of a small stack. Each test adds its own part.
const madeUp = `
project: my-project
cluster: {name: madeup, region: us-central1, zones: [us-central1-a], deletionProtection: false}
machineTypes: {}
nodePools: [{name: rest, machineType: n2-standard-8, nodes: 1}]
nvidiaDriver: {installer: managed}
storage: []
nats: {size: 1, resources: {limits: {cpu: 100m, memory: 512Mi}}}
operator: {image: "persia/training:0.1.dev251"}
jobs: []
`

// smallJob has what an edit does not say about a new job.
const smallJob = `
enableMetrics: false
persiaEnv:
  PERSIA_GLOBAL_CONFIG: /home/PERSIA/examples/src/adult-income/config/global_config.yml
  PERSIA_EMBEDDING_CONFIG: /home/PERSIA/examples/src/adult-income/config/embedding_config.yml
  PERSIA_NN_WORKER_ENTRY: /home/PERSIA/examples/src/adult-income/train.py
  PERSIA_DATALOADER_ENTRY: /home/PERSIA/examples/src/adult-income/data_loader.py
nnWorker: &role {nodePool: rest, replicas: 1, resources: {limits: {cpu: 100m, memory: 128Mi}}}
dataloader: *role
embeddingWorker: *role
embeddingParameterServer: *role
`

// stack is a stack of a test, and its cluster once it is up.
type stack struct {
	cluster
	name, project, dir string
	// values has the stack file, by keys without a namespace.
	values  object
	printed *output
}

// newStack returns the stack madeup with edits. It is taken down when the test ends.
func newStack(t testing.TB, edits ...string) *stack {
	t.Helper()
	return stackIn(t, t.TempDir(), "madeup", edits...)
}

// stackIn is [newStack] for a stack whose sandbox writes to dir. Repository and examples have their own stack files.
func stackIn(t testing.TB, dir, name string, edits ...string) *stack {
	t.Helper()
	s := &stack{name: name, project: t.TempDir(), dir: dir, printed: &output{}}
	s.t = t
	text := []byte("config:\n" + strings.ReplaceAll(madeUp, "\n", "\n  "))
	for _, folder := range []string{repository, examples} {
		own, err := os.ReadFile(filepath.Join(folder, input.StackFileName(name)))
		if err == nil {
			text = own
			require.NoError(t, os.CopyFS(s.project, os.DirFS(examples))) // the manifests of some
		}
	}
	file := testkit.Must(input.ParseStackFile(text, config.Namespace))(t)
	s.values = object{}
	for key, value := range file.Config {
		s.values[strings.TrimPrefix(key, config.Namespace+":")] = value
	}
	text, err := os.ReadFile(filepath.Join(repository, "Pulumi.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(s.project, "Pulumi.yaml"), text, 0o600))
	s.edit(edits...)
	s.s, err = sandbox.New(sandbox.Options{
		Project: s.project, Stack: name, Dir: dir, Tools: tools, Executable: executable,
		Out: io.MultiWriter(t.Output(), s.printed),
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			logFiles(t, filepath.Join(dir, name, "agent", "logs", "*.log"))
		}
		if err := s.s.Down(context.Background()); err != nil {
			t.Errorf("take the sandbox down: %v", err)
			// Its processes would slow down all later tests.
			killAll(t, dir)
		}
	})
	return s
}

// edit merges fragments into the stack file: an object into an object, and what has a name in a list into the
// item of that name, which `rename` renames and `remove: true` removes. null removes a key.
func (s *stack) edit(fragments ...string) {
	s.t.Helper()
	for _, fragment := range fragments {
		var changes object
		require.NoError(s.t, yaml.Unmarshal([]byte(fragment), &changes), fragment)
		jobs, _ := changes["jobs"].([]any)
		for i := range jobs {
			if there, _ := s.values["jobs"].([]any); indexOf(there, jobs[i]) < 0 {
				var small object
				require.NoError(s.t, yaml.Unmarshal([]byte(smallJob), &small))
				jobs[i] = merge(small, jobs[i])
			}
		}
		s.values = merge(s.values, changes).(object)
	}
	s.write(s.name)
}

func merge(into, changes any) any {
	switch changes := changes.(type) {
	case object:
		old, _ := into.(object)
		merged := maps.Clone(old)
		if merged == nil {
			merged = object{}
		}
		for key, value := range changes {
			if merged[key] = merge(merged[key], value); value == nil {
				delete(merged, key)
			}
		}
		return merged
	case []any:
		old, _ := into.([]any)
		if len(changes) == 0 || nameOf(changes[0]) == nil {
			return changes
		}
		merged := slices.Clone(old)
		for _, change := range changes {
			at := indexOf(merged, change)
			if at < 0 {
				at, merged = len(merged), append(merged, object{})
			}
			item := merge(merged[at], change).(object)
			if name := item["rename"]; name != nil {
				item["name"] = name
			}
			merged[at] = item
			if delete(item, "rename"); item["remove"] == true {
				merged = slices.Delete(merged, at, at+1)
			}
		}
		return merged
	default:
		return changes
	}
}

func nameOf(item any) any {
	named, _ := item.(object)
	return named["name"]
}

func indexOf(list []any, item any) int {
	return slices.IndexFunc(list, func(there any) bool { return nameOf(there) == nameOf(item) })
}

// write writes the stack file under a name.
func (s *stack) write(name string) {
	s.t.Helper()
	text := testkit.Must(input.StackFile{Config: s.configuration()}.Text())(s.t)
	require.NoError(s.t, os.WriteFile(filepath.Join(s.project, input.StackFileName(name)), text, 0o600))
}

func (s *stack) configuration() input.Values {
	values := input.Values{}
	for key, value := range s.values {
		values[config.Namespace+":"+key] = value
	}
	return values
}

// load reads the stack file as the program does.
func (s *stack) load() *config.Stack {
	s.t.Helper()
	return testkit.Must(config.Load(s.configuration().Get, os.DirFS(repository)))(s.t)
}

// start starts the control plane.
func (s *stack) start() {
	s.t.Helper()
	require.NoError(s.t, s.s.Cluster().Start(s.t.Context(), s.t.Output()))
	s.cluster = newCluster(s.t, s.s)
}

// up brings the stack up with edits, and returns the changes.
func (s *stack) up(edits ...string) map[string]int {
	s.t.Helper()
	s.edit(edits...)
	changes := testkit.Must(s.s.Up(s.t.Context()))(s.t)
	if s.Interface == nil {
		s.cluster = newCluster(s.t, s.s)
	}
	return withoutSame(s.t, changes)
}

// outputs is [stack.up] that also returns the outputs.
func (s *stack) outputs(edits ...string) (changes map[string]int, outputs object) {
	s.t.Helper()
	changes = s.up(edits...)
	require.NoError(s.t, json.Unmarshal(s.output("--json", "--show-secrets"), &outputs))
	return changes, outputs
}

// output returns what the Pulumi CLI says of the outputs.
func (s *stack) output(args ...string) []byte {
	s.t.Helper()
	command := exec.CommandContext(s.t.Context(), tools.Path("pulumi"), append([]string{"stack", "output", "--stack", s.name}, args...)...)
	own := filepath.Join(s.dir, s.name)
	command.Dir, command.Env = own+"/project", append(os.Environ(), "PULUMI_HOME="+own+"/pulumi", "PULUMI_BACKEND_URL=file://"+own+"/state",
		"PULUMI_CONFIG_PASSPHRASE_FILE="+own+"/passphrase", "PULUMI_SKIP_UPDATE_CHECK=true")
	return testkit.Must(command.Output())(s.t)
}

// refresh refreshes the state, and returns what had drifted.
func (s *stack) refresh() map[string]int {
	s.t.Helper()
	return withoutSame(s.t, testkit.Must(s.s.Refresh(s.t.Context()))(s.t))
}

// assertUnchanged checks that one more up has nothing to do, neither before nor after a refresh.
func (s *stack) assertUnchanged() {
	s.t.Helper()
	assert.Empty(s.t, s.up(), "second up")
	assert.Empty(s.t, s.refresh(), "refresh")
}

// destroy deletes the stack, and checks that nothing is left in the cluster.
func (s *stack) destroy() {
	s.t.Helper()
	require.NoError(s.t, s.s.Destroy(s.t.Context()))
	s.assertEmpty()
}

// down takes the whole sandbox down, and checks that it leaves nothing but files with the given names.
func (s *stack) down(left ...string) {
	s.t.Helper()
	require.NoError(s.t, s.s.Down(s.t.Context()))
	entries := testkit.Must(os.ReadDir(s.dir))(s.t)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	assert.Equal(s.t, left, found, "files that down leaves")
	assert.Empty(s.t, sandboxProcesses(s.t, s.dir), "down leaves no process")
	s.Interface = nil
}

// preview returns how many resources an update would change by operation, and what the engine and the program say.
func preview(t testing.TB, s *sandbox.Sandbox) (changes map[apitype.OpType]int, said string, err error) {
	t.Helper()
	err = s.Preview(t.Context(), func(event events.EngineEvent) {
		if event.DiagnosticEvent != nil {
			said += event.DiagnosticEvent.Message
		}
		if event.SummaryEvent != nil {
			changes = event.SummaryEvent.ResourceChanges
		}
	})
	t.Log(said)
	return changes, said, err
}

// assertRefused checks that a preview of the stack file fails, and what it says, which it returns.
func (s *stack) assertRefused(want string) string {
	s.t.Helper()
	_, said, err := preview(s.t, s.s)
	require.Error(s.t, err)
	require.Contains(s.t, strings.Join(strings.Fields(said), " "), want)
	return said
}

// step is an edit of a stack that runs.
type step struct {
	name, edit string
	// want are the changes that up makes, unless it is nil.
	want map[string]int
	// refused is what a preview says about an edit that the program refuses. The stack stays as it was.
	refused string
	// then checks the stack after up.
	then func()
}

// run makes the steps one after another, each in a subtest, until one fails.
func (s *stack) run(t *testing.T, steps []step) {
	t.Helper()
	for _, step := range steps {
		ok := s.subtest(t, step.name, func() {
			if step.refused != "" {
				before := s.values
				s.edit(step.edit)
				s.assertRefused(step.refused)
				s.values = before
				s.edit()
				return
			}
			changes := s.up(step.edit)
			if step.want != nil {
				assert.Equal(s.t, step.want, changes)
			}
			if step.then != nil {
				step.then()
			}
		})
		if !ok {
			t.FailNow()
		}
	}
}

// subtest runs a test of the stack as a subtest of t.
func (s *stack) subtest(t *testing.T, name string, test func()) bool {
	t.Helper()
	whole := s.t
	defer func() { s.t = whole }()
	return t.Run(name, func(t *testing.T) {
		s.t = t
		test()
	})
}

func withoutSame(t testing.TB, changes map[string]int) map[string]int {
	t.Helper()
	require.NotEmpty(t, changes)
	delete(changes, "same")
	return changes
}

// output collects the printed text.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func (o *output) reset() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Reset()
}

// await waits until an operation has printed a text.
func (o *output) await(t testing.TB, by *operation, text string) {
	t.Helper()
	awaitUnless(t, patience, by.over, func() bool { return strings.Contains(o.String(), text) }, "%q is printed", text)
}
