package pedl

import (
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
	"persia/internal/testkit"
)

func TestExtendedConfig(t *testing.T) {
	assert.Empty(t, extendedConfig(nil))
	assert.Equal(t, "auto_explain.log_min_duration = '1s'\nlog_line_prefix = 'it''s a\\\\b'\nmax_connections = '2000'\n",
		extendedConfig(map[string]config.SettingValue{
			"maxConnections": "2000", "logLinePrefix": `it's a\b`, "autoExplain.logMinDuration": "1s",
		}))
}

// TestSupportResult checks the statuses with which a Job ends, as Pulumi returns them.
func TestSupportResult(t *testing.T) {
	condition := func(name, status, reason, message string) map[string]any {
		return map[string]any{"type": name, "status": status, "reason": reason, "message": message}
	}
	for name, c := range map[string]struct {
		conditions []any
		want       string
	}{
		"complete": {[]any{condition("SuccessCriteriaMet", "True", "CompletionsReached", "")}, "Succeeded"},
		"failed": {[]any{condition("FailureTarget", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")},
			"Failed: BackoffLimitExceeded: Job has reached the specified backoff limit"},
		"without Docker": {[]any{condition("Failed", "True", "DeadlineExceeded", "Job was active longer than specified deadline")},
			"Failed: DeadlineExceeded: Job was active longer than specified deadline"},
		"not that":   {[]any{condition("Suspended", "True", "", ""), condition("Complete", "False", "", "")}, "Running"},
		"not at all": {nil, "Running"},
	} {
		result := testkit.Must(supportResult(map[string]any{"active": 1.0, "conditions": c.conditions}))(t)
		assert.Equal(t, c.want, result, name)
	}
	_, err := supportResult(map[string]any{"conditions": "?"})
	assert.ErrorContains(t, err, "status of test-pedl-support")
}

// TestAgentTolerations: each once, however it is written.
func TestAgentTolerations(t *testing.T) {
	gpu := corev1.Toleration{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}
	sameGPU := gpu
	sameGPU.Operator = corev1.TolerationOpEqual
	spot := corev1.Toleration{Key: "cloud.google.com/gke-spot", Operator: corev1.TolerationOpEqual, Value: "true", Effect: corev1.TaintEffectNoSchedule}
	args := Args{Tolerations: []corev1.Toleration{sameGPU, spot, spot}}
	args.PEDL.Agent.Tolerations = []corev1.Toleration{gpu}
	var keys []string
	for _, toleration := range agentTolerations(args) {
		keys = append(keys, toleration.Key)
	}
	assert.Equal(t, []string{"determined.ai/pedl-agent", "nvidia.com/gpu", "cloud.google.com/gke-spot"}, keys)
}

// TestAgentEnv checks that variables in the stack file replace the program's.
func TestAgentEnv(t *testing.T) {
	pedl := config.PEDL{}
	pedl.Agent.Env = []corev1.EnvVar{{Name: "PEDL_MASTER_HOST", Value: "10.0.0.9"}, {Name: "A", Value: "b"}}
	values := map[string]string{}
	for _, e := range agentEnv(pedl) {
		assert.NotContains(t, values, e.Name, "twice")
		values[e.Name] = e.Value
	}
	assert.Equal(t, "10.0.0.9", values["PEDL_MASTER_HOST"])
	assert.Equal(t, "b", values["A"])
	assert.NotContains(t, values, "PEDL_TRIAL_RUNNER_UID")
}
