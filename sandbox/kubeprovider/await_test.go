package kubeprovider

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"

	"persia/internal/testkit"
)

// TestReadiness checks what the official provider waits for, by kind and by annotation.
func TestReadiness(t *testing.T) {
	const (
		set  = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 2}, spec: {replicas: 1}, "
		job  = "{apiVersion: batch/v1, kind: Job, "
		skip = `metadata: {annotations: {pulumi.com/skipAwait: "true"}}, `
	)
	condition := func(is string) string {
		return `status: {startTime: "2026-01-01T00:00:00Z", active: 1, conditions: [{type: ` + is + `, status: "True"}]}}`
	}
	for name, test := range map[string]struct {
		obj           string
		ready, failed bool
	}{
		"a namespace":                         {obj: `{apiVersion: v1, kind: Namespace}`, ready: true},
		"a custom resource that says not":     {obj: `{apiVersion: example.com/v1, kind: Thing, status: {conditions: [{type: Ready, status: "False"}]}}`, ready: true},
		"a volume without a phase":            {obj: `{apiVersion: v1, kind: PersistentVolume}`},
		"a volume that is released":           {obj: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Released}}`},
		"a volume that is available":          {obj: `{apiVersion: v1, kind: PersistentVolume, status: {phase: Available}}`, ready: true},
		"a claim that is pending":             {obj: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Pending}}`},
		"a claim that is bound":               {obj: `{apiVersion: v1, kind: PersistentVolumeClaim, status: {phase: Bound}}`, ready: true},
		"a headless service":                  {obj: `{apiVersion: v1, kind: Service, spec: {clusterIP: None, selector: {a: b}}}`, ready: true},
		"a load balancer without an address":  {obj: `{apiVersion: v1, kind: Service, spec: {type: LoadBalancer, clusterIP: None}}`},
		"a set that rolls out":                {obj: set + "status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentRevision: a, updateRevision: b}}"},
		"a set that is ready":                 {obj: set + "status: {observedGeneration: 2, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: b, updateRevision: b}}", ready: true},
		"a set whose change is not seen yet":  {obj: set + "status: {observedGeneration: 1, replicas: 1, readyReplicas: 1, currentReplicas: 1, updatedReplicas: 1, currentRevision: b, updateRevision: b}}"},
		"a job that runs":                     {obj: job + "status: {active: 1}}"},
		"a job that is about to be complete":  {obj: job + condition("SuccessCriteriaMet")},
		"a job that is complete":              {obj: job + condition("Complete"), ready: true},
		"a job that has failed":               {obj: job + condition("Failed"), failed: true},
		"a failed job that is not waited for": {obj: job + skip + condition("Failed"), ready: true},
		"a job with conditions of its own":    {obj: job + "metadata: {annotations: {pulumi.com/waitFor: condition=Failed}}, " + condition("Failed"), ready: true},
	} {
		t.Run(name, func(t *testing.T) {
			obj := objectIn(t, test.obj)
			waitsFor, err := "", error(nil)
			if rule := readinessOf(obj); rule != nil {
				waitsFor, err = rule(t.Context(), nil, obj)
			}
			assert.Equal(t, test.failed, err != nil, "%v", err)
			assert.Equal(t, test.ready, err == nil && waitsFor == "", waitsFor)
		})
	}
	assert.Equal(t, 5*time.Minute, timeoutOf(objectIn(t, `{apiVersion: v1, kind: PersistentVolume}`)))
	assert.Equal(t, 10*time.Minute, timeoutOf(objectIn(t, `{apiVersion: example.com/v1, kind: Thing}`)))
}

// TestUnscheduled: a workload waits for its pod without a node, whose condition says why.
func TestUnscheduled(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/v1/namespaces/persia/pods app=a spec.nodeName=",
			r.URL.Path+" "+r.URL.Query().Get("labelSelector")+" "+r.URL.Query().Get("fieldSelector"))
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(objectIn(t, `{apiVersion: v1, kind: PodList, items: [
  {apiVersion: v1, kind: Pod, metadata: {name: new}},
  {apiVersion: v1, kind: Pod, metadata: {name: a-0}, status: {conditions: [{type: PodScheduled, status: "False", message: 0/2 nodes are available}]}}]}`))
	}))
	defer server.Close()
	c := testkit.Must(newClient(&rest.Config{Host: server.URL}))(t)
	assert.Equal(t, "; a-0: 0/2 nodes are available",
		unscheduled(t.Context(), c, objectIn(t, `{apiVersion: apps/v1, kind: StatefulSet, metadata: {namespace: persia}, spec: {selector: {matchLabels: {app: a}}}}`)))
	assert.Empty(t, unscheduled(t.Context(), c, objectIn(t, `{apiVersion: batch/v1, kind: Job}`)))
}

func TestWaitFor(t *testing.T) {
	object := objectIn(t, `
metadata: {generation: 2}
spec: {size: 60, paused: false, nothing: null}
status:
  size: 60
  empty: {}
  conditions:
  - {type: Ready, status: "True", observedGeneration: 2}
  - {type: Synced, status: "True", observedGeneration: 1}
  - {type: Degraded, status: "False"}
`)
	for waitFor, want := range map[string]bool{
		"jsonpath={.status.size}=60":                                    true,
		"jsonpath={.status.size}=30":                                    false,
		"jsonpath={.spec.paused}=false":                                 true,
		"jsonpath={.status.empty}":                                      true,
		"jsonpath={.status.ready}":                                      false,
		"jsonpath={.spec.nothing}":                                      false,
		"jsonpath={.status.conditions[7].status}=True":                  false,
		`jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`: true,
		"condition=Ready":                                               true,
		"condition=ready=true":                                          true,
		"condition=Degraded=False":                                      true,
		"condition=Ready=False":                                         false,
		"condition=Available":                                           false,
		"condition=Synced":                                              false, // of an older generation
		`["jsonpath={.status.size}=60", "condition=Ready"]`:             true,
		`["jsonpath={.status.size}=60", "condition=Available=Unknown"]`: false,
	} {
		object.SetAnnotations(map[string]string{annotationWaitFor: waitFor})
		unmet, err := unmet(object)
		require.NoError(t, err, waitFor)
		assert.Equal(t, want, len(unmet) == 0, waitFor)
	}
	object.SetAnnotations(map[string]string{annotationWaitFor: `["condition=Ready", "jsonpath={.status.size}=3"]`})
	assert.Equal(t, "waiting for jsonpath={.status.size}=3", testkit.Must(asAnnotated(t.Context(), nil, object))(t))
	for _, waitFor := range []string{"Ready", "jsonpath=.status.size=60", "jsonpath={.status[}", `["condition=Ready", "Ready"]`} {
		object.SetAnnotations(map[string]string{annotationWaitFor: waitFor})
		_, err := unmet(object)
		assert.ErrorContains(t, err, "annotation pulumi.com/waitFor", waitFor)
	}
}

// TestKindsNeedTheList: a kind whose group the API server fails to list is not taken for one that is not there.
func TestKindsNeedTheList(t *testing.T) {
	const version = "nats.io/v1alpha2"
	for name, test := range map[string]struct {
		status int
		kind   string
		noKind bool
	}{
		"the group fails":        {http.StatusInternalServerError, "", false},
		"the group is not there": {http.StatusNotFound, "", true},
		"the kind is not there":  {http.StatusOK, "Other", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.status)
				_ = json.NewEncoder(w).Encode(metav1.APIResourceList{GroupVersion: version, APIResources: []metav1.APIResource{{Name: "others", Kind: test.kind}}})
			}))
			defer server.Close()
			c := testkit.Must(newClient(&rest.Config{Host: server.URL}))(t)
			_, err := c.bind(objectIn(t, `{apiVersion: `+version+`, kind: NatsCluster}`))
			require.Error(t, err)
			assert.Equal(t, test.noKind, errors.Is(err, errNoKind), "%v", err)
		})
	}
}

// TestRetryCleanup: only a cleanup that failed is asked for again.
func TestRetryCleanup(t *testing.T) {
	for reason, want := range map[string]map[string]string{
		"InstanceDeletionInProgress": nil,
		"InstanceDeletionFailed":     {"sandbox/cleanup-retried": "254"},
		"InstanceDeletionCompleted":  nil,
	} {
		definition := objectIn(t, `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: rules.monitoring.googleapis.com, resourceVersion: "254"},
  status: {conditions: [{type: Established, status: "True"}, {type: Terminating, reason: `+reason+`}]}}`)
		definitions := fake.NewSimpleDynamicClient(runtime.NewScheme(), definition).Resource(extensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
		retryCleanup(t.Context(), definitions, definition)
		got := testkit.Must(definitions.Get(t.Context(), definition.GetName(), metav1.GetOptions{}))(t)
		assert.Equal(t, want, got.GetAnnotations(), reason)
	}
}
