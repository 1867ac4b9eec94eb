package persia

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"persia/internal/testkit"
)

// slowed measures as speed.py does, on a machine with a third of the speed.
const slowed = `
import json, sys
sys.path.insert(0, %q)
import speed
rate = speed.rate
speed.rate = lambda seconds, work, *of: rate(seconds, lambda: [work(), work(), work()], *of)
print(json.dumps(speed.main(int(sys.argv[1]), sys.argv[2])))
`

// TestSlowMachines runs two attempts of trainings with a replica 1 that is slow, and in make nightly of QUIET trainings with none.
// The replicas of only one role measure: this machine may have two cores. Stand-ins train.
func TestSlowMachines(t *testing.T) {
	testkit.Processes(t)
	quiet, _ := strconv.Atoi(os.Getenv("QUIET"))
	for _, test := range []struct {
		name, role, figure string
		times              int
		// env has variables of a replica, and starts what makes it slow.
		env func(t *testing.T, j *training, replica int) []string
	}{
		{"a network with a delay of 50 ms", "embedding-worker", "network", max(1, quiet*2/5), throughDelay},
		{"20 % of a core", "embedding-ps", "CPU", quiet * 2 / 5, limited},
		{"a third of the speed", "nn-worker", "CPU", quiet * 2 / 5, func(t *testing.T, j *training, replica int) []string {
			j.write("slowed.py", fmt.Sprintf(slowed, testkit.Must(filepath.Abs("."))(t)))
			return []string{"MEASURES=" + map[bool]string{true: filepath.Join(j.dir, "slowed.py")}[replica == 1]}
		}},
		{"none is slow", "embedding-ps", "", quiet, nil},
	} {
		for number := range test.times {
			t.Run(fmt.Sprintf("%s %d", test.name, number), func(t *testing.T) {
				roles := map[string]int{"nn-worker": 1, "dataloader": 1, "embedding-worker": 1, "embedding-ps": 1}
				roles[test.role] = 3
				j := newTrainingAlone(t, strings.Trim(strings.NewReplacer(":", "=", " ", ",").Replace(fmt.Sprint(roles)), "map=[]"))
				for role, count := range roles {
					for replica := range count {
						script := serve
						var env []string
						if role == "dataloader" { // it ends two attempts when all others run
							script = `until [[ $(cat [!d]*.attempts | wc -l) -eq $((5 * PERSIA_ATTEMPT)) ]]; do sleep 0.05; done
								[[ $PERSIA_ATTEMPT -gt 2 ]] || exit 1; ` + serve
						} else if role == test.role && test.env != nil {
							env = test.env(t, j, replica)
						}
						if role == test.role {
							env = append(env, "PERSIA_NODE=node")
						}
						j.start(fmt.Sprintf("%s-%d", role, replica), script, env...)
					}
				}
				said := j.becomes("running attempt 3")
				if test.figure == "" {
					assert.NotContains(t, said, "slow")
				} else {
					assert.Regexp(t, fmt.Sprintf(`; %s-1 is slow: its %s has \d+%% of the speed of others; .kubectl cordon node. and .kubectl delete pod -n persia \S+ move it`, test.role, test.figure), said)
					assert.Equal(t, strings.Count(said, "-1 is slow"), strings.Count(said, " is slow"), said)
				}
			})
		}
	}
}

// limited gives replica 1 20 % of a core.
func limited(t *testing.T, _ *training, replica int) []string {
	t.Helper()
	if replica != 1 {
		return nil
	}
	dir := testkit.Must(os.MkdirTemp("/sys/fs/cgroup/cpu", "persia-test-"))(t)
	t.Cleanup(func() {
		assert.Eventually(t, func() bool { return os.Remove(dir) == nil }, patience, 50*time.Millisecond)
	})
	require.NoError(t, os.WriteFile(filepath.Join(dir, "cpu.cfs_quota_us"), []byte("20000"), 0))
	return []string{"GROUP=" + filepath.Join(dir, "cgroup.procs")}
}

// throughDelay has what reaches replicas 1 and 2 pass through a delay of 50 ms: what is sent to 1, and by 1.
func throughDelay(t *testing.T, j *training, replica int) []string {
	t.Helper()
	if replica == 0 {
		return nil
	}
	behind := filepath.Join(j.dir, fmt.Sprint(replica))
	listener := testkit.Must(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { _ = listener.Close() })
	pass := func(from, to net.Conn) {
		defer func() { _ = to.Close() }()
		for part := make([]byte, 1<<21); ; time.Sleep(50 * time.Millisecond) {
			n, err := from.Read(part)
			if err != nil {
				return
			}
			_, _ = to.Write(part[:n])
		}
	}
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to := testkit.Must(net.Dial("tcp", testkit.Read(t, behind)))(t)
			go pass(from, to)
			go pass(to, from)
		}
	}()
	return []string{"THROUGH=" + listener.Addr().String(), "BEHIND=" + behind}
}
