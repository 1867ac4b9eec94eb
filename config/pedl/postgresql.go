package pedl

import (
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"

	"persia/config/decode"
	"persia/config/volume"
)

// PostgreSQL is the database of the master: the stack's own, or one that is
// there.
type PostgreSQL struct {
	Image DatabaseImage `json:"image,omitempty"`
	// Resources are what the database asks for and may use. Each amount has a
	// default: limits {cpu: 8, memory: 32G}, requests {cpu: 4, memory: 16G}, but
	// never more than a limit that is given.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Password is that of the admin user, postgres, given by
	// `pulumi config set --secret`. It is required where External is not given.
	Password decode.Secret `json:"postgresqlPassword,omitempty"`
	// Database is the name of the database that is created.
	Database string `json:"postgresqlDatabase,omitempty" default:"pedl"`
	// InitdbArgs are arguments of initdb, which makes the database once. Default
	// none.
	InitdbArgs string `json:"postgresqlInitdbArgs,omitempty"`
	// SchedulerName is the scheduler of the database's pod. Default: the cluster's
	// own.
	SchedulerName string `json:"schedulerName,omitempty"`
	// ExtendedConfig are settings of PostgreSQL in camel case, like maxConnections
	// for max_connections. Default {maxConnections: 2000, sharedBuffers: 512MB}, each
	// by itself.
	ExtendedConfig map[string]SettingValue `json:"postgresqlExtendedConfig,omitempty"`
	Persistence    Persistence             `json:"persistence,omitempty"`
	Service        DatabaseService         `json:"service,omitempty"`
	// External is an existing database to use. Set no other field of PostgreSQL
	// then.
	External *ExternalDatabase `json:"external,omitempty"`
}

// DatabaseImage is the image of PostgreSQL, Bitnami's or one that is made like it.
type DatabaseImage struct {
	// Registry is the image's registry.
	Registry string `json:"registry,omitempty" default:"docker.io"`
	// Repository is the image's repository.
	Repository string `json:"repository,omitempty" default:"bitnami/postgresql"`
	// Tag is the image's tag.
	Tag string `json:"tag,omitempty" default:"10.8.0"`
	// PullPolicy is Always, IfNotPresent or Never.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// PullSecrets are Secrets of the namespace pedl with the credentials of the
	// registry. Default none.
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty"`
}

// SettingValue is the value of a setting of PostgreSQL: a text, a number, or
// true or false.
type SettingValue string

// UnmarshalJSON takes numbers and booleans as they are written.
func (v *SettingValue) UnmarshalJSON(text []byte) error {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return err
	}
	switch value := value.(type) {
	case string:
		*v = SettingValue(value)
	case float64, bool:
		*v = SettingValue(text)
	default:
		return errors.New("must be a text, a number, or true or false")
	}
	return nil
}

// Persistence is where the database's data is: on a volume of the stack,
// like those of persia:storage, with one source; on a volume of StorageClass; or on
// that of ExistingClaim. Without any of them the stack creates a Persistent Disk
// called CLUSTER-pedl-postgresql, which outlives it; on an existing cluster one must
// be given.
type Persistence struct {
	// Enabled keeps the data. Without it the data goes with the pod.
	Enabled bool `json:"enabled,omitempty" default:"true"`
	// ExistingClaim is a PersistentVolumeClaim of the namespace pedl.
	ExistingClaim string `json:"existingClaim,omitempty"`
	// StorageClass makes the volume, and decides what becomes of it.
	StorageClass string `json:"storageClass,omitempty"`
	// AccessMode is ReadWriteOnce, or ReadWriteMany for what is no disk.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty" default:"ReadWriteOnce" enum:"ReadWriteOnce,ReadWriteMany"`
	// Annotations are annotations of the volume and of its claim. Default none.
	Annotations map[string]string `json:"annotations,omitempty"`
	// Size is the volume's size. It can grow where it is the stack's own.
	Size string `json:"size,omitempty" default:"100Gi"`
	// SubPath is the directory of the volume that is mounted. Default: its root.
	SubPath string `json:"subPath,omitempty"`
	// MountPath is where the volume is mounted, and the data in its directory data.
	MountPath string `json:"mountPath,omitempty" default:"/bitnami/postgresql"`

	volume.Sources `json:",inline"`
}

// DatabaseService is the service of the database.
type DatabaseService struct {
	// ExternalIPs are addresses outside of the cluster that lead to the database.
	// Default none: then nobody but the master reaches it.
	ExternalIPs []string `json:"externalIPs,omitempty"`
	// Port is where the database is reached.
	Port int `json:"port,omitempty" default:"5432"`
}

// ExternalDatabase is an existing database.
type ExternalDatabase struct {
	// Host is its address or its name.
	Host string `json:"host"`
	// Port is its port.
	Port int `json:"port,omitempty" default:"5432"`
	// User is the user that the master connects as.
	User string `json:"user,omitempty" default:"postgres"`
	// Database is the name of the database.
	Database string `json:"database,omitempty" default:"pedl"`
	// Password is the user's, given by `pulumi config set --secret`.
	Password decode.Secret `json:"password"`
}
