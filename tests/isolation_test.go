package tests

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"

	"persia/internal/programtest"
	"persia/internal/testkit"
)

// TestJobsClosed: no pod of the jobs' namespace speaks with anybody by itself.
func TestJobsClosed(t *testing.T) {
	closed := testkit.Object[networkingv1.NetworkPolicy](t, programtest.DeployStack(t, "prod").One(t, testkit.NetworkPolicy, "persia-closed"))
	assert.Equal(t, "persia", closed.Namespace)
	assert.Empty(t, closed.Spec.PodSelector, "all pods")
	assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, closed.Spec.PolicyTypes)
	assert.Empty(t, closed.Spec.Ingress)
	assert.Empty(t, closed.Spec.Egress)
}

// TestJobTraffic lists the peers that can connect to the pods of a job, and those that the pods can
// connect to.
func TestJobTraffic(t *testing.T) {
	policy := testkit.Object[networkingv1.NetworkPolicy](t, programtest.DeployStack(t, "prod").One(t, testkit.NetworkPolicy, "criteo"))
	assert.Equal(t, map[string]string{"persia_job": "criteo"}, policy.Spec.PodSelector.MatchLabels)
	assert.ElementsMatch(t, []networkingv1.PolicyType{"Ingress", "Egress"}, policy.Spec.PolicyTypes)
	in, out := testkit.Traffic(policy)
	assert.Equal(t, []string{
		"persia_job=criteo to ",
		"anything in gmp-system to TCP 9091",
	}, in)
	assert.Equal(t, []string{
		"to persia_job=criteo on ",
		"to app=nats,nats_cluster=persia-nats-service in nats-io on TCP 4222",
		"to anywhere on TCP 53 UDP 53",
		"to anywhere on TCP 443",
		"to 169.254.169.254/32 and 169.254.169.252/32 on TCP 80 TCP 988",
	}, out)
}

// TestJobsKeepTheirDataApart: each job has its own NATS, which comes before it and which
// no other job reaches.
func TestJobsKeepTheirDataApart(t *testing.T) {
	const token = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
	recorder, err := programtest.DeployIn(t, root, programtest.ReadStackFile(t, "examples/Pulumi.jobs.yaml"))
	require.NoError(t, err)
	brokers := map[string]string{"ranking": "persia-nats-service", "retrieval": "retrieval-nats"}
	assert.Len(t, recorder.All(t, testkit.NATSCluster), len(brokers))
	for job, broker := range brokers {
		_, out := testkit.Traffic(testkit.Object[networkingv1.NetworkPolicy](t, recorder.One(t, token, job)))
		assert.Contains(t, out, "to app=nats,nats_cluster="+broker+" in nats-io on TCP 4222")
		in, _ := testkit.Traffic(testkit.Object[networkingv1.NetworkPolicy](t, recorder.One(t, token, broker)))
		assert.Contains(t, in, "persia_job="+job+" in persia to TCP 4222")
		for _, rules := range [][]string{in, out} {
			for other := range brokers {
				if other != job {
					assert.NotContains(t, strings.Join(rules, "\n"), brokers[other], "another job's")
				}
			}
		}
		set := recorder.One(t, testkit.StatefulSet, job+"-dataloader")
		assert.Equal(t, "nats://"+broker+".nats-io.svc:4222", testkit.Environment(t, set)["PERSIA_NATS_URL"].Value)
		assert.Contains(t, recorder.Before(set), recorder.One(t, testkit.NATSCluster, broker).URN)
	}
}
