package e2e

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"persia/internal/testkit"
	"persia/sandbox/gcp/google"
	"persia/sandbox/process"
)

// manyFaults is how many faults the long form of TestFaults injects at random.
const manyFaults = 67

// keptKinds are the kinds of storage that the stack keeps, as the simulated Google Cloud names them.
var keptKinds = []string{"storage.bucket", "compute.disk"}

// takeOver is the variable with which docs/guides/stacks.md tells an operator to take
// over objects that the stack has made without knowing it.
const takeOver = "PULUMI_K8S_UPSERT_EXISTING_OBJECTS"

// states has the edits that bring the stack to each state except "destroy". Between two states, resources of
// Google Cloud and of Kubernetes come, change, and go.
var states = map[string]string{
	"small": `
nodePools: [{name: rest, nodes: 2}, {name: work, machineType: n2-standard-8, nodes: 2, spot: false}]
jobs:
  - name: one
    env: [{name: SIZE, value: small}]
    embeddingWorker: {nodePool: work, resources: {limits: {cpu: "1", memory: 1Gi}}}
    mounts: [{volume: bucket, mountPath: /bucket}]
  - {name: two, remove: true}`,
	// The pool is another one, and the job one has other pods and another completion.
	"large": `
nodePools: [{name: work, nodes: 3, spot: true}]
jobs:
  - {name: one, env: [{name: SIZE, value: large}]}
  - {name: two, embeddingWorker: {nodePool: work, replicas: 2, resources: {limits: {cpu: "1", memory: 1Gi}}}}`,
}

// TestFaults injects faults into up, update and destroy. After each fault the next command leads to the objects
// that it leads to without faults, nothing is left after destroy, kept storage is the storage that it was, and no
// operation stays pending. The long form goes on with each kind of fault several times, at random moments.
func TestFaults(t *testing.T) {
	t.Parallel()
	x := &faulty{stack: newStack(t, `
storage:
  - {name: bucket, size: 1Ti, gcsFuse: {bucket: madeup-checkpoints, create: {}}}
  - {name: disk, size: 1Ti, persistentDisk: {disk: madeup-disk, create: {}}}`, states["small"]),
		current: "destroy", lines: map[string]int{}, worlds: map[string][]string{}}
	x.subtest(t, "killed while the control plane starts", x.killStart)
	x.measure("small", "large")
	x.subtest(t, "without the control plane", x.loseControlPlane)
	killed, interrupted := faults[0], faults[1]
	for _, p := range []point{
		{to: "small", next: "small", fault: killed, at: printed("PodDisruptionBudget .* creating")},
		{to: "large", next: "large", fault: killed, at: printed("NodePool .*work creating replacement")},
		// The edit is taken back.
		{to: "small", next: "large", fault: killed, at: printed("StatefulSet one-.* updating")},
		{to: "small", next: "small", fault: interrupted, at: printed("StatefulSet one-.* updating")},
		// A volume that has lost its claim never binds again: up must replace it.
		{to: "destroy", next: "small", fault: killed, at: printed("PersistentVolumeClaim .* deleted")},
	} {
		x.test(t, p)
		if p.fault.name == interrupted.name {
			assert.NotContains(t, x.printed.String(), "an earlier command was interrupted", "up has written the state")
		}
	}
	x.subtest(t, "destroy killed while Kubernetes deletes a namespace", x.killWithNamespace)
	if *long {
		for i, step := range []string{"deleting original", "deleted original", "creating replacement", "created replacement", "replacing", "replaced"} {
			to := []string{"large", "small"}[i%2]
			x.test(t, point{to: to, next: to, fault: killed, at: printed("NodePool .*work " + step)})
		}
		x.measure("large", "destroy")
		random := rand.New(rand.NewPCG(firstSeed(t), 0))
		for i := range manyFaults {
			x.test(t, x.draw(random, faults[i%len(faults)]))
		}
		report(t, "%d commands; %d needed %s", manyFaults, x.tookOver, takeOver)
	}
}

// faulty is a small stack with storage that is kept.
type faulty struct {
	*stack
	// current is the state that the stack is in.
	current string
	// lines is how much each kind of command prints.
	lines map[string]int
	// worlds has all that there is in each state.
	worlds   map[string][]string
	tookOver int
}

// fault is an event during a command.
type fault struct {
	name string
	do   func(x *faulty, run *command)
	// losesAnswers says that a request may be carried out and never answered. The
	// command ends with an error and does not know of resources that it has created.
	losesAnswers bool
}

// The program, the language host and the providers are one process, the sandbox command; the engine is the Pulumi CLI.
var faults = []fault{
	{name: "kill program, engine and providers", do: func(_ *faulty, run *command) { run.signal(syscall.SIGKILL) }},
	{name: "press Ctrl-C", losesAnswers: true, do: func(_ *faulty, run *command) { run.signal(syscall.SIGINT) }},
	{name: "kill program and providers", do: func(_ *faulty, run *command) { _ = run.Process.Kill() }},
	{name: "kill engine", do: func(x *faulty, run *command) {
		x.kill(func(p process.Process) bool {
			group, err := syscall.Getpgid(p.PID)
			return err == nil && group == run.Process.Pid && p.PID != run.Process.Pid
		})
	}},
	{name: "restart API server", losesAnswers: true, do: restart("kube-apiserver")},
	{name: "restart etcd", losesAnswers: true, do: restart("etcd")},
	{name: "restart scheduler and controller manager", do: restart("kube-scheduler", "kube-controller-manager")},
	{name: "delete node", do: func(x *faulty, _ *command) {
		c := newCluster(x.t, x.s)
		for _, node := range slices.Sorted(maps.Keys(c.nodes()))[:min(1, len(c.nodes()))] {
			if err := c.CoreV1().Nodes().Delete(x.t.Context(), node, metav1.DeleteOptions{}); !apierrors.IsNotFound(err) {
				require.NoError(x.t, err)
			}
		}
	}},
}

// restart kills components of the stack's control plane and starts them again, as happens to a managed one.
func restart(components ...string) func(*faulty, *command) {
	return func(x *faulty, _ *command) {
		for _, component := range components {
			x.kill(func(p process.Process) bool { return x.isComponent(p, component) })
		}
		require.NoError(x.t, x.s.Cluster().Start(x.t.Context(), x.t.Output()))
	}
}

func (x *faulty) isComponent(p process.Process, name string) bool {
	path, _, _ := strings.Cut(p.Command, " --")
	return filepath.Base(path) == name && strings.HasPrefix(path, x.dir+"/")
}

// kill kills the processes that match, which must be the stack's own, and waits until they are gone: one that is still
// ending counts as one that runs, and is not started again.
func (x *faulty) kill(match func(process.Process) bool) {
	x.t.Helper()
	found := testkit.Must(process.Matching(match))(x.t)
	for _, p := range found {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
	await(x.t, func() bool { return !slices.ContainsFunc(found, process.Process.Running) }, "killed processes are still there: %v", found)
}

// point is a command that brings the stack to a state, with a fault some time after a line that it prints, and
// the state that the command after it brings the stack to.
type point struct {
	to, next string
	fault    fault
	at       func(number int, line string) bool
	delay    time.Duration
}

func printed(pattern string) func(int, string) bool {
	return func(_ int, line string) bool { return regexp.MustCompile(pattern).MatchString(line) }
}

// draw chooses a command, the moment of its fault, and the command after it.
func (x *faulty) draw(random *rand.Rand, fault fault) point {
	nexts := map[string][]string{"destroy": {"small", "large"}, "small": {"large", "destroy"}, "large": {"small", "destroy"}}[x.current]
	p := point{to: nexts[random.IntN(len(nexts))], fault: fault, delay: time.Duration(random.IntN(int(time.Second)))}
	moment := random.IntN(x.lines[kindOf(x.current, p.to)])
	p.at = func(number int, _ string) bool { return number == moment+1 }
	p.next = p.to
	if changesMind := random.IntN(3) == 0; changesMind && !fault.losesAnswers {
		p.next = nexts[random.IntN(len(nexts))]
	}
	return p
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

// test injects a fault and checks what the next command leads to.
func (x *faulty) test(t *testing.T, p point) {
	t.Helper()
	ok := x.subtest(t, fmt.Sprintf("%s, %s to %s, then %s", p.fault.name, kindOf(x.current, p.to), p.to, p.next), func() {
		run, reached := x.begin(p.to, p.at)
		select {
		case <-run.ended:
		case <-reached:
			time.Sleep(p.delay)
		}
		p.fault.do(x, run)
		awaitUnless(x.t, patience, nothingLost, func() bool { return run.over() != "" }, "the command ends after the fault")
		run.signal(syscall.SIGKILL)
		x.converge(p.next, p.fault.losesAnswers)
	})
	if !ok {
		t.FailNow() // the stack is not in the state that the next point begins with
	}
}

// begin begins the command that brings the stack to a state. It closes reached at a line that the command prints.
func (x *faulty) begin(to string, at func(int, string) bool, variables ...string) (run *command, reached chan struct{}) {
	x.t.Helper()
	name := "destroy"
	if to != "destroy" {
		x.edit(states["small"], states[to])
		name = "up"
	}
	reached = make(chan struct{})
	once := false
	return startCommand(x.t, func(number int, line string) {
		if !once && at(number, line) {
			once = true
			close(reached)
		}
	}, variables, name, "--stack", x.name, "--stacks", x.project, "--dir", x.dir), reached
}

func never(int, string) bool { return false }

// killStart kills up while the control plane starts, and takes the sandbox down. The control plane may be ready
// before this process sees its first component, on a busy machine. Then it starts again from nothing.
func (x *faulty) killStart() {
	for range 5 {
		run, reached := x.begin("small", printed("control plane: starting"))
		<-reached
		awaitUnless(x.t, patience, run.over, func() bool {
			found := testkit.Must(process.Matching(func(p process.Process) bool { return x.isComponent(p, "etcd") }))(x.t)
			return len(found) > 0
		}, "etcd runs")
		run.signal(syscall.SIGKILL)
		_ = run.wait()
		_, err := os.Stat(x.s.Kubeconfig())
		x.down()
		if os.IsNotExist(err) {
			return
		}
	}
	require.Fail(x.t, "the control plane was always ready before up was killed")
}

// measure brings the stack to states without a fault.
func (x *faulty) measure(states ...string) {
	x.t.Helper()
	for _, next := range states {
		run, _ := x.begin(next, never)
		require.NoError(x.t, run.wait(), next)
		x.lines[kindOf(x.current, next)] = run.lines
		if x.current == "destroy" {
			x.mark()
		}
		x.current = next
		x.await(func(there, unready []string) bool { x.worlds[next] = there; return len(unready) == 0 })
	}
}

// converge brings the stack to a state, and checks that all is as without faults.
func (x *faulty) converge(to string, answersLost bool) {
	x.t.Helper()
	// A lost control plane is a managed one, which comes up again.
	require.NoError(x.t, x.s.Cluster().Start(x.t.Context(), x.t.Output()))
	if err := x.reach(to); err != nil {
		require.True(x.t, answersLost && strings.Contains(x.printed.String(), "already exists"), "%s: %v", to, err)
		x.tookOver++
		run, _ := x.begin(to, never, takeOver+"=true")
		require.NoError(x.t, run.wait(), "with %s", takeOver)
		require.NoError(x.t, x.reach(to))
	}
	x.assertReached(to)
}

// assertReached checks that all is as without faults in a state.
func (x *faulty) assertReached(to string) {
	x.t.Helper()
	x.current = to
	// Lost nodes and pods come back by themselves.
	x.await(func(there, unready []string) bool { return len(unready) == 0 && slices.Equal(x.worlds[to], there) })
	if to != "destroy" {
		x.refresh()
		assert.Empty(x.t, x.up(), "changes of one more up")
	}
	assert.Empty(x.t, x.s.State().Locks(), "an update is under way")
	_, pending, err := x.s.State().Resources()
	require.NoError(x.t, err)
	assert.Zero(x.t, pending, "operations are pending")
}

// reach runs the command that brings the stack to a state.
func (x *faulty) reach(to string) error {
	x.t.Helper()
	x.printed.reset()
	if to == "destroy" {
		return x.s.Destroy(x.t.Context())
	}
	x.edit(states["small"], states[to])
	_, err := x.s.Up(x.t.Context())
	return err
}

// killWithNamespace kills destroy while an object keeps a namespace, for whose end the next up must wait.
func (x *faulty) killWithNamespace() {
	configMaps := newCluster(x.t, x.s).CoreV1().ConfigMaps("persia")
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Finalizers: []string{"example.com/held"}}}
	testkit.Must(configMaps.Create(x.t.Context(), held, metav1.CreateOptions{}))(x.t)
	run, reached := x.begin("destroy", printed(`Namespace persia deleting \(\d+s\) waiting for`))
	<-reached
	run.signal(syscall.SIGKILL)
	_ = run.wait()

	x.printed.reset()
	up := begin(func() error { _, err := x.s.Up(x.t.Context()); return err })
	x.printed.await(x.t, up, "waiting until Namespace persia is deleted")
	released := []byte(`{"metadata":{"finalizers":null}}`)
	testkit.Must(configMaps.Patch(x.t.Context(), held.Name, types.MergePatchType, released, metav1.PatchOptions{}))(x.t)
	require.NoError(x.t, up.wait())
	x.assertReached("small")
}

// loseControlPlane damages what etcd keeps of a stack, as a machine does that loses power.
// Down takes the rest of the stack away. The next point starts from nothing.
func (x *faulty) loseControlPlane() {
	killAll(x.t, filepath.Join(x.dir, x.name, "cluster"))
	files := testkit.Must(filepath.Glob(filepath.Join(x.dir, x.name, "cluster", "kwok", "clusters", "*", "etcd", "member", "snap", "db")))(x.t)
	require.Len(x.t, files, 1)
	require.NoError(x.t, os.WriteFile(files[0], []byte(strings.Repeat("damaged", 10000)), 0o600))
	timeout := &x.s.Cluster().ResumeTimeout
	defer func(before time.Duration) { *timeout = before }(*timeout)
	*timeout = 5 * time.Second // it never comes back
	x.down("storage")
	x.current = "destroy"
}

// await waits until the world is good: all that there is, and what of it is not ready.
func (x *faulty) await(good func(there, unready []string) bool) {
	x.t.Helper()
	var there, unready []string
	await(x.t, func() bool {
		var err error
		if there, unready, err = x.look(x.t.Context()); err != nil {
			there = []string{err.Error()}
		}
		return err == nil && good(there, unready)
	}, "what there is, %v unready: %v", &unready, &there)
}

// look returns the names of the lasting objects in the control plane and of the resources in the simulated Google Cloud,
// with the marks of the kept ones; and the pods and workloads that are not ready.
func (x *faulty) look(ctx context.Context) (there, unready []string, err error) {
	err = eachObject(ctx, x.s, func(item unstructured.Unstructured) {
		name := fmt.Sprintf("%s %s/%s", item.GetKind(), item.GetNamespace(), item.GetName())
		if !ready(item) {
			unready = append(unready, name)
		}
		if !passing[item.GetKind()] && !strings.HasPrefix(item.GetNamespace(), "kube-") && !strings.HasPrefix(item.GetName(), "system") &&
			item.GetName() != "kube-root-ca.crt" && item.GetNamespace() != metav1.NamespaceDefault {
			there = append(there, name)
		}
	})
	if err != nil {
		return nil, nil, err
	}
	storage := filepath.Join(x.dir, "storage")
	resources, err := fs.Glob(os.DirFS(storage), "*/*")
	if err != nil {
		return nil, nil, err
	}
	there = append(there, resources...)
	for _, kind := range keptKinds {
		bodies, err := google.New(storage).List(kind)
		if err != nil {
			return nil, nil, err
		}
		for name, body := range bodies {
			there = append(there, fmt.Sprintf("%s %s: %v", kind, name, body["checkpoint"]))
		}
	}
	slices.Sort(there)
	return slices.Compact(there), unready, nil
}

// passing are the kinds whose objects come, go and are named by themselves.
var passing = map[string]bool{
	"Event": true, "Lease": true, "Pod": true, "ReplicaSet": true, "ControllerRevision": true,
	"EndpointSlice": true, "Endpoints": true, "APIService": true, "ComponentStatus": true, "IPAddress": true,
}

// ready says whether a pod or a workload is ready. What is of another kind always is.
func ready(item unstructured.Unstructured) bool {
	switch item.GetKind() {
	case "Pod":
		conditions, _, _ := unstructured.NestedSlice(item.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(condition any) bool {
			of, _ := condition.(object)
			return of["type"] == "Ready" && of["status"] == "True"
		})
	case "StatefulSet", "Deployment":
		wanted, _, _ := unstructured.NestedInt64(item.Object, "spec", "replicas")
		found, _, _ := unstructured.NestedInt64(item.Object, "status", "readyReplicas")
		return found == wanted
	}
	return true
}

// mark changes the kept storage without the program's knowledge, as a
// training does: storage that is created again has no mark.
func (x *faulty) mark() {
	x.t.Helper()
	for _, kind := range keptKinds {
		files := testkit.Must(filepath.Glob(filepath.Join(x.dir, "storage", kind, "*.json")))(x.t)
		require.Len(x.t, files, 1, kind)
		text := testkit.Read(x.t, files[0])
		marked := strings.Replace(text, `"body": {`, `"body": {"checkpoint": "of step 1000",`, 1)
		require.NotEqual(x.t, text, marked)
		require.NoError(x.t, os.WriteFile(files[0], []byte(marked), 0o600))
	}
}
