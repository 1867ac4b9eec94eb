package preflight

import (
	"encoding/json"
	"maps"
	"testing"

	"persia/internal/testkit"
)

// Errors of Google Cloud, as the fixtures of GoogleCloudPlatform/k8s-config-connector have them.
const (
	forbidden = `{"error": {"code": 403, "message": "The caller does not have permission", "status": "PERMISSION_DENIED"}}`
	noMachine = `{"error": {"code": 404, "errors": [{"domain": "global", "message": "The resource '%[1]s' was not found", "reason": "notFound"}],
		"message": "The resource '%[1]s' was not found"}}`
	noBucket = `{"error": {"code": 404, "errors": [{"domain": "global", "message": "The specified bucket does not exist.", "reason": "notFound"}],
		"message": "The specified bucket does not exist."}}`
	// noRepository has the form of the others.
	noRepository = `{"error": {"code": 404, "message": "Requested entity was not found.", "status": "NOT_FOUND"}}`
)

// active is the project of the tests.
const active = `{"projectId": "my-project", "projectNumber": "210987654321", "lifecycleState": "ACTIVE"}`

// amount is the limit and the use of a quota.
type amount struct{ limit, usage float64 }

// regionQuotas are the quotas of the tests' region, and projectQuotas the quotas of their project.
var (
	regionQuotas = map[string]amount{
		"CPUS": {72, 4}, "DISKS_TOTAL_GB": {40960, 0}, "SSD_TOTAL_GB": {2048, 0}, "INSTANCES": {720, 1}, "IN_USE_ADDRESSES": {69, 0},
		"PREEMPTIBLE_CPUS": {0, 0}, "PREEMPTIBLE_NVIDIA_L4_GPUS": {0, 0}, "NVIDIA_L4_GPUS": {1, 0}, "NVIDIA_T4_GPUS": {1, 0},
	}
	projectQuotas = map[string]amount{"CPUS_ALL_REGIONS": {100, 4}, "GPUS_ALL_REGIONS": {2, 0}}
)

// withQuotas returns a region or a project with quotas.
func withQuotas(t *testing.T, quotas map[string]amount) string {
	t.Helper()
	list := []map[string]any{}
	for metric, of := range quotas {
		list = append(list, map[string]any{"metric": metric, "limit": of.limit, "usage": of.usage})
	}
	return string(testkit.Must(json.Marshal(map[string]any{"quotas": list}))(t))
}

// regionWith returns the region, with another quota for the GPUs of the tests.
func regionWith(t *testing.T, gpus amount) string {
	t.Helper()
	quotas := maps.Clone(regionQuotas)
	quotas["NVIDIA_L4_GPUS"] = gpus
	return withQuotas(t, quotas)
}
