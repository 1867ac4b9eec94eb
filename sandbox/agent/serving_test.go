package agent

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"persia/internal/testkit"
)

// answering is a program that answers each request with the content of its settings.
const answering = `
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers()
        self.wfile.write(open(sys.argv[2].split("=")[1], "rb").read())
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
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

// TestAProgramServes: the pod of a program that serves has its ConfigMap, and is ready when the program
// is, and the API server reaches it by the address of its Service.
func TestAProgramServes(t *testing.T) {
	python := testkit.Must(exec.LookPath("python3"))(t)
	client := fake.NewClientset(
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "settings"}, Data: map[string]string{"settings.yaml": "the settings"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "serving"}, Spec: corev1.ServiceSpec{
			ClusterIP: "10.0.0.7", Selector: map[string]string{"app": "serving"},
			Ports: []corev1.ServicePort{{Port: 443, TargetPort: intstr.FromInt32(8443)}},
		}},
	)
	dir := t.TempDir()
	a := &agent{client: client, options: Options{Dir: dir, Proxy: filepath.Join(dir, "proxy"), Config: &rest.Config{Host: "https://127.0.0.1:1"}}}
	t.Cleanup(testkit.Must(a.serveProxy())(t))

	pod := servingPod()
	testkit.Must(client.CoreV1().Pods("n").Create(t.Context(), pod, metav1.CreateOptions{}))(t)
	r := &runner{options: a.options, client: client, pod: pod, container: pod.Spec.Containers[0], logger: slog.New(slog.DiscardHandler)}
	ports := testkit.Must(freePorts(r.container))(t)
	a.served.Store(pod.UID, ports)
	at := host{mounts: r.folders(dir)}
	require.NoError(t, r.mount(t.Context(), at))
	port := strconv.Itoa(ports[8443])
	args := program{args: []string{"-c", answering, port}}.arguments(pod, r.container, nil, at)
	go r.probe(t.Context(), ports)
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
	assert.Equal(t, "the settings", throughProxy(t, a.options.Proxy, net.JoinHostPort("127.0.0.1", port)))
}

// throughProxy asks a server as the API server asks a webhook.
func throughProxy(t *testing.T, proxy, address string) string {
	t.Helper()
	connection := testkit.Must(net.Dial("unix", proxy))(t)
	defer func() { _ = connection.Close() }()
	testkit.Must(io.WriteString(connection, "CONNECT "+address+" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))(t)
	client := &http.Client{Transport: &http.Transport{Dial: func(string, string) (net.Conn, error) { return connection, nil }}}
	const accepted = "HTTP/1.1 200 OK\r\n\r\n"
	head := make([]byte, len(accepted))
	_ = testkit.Must(io.ReadFull(connection, head))(t)
	require.Equal(t, accepted, string(head))
	answer := testkit.Must(client.Get("http://pod/"))(t)
	defer func() { _ = answer.Body.Close() }()
	return string(testkit.Must(io.ReadAll(answer.Body))(t))
}

// TestMounted checks that a program has a Secret that changes, and its settings adapted.
func TestMounted(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "certificate"}}
	client := fake.NewClientset(secret, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "settings"}, Data: map[string]string{"settings.yaml": "webhook: {certDir: /certificate}"},
	})
	pod := servingPod()
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "certificate", VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: "certificate"},
	}})
	container := &pod.Spec.Containers[0]
	container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "certificate", MountPath: "/certificate"})
	r := &runner{client: client, pod: pod, container: *container, program: program{serves: true}, logger: slog.New(slog.DiscardHandler)}
	dir := t.TempDir()
	at := host{mounts: r.folders(dir)}
	require.NoError(t, r.mount(t.Context(), at))
	settings := testkit.Read(t, filepath.Join(at.mounts["/etc/serving"], "settings.yaml"))
	assert.Contains(t, settings, "certDir: "+filepath.Join(dir, "volumes", "certificate"))

	go r.keepMounted(t.Context(), at, t.Output())
	secret.Data = map[string][]byte{"tls.crt": []byte("certificate")}
	testkit.Must(client.CoreV1().Secrets("n").Update(t.Context(), secret, metav1.UpdateOptions{}))(t)
	certificate := filepath.Join(at.mounts["/certificate"], "tls.crt")
	require.Eventually(t, func() bool { _, err := os.Stat(certificate); return err == nil }, testkit.Patience, 10*time.Millisecond)
	assert.Equal(t, "certificate", testkit.Read(t, certificate))
}

// TestListenHere checks that controllers listen on loopback, and find their certificates.
func TestListenHere(t *testing.T) {
	at := host{mounts: map[string]string{"/certificate": "/kueue", certificateFolder: "/jobset"}, ports: map[int32]int{healthPort: 1111, webhookPort: 2222}}
	for settings, folder := range map[string]string{
		"{kind: A, health: {healthProbeBindAddress: ':8081'}, webhook: {port: 10250, certDir: /certificate}}": "/kueue",
		"{kind: A, webhook: {port: 10250}}": "/jobset",
	} {
		changed := testkit.Must(listenHere([]byte(settings), at))(t)
		assert.YAMLEq(t, "{kind: A, health: {healthProbeBindAddress: '127.0.0.1:1111'}, webhook: {host: 127.0.0.1, port: 2222, certDir: "+folder+"}}", string(changed))
	}
}
