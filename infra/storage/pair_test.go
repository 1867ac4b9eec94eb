package storage

import (
	"encoding/json"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"persia/config"
	"persia/internal/testkit"
)

// TestPairs checks that the stack recreates a volume whose claim is gone, once.
func TestPairs(t *testing.T) {
	volume := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolume::checkpoints")
	claim := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints")
	labelled := func(generation string) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": map[string]any{generationLabel: generation}}}
	}
	for name, test := range map[string]struct {
		resources  map[resource.URN]map[string]any
		generation string
		replaced   bool
	}{
		"nothing":                {nil, "", false},
		"a pair":                 {map[resource.URN]map[string]any{volume: {}, claim: {}}, "", false},
		"a claim alone":          {map[resource.URN]map[string]any{claim: {}}, "", false},
		"a volume alone":         {map[resource.URN]map[string]any{volume: {}}, "1", true},
		"a renewed pair":         {map[resource.URN]map[string]any{volume: labelled("1"), claim: {}}, "1", false},
		"a renewed volume alone": {map[resource.URN]map[string]any{volume: labelled("1")}, "2", true},
		"the volume of another": {map[resource.URN]map[string]any{
			"urn:pulumi:dev::persia::kubernetes:core/v1:PersistentVolume::checkpoints": {}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}
			options := testkit.Must(pulumi.NewResourceOptions(Pairs(test.resources)["checkpoints"].renew(object)...))(t)
			assert.Equal(t, test.generation, object.Labels[generationLabel])
			var replacing []string
			if test.replaced {
				replacing = []string{"metadata"} // has the label
			}
			assert.ElementsMatch(t, replacing, options.ReplaceOnChanges)
			assert.Equal(t, test.replaced, options.DeleteBeforeReplace, "two volumes of a name cannot be")
		})
	}
}

// TestElsewhere compares the volume of a pair in the state with an edited source.
func TestElsewhere(t *testing.T) {
	export := config.Sources{NFS: &config.NFS{Server: "10.0.0.9", Path: "/exports"}}
	target := config.Sources{ISCSI: &config.ISCSI{TargetPortal: "10.0.0.3:3260", IQN: "iqn.2001-04.com.example:a"}}
	share := config.Sources{Filestore: &config.Filestore{Location: "us-central1-a", Instance: "fs", Share: "vol1"}}
	for name, test := range map[string]struct {
		spec    string
		now     config.Sources
		refused bool
	}{
		"the same export":    {`{"nfs": {"server": "10.0.0.9", "path": "/exports"}}`, export, false},
		"another server":     {`{"nfs": {"server": "10.0.0.8", "path": "/exports"}}`, export, true},
		"another kind":       {`{"hostPath": {"path": "/mnt", "type": "DirectoryOrCreate"}}`, export, true},
		"the same target":    {`{"iscsi": {"targetPortal": "10.0.0.3:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0, "iscsiInterface": "default"}}`, target, false},
		"a share":            {`{"csi": {"driver": "filestore.csi.storage.gke.io", "volumeHandle": "` + share.Filestore.Handle() + `", "volumeAttributes": {"ip": "10.9.0.2", "volume": "vol1"}}}`, share, false},
		"another share":      {`{"csi": {"driver": "filestore.csi.storage.gke.io", "volumeHandle": "` + share.Filestore.Handle() + `", "volumeAttributes": {"ip": "10.9.0.2", "volume": "vol2"}}}`, share, true},
		"an unreadable spec": {`"[secret]"`, export, false},
	} {
		t.Run(name, func(t *testing.T) {
			var spec any
			require.NoError(t, json.Unmarshal([]byte(test.spec), &spec))
			stored := config.StoredVolume{Path: field.NewPath("persia:storage").Index(0)}
			stored.Name, stored.Sources = "checkpoints", test.now
			resources := map[resource.URN]map[string]any{
				"urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolume::checkpoints":      {"spec": spec},
				"urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints": {},
			}
			err := CheckPairs(Pairs(resources), []config.StoredVolume{stored})
			assert.Equal(t, test.refused, err != nil, "%v", err)
		})
	}
}

// TestClaimsStay compares the claims of pairs in the state with those of an edited stack file.
func TestClaimsStay(t *testing.T) {
	pairs := map[string]Pair{"checkpoints": {volume: true, claim: true, claimName: "workspace"}, "lost": {volume: true}}
	for name, test := range map[string]struct{ volume, claim, says string }{
		"the same":                      {"checkpoints", "workspace", ""},
		"another claim":                 {"checkpoints", "other", "persia:storage[0]: the volume checkpoints has the claim workspace in the cluster"},
		"a renamed volume":              {"other", "workspace", "persia:storage[0]: the claim workspace is in the cluster, as the one of the volume checkpoints"},
		"a renamed volume, and a claim": {"other", "other", ""},
		"a volume without its claim":    {"lost", "other", ""},
	} {
		t.Run(name, func(t *testing.T) {
			stored := config.StoredVolume{Path: field.NewPath("persia:storage").Index(0)}
			stored.Name, stored.Claim = test.volume, test.claim
			err := CheckPairs(pairs, []config.StoredVolume{stored})
			testkit.Fails(t, err, test.says)
		})
	}
}

// TestCheckPairs: an edit that would replace a claim, and leave its volume Released, is refused.
func TestCheckPairs(t *testing.T) {
	claim := resource.URN("urn:pulumi:dev::persia::persia:storage:Volume$kubernetes:core/v1:PersistentVolumeClaim::checkpoints")
	with := func(modes ...any) map[resource.URN]map[string]any {
		return map[resource.URN]map[string]any{claim: {"spec": map[string]any{"accessModes": modes}}}
	}
	many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	for name, test := range map[string]struct {
		resources map[resource.URN]map[string]any
		wanted    []corev1.PersistentVolumeAccessMode
		refused   bool
	}{
		"no claim":      {nil, many, false},
		"the same":      {with("ReadWriteMany"), many, false},
		"another":       {with("ReadWriteOnce"), many, true},
		"one more":      {with("ReadWriteMany"), append(many, corev1.ReadOnlyMany), true},
		"another order": {with("ReadOnlyMany", "ReadWriteMany"), append(many, corev1.ReadOnlyMany), true},
	} {
		t.Run(name, func(t *testing.T) {
			stored := config.StoredVolume{Path: field.NewPath("persia:storage").Index(0)}
			stored.Name, stored.AccessModes = "checkpoints", test.wanted
			err := CheckPairs(Pairs(test.resources), []config.StoredVolume{stored})
			if !test.refused {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, "persia:storage[0]: the access modes are")
		})
	}
}
