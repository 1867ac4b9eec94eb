package agent

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"

	"persia/internal/testkit"
	"persia/sandbox/node"
)

// script replaces a real program: it prints its arguments and environment, and runs until SIGTERM.
const script = `#!/bin/sh
trap 'echo asked to end; exit 0' TERM
echo "pid $$ args $* env $GREETING"
while :; do sleep 0.05; done
`

// testAgent runs an agent until the test ends, for the image repository "tested".
type testAgent struct {
	client *fake.Clientset
	dir    string
	cancel context.CancelFunc
	ended  chan error
}

func startAgent(t *testing.T, text string, prepare ...func(*fake.Clientset)) *testAgent {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(binary, []byte(text), 0o755))
	client := fake.NewClientset()
	client.PrependReactor("create", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
		request := action.(clienttesting.CreateAction).GetObject().(*authenticationv1.TokenRequest).DeepCopy()
		request.Status = authenticationv1.TokenRequestStatus{
			Token:               "token of " + request.Spec.BoundObjectRef.Name,
			ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
		}
		return true, request, nil
	})
	for _, change := range prepare {
		change(client)
	}
	// The fake client loses what is created between an informer's list and watch.
	watching := make(chan struct{}, 1)
	client.PrependWatchReactor("pods", func(action clienttesting.Action) (bool, watch.Interface, error) {
		pods, err := client.Tracker().Watch(action.GetResource(), action.GetNamespace())
		watching <- struct{}{}
		return true, pods, err
	})
	// The shortest that there is.
	a := &agent{client: client, resync: time.Second, programs: map[string]program{
		"tested": {binary: binary, args: []string{"--kubeconfig=$(KUBECONFIG)"}},
	}, options: Options{
		Config: &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("authority")}},
		Dir:    dir,
		Logger: slog.New(slog.DiscardHandler),
	}}
	ctx, cancel := context.WithCancel(t.Context())
	test := &testAgent{client: client, dir: dir, cancel: cancel, ended: make(chan error, 1)}
	go func() { test.ended <- a.run(ctx) }()
	t.Cleanup(test.stop)
	<-watching
	return test
}

// stop may be called more than once.
func (a *testAgent) stop() {
	a.cancel()
	if err, ok := <-a.ended; ok {
		close(a.ended)
		if err != nil {
			panic(err)
		}
	}
}

func (a *testAgent) log(pod string) string {
	content, _ := os.ReadFile(filepath.Join(a.dir, "logs", "n_"+pod+"_c.log"))
	return string(content)
}

// await waits until a condition holds, and gives up when the agent ends.
func (a *testAgent) await(t *testing.T, condition func() bool, message string, arguments ...any) {
	t.Helper()
	holds := false
	require.Eventuallyf(t, func() bool {
		ended := len(a.ended) > 0
		holds = condition()
		return holds || ended
	}, testkit.Patience, 10*time.Millisecond, message, arguments...)
	require.Truef(t, holds, "the agent has ended: "+message, arguments...)
}

func (a *testAgent) awaitLog(t *testing.T, pod, text string, times int) {
	t.Helper()
	a.await(t, func() bool { return strings.Count(a.log(pod), text) >= times }, "no %q in the log", text)
}

func boundPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "n", UID: types.UID("uid-" + name)},
		Spec: corev1.PodSpec{
			NodeName: "node", ServiceAccountName: "account",
			Containers: []corev1.Container{{
				Name: "c", Image: "tested:1", Args: []string{"--own"},
				Env: []corev1.EnvVar{{Name: "GREETING", Value: "hello"}},
			}},
		},
	}
}

func (a *testAgent) create(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	testkit.Must(a.client.CoreV1().Pods(pod.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}))(t)
}

func TestAProgramRunsAsLongAsItsPod(t *testing.T) {
	a := startAgent(t, script)
	a.create(t, boundPod("p"))
	kubeconfig := filepath.Join(a.dir, "credentials", "uid-p", "c", "kubeconfig")
	a.awaitLog(t, "p", "args --kubeconfig="+kubeconfig+" --own env hello", 1)

	config := testkit.Must(clientcmd.BuildConfigFromFlags("", kubeconfig))(t)
	assert.Equal(t, "https://127.0.0.1:1", config.Host)
	assert.Equal(t, "authority", string(config.CAData))
	assert.Equal(t, "token of p", config.BearerToken)
	assert.Equal(t, "token of p", testkit.Read(t, filepath.Join(filepath.Dir(kubeconfig), "token")))

	require.NoError(t, a.client.CoreV1().Pods("n").Delete(t.Context(), "p", metav1.DeleteOptions{}))
	a.awaitLog(t, "p", "asked to end", 1)
	a.await(t, func() bool { _, err := os.Stat(kubeconfig); return os.IsNotExist(err) }, "the credentials end with the program")
}

func TestATerminatingPodsProgramEnds(t *testing.T) {
	a := startAgent(t, script)
	pod := boundPod("p")
	a.create(t, pod)
	a.awaitLog(t, "p", "pid", 1)
	pod.DeletionTimestamp = new(metav1.Now())
	testkit.Must(a.client.CoreV1().Pods("n").Update(t.Context(), pod, metav1.UpdateOptions{}))(t)
	a.awaitLog(t, "p", "asked to end", 1)
}

func TestProgramsEndWithTheAgent(t *testing.T) {
	a := startAgent(t, script)
	a.create(t, boundPod("p"))
	a.awaitLog(t, "p", "pid", 1)
	a.stop()
	assert.Contains(t, a.log("p"), "asked to end")
}

func TestAProgramThatEndsIsStartedAgain(t *testing.T) {
	a := startAgent(t, "#!/bin/sh\necho started\nexit 3\n")
	a.create(t, boundPod("p"))
	a.awaitLog(t, "p", "started\n", 2)
	assert.Contains(t, a.log("p"), "program ended, restarting it in 1s: exit status 3")
}

func TestWhatIsRun(t *testing.T) {
	a := startAgent(t, script)
	tests := map[string]func(*corev1.Pod){
		"unbound":   func(pod *corev1.Pod) { pod.Spec.NodeName = "" },
		"succeeded": func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded },
		"failed":    func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed },
		"unknown":   func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "another:1" },
	}
	for name, change := range tests {
		pod := boundPod(name)
		change(pod)
		a.create(t, pod)
	}
	refused := boundPod("refused")
	refused.Spec.Containers[0].Env = []corev1.EnvVar{fromField("A", "status.podIP")}
	a.create(t, refused)
	a.create(t, boundPod("last"))

	// Pods are seen in the order of their creation.
	a.awaitLog(t, "last", "pid", 1)
	a.awaitLog(t, "refused", "container c: env A: fieldRef status.podIP", 1)
	for name := range tests {
		assert.Empty(t, a.log(name), name)
	}
}

func TestPodsOfARealNodeAreItsOwn(t *testing.T) {
	a := startAgent(t, script)
	_, err := a.client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "node", Annotations: map[string]string{node.Annotation: "real"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	elsewhere := boundPod("elsewhere")
	elsewhere.Spec.NodeName = "simulated"
	a.create(t, boundPod("real"))
	a.create(t, elsewhere)
	// The agent comes to it after the other.
	a.awaitLog(t, "elsewhere", "pid", 1)
	assert.Empty(t, a.log("real"))
}

// TestANodeIsAskedForAgain: a request that fails is no reason never to run a pod.
func TestANodeIsAskedForAgain(t *testing.T) {
	var failed atomic.Bool
	a := startAgent(t, script, func(client *fake.Clientset) {
		client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return failed.CompareAndSwap(false, true), nil, errors.New("the API server is restarted")
		})
	})
	a.create(t, boundPod("p"))
	a.awaitLog(t, "p", "pid", 1)
	assert.True(t, failed.Load())
}

// TestVolumesOfClasses: a claim that a class asks the driver of disks for gets a volume, which goes with the claim.
func TestVolumesOfClasses(t *testing.T) {
	client, class := fake.NewClientset(), "standard-rwo"
	a := &agent{client: client}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "pedl", UID: "1"}}
	claim.Spec.StorageClassName = &class
	list := func() []corev1.PersistentVolume {
		return testkit.Must(client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}))(t).Items
	}
	a.provision(t.Context(), claim)
	assert.Empty(t, list(), "no pod has used the claim")
	claim.Annotations = map[string]string{asksProvisioner: "pd.csi.storage.gke.io"}
	a.provision(t.Context(), claim)
	a.provision(t.Context(), claim)
	require.Len(t, list(), 1)
	volume := list()[0]
	assert.EqualValues(t, "1", volume.Spec.ClaimRef.UID)
	a.discard(t.Context(), &volume)
	assert.Len(t, list(), 1, "the claim has it")
	volume.Status.Phase = corev1.VolumeReleased
	a.discard(t.Context(), &volume)
	assert.Empty(t, list())
}
