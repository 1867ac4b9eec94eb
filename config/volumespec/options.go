package volumespec

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config/check"
)

// checkMountOptions refuses options where the kubelet does, and warns of options that no
// driver knows. A driver may know more than the program.
func (v *Volume) checkMountOptions(p *check.Problems, path *field.Path) {
	source := v.Source()
	if source == nil {
		return
	}
	if source.Field() == "hostPath" && len(v.MountOptions) > 0 {
		p.Invalid(path, v.MountOptions, "is not supported by hostPath, so no pod would start; remove it, and write readOnly in the mounts instead of ro")
		return
	}
	for i, option := range v.MountOptions {
		check.MountOption(p, path.Index(i), option, optionsOf(source))
	}
}

// optionsOf returns the file system of a source by its field.
func optionsOf(source Source) string {
	if source.Field() == "filestore" {
		return "nfs"
	}
	return source.Field()
}
