// Package persia runs PERSIA training jobs. A training job has four roles. One builder turns each [role] into a
// StatefulSet, or a part of a JobSet.
package persia
