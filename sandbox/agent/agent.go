// Package agent is the kubelet of the few containers on simulated nodes whose
// program is really run; kwok pretends to run all others there.
//
// [Run] watches the pods. For each that is bound to a node and has a container of a known image, it runs the image's
// program as a local process for as long as the pod exists: with the container's arguments and environment, and with
// the identity of the pod's service account, so that the process may do what the account was granted and no more.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"persia/sandbox/node"
	"persia/sandbox/toolchain"
)

const (
	// stopGrace is how long a program may take to end by itself.
	stopGrace = 5 * time.Second
	// resync has a pod looked at again whose node could not be asked for.
	resync = 10 * time.Second
)

// Options say what [Run] runs and where.
type Options struct {
	// Config is an administrator's access to the cluster, to watch pods and to request tokens.
	Config *rest.Config `json:"-"`
	// Dir keeps the programs' credentials and their output, NAMESPACE_POD_CONTAINER.log, in the folders
	// credentials and logs, and is their working directory.
	Dir string
	// Tools are the compiled programs.
	Tools toolchain.Tools
	// Proxy is the socket on which the API server asks for connections, or "".
	Proxy string
	// Logger logs the agent's actions.
	Logger *slog.Logger `json:"-"`
}

func (o Options) credentials() string { return filepath.Join(o.Dir, "credentials") }
func (o Options) logs() string        { return filepath.Join(o.Dir, "logs") }

// Run runs programs until ctx ends, and then ends them.
func Run(ctx context.Context, options Options) error {
	client, err := kubernetes.NewForConfig(options.Config)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	a := &agent{options: options, programs: programs(options.Tools), client: client, resync: resync}
	if err := a.run(ctx); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// container names one container of one pod that ever was.
type container struct {
	pod  types.UID
	name string
}

type agent struct {
	options Options
	// programs are keyed by image repository, as in natsio/nats-operator.
	programs map[string]program
	client   kubernetes.Interface
	// resync is the time after which all pods are looked at again.
	resync time.Duration
	// started ends the programs that are kept running.
	started map[container]context.CancelFunc
	running sync.WaitGroup
	// served are the ports of loopback on which programs listen for the ports of their pods: a
	// map[int32]int by the UID of a pod.
	served sync.Map
}

func (a *agent) run(ctx context.Context) error {
	a.started = map[container]context.CancelFunc{}
	// The kernel has ended the programs of a killed agent; see [runner.execute].
	if err := errors.Join(os.RemoveAll(a.options.credentials()), os.MkdirAll(a.options.credentials(), 0o700),
		os.MkdirAll(a.options.logs(), 0o755)); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(a.client, a.resync)
	// The handlers are called one after the other.
	handlers := cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { a.sync(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { a.sync(ctx, obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				a.stop(pod)
			}
		},
	}
	if _, err := factory.Core().V1().Pods().Informer().AddEventHandler(handlers); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	if err := a.watchVolumes(ctx, factory); err != nil {
		return fmt.Errorf("watch volumes: %w", err)
	}
	if a.options.Proxy != "" {
		stop, err := a.serveProxy()
		if err != nil {
			return err
		}
		defer stop()
	}
	a.options.Logger.Info("agent started", "api", a.options.Config.Host)
	factory.Start(ctx.Done())
	<-ctx.Done()
	// No handler is called after this.
	factory.Shutdown()
	a.running.Wait()
	a.options.Logger.Info("agent stopped")
	return nil
}

// sync starts the programs of a pod that should run, and stops the programs of one that should not.
func (a *agent) sync(ctx context.Context, pod *corev1.Pod) {
	if !shouldRun(pod) {
		a.stop(pod)
		return
	}
	for _, spec := range pod.Spec.Containers {
		program, known := a.programs[repository(spec.Image)]
		key := container{pod.UID, spec.Name}
		if _, started := a.started[key]; started || !known {
			continue
		}
		if a.hasKubelet(ctx, pod.Spec.NodeName) {
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		a.started[key] = cancel
		runner := &runner{
			options: a.options, client: a.client, pod: pod, container: spec, program: program, served: &a.served,
			logger: a.options.Logger.With("pod", pod.Namespace+"/"+pod.Name, "container", spec.Name),
		}
		a.running.Go(func() { runner.run(ctx) })
	}
}

// hasKubelet reports whether a node is real and runs its pods itself. If that is not known, the
// agent runs nothing until it checks the pod again.
func (a *agent) hasKubelet(ctx context.Context, name string) bool {
	found, err := a.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false
	}
	if err != nil {
		a.options.Logger.Warn("ask for a node", "node", name, "error", err)
		return true
	}
	return found.Annotations[node.Annotation] == "real"
}

// stop ends the programs of a pod. It does not wait for them.
func (a *agent) stop(pod *corev1.Pod) {
	for key, cancel := range a.started {
		if key.pod == pod.UID {
			cancel()
			delete(a.started, key)
		}
	}
}

// shouldRun reports whether a kubelet would run the pod's containers.
func shouldRun(pod *corev1.Pod) bool {
	return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil &&
		pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}
