package agent

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"persia/internal/testkit"
	"persia/sandbox/node"
)

// answering is a program that answers each request with the content of its settings.
const answering = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(open(sys.argv[3].split("=")[1], "rb").read())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
`

// servingPod runs like a pod of a simulated node: it is ready when the agent says so.
func servingPod() *corev1.Pod {
	pod := boundPod("serving")
	pod.Labels = map[string]string{"app": "serving"}
	pod.Spec.Volumes = []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}},
	}}}
	container := &pod.Spec.Containers[0]
	container.Args = []string{"--config=/etc/serving/settings.yaml"}
	container.Ports = []corev1.ContainerPort{{Name: "web", ContainerPort: 8443}}
	container.ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("web")}}}
	container.VolumeMounts = []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/serving"}}
	pod.Status = corev1.PodStatus{
		Phase:             corev1.PodRunning,
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "c"}},
	}
	return pod
}

// TestAProgramServes: the pod of a program that serves has its ConfigMap, is ready when the program
// is, and the API server reaches it by the address of its Service.
func TestAProgramServes(t *testing.T) {
	python, err := exec.LookPath("python3")
	require.NoError(t, err)
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "settings"}, Data: map[string]string{"settings.yaml": "the settings"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "serving"}, Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "serving"},
			Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
		}},
	)
	dir := t.TempDir()
	a := &agent{client: client, options: Options{Dir: dir, Proxy: filepath.Join(dir, "proxy"), Config: &rest.Config{Host: "https://127.0.0.1:1"}}}
	stop, err := a.serveProxy()
	require.NoError(t, err)
	t.Cleanup(stop)

	pod := servingPod()
	_, err = client.CoreV1().Pods("n").Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	r := &runner{
		options: a.options, client: client, pod: pod, container: pod.Spec.Containers[0], served: &a.served,
		logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
	ports, err := a.served.take(pod, r.container)
	require.NoError(t, err)
	mounts := r.folders(dir)
	require.NoError(t, r.mount(t.Context(), host{ports: ports, mounts: mounts}))
	program := Program{Args: []string{"-c", answering, "--dir=$(DIR)", "$(PORT_8443)"}}
	args := program.arguments(pod, r.container, nil, host{dir: dir, ports: ports, mounts: mounts})
	go r.probe(t.Context(), ports, func(err error) { assert.NoError(t, err) })
	assert.Equal(t, corev1.ConditionFalse, pod.Status.Conditions[0].Status, "nothing listens yet")

	command := exec.CommandContext(t.Context(), python, args...)
	require.NoError(t, command.Start())
	t.Cleanup(func() { _ = command.Wait() })
	require.Eventually(t, func() bool {
		found, err := client.CoreV1().Pods("n").Get(t.Context(), pod.Name, metav1.GetOptions{})
		return err == nil && found.Status.Conditions[0].Status == corev1.ConditionTrue && found.Status.ContainerStatuses[0].Ready
	}, testkit.Patience, 20*time.Millisecond, "the pod is ready")

	assert.Equal(t, "the settings", throughProxy(t, a.options.Proxy, "10.0.0.7:443"))
	// Other addresses stay as they are.
	assert.Equal(t, "the settings", throughProxy(t, a.options.Proxy, net.JoinHostPort("127.0.0.1", args[3])))
	a.served.release(pod)
	assert.Nil(t, a.served.of(types.UID("uid-serving")))
}

// TestARealPodServes: the API server reaches a pod of the real node through that node.
func TestARealPodServes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the pod") }))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	var asked []string
	stop, err := node.ServeTunnel(filepath.Join(dir, "node"), func(_ context.Context, address string) (net.Conn, error) {
		asked = append(asked, address)
		return net.Dial("tcp", server.Listener.Addr().String())
	})
	require.NoError(t, err)
	t.Cleanup(stop)
	pod := servingPod()
	pod.Spec.NodeName, pod.Status.PodIP = "real", "10.244.0.5"
	client := fake.NewClientset(pod,
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "real", Annotations: map[string]string{node.Annotation: "real"}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "serving"}, Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "serving"},
			Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
		}},
	)
	a := &agent{client: client, options: Options{Proxy: filepath.Join(dir, "proxy"), NodeTunnel: filepath.Join(dir, "node")}}
	stop, err = a.serveProxy()
	require.NoError(t, err)
	t.Cleanup(stop)
	assert.Equal(t, "the pod", throughProxy(t, a.options.Proxy, "10.0.0.7:443"))
	assert.Equal(t, []string{"10.244.0.5:8443"}, asked)
}

// throughProxy asks a server as the API server asks a webhook.
func throughProxy(t *testing.T, proxy, address string) string {
	t.Helper()
	connection, err := net.Dial("unix", proxy)
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	_, err = io.WriteString(connection, "CONNECT "+address+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
	require.NoError(t, err)
	client := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return connection, nil }}}
	const accepted = "HTTP/1.1 200 OK\r\n\r\n"
	head := make([]byte, len(accepted))
	_, err = io.ReadFull(connection, head)
	require.NoError(t, err)
	require.Equal(t, accepted, string(head))
	answer, err := client.Get("http://pod/")
	require.NoError(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

// TestMounted checks that a program has a Secret that changes, and its settings adapted.
func TestMounted(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "certificate"}}
	client := fake.NewClientset(secret, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "settings"}, Data: map[string]string{"settings.yaml": "settings"},
	})
	pod := servingPod()
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "certificate"},
	}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "certificate", MountPath: "/certificate"})
	r := &runner{client: client, pod: pod, container: *container, program: Program{Adapt: func(file []byte, at host) ([]byte, error) {
		return append(file, " for "+at.mounts["/certificate"]...), nil
	}}}
	dir := t.TempDir()
	at := host{mounts: r.folders(dir)}
	require.NoError(t, r.mount(t.Context(), at))
	assertFile(t, filepath.Join(at.mounts["/etc/serving"], "settings.yaml"), "settings for "+filepath.Join(dir, "volumes", "certificate"))

	go r.keepMounted(t.Context(), at, func(err error) { assert.NoError(t, err) })
	secret.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	_, err := client.CoreV1().Secrets("n").Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	certificate := filepath.Join(at.mounts["/certificate"], "tls.crt")
	require.Eventually(t, func() bool { _, err := os.Stat(certificate); return err == nil }, testkit.Patience, 10*time.Millisecond)
	assertFile(t, certificate, "certificate")
}

func assertFile(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, want, string(text))
}

// TestAdaptKueue checks that Kueue listens on loopback, and finds its certificate.
func TestAdaptKueue(t *testing.T) {
	adapted, err := adaptKueue([]byte(`
kind: Configuration
health: {healthProbeBindAddress: ":8081"}
webhook: {port: 10250, certDir: /certificate}
featureGates: {MultiKueue: false}
`), host{mounts: map[string]string{"/certificate": "/here"}, ports: map[int32]int{8081: 1111, 10250: 2222}})
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, yaml.Unmarshal(adapted, &got))
	assert.Equal(t, map[string]any{
		"kind":         "Configuration",
		"health":       map[string]any{"healthProbeBindAddress": "127.0.0.1:1111"},
		"webhook":      map[string]any{"host": "127.0.0.1", "port": 2222.0, "certDir": "/here"},
		"featureGates": map[string]any{"MultiKueue": false},
	}, got)
}
