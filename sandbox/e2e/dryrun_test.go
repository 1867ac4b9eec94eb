package e2e

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"

	"persia/sandbox/controlplane"
	"persia/sandbox/stackgen"
)

// dryRun sends the objects of stacks to a real API server, which checks them as it
// checks any, and keeps none.
type dryRun struct {
	client dynamic.Interface
	mapper meta.RESTMapper
	// sent counts the objects that differ.
	sent atomic.Int64
	// answers are the answers to all objects that were sent, by the content of the objects.
	answers sync.Map

	mu         sync.Mutex
	namespaces map[string]error
}

// newDryRun starts a control plane that has the kinds that the program defines. It is
// stopped when the test ends.
func newDryRun(t testing.TB) *dryRun {
	t.Helper()
	cluster := controlplane.New(t.TempDir(), "dry-run", tools)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop(context.Background())) })
	require.NoError(t, cluster.Start(t.Context(), io.Discard))
	config, err := cluster.RESTConfig()
	require.NoError(t, err)
	config.QPS = -1 // as fast as it answers
	config.WarningHandler = noWarnings{}
	d := &dryRun{namespaces: map[string]error{}}
	d.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	d.define(t, discovery.NewDiscoveryClientForConfigOrDie(config))
	return d
}

type noWarnings struct{}

func (noWarnings) HandleWarningHeader(int, string, string) {}

// define makes the kinds that the stacks of the repository define.
func (d *dryRun) define(t testing.TB, api discovery.DiscoveryInterface) {
	t.Helper()
	begin, err := stackgen.Examples(repository)
	require.NoError(t, err)
	definitions := d.client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var kinds []schema.GroupKind
	for _, stack := range begin {
		objects, err := stackgen.Objects(stack, examples)
		require.NoError(t, err)
		for _, object := range objects {
			if object.GetKind() != "CustomResourceDefinition" {
				continue
			}
			if _, err := definitions.Create(t.Context(), object, metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
				require.NoError(t, err)
			}
			group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
			kinds = append(kinds, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	require.NotEmpty(t, kinds)
	require.EventuallyWithT(t, func(t *assert.CollectT) {
		groups, err := restmapper.GetAPIGroupResources(api)
		require.NoError(t, err)
		d.mapper = restmapper.NewDiscoveryRESTMapper(groups)
		for _, kind := range kinds {
			_, err := d.mapper.RESTMapping(kind)
			assert.NoError(t, err)
		}
	}, patience, 100*time.Millisecond)
}

// refusal is an object that the API server refuses, or a stack that the program itself
// accepted first and then failed with.
type refusal struct {
	object *unstructured.Unstructured
	err    error
}

func (r refusal) String() string {
	if r.object == nil {
		return fmt.Sprintf("the program fails: %v", r.err)
	}
	return fmt.Sprintf("%s %s: %v", r.object.GetKind(), r.object.GetName(), r.err)
}

var particular = regexp.MustCompile(`"(\\.|[^"\\])*"|[0-9]+`)

// rule returns the same for all refusals for the same reason.
func (r refusal) rule() string {
	if r.object == nil {
		return particular.ReplaceAllString(r.err.Error(), "…")
	}
	rule := r.object.GetKind()
	var status apierrors.APIStatus
	if errors.As(r.err, &status) && status.Status().Details != nil && len(status.Status().Details.Causes) > 0 {
		cause := status.Status().Details.Causes[0]
		return rule + " " + particular.ReplaceAllString(cause.Field, "…") + " " + string(cause.Type)
	}
	return rule + " " + particular.ReplaceAllString(r.err.Error(), "…")
}

// absent is how the program refuses storage that is not there. Here, none is.
const absent = "volumes do not agree with what Google Cloud has"

// refusals returns the objects of a stack that the API server refuses.
func (d *dryRun) refusals(ctx context.Context, stack stackgen.Stack) []refusal {
	objects, err := stackgen.Objects(stack, examples)
	switch {
	case err != nil && strings.Contains(err.Error(), absent):
		return nil
	case err != nil:
		return []refusal{{err: err}}
	}
	refused := sameName(objects)
	security := securityOf(objects)
	for _, object := range slices.Concat(objects, firstPods(objects)) {
		if level := security[object.GetNamespace()]; object.GetNamespace() != "" {
			object.SetNamespace(strings.TrimSuffix(object.GetNamespace()+"-"+level, "-"))
			if err := d.namespace(ctx, object.GetNamespace(), level); err != nil {
				return []refusal{{object, err}}
			}
		}
		if err := d.create(ctx, object); err != nil && !leftToServer(err) {
			refused = append(refused, refusal{object, err})
		}
	}
	return refused
}

// ofServer matches fields of pods that the program leaves to the API server, which checks them in a
// preview too.
var ofServer = regexp.MustCompile(`\.(volumes|volumeMounts|tolerations)\[|\.env\[\d+\]\.`)

// leftToServer reports whether the API server refuses only such fields.
func leftToServer(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return false
	}
	return !slices.ContainsFunc(status.Status().Details.Causes, func(cause metav1.StatusCause) bool { return !ofServer.MatchString(cause.Field) })
}

// sameName are objects that another object of the stack would be overwritten by. No
// object is kept here, and so the API server does not notice.
func sameName(objects []*unstructured.Unstructured) []refusal {
	var refused []refusal
	seen := map[string]bool{}
	for _, object := range objects {
		key := strings.Join([]string{object.GroupVersionKind().GroupKind().String(), object.GetNamespace(), object.GetName()}, " ")
		if seen[key] {
			refused = append(refused, refusal{object, errors.New("the stack has another object of this name")})
		}
		seen[key] = true
	}
	return refused
}

// create returns the answer of the API server. It sends the same object only once.
func (d *dryRun) create(ctx context.Context, object *unstructured.Unstructured) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	answer, asked := d.answers.LoadOrStore(sha256.Sum256(text), sync.OnceValue(func() error {
		d.sent.Add(1)
		return d.ask(ctx, object)
	}))
	_ = asked
	return answer.(func() error)()
}

func (d *dryRun) ask(ctx context.Context, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind()
	mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if address, _, _ := unstructured.NestedString(object.Object, "spec", "clusterIP"); kind.Kind == "Service" && address != "None" {
		// The program holds it against the stack's range, which this API server does not have.
		unstructured.RemoveNestedField(object.Object, "spec", "clusterIP")
	}
	_, err = d.client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{
		DryRun: []string{metav1.DryRunAll}, FieldManager: "persia", FieldValidation: metav1.FieldValidationStrict,
	})
	if kind.Kind == "CustomResourceDefinition" && apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// securityLabel is the label of a namespace that says which pods the API server admits.
const securityLabel = "pod-security.kubernetes.io/enforce"

// securityOf returns the levels of the namespaces of a stack.
func securityOf(objects []*unstructured.Unstructured) map[string]string {
	levels := map[string]string{}
	for _, object := range objects {
		if object.GetKind() == "Namespace" {
			levels[object.GetName()] = object.GetLabels()[securityLabel]
		}
	}
	return levels
}

// namespace makes a namespace, as nothing can be sent to one that is not there.
func (d *dryRun) namespace(ctx context.Context, name, level string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err, made := d.namespaces[name]; made {
		return err
	}
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}}
	if level != "" {
		object.SetLabels(map[string]string{securityLabel: level})
	}
	_, err := d.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = nil
	}
	d.namespaces[name] = err
	return err
}

// firstPods returns the first pods of the workloads, by what those say of them: the API
// server checks a pod more closely than its template. Their accounts and priorities
// are left out, which are not there.
func firstPods(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	var pods []*unstructured.Unstructured
	for _, object := range objects {
		template, found, _ := unstructured.NestedMap(object.Object, "spec", "template")
		if spec, ok := template["spec"].(map[string]any); found && ok && spec["containers"] != nil {
			for _, there := range []string{"serviceAccountName", "serviceAccount", "priorityClassName", "priority"} {
				delete(spec, there)
			}
			spec["automountServiceAccountToken"] = false
			pod := &unstructured.Unstructured{Object: template}
			if object.GetKind() == "NatsCluster" {
				setImages(spec)
			}
			pod.SetAPIVersion("v1")
			pod.SetKind("Pod")
			pod.SetNamespace(object.GetNamespace())
			pod.SetName(object.GetName() + "-0")
			pods = append(pods, pod)
		}
	}
	return pods
}

// setImages sets the images that the NATS operator sets.
func setImages(spec map[string]any) {
	for _, container := range spec["containers"].([]any) {
		if container, ok := container.(map[string]any); ok && container["image"] == nil {
			container["image"] = "nats"
		}
	}
}
