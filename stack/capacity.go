package stack

import (
	"math"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"

	"persia/capacity"
)

// lastHourlyCost returns the cost in the outputs of the last update, or nil if there is none.
func lastHourlyCost(outputs map[string]any) *float64 {
	last, _ := outputs["capacity"].(map[string]any)
	cost, ok := last["hourlyCost"].(float64)
	if !ok {
		return nil
	}
	return &cost
}

// capacityOutput returns the plan for other programs. CPU is in vCPUs, memory in bytes.
func capacityOutput(plan capacity.Plan) pulumi.Map {
	output := pulumi.Map{
		"pools":       poolOutputs(plan.Pools),
		"nodes":       pulumi.Int(plan.Nodes),
		"pods":        pulumi.Int(plan.Pods),
		"used":        resourcesOutput(plan.Used),
		"allocatable": resourcesOutput(plan.Allocatable),
		"ranges":      rangeOutputs(plan.Ranges),
		"quotas":      quotaOutputs(plan.Quotas),
	}
	if plan.HourlyCost != nil {
		output["hourlyCost"] = pulumi.Float64(*plan.HourlyCost)
	}
	if len(plan.Trainings) > 0 {
		output["checkpoints"] = trainingOutputs(plan.Trainings)
	}
	return output
}

func trainingOutputs(trainings []capacity.Training) pulumi.Array {
	outputs := pulumi.Array{}
	for _, training := range trainings {
		best := training.BestInterval()
		output := pulumi.Map{
			"job":                  pulumi.String(training.Job),
			"hoursBetweenFailures": pulumi.Float64(training.BetweenFailures),
			"intervalSeconds":      pulumi.Float64(math.Round(best * 3600)),
			"usefulShare":          pulumi.Float64(training.UsefulShare(best)),
		}
		if cost := training.UsefulHourCost(); cost != nil {
			output["usefulHourCost"] = pulumi.Float64(*cost)
		}
		outputs = append(outputs, output)
	}
	return outputs
}

func poolOutputs(pools []capacity.PoolPlan) pulumi.Array {
	outputs := pulumi.Array{}
	for _, pool := range pools {
		output := pulumi.Map{
			"pool":         pulumi.String(pool.Name),
			"machineType":  pulumi.String(pool.Machine.Type),
			"nodesNeeded":  pulumi.Int(pool.Needed),
			"nodesAllowed": pulumi.Int(pool.Nodes),
			"pods":         podOutputs(pool),
			"used":         resourcesOutput(pool.Used),
			"allocatable":  resourcesOutput(pool.Node.Times(pool.Nodes)),
			"stranded":     resourcesOutput(pool.Stranded),
			"boundBy":      pulumi.String(pool.BoundBy),
		}
		if pool.HourlyCost != nil {
			output["hourlyCost"] = pulumi.Float64(*pool.HourlyCost)
		}
		outputs = append(outputs, output)
	}
	return outputs
}

func podOutputs(pool capacity.PoolPlan) pulumi.Array {
	outputs := pulumi.Array{}
	for _, pods := range pool.Pods {
		outputs = append(outputs, pulumi.Map{
			"name":    pulumi.String(pods.Name),
			"count":   pulumi.Int(pods.Count),
			"perNode": pulumi.Int(pool.Holds(pods)),
		})
	}
	return outputs
}

func resourcesOutput(r capacity.Resources) pulumi.Map {
	return pulumi.Map{
		"cpu":    pulumi.Float64(float64(r.MilliCPU) / 1000),
		"memory": pulumi.Float64(float64(r.MemoryBytes)),
		"gpus":   pulumi.Int(int(r.GPUs)),
	}
}

func rangeOutputs(ranges []capacity.Range) pulumi.Array {
	outputs := pulumi.Array{}
	for _, r := range ranges {
		outputs = append(outputs, pulumi.Map{
			"name":   pulumi.String(r.Name),
			"cidr":   pulumi.String(r.CIDR),
			"needed": pulumi.Int(r.Needed),
			"size":   pulumi.Int(r.Size),
		})
	}
	return outputs
}

func quotaOutputs(quotas []capacity.Quota) pulumi.Array {
	outputs := pulumi.Array{}
	for _, quota := range quotas {
		outputs = append(outputs, pulumi.Map{
			"name":   pulumi.String(quota.Name),
			"region": pulumi.String(quota.Region),
			"amount": pulumi.Int(int(quota.Amount)),
		})
	}
	return outputs
}
