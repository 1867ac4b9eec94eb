package google

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"sync"
)

//go:embed answers.json
var answersJSON []byte

// Recorded is one recorded answer with the request before it, if there is one.
type Recorded struct {
	Request Body `json:"request"`
	Get     Body `json:"get"`
}

var answers = sync.OnceValue(func() (all struct {
	Resources map[string]Recorded `json:"resources"`
	Errors    map[string]struct {
		Error refusal `json:"error"`
	} `json:"errors"`
}) {
	if err := json.Unmarshal(answersJSON, &all); err != nil {
		panic(fmt.Errorf("answers.json: %w", err))
	}
	return all
})

// recorded returns a recorded answer.
func recorded(name string) Body {
	found, known := answers().Resources[name]
	if !known {
		panic("answers.json has no " + name)
	}
	return found.Get
}

// serverSet returns a copy of the fields that a service set by itself in a recorded answer.
func serverSet(name string) Body {
	return Clone(beyond(recorded(name), answers().Resources[name].Request))
}

// refusal is a refusal as Google's APIs give it.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Errors  []struct {
		Reason string `json:"reason"`
	} `json:"errors"`
}

// recordedError is a recorded refusal.
func recordedError(name string) error {
	recorded := answers().Errors[name].Error
	return refuse(recorded.Code, recorded.Errors[0].Reason, "%s", recorded.Message)
}

// refuse returns a refusal. A message given here is not recorded†.
func refuse(code int, reason, format string, args ...any) error {
	return fmt.Errorf("googleapi: Error %d: %s, %s", code, fmt.Sprintf(format, args...), reason)
}
