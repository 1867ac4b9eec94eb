// Package persia runs PERSIA training jobs. A training job is four roles, and every role
// is a StatefulSet made by one builder from one [role] value: what it runs, in
// which image, on which port.
package persia
