package config

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/gcp"
)

// machineType finds a machine type in the catalogue, or among those that the
// stack file describes.
func (s *Stack) machineType(name string) (gcp.Machine, bool) {
	if m, ok := gcp.Lookup(name); ok {
		return m, true
	}
	described, ok := s.MachineTypes[name]
	if !ok || described.CPUs == 0 {
		return gcp.Machine{}, false
	}
	return described.Machine(name), true
}

// Machine is the machine that a stack file describes. What is wrong with the
// description is reported by itself.
func (t MachineType) Machine(name string) gcp.Machine {
	memory, _ := resource.ParseQuantity(t.Memory)
	m := gcp.Machine{Type: name, CPUs: t.CPUs, MemoryBytes: memory.Value()}
	if t.GPU != nil {
		m = m.WithGPUs(t.GPU.Type, t.GPU.Count)
	}
	return m
}

// machineTypes are the names of all machine types that a pool can have.
func (s *Stack) machineTypes() []string {
	names := gcp.MachineTypes()
	for name := range s.MachineTypes {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func (v *validator) machineTypes() {
	path := field.NewPath(machineTypesKey)
	for _, name := range slices.Sorted(maps.Keys(v.stack.MachineTypes)) {
		v.describedMachine(path.Key(name), name, v.stack.MachineTypes[name])
	}
}

func (v *validator) describedMachine(path *field.Path, name string, t MachineType) {
	_, known := gcp.Lookup(name)
	switch shaped := t.CPUs != 0 || t.Memory != "" || t.GPU != nil; {
	case known && shaped:
		v.forbidden(path, "the shape of %s is known; remove cpus, memory and gpu", name)
	case !known:
		v.shape(path, t)
	}
	for _, price := range []struct {
		name  string
		value float64
	}{{"hourlyPrice", t.HourlyPrice}, {"spotHourlyPrice", t.SpotHourlyPrice}} {
		if price.value < 0 {
			v.invalid(path.Child(price.name), price.value, "must be more than 0; leave it out if it is not known")
		}
	}
}

// shape checks the shape of a machine type that the catalogue lacks.
func (v *validator) shape(path *field.Path, t MachineType) {
	if t.CPUs == 0 {
		v.required(path.Child("cpus"), "write the number of vCPUs, since the type is not in the catalogue")
	} else if t.CPUs < 1 || t.CPUs > 4096 {
		v.invalid(path.Child("cpus"), t.CPUs, "must be from 1 to 4096")
	}
	switch memory, err := parseQuantity(t.Memory); {
	case t.Memory == "":
		v.required(path.Child("memory"), "write the memory, like 240Gi, since the type is not in the catalogue")
	case err != nil:
		v.invalid(path.Child("memory"), t.Memory, "%s", err)
	case memory.Value() < capacity.GiB || memory.Value() > 1<<50:
		v.invalid(path.Child("memory"), t.Memory, "must be from 1Gi to 1Pi; memory is in bytes, so write a unit")
	}
	if t.GPU == nil {
		return
	}
	if t.GPU.Type == "" {
		v.required(path.Child("gpu", "type"), "write the accelerator's name at Compute Engine, like nvidia-b200")
	}
	if t.GPU.Count < 1 || t.GPU.Count > 64 {
		v.invalid(path.Child("gpu", "count"), t.GPU.Count, "must be from 1 to 64")
	}
}
