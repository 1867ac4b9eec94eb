package agent

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"persia/sandbox/node"
)

// serveProxy serves the connections that the API server asks for until stop is called.
func (a *agent) serveProxy() (stop func(), err error) {
	return node.ServeTunnel(a.options.Proxy, a.dial)
}

// dial resolves an address of the cluster and connects to it.
func (a *agent) dial(ctx context.Context, address string) (net.Conn, error) {
	to, err := a.reach(ctx, address)
	if err != nil {
		return nil, err
	}
	if to.real {
		return node.DialTunnel(ctx, a.options.NodeTunnel, to.address)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.address)
}

// destination is where an address leads.
type destination struct {
	address string
	// real is set for a pod of the real node, which is reached from there only.
	real bool
}

// reach returns where an address leads on this machine: the address of a Service to one of its
// pods, and the address of a pod whose program runs here to that program.
func (a *agent) reach(ctx context.Context, address string) (destination, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return destination{}, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return destination{}, err
	}
	services, err := a.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return destination{}, err
	}
	i := slices.IndexFunc(services.Items, func(s corev1.Service) bool { return s.Spec.ClusterIP == host })
	if i < 0 {
		return destination{address: address}, nil
	}
	service := services.Items[i]
	j := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool { return p.Port == int32(port) })
	if j < 0 {
		return destination{}, fmt.Errorf("the Service %s has no port %d", service.Name, port)
	}
	pods, err := a.client.CoreV1().Pods(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.SelectorFromSet(service.Spec.Selector).String(),
	})
	if err != nil {
		return destination{}, err
	}
	return a.reachPod(ctx, service, service.Spec.Ports[j].TargetPort, pods.Items)
}

// reachPod returns where a port of one of a Service's pods is.
func (a *agent) reachPod(ctx context.Context, service corev1.Service, target intstr.IntOrString, pods []corev1.Pod) (destination, error) {
	for _, pod := range pods {
		if !shouldRun(&pod) || len(pod.Spec.Containers) == 0 {
			continue
		}
		port := portOf(pod.Spec.Containers[0], target)
		if ports := a.served.of(pod.UID); ports != nil {
			return destination{address: net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[port]))}, nil
		}
		return destination{net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(port))), a.hasKubelet(ctx, pod.Spec.NodeName)}, nil
	}
	return destination{}, fmt.Errorf("the Service %s has no pod", service.Name)
}
