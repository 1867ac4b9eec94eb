package storage

import (
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
)

// generationLabel is on a PersistentVolume that was made anew, and says how often.
const generationLabel = "persia.com/generation"

// Pair is what the state of a stack has of a volume's pair.
type Pair struct {
	volume, claim bool
	generation    int
}

// Pairs are those in the state of a stack, by the names of their resources.
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
		default:
			continue
		}
		pairs[urn.Name()] = pair
	}
	return pairs
}

// renew makes a PersistentVolume anew that has lost its claim, as an interrupted destroy
// leaves it: it remembers that claim, is Released, and never binds to another one. The
// object is a pointer to the data and no more. Without a change of its own, Pulumi would
// leave it as it is.
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
