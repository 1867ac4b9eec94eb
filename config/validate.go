package config

import "persia/config/check"

// validator checks a stack whose defaults are set. Each rule says what is allowed
// and what to do.
type validator struct {
	*check.Problems
	stack *Stack
}

func (v *validator) validate() {
	v.project()
	v.cluster()
	v.network()
	v.machineTypes()
	v.nodePools()
	v.nvidiaDriver()
	v.volumes()
	v.nats()
	v.jobs()
	v.serviceNames()
	if v.stack.PEDL != nil {
		v.pedl()
	}
	if v.None() {
		v.capacity()
	}
}
