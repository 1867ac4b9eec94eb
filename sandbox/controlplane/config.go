package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"
	"sigs.k8s.io/yaml"
)

// AdvertisedAddress and AdvertisedPort are where pods of a real node find the API server. The address
// is reserved for documentation (RFC 5737): the API server listens on loopback alone, and a real node
// relays to it. Network policies name the port, which GKE's control planes use.
const (
	AdvertisedAddress = "192.0.2.1"
	AdvertisedPort    = 443
)

// apiServiceAddress is the address of the Service kubernetes: the first of the API server's default
// range, 10.0.0.0/24.
const apiServiceAddress = "10.0.0.1"

// auditPolicy records who asked for what with which answer, of service accounts
// only. What the control plane and the administrator do is not recorded.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// egress has the API server ask a proxy for its connections to webhooks and kubelets. Pods on
// simulated nodes have addresses that no connection reaches.
const egress = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport: {uds: {udsName: %q}}
`

// kubectlStub answers kwokctl, which asks kubectl whether the API server is up, and would otherwise
// download kubectl. This package waits by itself.
const kubectlStub = `#!/bin/sh
printf ok
`

// stages are added to kwok's defaults. A default stage completes the pods of Jobs as soon as they
// run. kwok prefers the stage with the greater weight, and the first stage here does nothing, so such
// a pod runs until a client writes its end into its status.
//
// A kubelet reports how a deleted pod ended before it removes the pod, and the Job controller keeps
// the pod until then. kwok would only try to remove it, and the pod would stay forever. The second
// stage reports the exit code of a program that does not handle SIGTERM.
//
// Before both, a stage starts the pod of a controller whose program really runs. The agent makes
// the pod ready when the program is.
//
// The API server removes a pod that is deleted without grace in two steps, and watchers see both. kwok
// itself deletes in this way, by name, and would do so again after the first step. On a busy machine that
// is so late that it removes the next pod of a StatefulSet, which has the same name, and then the next one,
// without end. So after the first step, kwok waits for the second. If the API server is killed in between,
// a change, whatever it is, has it finish; a next pod is not harmed.
const stages = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-of-controller-starts
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: '.metadata.labels["app.kubernetes.io/name"]', operator: In, values: [jobset-controller, kueue]}
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  weight: 1
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Running
      startTime: {{ $now | Quote }}
      conditions:
      - {type: Initialized, status: "True", lastTransitionTime: {{ $now | Quote }}}
      - {type: Ready, status: "False", lastTransitionTime: {{ $now | Quote }}}
      - {type: ContainersReady, status: "False", lastTransitionTime: {{ $now | Quote }}}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: false
        restartCount: 0
        state:
          running:
            startedAt: {{ $now | Quote }}
      {{ end }}
      {{ $podIPs := PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
      {{ with $podIPs }}
      podIP: {{ index . 0 | Quote }}
      podIPs:
      {{ range . }}
      - ip: {{ . | Quote }}
      {{ end }}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-is-being-removed
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
    - {key: .metadata.deletionGracePeriodSeconds | tostring, operator: In, values: ["0"]}
    - {key: ".metadata.ownerReferences.[].kind", operator: NotIn, values: [Job]}
  weight: 1
  delay:
    durationMilliseconds: 10000
  next:
    patches:
    - root: metadata
      template: |
        annotations: {sandbox.persia.com/removed: "true"}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-of-job-runs-on
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: ".metadata.ownerReferences.[].kind", operator: In, values: [Job]}
  weight: 1
  next: {}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-of-job-is-terminated
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: ".metadata.ownerReferences.[].kind", operator: In, values: [Job]}
  weight: 1
  next:
    statusTemplate: |
      {{ $now := Now }}
      phase: Failed
      containerStatuses:
      {{ range .status.containerStatuses }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        ready: false
        restartCount: 0
        started: false
        state:
          terminated:
            exitCode: 143
            reason: Error
            startedAt: {{ $now | Quote }}
            finishedAt: {{ $now | Quote }}
      {{ end }}
`

// writeConfig writes what kwokctl reads to create the cluster.
func (c *Cluster) writeConfig() error {
	ports, err := freePorts(6)
	if err != nil {
		return err
	}
	config, err := yaml.Marshal(c.config(ports))
	if err != nil {
		return err
	}
	// kwokctl leaves the administrator's key readable to all who get there.
	for _, dir := range []string{c.kwokDir(), c.stubs()} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		path, content string
		mode          os.FileMode
	}{
		{c.configFile(), string(config), 0o600},
		{c.auditPolicyFile(), auditPolicy, 0o600},
		{c.stagesFile(), stages, 0o600},
		{c.egressFile(), fmt.Sprintf(egress, c.Proxy()), 0o600},
		{filepath.Join(c.stubs(), "kubectl"), kubectlStub, 0o700},
	} {
		if err := renameio.WriteFile(file.path, []byte(file.content), file.mode); err != nil {
			return err
		}
	}
	return nil
}

// config returns a KwokctlConfiguration. Most stages of pods and nodes are kwok's
// defaults: pods are ready, and gone, at once, and each node reports its status
// about every fifty seconds, where the controllers allow for two hundred. kwok's own
// requests are not rate limited.
func (c *Cluster) config(ports []int) any {
	type object = map[string]any
	// A second instance never runs, and waiting for the lease of a killed one
	// would delay a restart by fifteen seconds.
	noLeaderElection := []object{{"key": "leader-elect", "value": "false"}}
	var gracePeriod []object
	if c.KubeletLeases {
		// kwokctl's default was Kubernetes' until 1.31.
		gracePeriod = []object{{"key": "node-monitor-grace-period", "value": "50s", "override": true}}
	}
	return object{
		"apiVersion": "config.kwok.x-k8s.io/v1alpha1",
		"kind":       "KwokctlConfiguration",
		"options": object{
			"runtime": "binary",
			// kwokctl's default is every interface.
			"bindAddress": "127.0.0.1",
			// kwokctl would choose the first free ports below 32765, and so the ones
			// of a cluster that is being created too or is stopped at the moment.
			"etcdPort":                  ports[0],
			"etcdPeerPort":              ports[1],
			"kubeApiserverPort":         ports[2],
			"kubeControllerManagerPort": ports[3],
			"kubeSchedulerPort":         ports[4],
			"kwokControllerPort":        ports[5],

			"securePort":        true,
			"kubeAuthorization": true,
			"kubeAdmission":     true,
			"kubeAuditPolicy":   c.auditPolicyFile(),
			// So pods of a real node call the API server.
			"kubeApiserverCertSANs": []string{apiServiceAddress},

			// Every program is named, so that none is downloaded.
			"etcdBinary":                  c.tools.Etcd,
			"kubeApiserverBinary":         c.tools.KubeAPIServer,
			"kubeControllerManagerBinary": c.tools.KubeControllerManager,
			"kubeSchedulerBinary":         c.tools.KubeScheduler,
			"kwokControllerBinary":        c.tools.Kwok,
			"kubectlBinary":               filepath.Join(c.stubs(), "kubectl"),
		},
		"componentsPatches": []object{
			{"name": "etcd", "extraArgs": []object{
				// A killed etcd loses nothing that it has written, synced or not. Syncing
				// protects against a machine that loses power, and where the disk is busy
				// it takes so long that requests time out.
				{"key": "unsafe-no-fsync", "value": "true"},
			}},
			{"name": "kube-apiserver", "extraArgs": []object{
				{"key": "advertise-address", "value": AdvertisedAddress},
				// The API server would publish that address with the port that it
				// listens on. A real node publishes the one that it relays from.
				{"key": "endpoint-reconciler-type", "value": "none"},
				// The name of a node resolves nowhere.
				{"key": "kubelet-preferred-address-types", "value": "InternalIP"},
				{"key": "egress-selector-config-file", "value": c.egressFile()},
				// A real kubelet demands a client certificate. kwokctl makes it.
				{"key": "kubelet-client-certificate", "value": filepath.Join(c.PKI(), "admin.crt")},
				{"key": "kubelet-client-key", "value": filepath.Join(c.PKI(), "admin.key")},
			}},
			{"name": "kube-controller-manager", "extraArgs": append([]object{
				// As on GKE, each controller has a service account. With kwokctl's default, all of
				// them would be the administrator, to whom admission policies apply differently.
				{"key": "use-service-account-credentials", "value": "true"},
				// Binding a new claim collides with the controllers that put
				// finalizers on it, and is tried again in the next round: by
				// default fifteen seconds later.
				{"key": "pvclaimbinder-sync-period", "value": "1s"},
			}, append(gracePeriod, noLeaderElection...)...)},
			{"name": "kube-scheduler", "extraArgs": noLeaderElection},
			{"name": "kwok-controller", "extraArgs": []object{
				{"key": "manage-all-nodes", "value": "false", "override": true},
				{"key": "manage-nodes-with-annotation-selector", "value": "kwok.x-k8s.io/node=fake"},
				// Beside the one that kwokctl names. In kwokctl's, a stage would be
				// instead of the defaults.
				{"key": "config", "value": c.stagesFile()},
			}},
		},
	}
}

// freePorts returns n different ports that are free on loopback. They are below the range for
// outgoing connections, and chosen at random, so that they are still free when a stopped cluster
// starts again.
func freePorts(n int) ([]int, error) {
	const first, count = 20000, 10000
	var ports []int
	for _, i := range rand.Perm(count) {
		port := first + i
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		_ = listener.Close()
		if ports = append(ports, port); len(ports) == n {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("fewer than %d free ports between %d and %d", n, first, first+count-1)
}
