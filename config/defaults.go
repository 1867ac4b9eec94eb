package config

// setDefaults fills in what the stack file leaves open. An empty image stays
// empty: it stands for the role's own.
func (s *Stack) setDefaults() {
	s.resolve()
	for i := range s.Storage {
		s.Storage[i].Resolve(s.volumePlace())
	}
	s.NATS.Resolve(s.SystemPoolName())
	for i := range s.Jobs {
		s.Jobs[i].Resolve()
	}
	s.dropOwnNATS()
	if s.PEDL != nil {
		s.PEDL.setDefaults(s)
	}
}

// setDefault sets a field that has its zero value.
func setDefault[T comparable](field *T, value T) {
	var unset T
	if *field == unset {
		*field = value
	}
}
