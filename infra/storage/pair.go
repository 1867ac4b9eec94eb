package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config"
)

// generationLabel is a label of a recreated PersistentVolume: how often it was recreated.
const generationLabel = "persia.com/generation"

// Pair is a volume's pair as the state of a stack has it.
type Pair struct {
	volume, claim bool
	generation    int
	// spec is the volume's. claimName is the name of the claim, and modes are its access modes.
	spec      corev1.PersistentVolumeSpec
	claimName string
	modes     []corev1.PersistentVolumeAccessMode
}

// Pairs returns the pairs in the state of a stack, by the names of their resources.
func Pairs(resources map[resource.URN]map[string]any) map[string]Pair {
	pairs := map[string]Pair{}
	for urn, outputs := range resources {
		pair := pairs[urn.Name()]
		switch urn.QualifiedType() {
		case componentType + "$kubernetes:core/v1:PersistentVolume":
			pair.volume = true
			text, _, _ := unstructured.NestedString(outputs, "metadata", "labels", generationLabel)
			pair.generation, _ = strconv.Atoi(text) // none is 0
			if spec, err := json.Marshal(outputs["spec"]); err != nil || json.Unmarshal(spec, &pair.spec) != nil {
				pair.spec = corev1.PersistentVolumeSpec{} // not compared
			}
		case componentType + "$kubernetes:core/v1:PersistentVolumeClaim":
			pair.claim = true
			pair.claimName, _, _ = unstructured.NestedString(outputs, "metadata", "name")
			modes, _, _ := unstructured.NestedStringSlice(outputs, "spec", "accessModes")
			for _, mode := range modes {
				pair.modes = append(pair.modes, corev1.PersistentVolumeAccessMode(mode))
			}
		default:
			continue
		}
		pairs[urn.Name()] = pair
	}
	return pairs
}

// CheckPairs refuses what would replace one half of a pair. A volume whose claim is replaced remembers
// the old claim, is Released, and never binds to the new one. Kubernetes deletes no volume that has a
// claim, and Pulumi deletes the pair of a removed volume last.
func CheckPairs(pairs map[string]Pair, volumes []config.StoredVolume) error {
	var problems []error
	claims := map[string]string{}
	for name, pair := range pairs {
		claims[pair.claimName] = name
	}
	for _, stored := range volumes {
		pair := pairs[stored.Name]
		if of, taken := claims[stored.Claim]; taken && of != stored.Name {
			problems = append(problems, fmt.Errorf("%s: the claim %s is in the cluster, as the one of the volume %s; "+
				"write another claim", stored.Path, stored.Claim, of))
		}
		if pair.claimName != "" && pair.claimName != stored.Claim {
			problems = append(problems, fmt.Errorf("%s: the volume %s has the claim %s in the cluster, "+
				"and never binds to another one; write claim: %s, or give the volume another name too, also in mounts",
				stored.Path, stored.Name, pair.claimName, pair.claimName))
		}
		if pair.claim && pair.elsewhere(stored.Source()) {
			problems = append(problems, fmt.Errorf("%s: Kubernetes cannot change where the volume %s is, "+
				"and does not delete it while its claim exists; "+
				"give the volume for %s another name and claim, also in mounts: the data of the old one stays where it is",
				stored.Path, stored.Name, stored.Source()))
		}
		if had := pair.modes; len(had) > 0 && !slices.Equal(had, stored.AccessModes) {
			problems = append(problems, fmt.Errorf("%s: the access modes are %v in the cluster, and cannot become %v: "+
				"a new claim would never be bound to the volume; "+
				"write those of the cluster, or remove the volume and its mounts, run `pulumi up`, and add it again, "+
				"which keeps its data", stored.Path, had, stored.AccessModes))
		}
	}
	return errors.Join(problems...)
}

// elsewhere reports whether the volume is not where a source says.
func (p Pair) elsewhere(source config.VolumeSource) bool {
	had := p.spec.PersistentVolumeSource
	if had == (corev1.PersistentVolumeSource{}) {
		return false // unknown
	}
	wants := backendOf(source)
	if had.CSI != nil && wants.spec.CSI != nil && wants.spec.CSI.VolumeAttributes["ip"] == "" {
		delete(had.CSI.VolumeAttributes, "ip") // of Filestore, which tells it
	}
	if had.ISCSI != nil {
		had.ISCSI.ISCSIInterface = "" // the API server fills it in
	}
	return !equality.Semantic.DeepEqual(had, wants.spec) || !equality.Semantic.DeepEqual(p.spec.NodeAffinity, wants.affinity)
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
