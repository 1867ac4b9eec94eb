package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"

	"persia/internal/testkit"
)

// password is the end of all credentials.
const password = "correct-horse-battery-staple"

// TestPEDL takes PEDL through its life next to a training job: up with its check, a changed
// password, down, and up again over the same database, and over a claim that somebody else has made.
func TestPEDL(t *testing.T) {
	t.Parallel()
	s := newStack(t, `
nodePools: [{name: agents, machineType: g2-standard-8, nodes: 2, gpu: {type: nvidia-l4, count: 1}}]
jobs: [{name: train}]
pedl:
  resources: &small {limits: {cpu: 500m, memory: 1Gi}}
  agent: {nodePools: [agents]}
  registry: {password: {secure: registry-`+password+`}}
  postgresql: {postgresqlPassword: {secure: database-`+password+`}, resources: *small}
  supportCheck: {nodePool: agents}`)
	s.start()
	_, outputs := s.upWithCheck(corev1.PodSucceeded)
	s.assertOn("system", 1, s.pods("pedl", "app.kubernetes.io/name=pedl-master"))
	s.assertOn("system", 1, s.pods("pedl", "app.kubernetes.io/name=pedl-postgresql"))
	s.awaitAgents()
	handle := s.assertBound("pedl", "pedl-postgresql", "pedl-postgresql").Spec.CSI.VolumeHandle
	assert.Equal(t, object{
		"namespace":    "pedl",
		"master":       "http://pedl-master.pedl.svc:8080",
		"supportCheck": "Succeeded",
		"database": object{"volume": "pedl-postgresql", "claim": "pedl-postgresql", "storage": handle,
			"onDestroy": "kept: the next `pulumi up` of this stack takes it over"},
	}, outputs["pedl"])
	service := testkit.Must(s.CoreV1().Services("pedl").Get(t.Context(), "pedl-master", metav1.GetOptions{}))(t)
	address := testkit.Must(s.CoreV1().ConfigMaps("pedl-agents").Get(t.Context(), "pedl-agent", metav1.GetOptions{}))(t)
	assert.NotEmpty(t, service.Spec.ClusterIP)
	assert.Equal(t, service.Spec.ClusterIP, address.Data["PEDL_MASTER_HOST"])
	s.assertUnchanged()

	master, database := s.onlyPod("pedl-master"), s.onlyPod("pedl-postgresql")
	s.run(t, []step{
		{name: "a password rolls the master", edit: `pedl: {postgresql: {postgresqlPassword: {secure: rotated-` + password + `}}}`,
			want: map[string]int{"replace": 2, "update": 1}, then: func() { // two Secrets, and the pod of the master
				after := s.onlyPod("pedl-master")
				assert.NotEqual(s.t, master.UID, after.UID)
				assert.Equal(s.t, database.UID, s.onlyPod("pedl-postgresql").UID, "a password is for a database that is made")
				secret := testkit.Must(s.CoreV1().Secrets("pedl").Get(s.t.Context(), "pedl-master-config", metav1.GetOptions{}))(s.t)
				assert.Equal(s.t, secret.ResourceVersion, after.Annotations["configuration-version"])
				assert.Contains(s.t, string(secret.Data["master.yaml"]), "rotated-"+password)
			}},
		{name: "all other settings", edit: `
pedl:
  service: {type: LoadBalancer, nodePort: 30080, loadBalancerIP: 203.0.113.8, loadBalancerSourceRanges: [203.0.113.0/24],
    annotations: {networking.gke.io/load-balancer-type: Internal}}
  ingress: {enabled: true, hosts: [pedl.example.com], tls: [{hosts: [pedl.example.com], secretName: pedl-tls}]}
  tolerations: [{key: team, operator: Exists}]
  nodeSelector: {kubernetes.io/os: linux}
  trialRunner: {network: host, uid: 0, gid: 0}
  agent: {tolerations: [{key: team, operator: Exists}], env: [{name: HTTPS_PROXY, value: "http://proxy"}]}
  postgresql:
    image: {pullPolicy: Always, pullSecrets: [{name: mirror}]}
    postgresqlInitdbArgs: --data-checksums
    postgresqlExtendedConfig: {maxConnections: 50}`,
			// An Ingress; three workloads, and a service; the settings of PostgreSQL.
			want: map[string]int{"create": 1, "update": 4, "replace": 1}, then: func() {
				assert.NotEqual(s.t, database.UID, s.onlyPod("pedl-postgresql").UID, "settings roll the database")
				s.awaitAgents()
				changes, outputs := s.outputs()
				assert.Empty(s.t, changes)
				s.assertNoCredential(outputs) // the state also has the outputs of earlier updates
			}},
	})
	s.destroy()
	changes, outputs := s.upWithCheck(corev1.PodFailed)
	assert.Equal(t, 1, changes["import"], "the disk of the database")
	assert.Equal(t, handle, s.assertBound("pedl", "pedl-postgresql", "pedl-postgresql").Spec.CSI.VolumeHandle, "the same disk")
	assert.Regexp(t, "^Failed: BackoffLimitExceeded: ", outputs["pedl"].(object)["supportCheck"])
	s.destroy()
	s.subtest(t, "an existing claim", s.assertExistingClaim)
}

// upWithCheck brings the stack up while the pod of the support check comes to its end, which only a kubelet would see.
func (s *stack) upWithCheck(end corev1.PodPhase) (map[string]int, object) {
	s.t.Helper()
	ctx, stop := context.WithCancel(s.t.Context())
	check := begin(func() error { return endCheck(ctx, s.cluster, end) })
	changes, outputs := s.outputs()
	stop()
	require.NoError(s.t, check.wait())
	return changes, outputs
}

// endCheck waits for the pod of the support check and sets its status as the kubelet does.
func endCheck(ctx context.Context, c cluster, end corev1.PodPhase) error {
	pods := c.CoreV1().Pods("pedl-agents")
	watch, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=pedl-support-check"})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		if pod, ok := event.Object.(*corev1.Pod); ok && pod.Status.Phase == corev1.PodRunning {
			return retry.RetryOnConflict(retry.DefaultRetry, func() error {
				running, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				running.Status.Phase = end
				for i := range running.Status.ContainerStatuses {
					terminated := &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}
					if end == corev1.PodFailed {
						terminated.ExitCode = 125
					}
					running.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: terminated}
				}
				_, err = pods.UpdateStatus(ctx, running, metav1.UpdateOptions{})
				return err
			})
		}
	}
	return errors.New("the support check has not run")
}

// assertExistingClaim: a claim that somebody else has made is in the namespace of PEDL, and outlives the stack there.
func (s *stack) assertExistingClaim() {
	testkit.Must(s.CoreV1().Namespaces().Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pedl"}}, metav1.CreateOptions{}))(s.t)
	testkit.Must(s.CoreV1().PersistentVolumes().Create(s.t.Context(), volumeOf("mine"), metav1.CreateOptions{}))(s.t)
	claims := s.CoreV1().PersistentVolumeClaims("pedl")
	made := testkit.Must(claims.Create(s.t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Spec: claimOf("", "mine")}, metav1.CreateOptions{}))(s.t)
	_, outputs := s.outputs(`{jobs: [{name: train, remove: true}], pedl: {supportCheck: null, postgresql: {persistence: {existingClaim: mine}}}}`)
	assert.Equal(s.t, object{"claim": "mine", "onDestroy": "kept, in the namespace pedl"}, outputs["pedl"].(object)["database"])
	assert.Equal(s.t, "mine", s.onlyPod("pedl-postgresql").Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	s.assertOn("system", 1, s.pods("pedl", "app.kubernetes.io/name=pedl-postgresql"))
	require.NoError(s.t, s.s.Destroy(s.t.Context()))
	claim := testkit.Must(claims.Get(s.t.Context(), "mine", metav1.GetOptions{}))(s.t)
	assert.Equal(s.t, made.UID, claim.UID)
	assert.Equal(s.t, corev1.ClaimBound, claim.Status.Phase)
	assert.Empty(s.t, s.pods("pedl", ""))
}

// awaitAgents waits for an agent on each of the two nodes.
func (c cluster) awaitAgents() {
	c.t.Helper()
	c.await(func() bool {
		nodes, agents := map[string]bool{}, c.pods("pedl-agents", "app.kubernetes.io/name=pedl-agent")
		for _, agent := range agents {
			if !readySince(agent).IsZero() && agent.DeletionTimestamp == nil {
				nodes[agent.Spec.NodeName] = true
			}
		}
		return len(agents) == 2 && len(nodes) == 2
	}, "an agent on each node")
	c.assertOn("agents", 2, c.pods("pedl-agents", "app.kubernetes.io/name=pedl-agent"))
}

// onlyPod returns the one pod of a part in the namespace of the master.
func (c cluster) onlyPod(part string) corev1.Pod {
	c.t.Helper()
	pods := c.pods("pedl", "app.kubernetes.io/name="+part)
	require.Len(c.t, pods, 1)
	return pods[0]
}

// assertNoCredential looks for credentials in the outputs, the state, and all objects except Secrets.
func (s *stack) assertNoCredential(outputs object) {
	s.t.Helper()
	text := testkit.Must(json.Marshal(outputs))(s.t)
	assertHides(s.t, "the outputs", string(text))
	var objects strings.Builder
	require.NoError(s.t, eachObject(s.t.Context(), s.s, func(item unstructured.Unstructured) {
		if item.GetKind() != "Secret" {
			require.NoError(s.t, json.NewEncoder(&objects).Encode(item.Object))
		}
	}))
	assert.Contains(s.t, objects.String(), "pedl-master")
	assertHides(s.t, "an object", objects.String())
	state := os.DirFS(filepath.Join(s.dir, s.name, "state"))
	files := 0
	require.NoError(s.t, fs.WalkDir(state, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(state, path)
		if strings.Contains(string(text), "pedl-master-config") {
			files++
		}
		assertHides(s.t, path, string(text))
		return err
	}))
	assert.Positive(s.t, files, "a state with PEDL")
}

// assertHides checks that a text has no credential, neither as it is nor in base64, wherever it begins there.
func assertHides(t testing.TB, what, text string) {
	t.Helper()
	assert.False(t, strings.Contains(text, password), "%s has a credential", what)
	for before := range 3 {
		encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + password))
		assert.False(t, strings.Contains(text, encoded[4:len(encoded)-4]), "%s has a credential in base64", what)
	}
}
