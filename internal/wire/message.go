package wire

import (
	"encoding/json"
	"errors"

	"github.com/tegmen-dev/tegmen/broker"
)

// errorMessage answers a request with an error. openResult writes the other answers.
type errorMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   errorObject     `json:"error"`
}

type errorObject struct {
	Code    broker.Code `json:"code"`
	Message string      `json:"message"`
	Data    errorData   `json:"data"`
}

type errorData struct {
	Type    string          `json:"type"`
	Details json.RawMessage `json:"details,omitempty"`
}

type notification struct {
	Version string `json:"jsonrpc"`
	Method  string `json:"method"`
	Params  any    `json:"params"`
}

// toolInfo is a tool as a guest sees it.
type toolInfo struct {
	Name        string          `json:"name"`
	Namespace   string          `json:"namespace,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Output      json.RawMessage `json:"output,omitempty"`
}

// jobInfo is the result of hello, and the parameters of run.
type jobInfo struct {
	Protocol int                        `json:"protocol"`
	Run      string                     `json:"run"`
	Tools    []toolInfo                 `json:"tools"`
	Limits   limitsInfo                 `json:"limits"`
	Pinned   string                     `json:"namespace,omitempty"` // every tool is in it
	Language string                     `json:"language,omitempty"`
	Code     string                     `json:"code,omitempty"`
	Vars     map[string]json.RawMessage `json:"vars,omitempty"`
	Args     []string                   `json:"args,omitempty"`
	Stateful bool                       `json:"stateful,omitempty"`
}

type limitsInfo struct {
	Frame int `json:"frame"`
}

// asError returns err as the Error that every step of a Set returns.
func asError(err error) *broker.Error {
	var e *broker.Error
	if errors.As(err, &e) {
		return e
	}
	return broker.Errorf(broker.CodeInternal, "%v", err)
}

// errorLine encodes an error as the answer to a request.
func errorLine(id json.RawMessage, e *broker.Error) []byte {
	kind := e.Type
	if kind == "" {
		kind = e.Code.String()
	}
	object := errorObject{Code: e.Code, Message: e.Message, Data: errorData{Type: kind, Details: details(e.Data)}}
	return encode(errorMessage{Version: "2.0", ID: id, Error: object})
}

// details encodes the data of a tool's error, or returns nil if it cannot be encoded:
// then the message must do.
func details(v any) (j json.RawMessage) {
	if v == nil {
		return nil
	}
	defer func() {
		if recover() != nil { // in v's MarshalJSON
			j = nil
		}
	}()
	j, _ = json.Marshal(v)
	return j
}

// openResult begins the answer with a result; n more bytes follow. The result comes
// right after the id, in this exact form, for guests that cannot parse JSON.
func openResult(id json.RawMessage, n int) []byte {
	line := make([]byte, 0, len(id)+n+40)
	line = append(append(line, `{"jsonrpc":"2.0","id":`...), id...)
	return append(line, `,"result":`...)
}

// encode returns one line of JSON.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // messages consist of what can be encoded
	}
	return append(b, '\n')
}
