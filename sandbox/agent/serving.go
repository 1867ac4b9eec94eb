package agent

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// probePeriod is how often a program is asked whether it is ready.
const probePeriod = 200 * time.Millisecond

// freePorts chooses a port of loopback for each port of a container.
func freePorts(container corev1.Container) (map[int32]int, error) {
	ports := map[int32]int{}
	for _, port := range container.Ports {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		ports[port.ContainerPort] = listener.Addr().(*net.TCPAddr).Port
		if err := listener.Close(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// probe makes the pod ready when the container's readiness probe first succeeds.
func (r *runner) probe(ctx context.Context, ports map[int32]int) {
	probe := r.container.ReadinessProbe
	if probe == nil || probe.HTTPGet == nil {
		return
	}
	url := fmt.Sprintf("http://127.0.0.1:%d%s", ports[portOf(r.container, probe.HTTPGet.Port)], probe.HTTPGet.Path)
	client := &http.Client{Timeout: 5 * time.Second}
	_ = wait.PollUntilContextCancel(ctx, probePeriod, true, func(ctx context.Context) (bool, error) {
		answer, err := client.Get(url)
		if err != nil {
			return false, nil
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK && r.becomesReady(ctx) == nil, nil
	})
}

// portOf returns a port of a container, which has a number or a name.
func portOf(container corev1.Container, port intstr.IntOrString) int32 {
	for _, named := range container.Ports {
		if port.Type == intstr.String && named.Name == port.StrVal {
			return named.ContainerPort
		}
	}
	return port.IntVal
}

// becomesReady writes into the status of the pod that it is ready.
func (r *runner) becomesReady(ctx context.Context) error {
	pods := r.client.CoreV1().Pods(r.pod.Namespace)
	pod, err := pods.Get(ctx, r.pod.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("the pod is %q", pod.Status.Phase)
	}
	for i, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady || condition.Type == corev1.ContainersReady {
			pod.Status.Conditions[i].Status, pod.Status.Conditions[i].LastTransitionTime = corev1.ConditionTrue, metav1.Now()
		}
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = true
	}
	_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// serveProxy serves the connections that the API server asks for until stop is called: it answers the
// CONNECT of HTTP on a Unix socket.
func (a *agent) serveProxy() (stop func(), err error) {
	// Left by an agent that was killed.
	if err := os.RemoveAll(a.options.Proxy); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", a.options.Proxy)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(a.connect)}
	go func() { _ = server.Serve(listener) }()
	return func() { _ = server.Close() }, nil
}

// connect connects the API server to where an address leads.
func (a *agent) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT", http.StatusMethodNotAllowed)
		return
	}
	address, err := a.reach(r.Context(), r.RequestURI)
	var to net.Conn
	if err == nil {
		to, err = (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = to.Close() }()
	from, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = from.Close() }()
	if _, err := io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	ended := make(chan struct{}, 2)
	for _, copied := range [][2]net.Conn{{from, to}, {to, from}} {
		go func() {
			_, _ = io.Copy(copied[0], copied[1])
			ended <- struct{}{}
		}()
	}
	<-ended
}

// reach returns where an address leads on this machine: the address of a Service to one of its pods, and
// the address of a pod whose program runs here to that program.
func (a *agent) reach(ctx context.Context, address string) (string, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return "", err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return "", err
	}
	services, err := a.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(services.Items, func(s corev1.Service) bool { return s.Spec.ClusterIP == host })
	if i < 0 {
		return address, nil
	}
	service := services.Items[i]
	j := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == int32(port) })
	if j < 0 {
		return "", fmt.Errorf("the Service %s has no port %d", service.Name, port)
	}
	pods, err := a.client.CoreV1().Pods(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(),
	})
	if err != nil {
		return "", err
	}
	for _, pod := range pods.Items {
		if !shouldRun(&pod) || len(pod.Spec.Containers) == 0 {
			continue
		}
		target := portOf(pod.Spec.Containers[0], service.Spec.Ports[j].TargetPort)
		if ports, ok := a.served.Load(pod.UID); ok {
			return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.(map[int32]int)[target])), nil
		}
		return net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(target))), nil
	}
	return "", fmt.Errorf("the Service %s has no pod", service.Name)
}
