package stack

import (
	"math"

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

// object is an object of an output.
type object map[string]any

// with adds a value unless it is unknown.
func (o object) with(name string, value *float64) object {
	if value != nil {
		o[name] = *value
	}
	return o
}

// objects describes each element of a list.
func objects[T any](list []T, describe func(T) object) []object {
	all := []object{}
	for _, element := range list {
		all = append(all, describe(element))
	}
	return all
}

// capacityOutput returns the plan for other programs. CPU is in vCPUs, memory in bytes.
func capacityOutput(plan capacity.Plan) object {
	output := object{
		"pools":       objects(plan.Pools, poolOutput),
		"nodes":       plan.Nodes,
		"pods":        plan.Pods,
		"used":        resourcesOutput(plan.Used),
		"allocatable": resourcesOutput(plan.Allocatable),
		"ranges": objects(plan.Ranges, func(r capacity.Range) object {
			return object{"name": r.Name, "cidr": r.CIDR, "needed": r.Needed, "size": r.Size}
		}),
		"quotas": objects(plan.Quotas, func(q capacity.Quota) object {
			return object{"name": q.Name, "region": q.Region, "amount": q.Amount}
		}),
	}
	if len(plan.Trainings) > 0 {
		output["checkpoints"] = objects(plan.Trainings, trainingOutput)
	}
	return output.with("hourlyCost", plan.HourlyCost)
}

func trainingOutput(training capacity.Training) object {
	best := training.BestInterval()
	return object{
		"job":                  training.Job,
		"hoursBetweenFailures": training.BetweenFailures,
		"intervalSeconds":      math.Round(best * 3600),
		"usefulShare":          training.UsefulShare(best),
	}.with("usefulHourCost", training.UsefulHourCost())
}

func poolOutput(pool capacity.PoolPlan) object {
	return object{
		"pool":         pool.Name,
		"machineType":  pool.Machine.Type,
		"nodesNeeded":  pool.Needed,
		"nodesAllowed": pool.Nodes,
		"pods": objects(pool.Pods, func(p capacity.Pods) object {
			return object{"name": p.Name, "count": p.Count, "perNode": pool.Holds(p)}
		}),
		"used":        resourcesOutput(pool.Used),
		"allocatable": resourcesOutput(pool.Node.Times(pool.Nodes)),
		"stranded":    resourcesOutput(pool.Stranded),
		"boundBy":     pool.BoundBy,
	}.with("hourlyCost", pool.HourlyCost)
}

func resourcesOutput(r capacity.Resources) object {
	return object{"cpu": float64(r.MilliCPU) / 1000, "memory": float64(r.MemoryBytes), "gpus": r.GPUs}
}
