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
