package config

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/input"
	"persia/gcp"
)

// MachineTypesKey is the key of the stack file that describes machine types.
const MachineTypesKey = "persia:machineTypes"

// Machines are the machine types that a stack file describes, by name.
type Machines map[string]MachineType

// MachineType describes a machine type. Set `cpus`, `memory` and `gpu` only for types that the program does not know.
type MachineType struct {
	// CPUs is the number of vCPUs.
	CPUs int `json:"cpus,omitempty" max:"4096"`
	// Memory is a quantity like 240Gi.
	Memory string `json:"memory,omitempty" form:"bytes"`
	// GPU are the GPUs that the machine comes with.
	GPU *MachineGPU `json:"gpu,omitempty"`
	// HourlyPrice is the price of a machine with its GPUs, in USD an hour. Default: Google's list price, if known.
	HourlyPrice float64 `json:"hourlyPrice,omitempty" min:"0" max:"1000000"`
	// SpotHourlyPrice is the same for a spot machine.
	SpotHourlyPrice float64 `json:"spotHourlyPrice,omitempty" min:"0" max:"1000000"`
	// HoursBetweenFailures is the expected time until a machine fails. Default: never.
	HoursBetweenFailures float64 `json:"hoursBetweenFailures,omitempty" min:"1"`
	// SpotHoursBetweenFailures is the same until a spot machine fails or is reclaimed.
	SpotHoursBetweenFailures float64 `json:"spotHoursBetweenFailures,omitempty" min:"1"`
}

// MachineGPU describes the GPUs that a machine comes with.
type MachineGPU struct {
	// Type is Compute Engine's name, like nvidia-b200.
	Type string `json:"type"`
	// Count is the number of GPUs per machine.
	Count int `json:"count" min:"1" max:"64"`
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

// Machine returns the machine that a stack file describes.
func (t MachineType) Machine(name string) gcp.Machine {
	memory, _ := input.ParseQuantity(t.Memory) // the rules report a wrong one
	m := gcp.Machine{Type: name, CPUs: t.CPUs, MemoryBytes: memory.Value()}
	if t.GPU != nil {
		m = m.WithGPUs(t.GPU.Type, t.GPU.Count)
	}
	return m
}

// find looks up a machine type, and reports an unknown one.
func (t Machines) find(p *input.Problems, path *field.Path, machineType string) (gcp.Machine, bool) {
	m, ok := t.lookup(machineType)
	near := input.Nearest(machineType, append(gcp.MachineTypes(), slices.Sorted(maps.Keys(t))...))
	switch {
	case ok || !p.Decoded(field.NewPath(MachineTypesKey)):
	case machineType == "": // reported already
	case len(near) > 0:
		p.Choose(p.Invalid(path, machineType, "is not a known machine type, nor described in %s", MachineTypesKey), path, near)
	default:
		p.Invalid(path, machineType, "is not a known machine type; write a predefined or custom one that is not shared-core, "+
			"as n2-standard-CPUS or n2-custom-CPUS-MEGABYTES, or describe it in %s", MachineTypesKey)
	}
	return m, ok
}

// check checks all descriptions.
func (t Machines) check(p *input.Problems, list *field.Path) {
	for name, t := range t {
		path := list.Key(name)
		switch _, known := gcp.Lookup(name); {
		case known && (t.CPUs != 0 || t.Memory != "" || t.GPU != nil):
			p.Forbidden(path, "the program knows the shape of %s; remove it, or only its cpus, memory, and gpu", name)
		case !known && t.CPUs == 0:
			p.Required(path.Child("cpus"), "write the number of vCPUs, because the type is not in the catalogue")
		case !known && t.Memory == "":
			p.Required(path.Child("memory"), "write the memory, like 240Gi, because the type is not in the catalogue")
		}
	}
}

// Installer names the installer of the NVIDIA driver on the nodes.
type Installer string

// The installers. GKE's own and a DaemonSet exclude each other, so a stack has exactly one for all of its GPU pools.
const (
	InstallerManaged Installer = "managed"
	InstallerUbuntu  Installer = "ubuntu-daemonset"
)

// NVIDIADriver selects how GPU nodes get their driver.
type NVIDIADriver struct {
	// Installer is managed, by GKE, or ubuntu-daemonset, NVIDIA's installer for nodes with Ubuntu.
	Installer Installer `json:"installer,omitempty" default:"managed" enum:"managed,ubuntu-daemonset"`
	// Version is DEFAULT (the default) or LATEST with managed, and a driver version like
	// 550.90.12 with ubuntu-daemonset.
	Version string `json:"version,omitempty"`
}

// ubuntuDrivers are the versions that the installer for Ubuntu supports
// (GoogleCloudPlatform/container-engine-accelerators, nvidia-driver-installer/ubuntu, daemonset-preloaded-R*.yaml),
// without 525.105.17, which GKE 1.31 and later cannot load.
var ubuntuDrivers = []string{"535.161.07", "550.90.12", "570.124.06", "580.65.06"}

// resolve fills in the version of the driver.
func (d *NVIDIADriver) resolve() {
	if d.Installer == InstallerManaged && d.Version == "" {
		d.Version = "DEFAULT"
	}
}
