package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"persia/capacity"
)

// sized are the parts of a stack file that have the servers of a model.
const sized = `persia:nodePools:
  - name: embedding-ps
    machineType: %s
    nodes: %d
    taints: [{key: persia.com/dedicated, value: embedding-ps, effect: NoSchedule}]
persia:jobs:
  - name: my-job
    # In global_config.yml:
    #   embedding_parameter_server_config: {capacity: %d, num_hashmap_internal_shards: %d}
    embeddingParameterServer:
      replicas: %d
      nodePool: embedding-ps
      resources: {limits: {cpu: "%d", memory: %dGi}}
# %s
`

func sizeCommand() *cobra.Command {
	var model capacity.Model
	optimizers := strings.Join(slices.Sorted(maps.Keys(capacity.Optimizers)), ", ")
	command := &cobra.Command{
		Use:     "size",
		Short:   "Print the servers, machines, and cost for a number of parameters",
		Example: "  bin/persia size --parameters 1e12 --optimizer adam --dim 16",
		Long: `Size prints the node pool and the embedding parameter servers for a model, as parts of a stack file, and below
them all servers' memory, the size of a checkpoint, and the cost. It chooses the machines that cost least at list prices
in us-central1, with 5% of the capacity and 10% of the memory free. In several zones, nodes must be a multiple of them.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			switch {
			case !(model.Parameters >= 1e7 && model.Parameters <= 1e14): // also not a number
				return fmt.Errorf("--parameters %g: write a number from 1e7 to 1e14", model.Parameters)
			case model.Dim < 1 || model.Dim > 1024:
				return fmt.Errorf("--dim %d: write a number from 1 to 1024, as in embedding_config.yml", model.Dim)
			case capacity.Optimizers[model.Optimizer] == 0:
				return fmt.Errorf("--optimizer %s: write one of %s", model.Optimizer, optimizers)
			}
			s := model.Servers("us-central1")
			_, err := fmt.Fprintf(command.OutOrStdout(), sized, s.Machine.Type, s.Nodes, s.Capacity, s.Tables,
				s.Replicas, s.CPUs, s.GiB, strings.ReplaceAll(strings.TrimSpace(s.String()), "\n", "\n# "))
			return fails(err)
		},
	}
	command.Flags().Float64Var(&model.Parameters, "parameters", 0, "the `NUMBER` of parameters, without the optimizer's state")
	command.Flags().Int64Var(&model.Dim, "dim", 0, "the `DIMENSION` of an embedding, or the average if features differ")
	command.Flags().StringVar(&model.Optimizer, "optimizer", "adam", "the `OPTIMIZER` of the embeddings: "+optimizers)
	return command
}
