// Package waittest is for tests that wait for something.
package waittest

import "time"

// Patience limits each wait for what comes at once on an idle machine. Other work may keep the machine busy, and
// only a test that fails waits for all of it.
const Patience = 5 * time.Minute
