package storage

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"

	"persia/config"
)

// generationLabel is a label of a recreated PersistentVolume: how often it was recreated.
const generationLabel = "persia.com/generation"

// Pair is a volume's pair as the state of a stack has it.
type Pair struct {
	volume, claim bool
	generation    int
	// modes are the access modes of the claim.
	modes []corev1.PersistentVolumeAccessMode
}

// Pairs returns the pairs in the state of a stack, by the names of their resources.
func Pairs(resources map[resource.URN]map[string]any) map[string]Pair {
	pairs := map[string]Pair{}
	for urn, outputs := range resources {
		pair := pairs[urn.Name()]
		switch urn.QualifiedType() {
		case componentType + "$kubernetes:core/v1:PersistentVolume":
			pair.volume = true
			metadata, _ := outputs["metadata"].(map[string]any)
			labels, _ := metadata["labels"].(map[string]any)
			text, _ := labels[generationLabel].(string)
			pair.generation, _ = strconv.Atoi(text) // none is 0
		case componentType + "$kubernetes:core/v1:PersistentVolumeClaim":
			pair.claim = true
			spec, _ := outputs["spec"].(map[string]any)
			modes, _ := spec["accessModes"].([]any)
			for _, mode := range modes {
				pair.modes = append(pair.modes, corev1.PersistentVolumeAccessMode(fmt.Sprint(mode)))
			}
		default:
			continue
		}
		pairs[urn.Name()] = pair
	}
	return pairs
}

// CheckPairs refuses what would replace the claim of a pair and not its volume. The volume
// remembers the old claim, is Released, and never binds to the new one.
func CheckPairs(pairs map[string]Pair, volumes []config.StoredVolume) error {
	var problems []error
	for _, stored := range volumes {
		had := pairs[stored.Name].modes
		if len(had) > 0 && !slices.Equal(had, stored.AccessModes) {
			problems = append(problems, fmt.Errorf("%s: the access modes are %v in the cluster, and cannot become %v: a new claim would never be bound to the volume; "+
				"write those of the cluster, or remove the volume and its mounts, run `pulumi up`, and add it again, which keeps its data", stored.Path, had, stored.AccessModes))
		}
	}
	return errors.Join(problems...)
}

// renew recreates a PersistentVolume that has lost its claim, as after an interrupted destroy: the
// volume remembers that claim, is Released, and never binds to another one. The object is only a
// pointer to the data. Without a change of its own, Pulumi would leave it alone.
func (p Pair) renew(volume *corev1.PersistentVolume) []pulumi.ResourceOption {
	lost := p.volume && !p.claim
	if lost {
		p.generation++
	}
	if p.generation > 0 {
		volume.Labels[generationLabel] = strconv.Itoa(p.generation)
	}
	if !lost {
		return nil
	}
	return []pulumi.ResourceOption{pulumi.ReplaceOnChanges([]string{"metadata"}), pulumi.DeleteBeforeReplace(true)}
}
