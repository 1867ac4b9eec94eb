package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"persia/config/input"
)

// PEDLVolume is the name of the database's volume, and of its claim.
const PEDLVolume = "pedl-postgresql"

// PostgreSQL is the database of the master: one that the stack runs, or an existing one.
type PostgreSQL struct {
	Image DatabaseImage `json:"image,omitempty"`
	// Resources are the requests and limits. Default: limits {cpu: 8, memory: 32G}, and requests {cpu: 4, memory:
	// 16G}.
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// Password is the password of the admin user, postgres, a Pulumi secret. Required unless you set `external`.
	Password input.Secret `json:"postgresqlPassword,omitempty"`
	// Database is the name of the database that the stack creates.
	Database string `json:"postgresqlDatabase,omitempty" default:"pedl"`
	// InitdbArgs are arguments of initdb, which creates the database once. Default none.
	InitdbArgs string `json:"postgresqlInitdbArgs,omitempty"`
	// SchedulerName is the scheduler of the database's pod. Default: the cluster's.
	SchedulerName string `json:"schedulerName,omitempty" form:"subdomain"`
	// ExtendedConfig are settings of PostgreSQL in camel case. By default, maxConnections is 2000, and sharedBuffers
	// is 512MB.
	ExtendedConfig map[string]SettingValue `json:"postgresqlExtendedConfig,omitempty"`
	Persistence    Persistence             `json:"persistence,omitempty"`
	Service        DatabaseService         `json:"service,omitempty"`
	// External is an existing database. If you set it, set no other field of postgresql.
	External *ExternalDatabase `json:"external,omitempty"`
}

// DatabaseImage is the image of PostgreSQL: Bitnami's, or one with the same layout.
type DatabaseImage struct {
	// Registry is the registry of the image.
	Registry string `json:"registry,omitempty" default:"docker.io"`
	// Repository is the repository of the image.
	Repository string `json:"repository,omitempty" default:"bitnamilegacy/postgresql"`
	// Tag is the tag of the image.
	Tag string `json:"tag,omitempty" default:"10.23.0-debian-11-r3"`
	// PullPolicy is Always, IfNotPresent, or Never.
	PullPolicy corev1.PullPolicy `json:"pullPolicy,omitempty" default:"IfNotPresent" enum:"Always,IfNotPresent,Never"`
	// PullSecrets are Secrets in the namespace pedl with registry credentials.
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty" unique:"name"`
}

// Reference returns the reference of the image.
func (i DatabaseImage) Reference() string { return i.Registry + "/" + i.Repository + ":" + i.Tag }

// SettingValue is the value of a setting of PostgreSQL: a string, a number, or a boolean.
type SettingValue string

// UnmarshalJSON keeps numbers and booleans as the user wrote them.
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
		return errors.New("must be a string, a number, or true or false")
	}
	return nil
}

// withoutB takes the B from amounts of the database like 32GB, which PEDL's documentation prints.
func withoutB(pedl map[string]any) {
	for _, list := range []string{"limits", "requests"} {
		found, _, _ := unstructured.NestedFieldNoCopy(pedl, "postgresql", "resources", list)
		amounts, _ := found.(map[string]any)
		for name, amount := range amounts {
			text, ok := strings.CutSuffix(fmt.Sprint(amount), "B")
			if _, err := input.ParseQuantity(text); ok && err == nil {
				amounts[name] = text
			}
		}
	}
}

// Persistence is where the database stores its data: one source as in persia:storage, `storageClass`, or
// `existingClaim`. Default: a Persistent Disk that the stack creates. Required on an existing cluster.
type Persistence struct {
	// Enabled keeps the data, which otherwise is lost with the pod.
	Enabled bool `json:"enabled,omitempty" default:"true"`
	// ExistingClaim is a PersistentVolumeClaim in the namespace pedl.
	ExistingClaim string `json:"existingClaim,omitempty" form:"subdomain"`
	// StorageClass creates the volume and determines its reclaim policy.
	StorageClass string `json:"storageClass,omitempty" form:"subdomain"`
	// AccessMode is ReadWriteOnce, or ReadWriteMany for storage that is not a disk.
	AccessMode corev1.PersistentVolumeAccessMode `json:"accessMode,omitempty" default:"ReadWriteOnce" enum:"ReadWriteOnce,ReadWriteMany"`
	// Annotations are annotations of the volume and its claim. Default none.
	Annotations map[string]string `json:"annotations,omitempty" form:"annotations"`
	// Size is the size of the volume. It can grow if the stack creates it.
	Size string `json:"size,omitempty" default:"100Gi"`
	// SubPath is the directory of the volume to mount.
	SubPath string `json:"subPath,omitempty" form:"below"`
	// MountPath is where the volume is mounted.
	MountPath string `json:"mountPath,omitempty" default:"/bitnami/postgresql" form:"directory"`

	Sources `json:",inline"`
}

// DatabaseService is the Service of the database.
type DatabaseService struct {
	// ExternalIPs are external addresses of the database, on an existing cluster only. Default none: then only the
	// master can reach it.
	ExternalIPs []string `json:"externalIPs,omitempty" unique:"true" form:"address"`
	// Port is the port of the database.
	Port int `json:"port,omitempty" default:"5432" max:"65535"`
}

// ExternalDatabase is an existing database.
type ExternalDatabase struct {
	// Host is the address or host name of the database server.
	Host string `json:"host" form:"host"`
	// Port is the port of the database server.
	Port int `json:"port,omitempty" default:"5432" max:"65535"`
	// User is the user that the master connects as.
	User string `json:"user,omitempty" default:"postgres"`
	// Database is the name of the database.
	Database string `json:"database,omitempty" default:"pedl"`
	// Password is a Pulumi secret.
	Password input.Secret `json:"password"`
}

// volume returns the volume of the database in the form of persia:storage.
func (d *Persistence) volume() Volume {
	return Volume{
		Name:          PEDLVolume,
		Claim:         PEDLVolume,
		Size:          d.Size,
		AccessModes:   []corev1.PersistentVolumeAccessMode{d.AccessMode},
		ReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		Sources:       d.Sources,
	}
}
