package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
)

// probePeriod is how often a program is asked whether it is ready.
const probePeriod = 200 * time.Millisecond

// served are the ports of loopback on which programs listen for the ports of their pods.
type served struct {
	mu    sync.Mutex
	ports map[types.UID]map[int32]int
}

// take chooses a port of loopback for each port of a container.
func (s *served) take(pod *corev1.Pod, container corev1.Container) (map[int32]int, error) {
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ports == nil {
		s.ports = map[types.UID]map[int32]int{}
	}
	s.ports[pod.UID] = ports
	return ports, nil
}

func (s *served) release(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ports, pod.UID)
}

// of returns the ports of a pod, or nil if its programs do not run here.
func (s *served) of(pod types.UID) map[int32]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.ports[pod])
}

// folders returns the folders of the container's mounts, by path.
func (r *runner) folders(dir string) map[string]string {
	folders := map[string]string{}
	for _, mount := range r.container.VolumeMounts {
		folders[mount.MountPath] = filepath.Join(dir, "volumes", mount.Name)
	}
	return folders
}

// mount writes the files of ConfigMaps and Secrets that have changed.
func (r *runner) mount(ctx context.Context, at host) error {
	for _, mount := range r.container.VolumeMounts {
		files, err := r.files(ctx, mount.Name, at)
		if err != nil {
			return fmt.Errorf("volume %s: %w", mount.Name, err)
		}
		folder := at.mounts[mount.MountPath]
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		for name, content := range files {
			path := filepath.Join(folder, name)
			if last, err := os.ReadFile(path); err == nil && bytes.Equal(last, content) {
				continue
			}
			if err := renameio.WriteFile(path, content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// keepMounted keeps the files up to date. A kubelet takes up to a minute for a Secret.
func (r *runner) keepMounted(ctx context.Context, at host, report func(error)) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := r.mount(ctx, at); err != nil && ctx.Err() == nil {
			report(err)
		}
	}, probePeriod)
}

// files returns the files of a ConfigMap or a Secret. Other volumes have none.
func (r *runner) files(ctx context.Context, name string, at host) (map[string][]byte, error) {
	i := slices.IndexFunc(r.pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if i < 0 {
		return nil, nil
	}
	switch volume := r.pod.Spec.Volumes[i]; {
	case volume.Secret != nil:
		secret, err := r.client.CoreV1().Secrets(r.pod.Namespace).Get(ctx, volume.Secret.SecretName, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return secret.Data, nil
	case volume.ConfigMap != nil:
		config, err := r.client.CoreV1().ConfigMaps(r.pod.Namespace).Get(ctx, volume.ConfigMap.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return r.adapted(config.Data, at)
	}
	return nil, nil
}

func (r *runner) adapted(texts map[string]string, at host) (map[string][]byte, error) {
	files := map[string][]byte{}
	for name, text := range texts {
		files[name] = []byte(text)
		if r.program.Adapt == nil {
			continue
		}
		var err error
		if files[name], err = r.program.Adapt(files[name], at); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return files, nil
}

// probe makes the pod ready when the container's readiness probe first succeeds.
func (r *runner) probe(ctx context.Context, ports map[int32]int, report func(error)) {
	url := ""
	if probe := r.container.ReadinessProbe; probe != nil && probe.HTTPGet != nil {
		url = fmt.Sprintf("http://127.0.0.1:%d%s", ports[portOf(r.container, probe.HTTPGet.Port)], probe.HTTPGet.Path)
	}
	client := &http.Client{Timeout: 5 * time.Second}
	err := wait.PollUntilContextCancel(ctx, probePeriod, true, func(ctx context.Context) (bool, error) {
		answer, err := client.Get(url)
		if err != nil {
			return false, nil
		}
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK && r.becomesReady(ctx) == nil, nil
	})
	if err != nil && ctx.Err() == nil {
		report(err)
	}
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
		return fmt.Errorf("the pod is %s", strconv.Quote(string(pod.Status.Phase)))
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
