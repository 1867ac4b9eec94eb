package kube

import (
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
)

func TestLater(t *testing.T) {
	address, driver := pulumi.String("10.0.0.2"), pulumi.String("d")
	inputs := pulumi.Map{"spec": pulumi.Map{"csi": pulumi.Map{"driver": driver}}}
	Later{"spec.csi.volumeAttributes.ip": address, "spec.csi.readOnly": pulumi.Bool(true)}.into(inputs)
	assert.Equal(t, pulumi.Map{"spec": pulumi.Map{"csi": pulumi.Map{
		"driver":           driver,
		"readOnly":         pulumi.Bool(true),
		"volumeAttributes": pulumi.Map{"ip": address},
	}}}, inputs)
}

// TestLaterKeys checks keys with a domain, which are names of their own.
func TestLaterKeys(t *testing.T) {
	version := pulumi.String("7")
	for path, want := range map[string]pulumi.Map{
		"metadata.annotations.version":                  {"metadata": pulumi.Map{"annotations": pulumi.Map{"version": version}}},
		"metadata.annotations[example.com/version]":     {"metadata": pulumi.Map{"annotations": pulumi.Map{"example.com/version": version}}},
		"data[config.yml]":                              {"data": pulumi.Map{"config.yml": version}},
		"spec.selector[example.com/a.b].matches[c.d].e": {"spec": pulumi.Map{"selector": pulumi.Map{"example.com/a.b": pulumi.Map{"matches": pulumi.Map{"c.d": pulumi.Map{"e": version}}}}}},
	} {
		t.Run(path, func(t *testing.T) {
			inputs := pulumi.Map{}
			Later{path: version}.into(inputs)
			assert.Equal(t, want, inputs)
		})
	}
}
