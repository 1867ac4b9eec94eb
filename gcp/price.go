package gcp

import (
	"slices"
	"strings"
)

// Where list prices come from: pricing.yml of
// https://github.com/Cyclenerd/google-cloud-pricing-cost-calculator at
// 0166a59ebba7c36f2cc8c931d9f258dcebc44776, which its author generated from Google's Cloud
// Billing Catalog API.
const (
	PriceCurrency = "USD"
	PriceDate     = "2025-03-06"
)

// priceRegions are the regions with these prices, which are the same in all three.
var priceRegions = []string{"us-central1", "us-east1", "us-west1"}

// rate is a price of an hour, in PriceCurrency: on demand, and of spot capacity. A zero is unknown.
type rate struct{ onDemand, spot float64 }

// pricePerCPU are prices of a vCPU with the memory that it has in a family of machine types, by
// what their names begin with. Google bills vCPUs and memory by amount, so every type of the
// family has the same. Each number is the price of one type, divided by its vCPUs.
var pricePerCPU = map[string]rate{
	"c2-standard-":  {3.13212 / 60, 0.52908 / 60},
	"e2-standard-":  {0.26804568 / 8, 0.107168 / 8},
	"g2-standard-":  {(4.001665148 - 4*0.706832255) / (48 - 16), (1.574384 - 4*0.279932) / (48 - 16)},
	"m2-ultramem-":  {84.223872 / 416, 0},
	"n1-standard-":  {0.759996 / 16, 0.20804 / 16},
	"n2-highmem-":   {4.192448 / 64, 1.293824 / 64},
	"n2-standard-":  {0.776944 / 16, 0.239808 / 16},
	"a2-highgpu-1g": {3.673385 / 12, 1.293355 / 12},
	"a2-highgpu-2g": {7.34677 / 24, 2.58671 / 24},
	"a2-highgpu-4g": {4 * 3.673385 / 48, 4 * 1.293355 / 48},
	"a2-highgpu-8g": {8 * 3.673385 / 96, 8 * 1.293355 / 96},
}

// pricePerGPU are prices of GPUs that the prices per vCPU do not include. Machines of A2 include
// theirs. A g2-standard-4 has one L4, and a g2-standard-48 four. The prices of the others on demand
// are from https://github.com/skypilot-org/skypilot-catalog, which has the same before PriceDate
// (catalogs/v4/gcp/vms.csv at a5b8d9a9057506c90722b6937fd41b5759145924) and after it
// (catalogs/v8/gcp/vms.csv at 006059e0f18acb1341e22a27751e9f80df6ba92f). Their spot prices have
// changed between the two.
var pricePerGPU = map[string]rate{
	"nvidia-tesla-p100": {1.46, 0},
	"nvidia-tesla-t4":   {0.35, 0},
	"nvidia-tesla-v100": {2.48, 0},
	"nvidia-l4":         {0.706832255 - 4*(4.001665148-4*0.706832255)/32, 0.279932 - 4*(1.574384-4*0.279932)/32},
}

// ListPrice returns Google's list price of an hour of a machine with its GPUs, in PriceCurrency at
// PriceDate, if it is known for the region.
func (m Machine) ListPrice(region string, spot bool) (float64, bool) {
	if !slices.Contains(priceRegions, region) {
		return 0, false
	}
	for prefix, perCPU := range pricePerCPU {
		if !strings.HasPrefix(m.Type, prefix) {
			continue
		}
		price := perCPU.of(spot) * float64(m.CPUs)
		if m.GPUs > 0 && m.Family() != "a2" {
			perGPU := pricePerGPU[m.GPUType].of(spot)
			if perGPU == 0 {
				return 0, false
			}
			price += perGPU * float64(m.GPUs)
		}
		return price, price > 0
	}
	return 0, false
}

func (r rate) of(spot bool) float64 {
	if spot {
		return r.spot
	}
	return r.onDemand
}
