package tests

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"persia/internal/programtest"
	"persia/internal/testkit"

	"github.com/stretchr/testify/assert"
)

// TestNothingUnwrittenIsSent looks at every Kubernetes object of every stack file for
// the zero values of Go's types. The API server fills such fields in, and the official
// provider, which compares what it sent with what the server has, then updates the
// object with every `pulumi up`.
func TestNothingUnwrittenIsSent(t *testing.T) {
	for _, path := range programtest.StackFiles(t) {
		t.Run(path, func(t *testing.T) {
			recorder := programtest.DeployFile(t, path)
			assert.Empty(t, unwritten(recorder))
		})
	}
}

// TestZeroValuesAreFound checks that the test above finds zero values.
func TestZeroValuesAreFound(t *testing.T) {
	value := map[string]any{
		"metadata": map[string]any{"creationTimestamp": nil, "name": "n"},
		"spec": map[string]any{
			"ports":       []any{map[string]any{"port": 8888.0, "targetPort": 0.0}},
			"strategy":    map[string]any{},
			"podSelector": map[string]any{},
			"volumes":     []any{map[string]any{"emptyDir": map[string]any{}}},
			"serviceName": "",
			"hostNetwork": false,
			"replicas":    0.0,
			"taints":      []any{},
		},
	}
	assert.ElementsMatch(t, []string{
		"metadata.creationTimestamp", "spec.ports[0].targetPort", "spec.strategy", "spec.serviceName", "spec.taints",
	}, zeroes("", value))
}

// unwritten lists the fields of all Kubernetes objects with a zero value.
func unwritten(recorder *testkit.Recorder) []string {
	var found []string
	for _, registration := range recorder.Resources {
		if strings.HasPrefix(registration.TypeToken, "kubernetes:") {
			for _, path := range zeroes("", registration.Inputs.Mappable()) {
				if ofDefinition.MatchString(path) {
					continue
				}
				found = append(found, registration.TypeToken+" "+registration.Name+": "+path)
			}
		}
	}
	return found
}

// ofDefinition matches what a definition of a kind says with zero values: that objects have a
// status, and the minimum or the default of a field.
var ofDefinition = regexp.MustCompile(`^spec\.versions\[\d+\]\.(subresources\.status$|schema\.openAPIV3Schema\.)`)

// written are fields whose zero value says something: no replica, no pod more or less,
// all pods, a directory that begins empty, no class of storage, the group without a
// name, an empty variable, no restart.
var written = map[string]bool{
	"replicas": true, "minAvailable": true, "maxUnavailable": true, "maxSurge": true, "podSelector": true,
	"emptyDir": true, "storageClassName": true, "apiGroups": true, "value": true, "maxRestarts": true,
}

// zeroes lists the paths, in a value and below it, of null, 0, "" and what is empty.
// It leaves false out: Go's types print no bool that is not written, unless it is
// a required field.
func zeroes(path string, value any) []string {
	name, _, _ := strings.Cut(path[strings.LastIndex(path, ".")+1:], "[")
	switch value := value.(type) {
	case nil:
		return []string{path}
	case map[string]any:
		if len(value) == 0 && !written[name] {
			return []string{path}
		}
		var found []string
		for field, inner := range value {
			found = append(found, zeroes(strings.TrimPrefix(path+"."+field, "."), inner)...)
		}
		return found
	case []any:
		if len(value) == 0 {
			return []string{path}
		}
		var found []string
		for i, inner := range value {
			found = append(found, zeroes(fmt.Sprintf("%s[%d]", path, i), inner)...)
		}
		return found
	case string:
		if value == "" && !written[name] {
			return []string{path}
		}
	case float64:
		if value == 0 && !written[name] {
			return []string{path}
		}
	}
	return nil
}
