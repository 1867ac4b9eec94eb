package e2e

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/workload/persia/operator/persiav1"
)

var persiaJobs = schema.GroupVersionResource{Group: persiav1.Group, Version: persiav1.Version, Resource: persiav1.Plural}

// persiaOperator plays PERSIA's operator where no node is real. The operator itself runs in
// TestTrain. It sends the requests of the operator's source (k8s/src/bin/operator.rs and
// k8s/src/lib.rs in PersiaML/PERSIA), in the same order, with the token of the service account that
// the program made for the operator.
type persiaOperator struct {
	jobs dynamic.NamespaceableResourceInterface
	core kubernetes.Interface

	ctx  context.Context
	stop context.CancelFunc
	done sync.WaitGroup

	mu       sync.Mutex
	failures []string
}

func newPersiaOperator() *persiaOperator {
	ctx, stop := context.WithCancel(context.Background())
	return &persiaOperator{ctx: ctx, stop: stop}
}

// start runs the operator until end is called, or it is refused to look at jobs: its
// rights go with the stack.
func (o *persiaOperator) start(t *testing.T, c cluster) {
	t.Helper()
	token, err := c.CoreV1().ServiceAccounts("persia-operator").CreateToken(t.Context(), "persia-operator",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	admin, err := c.s.Cluster().RESTConfig()
	require.NoError(t, err)
	config := rest.AnonymousClientConfig(admin)
	config.BearerToken = token.Status.Token
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	o.jobs = client.Resource(persiaJobs)
	o.core, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	o.done.Go(func() {
		var err error
		for err == nil {
			err = o.watch()
		}
		o.note("watch", err)
	})
}

func (o *persiaOperator) end() {
	o.stop()
	o.done.Wait()
}

// note keeps what went wrong. An object that is gone already is no error.
func (o *persiaOperator) note(what string, err error) {
	if err == nil || o.ctx.Err() != nil || apierrors.IsNotFound(err) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failures = append(o.failures, what+": "+err.Error())
}

func (o *persiaOperator) assertNoFailures(t *testing.T) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	assert.Empty(t, o.failures)
}

// watch lists the jobs of all namespaces, and follows them for as long as the API
// server lets it.
func (o *persiaOperator) watch() error {
	list, err := o.jobs.List(o.ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range list.Items {
		o.reconcile(&list.Items[i])
	}
	watch, err := o.jobs.Watch(o.ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if job, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != "DELETED" {
			o.reconcile(job)
		}
	}
	return nil
}

// reconcile makes what a job consists of when it sees the job for the first time, and
// looks at it again only when it is deleted.
func (o *persiaOperator) reconcile(job *unstructured.Unstructured) {
	switch {
	case job.GetDeletionTimestamp() != nil:
		o.note("delete "+job.GetName(), o.delete(job.GetNamespace(), job.GetName()))
	case len(job.GetFinalizers()) == 0:
		o.note("create "+job.GetName(), o.create(job))
	}
}

func (o *persiaOperator) create(object *unstructured.Unstructured) error {
	job := &persiav1.PersiaJob{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
		return err
	}
	if err := o.setFinalizers(job.Namespace, job.Name, `["persiajobs.persia.com"]`); err != nil {
		return err
	}
	for _, pod := range podsOf(job) {
		if _, err := o.core.CoreV1().Pods(job.Namespace).Create(o.ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if !*job.Spec.EnableMetrics {
		return nil
	}
	_, err := o.core.CoreV1().Services(job.Namespace).Create(o.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-metrics-gateway-service", Labels: map[string]string{"persia_job": job.Name}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 9091}}},
	}, metav1.CreateOptions{})
	return err
}

func (o *persiaOperator) delete(namespace, name string) error {
	ofJob := metav1.ListOptions{LabelSelector: "persia_job=" + name}
	services, err := o.core.CoreV1().Services(namespace).List(o.ctx, ofJob)
	if err != nil {
		return err
	}
	for _, service := range services.Items {
		if err := o.core.CoreV1().Services(namespace).Delete(o.ctx, service.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	pods, err := o.core.CoreV1().Pods(namespace).List(o.ctx, ofJob)
	if err != nil {
		return err
	}
	for _, pod := range pods.Items {
		if err := o.core.CoreV1().Pods(namespace).Delete(o.ctx, pod.Name, metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	return o.setFinalizers(namespace, name, "null")
}

func (o *persiaOperator) setFinalizers(namespace, name, finalizers string) error {
	patch := fmt.Sprintf(`{"metadata": {"finalizers": %s}}`, finalizers)
	_, err := o.jobs.Namespace(namespace).Patch(o.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	return err
}

// podsOf returns the pods of a job, and of its gateway if it has metrics, without the fields that only
// containers read.
func podsOf(job *persiav1.PersiaJob) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, part := range []struct {
		name string
		role persiav1.Role
	}{
		{"embedding-ps", *job.Spec.EmbeddingParameterServer},
		{"embedding-worker", *job.Spec.EmbeddingWorker},
		{"nn-worker", job.Spec.NNWorker.Role},
		{"dataloader", *job.Spec.Dataloader},
	} {
		for i := range part.role.Replicas {
			pods = append(pods, podOf(job, part.name+"-"+strconv.Itoa(int(i)), corev1.Container{
				Name:         part.name,
				Image:        "persiaml/persia-cpu-runtime:latest",
				Command:      []string{"persia-launcher"},
				Env:          append(append([]corev1.EnvVar{}, job.Spec.Env...), part.role.Env...),
				Resources:    *part.role.Resources,
				VolumeMounts: part.role.VolumeMounts,
			}))
		}
	}
	if *job.Spec.EnableMetrics {
		pods = append(pods, podOf(job, "metrics-gateway", corev1.Container{Name: "pushgateway", Image: "prom/pushgateway:latest"}))
	}
	return pods
}

func podOf(job *persiav1.PersiaJob, name string, container corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: job.Name + "-" + name, Labels: map[string]string{"persia_job": job.Name}},
		Spec: corev1.PodSpec{
			Containers:    []corev1.Container{container},
			Volumes:       job.Spec.Volumes,
			RestartPolicy: job.Spec.RestartPolicy,
		},
	}
}
