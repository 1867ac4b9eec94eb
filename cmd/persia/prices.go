package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"persia/cmd/persia/preflight"
	"persia/config"
	"persia/gcp"
)

// sku is a price in Google's Cloud Billing catalog (Cloud Billing API, services.skus).
type sku struct {
	Description    string
	Category       struct{ UsageType string }
	ServiceRegions []string
	PricingInfo    []struct {
		PricingExpression struct {
			TieredRates []struct {
				UnitPrice struct {
					Units float64 `json:",string"`
					Nanos float64
				}
			}
		}
	}
}

// The descriptions of vCPUs and memory by machine family, and of GPUs by type, where they differ from the name at
// Compute Engine: A2 Instance Core, Nvidia Tesla T4 GPU (cloud.google.com/skus).
var (
	familySKUs = map[string]string{
		"c2": "Compute optimized", "c2d": "C2D AMD Instance", "m3": "M3 Memory-optimized Instance",
		"n1": "N1 Predefined Instance", "n2d": "N2D AMD Instance", "t2d": "T2D AMD Instance",
	}
	gpuSKUs = map[string]string{"nvidia-a100-80gb": "nvidia-tesla-a100-80gb", "nvidia-h100-mega-80gb": "nvidia-h100-80gb-mega"}
)

// readSKUs reads the pages of a catalog, one after the other.
func readSKUs(name string) ([]sku, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var all []sku
	for decoder := json.NewDecoder(file); decoder.More(); {
		var page struct{ SKUs []sku }
		if err := decoder.Decode(&page); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all = append(all, page.SKUs...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: it has no SKUs; download the catalog as --help says", name)
	}
	return all, nil
}

// hourly returns the price of an hour of a machine with its GPUs in a region.
func hourly(skus []sku, m gcp.Machine, region, usage string) (float64, error) {
	family := cmp.Or(familySKUs[m.Family()], strings.ToUpper(m.Family())+" Instance")
	gpu := strings.ReplaceAll(cmp.Or(gpuSKUs[m.GPUType], m.GPUType), "-", " ") + " GPU"
	total := 0.0
	for _, part := range []struct {
		name   string
		amount float64
	}{{family + " Core", float64(m.CPUs)}, {family + " Ram", float64(m.MemoryBytes) / (1 << 30)}, {gpu, float64(m.GPUs)}} {
		if part.amount == 0 {
			continue
		}
		i := slices.IndexFunc(skus, func(s sku) bool {
			name, _, _ := strings.Cut(strings.TrimPrefix(s.Description, "Spot Preemptible "), " running in")
			name, _, _ = strings.Cut(name, " attached to")
			return strings.EqualFold(name, part.name) && s.Category.UsageType == usage && slices.Contains(s.ServiceRegions, region)
		})
		if i < 0 || len(skus[i].PricingInfo) == 0 || len(skus[i].PricingInfo[0].PricingExpression.TieredRates) == 0 {
			return 0, fmt.Errorf("the catalog has no %s price of %q in %s", usage, part.name, region)
		}
		price := skus[i].PricingInfo[0].PricingExpression.TieredRates[0].UnitPrice
		total += part.amount * (price.Units + price.Nanos/1e9)
	}
	return total, nil
}

// printPrices writes the prices of the machines of a stack, as its stack file has them.
func printPrices(out io.Writer, skus []sku, stack *config.Stack, region string) error {
	lines := map[string]string{}
	for _, pool := range stack.Pools() {
		m, _ := pool.Machine(stack.MachineTypes)
		price, err := hourly(skus, m, region, "OnDemand")
		if err != nil {
			lines[m.Type] = fmt.Sprintf("# %s: %v", m.Type, err)
			continue
		}
		spot := ""
		if price, err := hourly(skus, m, region, "Preemptible"); err == nil {
			spot = fmt.Sprintf(", spotHourlyPrice: %.4f", price)
		}
		lines[m.Type] = fmt.Sprintf("%s: {hourlyPrice: %.4f%s}", m.Type, price, spot)
	}
	text := "persia:machineTypes:\n"
	for _, machineType := range slices.Sorted(maps.Keys(lines)) {
		text += "  " + lines[machineType] + "\n"
	}
	_, err := io.WriteString(out, text)
	return err
}

func pricesCommand() *cobra.Command {
	var stack, region string
	command := &cobra.Command{
		Use:     "prices [-s STACK] FILE",
		Short:   "Print today's list prices of a stack's machines",
		Example: "  bin/persia prices -s prod skus.json",
		Long: `Prices reads a file of Google's Cloud Billing catalog, and prints the list prices of the machines of a
stack, with their GPUs, as lines for its stack file. To download the file:

  url=https://cloudbilling.googleapis.com/v1/services/6F81-5844-456A/skus?pageSize=5000; page=
  while curl -s -H "Authorization: Bearer $(gcloud auth print-access-token)" "$url&pageToken=$page" > page.json
  do cat page.json; page=$(jq -r .nextPageToken page.json); [ -n "$page" ] || break; done > skus.json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			cfg, err := preflight.Load(stack)
			if err != nil {
				return err
			}
			skus, err := readSKUs(args[0])
			if err != nil {
				return err
			}
			return fails(printPrices(command.OutOrStdout(), skus, cfg, cmp.Or(region, cfg.Cluster.Region)))
		},
	}
	command.Flags().StringVar(&region, "region", "", "the `REGION` of the nodes; by default that of the cluster")
	return ofStack(command, &stack)
}
