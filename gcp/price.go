package gcp

import (
	"slices"
	"strings"
)

// The currency and the date of list prices.
const (
	PriceCurrency = "USD"
	PriceDate     = "2025-03-06"
)

// ListPrice returns Google's list price of an hour of a machine with its GPUs, in PriceCurrency at
// PriceDate, if it is known for the region.
func (m Machine) ListPrice(region string, spot bool) (float64, bool) {
	if !slices.Contains(tables().PriceRegions, region) {
		return 0, false
	}
	for prefix, family := range tables().MachinePrices {
		if !strings.HasPrefix(m.Type, prefix) {
			continue
		}
		price := family.of(spot) / float64(family.CPUs) * float64(m.CPUs)
		if m.GPUs > 0 && !family.WithGPUs {
			perGPU := tables().GPUPrices[m.GPUType].of(spot)
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
		return r.Spot
	}
	return r.OnDemand
}
