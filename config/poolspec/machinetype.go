package poolspec

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/capacity"
	"persia/config/check"
	"persia/gcp"
)

// MachineTypesKey is the key of the stack file that describes machine types.
const MachineTypesKey = "persia:machineTypes"

// Machines are the machine types that a stack file describes, by name.
type Machines map[string]MachineType

// MachineType describes what the program does not know about a machine type. Set its
// shape, that is CPUs, Memory and GPU, only for types that are not in the program's
// catalogue.
type MachineType struct {
	// CPUs is the number of vCPUs.
	CPUs int `json:"cpus,omitempty"`
	// Memory is a quantity like 240Gi.
	Memory string `json:"memory,omitempty" form:"quantity"`
	// GPU describes the GPUs that the machine comes with.
	GPU *MachineGPU `json:"gpu,omitempty"`
	// HourlyPrice is your hourly price of a machine, including its GPUs, in US dollars.
	// Default: Google's list price, if the program knows it.
	HourlyPrice float64 `json:"hourlyPrice,omitempty"`
	// SpotHourlyPrice is the same for a spot machine.
	SpotHourlyPrice float64 `json:"spotHourlyPrice,omitempty"`
	// HoursBetweenFailures is the expected time until a machine fails, for the interval of
	// checkpoints. Default: never.
	HoursBetweenFailures float64 `json:"hoursBetweenFailures,omitempty"`
	// SpotHoursBetweenFailures is the same until a spot machine fails or is reclaimed.
	SpotHoursBetweenFailures float64 `json:"spotHoursBetweenFailures,omitempty"`
}

// MachineGPU describes the GPUs that a machine comes with.
type MachineGPU struct {
	// Type is Compute Engine's name for the accelerator, like nvidia-b200.
	Type string `json:"type"`
	// Count is the number of GPUs per machine.
	Count int `json:"count"`
}

// lookup returns a machine type from the program's catalogue or the stack file.
func (t Machines) lookup(name string) (gcp.Machine, bool) {
	if m, ok := gcp.Lookup(name); ok {
		return m, true
	}
	described, ok := t[name]
	if !ok || described.CPUs == 0 {
		return gcp.Machine{}, false
	}
	return described.Machine(name), true
}

// Machine returns the machine that a stack file describes. CheckAll reports problems of the
// description.
func (t MachineType) Machine(name string) gcp.Machine {
	memory, _ := check.ParseQuantity(t.Memory)
	m := gcp.Machine{Type: name, CPUs: t.CPUs, MemoryBytes: memory.Value()}
	if t.GPU != nil {
		m = m.WithGPUs(t.GPU.Type, t.GPU.Count)
	}
	return m
}

// names returns the names of all known machine types.
func (t Machines) names() []string {
	names := gcp.MachineTypes()
	for name := range t {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Check looks up a machine type, and reports an unknown one.
func (t Machines) Check(p *check.Problems, path *field.Path, machineType string) (gcp.Machine, bool) {
	m, ok := t.lookup(machineType)
	switch near := check.Nearest(machineType, t.names()); {
	case !p.Decoded(field.NewPath(MachineTypesKey)):
	case ok:
	case machineType == "":
		p.Required(path, "write a machine type, like n2-standard-8")
	case len(near) > 0:
		p.Invalid(path, machineType, "is not a known machine type; did you mean %s? Otherwise, describe it in %s", check.Or(near), MachineTypesKey)
	default:
		p.Invalid(path, machineType, "is not a known machine type; write a predefined one that is not shared-core, like n2-standard-8 or a2-highgpu-8g, or describe it in %s", MachineTypesKey)
	}
	return m, ok
}

// CheckAll checks all descriptions. The path is of the object that contains them.
func (t Machines) CheckAll(p *check.Problems, path *field.Path) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		t[name].check(p, path.Key(name), name)
	}
}

// mostPrice exceeds the hourly price of any machine in dollars.
const mostPrice = 100_000

// mostHours exceeds the lifetime of any machine.
const mostHours = 1_000_000

func (t MachineType) check(p *check.Problems, path *field.Path, name string) {
	_, known := gcp.Lookup(name)
	switch shaped := t.CPUs != 0 || t.Memory != "" || t.GPU != nil; {
	case known && shaped:
		p.Forbidden(path, "%s is in the catalogue; remove cpus, memory, and gpu", name)
	case !known:
		t.checkShape(p, path, name)
	}
	for _, number := range []struct {
		field       string
		value, most float64
	}{
		{"hourlyPrice", t.HourlyPrice, mostPrice},
		{"spotHourlyPrice", t.SpotHourlyPrice, mostPrice},
		{"hoursBetweenFailures", t.HoursBetweenFailures, mostHours},
		{"spotHoursBetweenFailures", t.SpotHoursBetweenFailures, mostHours},
	} {
		if number.value < 0 || number.value > number.most {
			p.Invalid(path.Child(number.field), number.value, "must be more than 0 and at most %.0f; omit it if you do not know it", number.most)
		}
	}
	if t.HourlyPrice > 0 && t.SpotHourlyPrice > t.HourlyPrice {
		p.Warn(path.Child("spotHourlyPrice"), "%g is more than hourlyPrice, %g, but spot machines cost less; exchange them", t.SpotHourlyPrice, t.HourlyPrice)
	}
}

// checkShape checks the shape of a machine type that is not in the catalogue.
func (t MachineType) checkShape(p *check.Problems, path *field.Path, name string) {
	if t.CPUs == 0 {
		p.Required(path.Child("cpus"), "write the number of vCPUs, because the type is not in the catalogue")
	} else {
		check.Range(p, path.Child("cpus"), t.CPUs, 1, 4096, "")
	}
	switch memory, err := check.ParseQuantity(t.Memory); {
	case t.Memory == "":
		p.Required(path.Child("memory"), "write the memory, like 240Gi, because the type is not in the catalogue")
	case err != nil:
		p.Invalid(path.Child("memory"), t.Memory, "%s", err)
	case memory.Value() < capacity.GiB || memory.Value() > 1<<50:
		p.Invalid(path.Child("memory"), t.Memory, "must be from 1Gi to 1Pi; memory is in bytes, so write a unit")
	}
	t.checkCustom(p, path, name)
	if t.GPU == nil {
		return
	}
	if t.GPU.Type == "" {
		p.Required(path.Child("gpu", "type"), "write the accelerator type, like nvidia-b200")
	}
	check.Range(p, path.Child("gpu", "count"), t.GPU.Count, 1, 64, "")
}

// checkCustom checks a custom machine type by the rules of Compute Engine, and against its name.
func (t MachineType) checkCustom(p *check.Problems, path *field.Path, name string) {
	custom, is := gcp.ParseCustom(name)
	memory, _ := check.ParseQuantity(t.Memory)
	switch err := gcp.CheckCustom(name); {
	case err != nil:
		p.Forbidden(path, "%s (Compute Engine, \"Create a VM with a custom machine type\"); write another type", err)
	case is && (custom.CPUs != t.CPUs || custom.MemoryMiB != memory.Value()/capacity.MiB):
		p.Forbidden(path, "is a custom machine of %d vCPUs and %dMi by its name, but has %d vCPUs and %s here; write cpus: %d and memory: %dMi, or correct the name", custom.CPUs, custom.MemoryMiB, t.CPUs, t.Memory, custom.CPUs, custom.MemoryMiB)
	}
}
