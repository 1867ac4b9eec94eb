package pedl

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"persia/config"
	"persia/config/input"
)

// extendedConfig returns settings as PostgreSQL's configuration, in which maxConnections is
// max_connections.
func extendedConfig(settings map[string]config.SettingValue) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		value := strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(string(settings[name]))
		fmt.Fprintf(&text, "%s = '%s'\n", snakeCase(name), value)
	}
	return text.String()
}

var capital = regexp.MustCompile(`[A-Z]`)

func snakeCase(name string) string {
	return strings.ToLower(capital.ReplaceAllString(name, "_$0"))
}

// connection is how the master gets to its database.
type connection struct {
	host           string
	port           int
	user, database string
	password       input.Secret
	// external says that the database is not the stack's.
	external bool
}

func connectionOf(postgreSQL config.PostgreSQL) connection {
	if e := postgreSQL.External; e != nil {
		return connection{e.Host, e.Port, e.User, e.Database, e.Password, true}
	}
	host := fmt.Sprintf("%s.%s.svc", databaseName, NamespaceName)
	return connection{host, postgreSQL.Service.Port, adminUser, postgreSQL.Database, postgreSQL.Password, false}
}

// masterConfig returns the master's configuration file.
func masterConfig(c connection) []byte {
	text, err := yaml.Marshal(map[string]any{
		"port": masterPort,
		"db": map[string]any{
			"host":     c.host,
			"port":     c.port,
			"user":     c.user,
			"password": string(c.password),
			"name":     c.database,
		},
	})
	if err != nil {
		panic(err) // texts and numbers always marshal
	}
	return text
}
