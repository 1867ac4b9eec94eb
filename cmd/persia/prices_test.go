package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPrices compares with the list prices of whole machines that the program has from another source. The catalog
// has some descriptions and rates of Google's in us-central1.
func TestPrices(t *testing.T) {
	var pages [2]string
	for i, row := range []struct {
		description, usage, region string
		nanos                      int
	}{
		{"N1 Predefined Instance Core running in Americas", "OnDemand", "us-central1", 31611000},
		{"N1 Predefined Instance Ram running in Americas", "OnDemand", "us-central1", 4237000},
		{"A2 Instance Core running in EMEA", "OnDemand", "europe-west4", 1},
		{"A2 Instance Core running in Americas", "OnDemand", "us-central1", 31611000},
		{"A2 Instance Ram running in Americas", "OnDemand", "us-central1", 4237000},
		{"Nvidia Tesla A100 GPU running in Americas", "OnDemand", "us-central1", 2933908000},
		{"Commitment v1: A2 Cpu in Americas for 1 Year", "Commit1Yr", "us-central1", 1},
		{"Spot Preemptible A2 Instance Core running in Americas", "Preemptible", "us-central1", 10000000},
		{"Spot Preemptible A2 Instance Ram running in Americas", "Preemptible", "us-central1", 1000000},
		{"Nvidia Tesla A100 GPU attached to Spot Preemptible VMs running in Americas", "Preemptible", "us-central1", 1000000000},
	} {
		pages[i%2] += fmt.Sprintf(`,{"description": %q, "category": {"usageType": %q}, "serviceRegions": [%q],
			"pricingInfo": [{"pricingExpression": {"tieredRates": [{"unitPrice": {"units": "%d", "nanos": %d}}]}}]}`,
			row.description, row.usage, row.region, row.nanos/1e9, row.nanos%1e9)
	}
	t.Chdir(t.TempDir())
	stack := `config:
  persia:project: my-project
  persia:cluster: {name: c, region: us-central1, zones: [us-central1-a], systemPool: {machineType: n1-standard-16, nodes: 2}, authorizedNetworks: []}
  persia:nodePools:
    - {name: gpu, machineType: a2-highgpu-1g, nodes: 1}
    - {name: other, machineType: n2-standard-16, nodes: 1}
  persia:jobs: []
`
	require.NoError(t, os.WriteFile("Pulumi.dev.yaml", []byte(stack), 0o600))
	for name, test := range map[string]struct {
		catalog, want string
		code          int
	}{
		"pages": {`{"skus": [` + pages[0][1:] + `]}` + "\n" + `{"skus": [` + pages[1][1:] + `]}`, `persia:machineTypes:
  a2-highgpu-1g: {hourlyPrice: 3.6734, spotHourlyPrice: 1.2050}
  n1-standard-16: {hourlyPrice: 0.7600}
  # n2-standard-16: the catalog has no OnDemand price of "N2 Instance Core" in us-central1
`, 0},
		"an answer without prices": {`{"error": {"code": 401}}`, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "skus.json")
			require.NoError(t, os.WriteFile(file, []byte(test.catalog), 0o600))
			var out, errs bytes.Buffer
			code := run(t.Context(), []string{"prices", "--stack", "dev", file}, &out, &errs)
			assert.Equal(t, test.code, code, errs.String())
			assert.Equal(t, test.want, out.String())
			assert.Equal(t, code != 0, strings.Contains(errs.String(), "download the catalog"), errs.String())
		})
	}
}
