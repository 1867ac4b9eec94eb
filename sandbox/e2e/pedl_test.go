package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// pedlStack is a stack with a training and PEDL.
type pedlStack struct {
	cluster
	project       string
	configuration object
	pedl          object
	dir           string
}

func newPEDL(t *testing.T) *pedlStack {
	t.Helper()
	p := &pedlStack{project: t.TempDir(), dir: t.TempDir()}
	small := object{"limits": object{"cpu": "500m", "memory": "1Gi"}}
	p.pedl = object{
		"resources":    small,
		"agent":        object{"nodePools": []string{"agents"}},
		"registry":     object{"password": secure("registry-" + password)},
		"postgresql":   object{"postgresqlPassword": secure("database-" + password), "resources": small},
		"supportCheck": object{"nodePool": "agents"},
	}
	p.configuration = stackText(t, p.project, madeUp{
		jobs: []object{job("train", nil)},
		pools: []object{{"name": "agents", "machineType": "g2-standard-8", "nodes": 2,
			"gpu": object{"type": "nvidia-l4", "count": 1}}},
	})
	p.configuration["persia:pedl"] = p.pedl
	p.write(t)
	s := newSandboxOf(t, p.project, p.dir, "madeup")
	require.NoError(t, s.Cluster().Start(t.Context(), t.Output()))
	p.cluster = newCluster(t, s)
	return p
}

func (p *pedlStack) write(t *testing.T) {
	t.Helper()
	writeConfiguration(t, p.project, "madeup", p.configuration)
}

// up brings the stack up while the pod of the support check comes to its end, which
// only a kubelet would see.
func (p *pedlStack) up(t *testing.T, check corev1.PodPhase) auto.UpResult {
	t.Helper()
	p.write(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.endCheck(ctx, check) }()
	result, err := p.s.Up(t.Context())
	stop()
	require.NoError(t, err)
	require.NoError(t, <-ended)
	return result
}

// endCheck waits for the pod of the support check and ends it.
func (p *pedlStack) endCheck(ctx context.Context, phase corev1.PodPhase) error {
	pods := p.CoreV1().Pods("pedl-agents")
	watch, err := pods.Watch(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=pedl-support-check"})
	if err != nil {
		return err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		if !ok || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		exitCode := int32(0)
		if phase == corev1.PodFailed {
			exitCode = 125
		}
		return endPod(ctx, p, *pod, phase, exitCode)
	}
	return errors.New("the support check has not run")
}

// TestPEDL takes PEDL through its life next to a training job: up with its check, a changed
// password, down, and up again over the same database, and over a claim that somebody else has made.
func TestPEDL(t *testing.T) {
	t.Parallel()
	p := newPEDL(t)
	result := p.up(t, corev1.PodSucceeded)

	p.assertOn("rest", 4, p.rolePods("train"))
	p.assertOn("system", 1, p.pods("pedl", "app.kubernetes.io/name=pedl-master"))
	p.assertOn("system", 1, p.pods("pedl", "app.kubernetes.io/name=pedl-postgresql"))
	p.awaitAgents("agents", 2)
	handle := p.assertDatabase()
	assert.Equal(t, map[string]any{
		"namespace":    "pedl",
		"master":       "http://pedl-master.pedl.svc:8080",
		"supportCheck": "Succeeded",
		"database": map[string]any{"volume": "pedl-postgresql", "claim": "pedl-postgresql", "storage": handle,
			"onDestroy": "kept: the next `pulumi up` of this stack takes it over"},
	}, result.Outputs["pedl"].Value)
	p.assertMasterAddress()
	assert.Empty(t, upChanges(t, p.s), "second up")
	assert.Empty(t, refreshChanges(t, p.s), "what the API server adds is no drift")
	p.assertNoCredential(t, result)

	t.Run("a password rolls the master", func(t *testing.T) {
		master, database := p.onlyPod("pedl-master"), p.onlyPod("pedl-postgresql")
		p.pedl["postgresql"].(object)["postgresqlPassword"] = secure("rotated-" + password)
		p.write(t)
		result, err := p.s.Up(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[string]int{"replace": 2, "update": 1}, changes(t, result.Summary), "two Secrets, and the pod of the master")
		after := p.onlyPod("pedl-master")
		assert.NotEqual(t, master.UID, after.UID)
		assert.False(t, readySince(after).IsZero())
		assert.Equal(t, database.UID, p.onlyPod("pedl-postgresql").UID, "a password is for a database that is made")
		secret, err := p.CoreV1().Secrets("pedl").Get(t.Context(), "pedl-master-config", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, secret.ResourceVersion, after.Annotations["configuration-version"])
		assert.Contains(t, string(secret.Data["master.yaml"]), "rotated-"+password)
		assert.Empty(t, upChanges(t, p.s))
		p.assertNoCredential(t, result)
	})
	t.Run("other ways", func(t *testing.T) { p.assertOtherWays(t) })
	t.Run("down and up again", func(t *testing.T) {
		require.NoError(t, p.s.Destroy(t.Context()))
		p.assertEmpty()
		result := p.up(t, corev1.PodFailed)
		assert.Equal(t, 1, changes(t, result.Summary)["import"], "the disk of the database")
		assert.Equal(t, handle, p.assertDatabase(), "the same disk")
		p.awaitAgents("agents", 2)
		assert.Regexp(t, "^Failed: BackoffLimitExceeded: ", result.Outputs["pedl"].Value.(map[string]any)["supportCheck"])
	})
	t.Run("an existing claim", func(t *testing.T) {
		require.NoError(t, p.s.Destroy(t.Context()))
		p.assertExistingClaim(t)
	})
}

// assertOtherWays has the API server take all that leads to the master, and what else
// can be said of pods.
func (p *pedlStack) assertOtherWays(t *testing.T) {
	t.Helper()
	toleration := object{"key": "team", "operator": "Exists"}
	p.pedl["service"] = object{"type": "LoadBalancer", "nodePort": 30080,
		"loadBalancerIP": "203.0.113.8", "loadBalancerSourceRanges": []string{"203.0.113.0/24"},
		"annotations": object{"networking.gke.io/load-balancer-type": "Internal"}}
	p.pedl["ingress"] = object{"enabled": true, "hosts": []string{"pedl.example.com"},
		"tls": []object{{"hosts": []string{"pedl.example.com"}, "secretName": "pedl-tls"}}}
	p.pedl["tolerations"] = []object{toleration}
	p.pedl["nodeSelector"] = object{"kubernetes.io/os": "linux"}
	p.pedl["trialRunner"] = object{"network": "host", "uid": 0, "gid": 0}
	p.pedl["agent"].(object)["tolerations"] = []object{toleration}
	p.pedl["agent"].(object)["env"] = []object{{"name": "HTTPS_PROXY", "value": "http://proxy"}}
	postgreSQL := p.pedl["postgresql"].(object)
	postgreSQL["image"] = object{"pullPolicy": "Always", "pullSecrets": []object{{"name": "mirror"}}}
	postgreSQL["postgresqlInitdbArgs"] = "--data-checksums"
	postgreSQL["postgresqlExtendedConfig"] = object{"maxConnections": 50}
	before := p.onlyPod("pedl-postgresql")
	p.write(t)
	assert.Equal(t, map[string]int{"create": 1, "update": 4, "replace": 1}, upChanges(t, p.s),
		"an Ingress; three workloads, and a service; the settings of PostgreSQL")
	assert.NotEqual(t, before.UID, p.onlyPod("pedl-postgresql").UID, "settings roll the database")
	service, err := p.CoreV1().Services("pedl").Get(t.Context(), "pedl-master", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, corev1.ServiceTypeLoadBalancer, service.Spec.Type)
	assert.Equal(t, int32(30080), service.Spec.Ports[0].NodePort)
	ingress, err := p.NetworkingV1().Ingresses("pedl").Get(t.Context(), "pedl-master", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "pedl.example.com", ingress.Spec.Rules[0].Host)
	p.awaitAgents("agents", 2)
	assert.Empty(t, upChanges(t, p.s))
}

// assertExistingClaim: a claim that somebody else has made is in the namespace of
// PEDL, and outlives the stack there.
func (p *pedlStack) assertExistingClaim(t *testing.T) {
	t.Helper()
	delete(p.pedl, "supportCheck")
	p.pedl["postgresql"].(object)["persistence"] = object{"existingClaim": "mine"}
	p.write(t)
	uid := p.createClaim("mine")
	for range 2 {
		result, err := p.s.Up(t.Context())
		require.NoError(t, err)
		assert.Equal(t, map[string]any{"claim": "mine", "onDestroy": "kept, in the namespace pedl"},
			result.Outputs["pedl"].Value.(map[string]any)["database"])
		assert.Equal(t, "mine", p.onlyPod("pedl-postgresql").Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
		p.assertOn("system", 1, p.pods("pedl", "app.kubernetes.io/name=pedl-postgresql"))
		require.NoError(t, p.s.Destroy(t.Context()))
		claim, err := p.CoreV1().PersistentVolumeClaims("pedl").Get(t.Context(), "mine", metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, uid, claim.UID)
		assert.Equal(t, corev1.ClaimBound, claim.Status.Phase)
		assert.Empty(t, p.pods("pedl", ""))
	}
}

// createClaim creates a claim in the namespace pedl, and the volume that it is bound to.
func (p *pedlStack) createClaim(name string) types.UID {
	p.t.Helper()
	_, err := p.CoreV1().Namespaces().Create(p.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "pedl"}}, metav1.CreateOptions{})
	require.NoError(p.t, err)
	class, size := "", corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	_, err = p.CoreV1().PersistentVolumes().Create(p.t.Context(), &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{Capacity: size, AccessModes: modes,
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.0.0.10", Path: "/" + name}}},
	}, metav1.CreateOptions{})
	require.NoError(p.t, err)
	claim, err := p.CoreV1().PersistentVolumeClaims("pedl").Create(p.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, StorageClassName: &class, VolumeName: name,
			Resources: corev1.VolumeResourceRequirements{Requests: size}},
	}, metav1.CreateOptions{})
	require.NoError(p.t, err)
	return claim.UID
}

// awaitAgents waits for as many agents, each running on a node of the pool, and none
// elsewhere.
func (p *pedlStack) awaitAgents(pool string, count int) {
	p.t.Helper()
	p.await(func() bool {
		agents := p.pods("pedl-agents", "app.kubernetes.io/name=pedl-agent")
		running := 0
		for _, agent := range agents {
			if !readySince(agent).IsZero() && agent.DeletionTimestamp == nil {
				running++
			}
		}
		return running == count && len(agents) == count
	}, fmt.Sprintf("%d agents on %s", count, pool))
	agents, nodes := p.pods("pedl-agents", "app.kubernetes.io/name=pedl-agent"), map[string]bool{}
	p.assertOn(pool, count, agents)
	for _, agent := range agents {
		nodes[agent.Spec.NodeName] = true
	}
	assert.Len(p.t, nodes, count, "one agent a node")
}

// assertDatabase checks that the claim of the database is bound to its volume,
// and returns the disk.
func (p *pedlStack) assertDatabase() string {
	p.t.Helper()
	claim, err := p.CoreV1().PersistentVolumeClaims("pedl").Get(p.t.Context(), "pedl-postgresql", metav1.GetOptions{})
	require.NoError(p.t, err)
	volume, err := p.CoreV1().PersistentVolumes().Get(p.t.Context(), "pedl-postgresql", metav1.GetOptions{})
	require.NoError(p.t, err)
	assert.Equal(p.t, corev1.ClaimBound, claim.Status.Phase)
	assert.Equal(p.t, corev1.VolumeBound, volume.Status.Phase)
	assert.Equal(p.t, claim.UID, volume.Spec.ClaimRef.UID)
	assert.Equal(p.t, "pedl-postgresql", p.onlyPod("pedl-postgresql").Spec.Volumes[0].PersistentVolumeClaim.ClaimName)
	return volume.Spec.CSI.VolumeHandle
}

// assertMasterAddress checks that agents have the address of the master's
// service.
func (p *pedlStack) assertMasterAddress() {
	p.t.Helper()
	service, err := p.CoreV1().Services("pedl").Get(p.t.Context(), "pedl-master", metav1.GetOptions{})
	require.NoError(p.t, err)
	address, err := p.CoreV1().ConfigMaps("pedl-agents").Get(p.t.Context(), "pedl-agent", metav1.GetOptions{})
	require.NoError(p.t, err)
	assert.NotEmpty(p.t, service.Spec.ClusterIP)
	assert.Equal(p.t, service.Spec.ClusterIP, address.Data["PEDL_MASTER_HOST"])
}

// onlyPod returns the one pod of a part in the namespace of the master.
func (p *pedlStack) onlyPod(part string) corev1.Pod {
	p.t.Helper()
	pods := p.pods("pedl", "app.kubernetes.io/name="+part)
	require.Len(p.t, pods, 1)
	return pods[0]
}

// endPod sets the status of a pod as the kubelet does when its containers have ended.
func endPod(ctx context.Context, client kubernetes.Interface, pod corev1.Pod, phase corev1.PodPhase, exitCode int32) error {
	pods := client.CoreV1().Pods(pod.Namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		running, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		running.Status.Phase = phase
		for i := range running.Status.ContainerStatuses {
			running.Status.ContainerStatuses[i].State = corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, FinishedAt: metav1.Now()},
			}
		}
		_, err = pods.UpdateStatus(ctx, running, metav1.UpdateOptions{})
		return err
	})
}
