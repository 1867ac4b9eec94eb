package main

import (
	"bytes"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/capacity"
	"persia/config"
	"persia/internal/testkit"
)

// TestSize: the printed pool and servers are a part of prod that passes the preview, the servers have the memory that their
// embeddings take, and the pages show what is printed.
func TestSize(t *testing.T) {
	pages := [2]string{testkit.Read(t, "../../docs/guides/capacity.md"), testkit.Read(t, "../../docs/guides/storage.md")}
	for _, parameters := range []string{"1e9", "1e11", "1e12", "1e13", "1e14"} {
		for optimizer, numbers := range map[string]int{"sgd": 1, "adagrad": 2, "adam": 3} {
			t.Run(parameters+" "+optimizer, func(t *testing.T) {
				var out bytes.Buffer
				require.Zero(t, run(t.Context(), []string{"size", "--parameters", parameters, "--dim", "16", "--optimizer", optimizer}, &out, &out), &out)
				printed := testkit.Parse(t, "config:\n  "+strings.ReplaceAll(out.String(), "\n", "\n  "))
				keys := testkit.Parse(t, testkit.Read(t, "../../Pulumi.prod.yaml"))
				testkit.Edits{
					"persia:nodePools[3]":                     printed["persia:nodePools"].([]any)[0],
					"persia:jobs[0].embeddingParameterServer": printed["persia:jobs"].([]any)[0].(map[string]any)["embeddingParameterServer"],
				}.In(t, keys)
				testkit.AssertInSchema(t, keys)
				stack := testkit.Must(config.Load(keys.Get, nil))(t)
				assert.Empty(t, stack.Warnings())
				pool := stack.Plan().Pools[4]
				assert.Equal(t, "embedding-ps", pool.Name)
				assert.Equal(t, pool.Nodes, pool.Needed, "nodes")
				row := strings.Fields(out.String()[strings.LastIndex(out.String(), "#")+1:])
				assert.Equal(t, fmt.Sprint(int(*pool.HourlyCost*730)), strings.ReplaceAll(row[len(row)-1], ",", ""))

				found := regexp.MustCompile(`capacity: (\d+), num_hashmap_internal_shards: (\d+)`).FindStringSubmatch(out.String())
				places, tables := testkit.Must(strconv.Atoi(found[1]))(t), testkit.Must(strconv.Atoi(found[2]))(t)
				servers := stack.Jobs[0].EmbeddingParameterServer
				embeddings := testkit.Must(strconv.ParseFloat(parameters, 64))(t) / 16
				assert.InDelta(t, 1.055, float64(places*servers.Replicas)/embeddings, 0.005, "places for each embedding")
				buckets := 1 << bits.Len(uint((places/tables+1)*8/7-1)) // hashbrown 0.11, capacity_to_buckets
				takes := 1.1 * float64(places*(48+4*16*numbers+16)+tables*buckets*17) / (1 << 30)
				assert.InDelta(t, takes+1.5, servers.Resources.Limits.Memory().AsApproximateFloat64()/(1<<30), 0.5, "GiB of a server")
				saved := float64(9*places*servers.Replicas) + embeddings*float64(20+4*16*numbers)
				shown := testkit.Must(strconv.ParseFloat(row[len(row)-3], 64))(t) * map[string]float64{"GB": 1e9, "TB": 1e12}[row[len(row)-2]]
				assert.InEpsilon(t, saved, shown, 0.05, "bytes of a checkpoint")
				if optimizer == "adam" {
					on := func(page, text string) bool { return strings.Contains(strings.Join(strings.Fields(page), " "), text) }
					assert.Equal(t, parameters != "1e13", on(pages[0], parameters+" "+strings.Join(row, " ")), row)
					checkpoint := "10^" + parameters[2:] + " | " + strings.Join(row[len(row)-3:len(row)-1], " ") + " |"
					assert.Equal(t, parameters != "1e11" && parameters != "1e14", on(pages[1], checkpoint), checkpoint)
				}
			})
		}
	}
	held := capacity.Model{Parameters: 1.6e13, Dim: 16, Optimizer: "adam"}.Servers("us-central1")
	assert.LessOrEqual(t, held.GiB*int64(held.Replicas), int64(120*2500), "what README.md and Pulumi.prod.yaml say of prod")
}
