package pedl

import (
	_ "embed"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/kube"
)

// DataVolume is the volume of PostgreSQL's pod that has the data.
const DataVolume = "data"

//go:embed database.yaml
var databaseManifest string

// NewDatabase registers the master's own PostgreSQL, after its namespace and the claim of its volume. It
// returns the server.
func NewDatabase(r *kube.Registrar, name string, args Args, needs []pulumi.CustomResource) pulumi.CustomResource {
	const headless = "pedl-postgresql-headless"
	postgreSQL := args.PEDL.Postgres
	of := kube.ByKind(databaseManifest, struct {
		config.PostgreSQL
		Images                         config.Images
		Placement                      kube.Placement
		Claim, DataDirectory, Settings string
		AdminPassword                  []byte
	}{
		postgreSQL, args.Images, args.Placement, ClaimName(postgreSQL.Persistence),
		path.Join(postgreSQL.Persistence.MountPath, "data"), extendedConfig(postgreSQL.ExtendedConfig), []byte(string(postgreSQL.Password)),
	})
	objects := r.Component("persia:pedl:Database", name)
	policy := kube.Needs(objects.Add(name, of["NetworkPolicy"], needs))
	settings := objects.Add(name, of["ConfigMap"], policy)
	needs = kube.Needs(settings, objects.Add(name, of["Secret"], policy), objects.Add(name, of["Service"], policy),
		objects.Add(headless, of[headless], policy))
	if claim := of["PersistentVolumeClaim"]; claim != nil {
		// The class would delete the data along with its claim.
		needs = append(needs, objects.Add(name, claim, policy, kept(args.Adopter)...))
	}
	return objects.AddWith(name, of["StatefulSet"], restartedBy(settings), needs, kube.WorkloadTimeouts())
}

// versionAnnotation of a pod is the version of the object that it is configured by: with another one it starts again.
const versionAnnotation = "configuration-version"

func restartedBy(configuration *kube.Object) kube.Later {
	return kube.Later{"spec.template.metadata.annotations." + versionAnnotation: configuration.Version()}
}

// ClaimName returns the claim of the database's data, or "".
func ClaimName(persistence config.Persistence) string {
	switch {
	case !persistence.Enabled:
		return ""
	case persistence.ExistingClaim != "":
		return persistence.ExistingClaim
	default:
		return config.PEDLVolume
	}
}

// extendedConfig returns settings as PostgreSQL's configuration, in which maxConnections is max_connections.
func extendedConfig(settings map[string]config.SettingValue) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(string(settings[name]))
		fmt.Fprintf(&text, "%s = '%s'\n", snakeCase(name), value)
	}
	return text.String()
}

var capital = regexp.MustCompile(`[A-Z]`)

func snakeCase(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "_$0")) }

// connectionOf returns how the master gets to its database.
func connectionOf(postgreSQL config.PostgreSQL) config.ExternalDatabase {
	if postgreSQL.External != nil {
		return *postgreSQL.External
	}
	return config.ExternalDatabase{
		Host: fmt.Sprintf("pedl-postgresql.%s.svc", NamespaceName), Port: postgreSQL.Service.Port,
		User: "postgres", Database: postgreSQL.Database, Password: postgreSQL.Password,
	}
}

// masterConfig returns the master's configuration file.
func masterConfig(database config.ExternalDatabase) []byte {
	text, err := yaml.Marshal(map[string]any{
		"port": 8080,
		"db": map[string]any{
			"host":     database.Host,
			"port":     database.Port,
			"user":     database.User,
			"password": string(database.Password),
			"name":     database.Database,
		},
	})
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return text
}
