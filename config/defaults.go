package config

import (
	corev1 "k8s.io/api/core/v1"
)

// setDefaults fills in what the stack file leaves open. An empty image stays
// empty: it stands for the role's own.
func (s *Stack) setDefaults() {
	s.resolve()
	for i := range s.Storage {
		s.Storage[i].Resolve(s.volumePlace())
	}
	s.NATS.Resolve(s.SystemPoolName())
	for i := range s.Jobs {
		s.Jobs[i].setDefaults()
	}
	s.dropOwnNATS()
	if s.PEDL != nil {
		s.PEDL.setDefaults(s)
	}
}

func (j *Job) setDefaults() {
	setDefault(&j.RunID, "1")
	setDefault(&j.Engine, EngineStatefulSet)
	setDefault(&j.EnableMetrics, new(true))
	setDefault(&j.LogLevel, "info")
	setDefault(&j.RestartPolicy, corev1.RestartPolicyNever)
	setDefault(&j.ImagePullPolicy, corev1.PullAlways)
	if j.Script != nil {
		setDefault(&j.Script.Python, "/opt/conda/bin/python3")
		setDefault(&j.Script.Port, 23333)
	}
	setDefault(&j.NNWorker.NprocPerNode, max(1, gpusOf(j.NNWorker.Resources)))
	for _, r := range j.roles() {
		setDefault(&r.NodePool, j.NodePool)
		setDefault(&r.TerminationGracePeriodSeconds, 60)
	}
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}
