package pod

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// Tolerations checks the tolerations of a pod.
func Tolerations(p *check.Problems, path *field.Path, tolerations []corev1.Toleration) {
	for i, t := range tolerations {
		at := path.Index(i)
		exists := t.Operator == corev1.TolerationOpExists
		check.OneOf(p, at.Child("operator"), cmp.Or(t.Operator, corev1.TolerationOpEqual), corev1.TolerationOpEqual, corev1.TolerationOpExists)
		switch {
		case t.Key != "":
			p.Name(at.Child("key"), t.Key, validation.IsQualifiedName)
		case !exists:
			p.Required(at.Child("key"), "write the key of a taint, or operator: Exists to tolerate all")
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			p.Forbidden(at.Child("tolerationSeconds"), "requires the effect NoExecute; remove it, or set that effect")
		}
		p.InvalidFor(at.Child("value"), t.Value, validation.IsValidLabelValue(t.Value))
		if exists && t.Value != "" {
			p.Forbidden(at.Child("value"), "cannot be combined with the operator Exists, which tolerates all values; remove one of them")
		}
		if t.Effect != "" {
			check.OneOf(p, at.Child("effect"), t.Effect, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)
		}
	}
}
