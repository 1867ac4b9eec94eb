package tests

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shopScript begins a script that imports the modules of examples/shop, with a stand-in for the
// part of NumPy that visits.py uses.
const shopScript = `
import json, sys, types

class Array(list):
    def __getitem__(self, at):
        return Array(list.__getitem__(self, at)) if isinstance(at, slice) else list.__getitem__(self, at)
    def reshape(self, *shape):
        assert shape == (-1, 1), shape
        return Array([one] for one in self)

def array(values, dtype):
    return Array(array(one, dtype) if isinstance(one, list) else dtype(one) for one in values)

sys.modules["numpy"] = types.SimpleNamespace(array=array, uint64=int, float32=float)
sys.path.insert(0, "../examples/shop")
given = json.loads(sys.argv[1])
`

// runShop runs a script with a value, and decodes what it prints.
func runShop(t *testing.T, script string, given, printed any) {
	t.Helper()
	// The go command runs a test again when a file has changed that the test itself reads.
	for _, module := range []string{"visits.py", "generate.py"} {
		readText(t, "examples/shop/"+module)
	}
	text, err := json.Marshal(given)
	require.NoError(t, err)
	command := exec.Command("python3", "-B", "-c", shopScript+script, string(text))
	command.Stderr = t.Output()
	output, err := command.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(output, printed), "%s", output)
}

// TestSameMetrics checks that both examples push metrics in the same way. Each has its own copy of the
// module, because users copy the folder of one example.
func TestSameMetrics(t *testing.T) {
	assert.Equal(t, readText(t, "examples/shop/metrics.py"), readText(t, "examples/training/metrics.py"))
}

// TestShopAUC: the result is the share of pairs of a purchase and another visit in which the purchase
// scores higher. Equal scores count half.
func TestShopAUC(t *testing.T) {
	type rows struct{ Labels, Scores []float64 }
	cases := map[string]rows{
		"perfect":          {[]float64{0, 0, 1, 1}, []float64{0.1, 0.2, 0.3, 0.4}},
		"the wrong way":    {[]float64{1, 0}, []float64{0.1, 0.2}},
		"all alike":        {[]float64{1, 0, 0}, []float64{0.5, 0.5, 0.5}},
		"one tie of three": {[]float64{1, 0, 1, 0}, []float64{0.5, 0.5, 0.5, 0.9}},
	}
	var got map[string]float64
	runShop(t, `
import visits
print(json.dumps({name: visits.auc(rows["Labels"], rows["Scores"]) for name, rows in given.items()}))
`, cases, &got)
	assert.Equal(t, map[string]float64{"perfect": 1, "the wrong way": 0, "all alike": 0.5, "one tie of three": 0.25}, got)
}

// TestShopBatches: the numbers of batches divide the rows of all files in order, and the same
// number is always the same batch.
func TestShopBatches(t *testing.T) {
	dir := t.TempDir()
	var want []string
	for file := range 2 {
		text := "user,item,category,recent,price,age,hour,bought,rate\n"
		for row := range 6 {
			number := file*6 + row
			text += fmt.Sprintf("%d,%d,1,%s,%d,0.5,0,%d,0.5\n", number, 100+number, []string{"", "7", "8 9"}[row%3], number, number%2)
			want = append(want, fmt.Sprintf("user %d, %d recent, price %d, bought %d", number, row%3, number, number%2))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("train-%03d.csv", file)), []byte(text), 0o600))
	}
	var got struct {
		Count   int
		Batches [][]string
	}
	runShop(t, `
import visits
visits.FOLDER, visits.BATCH_SIZE = given, 3

def rows(number):
    ids, numbers, bought = visits.batch(number)
    return [f"user {user[0]}, {len(recent)} recent, price {price[0]:.0f}, bought {label[0]:.0f}"
            for user, recent, price, label in zip(ids["user"], ids["recent"], numbers, bought)]

print(json.dumps({"count": visits.count(), "batches": [rows(number) for number in [0, 1, 2, 3, 1]]}))
`, dir, &got)
	assert.Equal(t, 4, got.Count)
	require.Len(t, got.Batches, 5)
	assert.Equal(t, want, slices.Concat(got.Batches[:4]...))
	assert.Equal(t, got.Batches[1], got.Batches[4])
}

// TestShopData runs generate.py as the tutorial does, with fewer rows.
func TestShopData(t *testing.T) {
	generate := func(seed string) string {
		dir := t.TempDir()
		var said string
		runShop(t, `
import contextlib, io
import generate
generate.FILES, generate.ROWS, generate.TEST_ROWS = 2, 400, 50
said = io.StringIO()
with contextlib.redirect_stdout(said):
    generate.main(*given)
print(json.dumps(said.getvalue()))
`, []string{dir, seed}, &said)
		assert.Equal(t, fmt.Sprintf("2 files of 400 rows and test.csv are in %s (seed %s)\n", dir, seed), said)
		return dir
	}
	dir, again, other := generate("1"), generate("1"), generate("2")
	vocabulary := []int{400, 150, 12, 150} // of the first four columns
	for name, rows := range map[string]int{"train-000.csv": 400, "train-001.csv": 400, "test.csv": 50} {
		text := readFile(t, filepath.Join(dir, name))
		assert.Equal(t, text, readFile(t, filepath.Join(again, name)), "the same seed writes the same file")
		assert.NotEqual(t, text, readFile(t, filepath.Join(other, name)))
		table, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		require.NoError(t, err)
		assert.Equal(t, []string{"user", "item", "category", "recent", "price", "age", "hour", "bought", "rate"}, table[0])
		require.Len(t, table[1:], rows, name)
		for _, row := range table[1:] {
			for column, size := range vocabulary {
				for _, id := range strings.Fields(row[column]) {
					number, err := strconv.Atoi(id)
					require.NoError(t, err)
					assert.True(t, number >= 0 && number < size, "%s %s", table[0][column], id)
				}
			}
		}
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}
