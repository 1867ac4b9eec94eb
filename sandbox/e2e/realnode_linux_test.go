package e2e

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"persia/internal/testkit"
	"persia/sandbox/agent"
	"persia/sandbox/background"
	"persia/sandbox/controlplane"
	"persia/sandbox/node"
	"persia/sandbox/toolchain"
)

const (
	busyboxImage = "registry.example.com/busybox:1"
	realNodeName = "gke-persia-train-0000"
)

// realNode is a control plane with a real node.
type realNode struct {
	t      *testing.T
	dir    string
	client kubernetes.Interface
}

// TestRealNode looks at what a real node does for pods, and at what is left of it.
func TestRealNode(t *testing.T) {
	t.Parallel()
	n := newRealNode(t)
	n.serve()
	t.Run("volumes, downward API and logs", n.testSurroundings)
	t.Run("addresses of services", n.testServices)
	t.Run("names and policies", n.testNetwork)
	t.Run("time to end", n.testTermination)
	t.Run("programs in order", n.testNoProgramEnds)
	t.Run("nothing is left", n.testNothingLeft)
}

func newRealNode(t *testing.T) *realNode {
	needNode(t)
	dir := t.TempDir()
	compiled, err := toolchain.BuildNode(t.Context(), filepath.Join(repository, "sandbox", "toolchain"), filepath.Dir(tools.Kubelet), t.Output())
	require.NoError(t, err)
	plane := controlplane.New(filepath.Join(dir, "cluster"), "real", compiled)
	t.Cleanup(func() { assert.NoError(t, plane.Stop(context.Background())) })
	require.NoError(t, plane.Start(t.Context(), t.Output()))
	config, err := plane.RESTConfig()
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	serveProxy(t, dir, config, plane.Proxy())

	n := &realNode{t: t, dir: dir, client: client}
	needs.add(t, func() string {
		switch {
		case !plane.Running(context.Background()):
			return "the control plane has ended"
		case hasEnded(n.path("node")):
			return "the node has ended"
		}
		return ""
	})
	options := node.Options{
		Dir: n.path("node"), Disks: n.path("disks"), Images: n.path("images"),
		Kubeconfig: plane.Kubeconfig(), PKI: plane.PKI(), Tools: compiled,
	}
	for _, path := range []string{options.Dir, options.Images} {
		require.NoError(t, os.MkdirAll(path, 0o755))
	}
	writeBusybox(t, filepath.Join(options.Images, "busybox.tar"))
	require.NoError(t, options.Write(n.path("options.json")))
	t.Cleanup(n.stop)
	n.start()
	_, err = client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name:        realNodeName,
		Labels:      map[string]string{"cloud.google.com/gke-nodepool": "train"},
		Annotations: map[string]string{node.Annotation: "real"},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	n.awaitReady(realNodeName)
	return n
}

// serveProxy runs the agent, through which the API server reaches kubelets, until the test ends.
func serveProxy(t *testing.T, dir string, config *rest.Config, proxy string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- agent.Run(ctx, agent.Options{
			Config: config, Dir: filepath.Join(dir, "agent"), LogDir: filepath.Join(dir, "logs"), Proxy: proxy,
			Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
		})
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
}

// needNode skips a test where no node can run.
func needNode(t *testing.T) {
	t.Helper()
	if err := node.Missing(); err != nil {
		testkit.Skip(t, err)
	}
}

// testNoProgramEnds checks that each program of the node starts after its requirements. One that
// starts too early ends, or takes rules away that another one writes.
func (n *realNode) testNoProgramEnds(t *testing.T) {
	log, err := os.ReadFile(n.path("node/node.log"))
	require.NoError(t, err)
	assert.NotContains(t, string(log), "a program has ended")
}

func (n *realNode) path(name string) string { return filepath.Join(n.dir, name) }

func (n *realNode) start() {
	require.NoError(n.t, background.Start(n.t.Context(), n.path("node"), executable, "node", "--options", n.path("options.json")))
}

func (n *realNode) stop() {
	if n.t.Failed() {
		logFiles(n.t, n.path("node/node.log"))
		logFiles(n.t, n.path("node/*/root/var/log/*.log"))
	}
	assert.NoError(n.t, background.Stop(context.Background(), n.path("node")))
	assert.NoError(n.t, node.CleanUp(n.path("node")))
}

func (n *realNode) awaitReady(name string) {
	n.t.Helper()
	var last corev1.Node
	await(n.t, func() bool {
		node, err := n.client.CoreV1().Nodes().Get(n.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		last = *node
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				return len(node.Spec.Taints) == 0
			}
		}
		return false
	}, "%s becomes ready: %v", name, &last)
	assert.Equal(n.t, "v1.34.2", last.Status.NodeInfo.KubeletVersion)
	assert.Equal(n.t, "train", last.Labels["cloud.google.com/gke-nodepool"], "it keeps its pool's labels")
}

// serve has a pod serve a ConfigMap in the namespace a.
func (n *realNode) serve() {
	ctx, core := n.t.Context(), n.client.CoreV1()
	for _, namespace := range []string{"a", "b"} {
		_, err := core.Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
		require.NoError(n.t, err)
	}
	_, err := core.ConfigMaps("a").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "page"}, Data: map[string]string{"index.html": "from the ConfigMap\n"},
	}, metav1.CreateOptions{})
	require.NoError(n.t, err)
	for name, address := range map[string]string{"web": "", "headless": corev1.ClusterIPNone} {
		_, err := core.Services("a").Create(ctx, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.ServiceSpec{
				ClusterIP: address, Selector: map[string]string{"app": "web"},
				Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
			},
		}, metav1.CreateOptions{})
		require.NoError(n.t, err)
	}
	n.create(webPod())
	n.await("a", "web-0", func(pod *corev1.Pod) bool { return isReady(pod) })
}

// webPod is ready once it has written to its memory, serves its ConfigMap, and takes a
// second to end.
func webPod() *corev1.Pod {
	pod := busyboxPod("a", "web-0", `
		echo "I am $INDEX of $(hostname)"
		mount | grep ' /memory ' | cut -d' ' -f1,3
		touch /memory/ready
		trap 'sleep 1; echo ended >/disk/ended; exit 0' TERM
		httpd -f -p 8080 -h /page &
		wait`)
	pod.Labels = map[string]string{"app": "web", "apps.kubernetes.io/pod-index": "7"}
	pod.Spec.Hostname = "web-0"
	container := &pod.Spec.Containers[0]
	container.Env = []corev1.EnvVar{{Name: "INDEX", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['apps.kubernetes.io/pod-index']"},
	}}}
	container.ReadinessProbe = &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"test", "-e", "/memory/ready"}}},
		PeriodSeconds: 1,
	}
	container.VolumeMounts = []corev1.VolumeMount{
		{Name: "page", MountPath: "/page"}, {Name: "memory", MountPath: "/memory"}, {Name: "disk", MountPath: "/disk"},
	}
	pod.Spec.Volumes = []corev1.Volume{
		{Name: "page", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "page"}}}},
		{Name: "memory", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}},
		{Name: "disk", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/mnt/disks"}}},
	}
	return pod
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func busyboxPod(namespace, name, script string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			NodeSelector:  map[string]string{corev1.LabelHostname: realNodeName},
			Containers: []corev1.Container{{
				Name: "main", Image: busyboxImage, Command: []string{"/bin/busybox", "sh", "-c", script},
			}},
		},
	}
}

func (n *realNode) testSurroundings(t *testing.T) {
	await(t, func() bool { return strings.Contains(n.logs("a", "web-0"), "tmpfs /memory") },
		"the log tells of an emptyDir in memory")
	assert.Contains(t, n.logs("a", "web-0"), "I am 7 of web-0", "the downward API and the host's name")
}

func (n *realNode) testNetwork(t *testing.T) {
	const web, headless = "fetch http://web.a", "fetch http://headless.a.svc.cluster.local:8080"
	for _, pod := range []*corev1.Pod{
		busyboxPod("a", "neighbour", "until "+web+"; do sleep 1; done; "+headless),
		busyboxPod("b", "stranger", web),
		busyboxPod("b", "caller", "fetch tcp://kubernetes.default.svc:443"),
	} {
		assert.Equal(t, corev1.PodSucceeded, n.finish(pod), "%s/%s: %s", pod.Namespace, pod.Name, n.logs(pod.Namespace, pod.Name))
	}
	assert.Equal(t, "from the ConfigMap\n", n.logs("b", "stranger"), "no policy yet")

	n.createPolicy("a", "own", networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
		Ingress:     []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}}}},
	})
	until := busyboxPod("b", "until-refused", "while "+web+"; do sleep 1; done")
	assert.Equal(t, corev1.PodSucceeded, n.finish(until), "pods of another namespace are kept out")
	for _, pod := range []*corev1.Pod{
		busyboxPod("b", "refused", web),
		busyboxPod("b", "refused-headless", headless),
	} {
		assert.Equal(t, corev1.PodFailed, n.finish(pod), "%s: %s", pod.Name, n.logs("b", pod.Name))
	}
	allowed := busyboxPod("a", "allowed", "until "+web+"; do sleep 1; done; "+headless)
	assert.Equal(t, corev1.PodSucceeded, n.finish(allowed), "pods of the namespace are let in: %s", n.logs("a", "allowed"))
}

func (n *realNode) createPolicy(namespace, name string, spec networkingv1.NetworkPolicySpec) {
	n.t.Helper()
	_, err := n.client.NetworkingV1().NetworkPolicies(namespace).Create(n.t.Context(),
		&networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, metav1.CreateOptions{})
	require.NoError(n.t, err)
}

// testServices covers what operators depend on: a pod whose egress is limited to port
// 443 reaches the API server, and a call to a Service that kube-proxy does not know yet
// waits.
func (n *realNode) testServices(t *testing.T) {
	early := busyboxPod("b", "early", "fetch tcp://10.0.0.250:443")
	assert.Equal(t, corev1.PodFailed, n.finish(early))
	assert.Contains(t, n.logs("b", "early"), "i/o timeout", "no Service has the address yet")

	port, dns := intstr.FromInt32(443), intstr.FromInt32(53)
	udp := corev1.ProtocolUDP
	n.createPolicy("b", "https", networkingv1.NetworkPolicySpec{
		PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "operator"}},
		PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeEgress},
		Egress:      []networkingv1.NetworkPolicyEgressRule{{Ports: []networkingv1.NetworkPolicyPort{{Port: &port}, {Port: &dns, Protocol: &udp}}}},
	})
	operator := busyboxPod("b", "operator", "while fetch http://web.a; do sleep 1; done; fetch tcp://kubernetes.default.svc:443")
	operator.Labels = map[string]string{"app": "operator"}
	assert.Equal(t, corev1.PodSucceeded, n.finish(operator), "after the policy has closed port 80: %s", n.logs("b", "operator"))
}

func (n *realNode) testTermination(t *testing.T) {
	require.NoError(t, n.client.CoreV1().Pods("a").Delete(t.Context(), "web-0", metav1.DeleteOptions{}))
	await(t, func() bool {
		_, err := n.client.CoreV1().Pods("a").Get(t.Context(), "web-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, "the pod goes")
	ended, err := os.ReadFile(n.path("disks/ended"))
	require.NoError(t, err, "it had the time to write to its disk, which outlives the node")
	assert.Equal(t, "ended\n", string(ended))
	assert.NoFileExists(t, "/mnt/disks/ended", "the host has no such disk")
}

// testNothingLeft kills what runs the node.
func (n *realNode) testNothingLeft(t *testing.T) {
	assertListensOnLoopbackOnly(t, n.dir)
	n.create(busyboxPod("a", "runs-on", "sleep 3600"))
	n.await("a", "runs-on", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodRunning })
	assert.Greater(t, len(n.remains(t)), 1, "a link, and one control group or more")
	var killed int
	for _, p := range sandboxProcesses(t, n.path("options.json")) {
		if strings.Contains(p.Command, " node ") {
			killed++
			require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
		}
	}
	require.Equal(t, 1, killed)
	require.True(t, eventually(patience, nil, func() bool { return len(sandboxProcesses(t, n.path("node"))) == 0 }),
		"the machines go with it")

	n.start()
	n.await("a", "runs-on", func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodFailed })

	require.NoError(t, n.client.CoreV1().Nodes().Delete(t.Context(), realNodeName, metav1.DeleteOptions{}))
	require.NoError(t, background.Stop(t.Context(), n.path("node")))
	require.NoError(t, node.CleanUp(n.path("node")))
	assert.Empty(t, sandboxProcesses(t, n.path("node")))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), n.dir)
	assert.Empty(t, n.remains(t), "the link and the control groups go with the machine")
	require.NoError(t, os.RemoveAll(n.path("node")))
}

// remains lists the remains of the node's machine in the kernel. Other machines may belong to tests that
// run at the same time.
func (n *realNode) remains(t *testing.T) []string {
	t.Helper()
	remains, err := node.Remains(n.path("node"))
	require.NoError(t, err)
	return remains
}

func (n *realNode) create(pod *corev1.Pod) {
	n.t.Helper()
	// Its service account comes after the namespace.
	await(n.t, func() bool {
		_, err := n.client.CoreV1().Pods(pod.Namespace).Create(n.t.Context(), pod, metav1.CreateOptions{})
		return err == nil
	}, "create the pod %s", pod.Name)
}

func (n *realNode) await(namespace, name string, reached func(*corev1.Pod) bool) *corev1.Pod {
	n.t.Helper()
	var last *corev1.Pod
	over := func() string {
		if last != nil && hasPodEnded(last) && metav1.GetControllerOf(last) == nil {
			return "it has ended"
		}
		return ""
	}
	awaitUnless(n.t, patience, over, func() bool {
		pod, err := n.client.CoreV1().Pods(namespace).Get(n.t.Context(), name, metav1.GetOptions{})
		if err == nil {
			last = pod
		}
		return err == nil && reached(pod)
	}, "pod %s: %v", name, &last)
	return last
}

// finish runs a pod to its end.
func (n *realNode) finish(pod *corev1.Pod) corev1.PodPhase {
	n.t.Helper()
	n.create(pod)
	return n.await(pod.Namespace, pod.Name, hasPodEnded).Status.Phase
}

// hasPodEnded reports whether the containers of a pod have ended for good.
func hasPodEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// logs come from the kubelet, through the API server.
func (n *realNode) logs(namespace, name string) string {
	stream, err := n.client.CoreV1().Pods(namespace).GetLogs(name, &corev1.PodLogOptions{}).Stream(n.t.Context())
	if err != nil {
		return err.Error()
	}
	defer func() { _ = stream.Close() }()
	text, err := io.ReadAll(stream)
	require.NoError(n.t, err)
	return string(text)
}
