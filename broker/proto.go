package broker

import (
	"encoding/json"
	"fmt"
)

// Protocol is the version of the wire that this package speaks.
const Protocol = 1

// Code is the code of an error on the wire.
type Code int

// The codes, as JSON-RPC 2.0 has them and beyond. Each has its word for
// data.type in Code.String.
const (
	CodeParse          Code = -32700 // not JSON, not UTF-8, or nested too deeply
	CodeInvalidRequest Code = -32600 // not a request, an id that is in use, hello twice
	CodeMethod         Code = -32601 // no such method
	CodeParams         Code = -32602 // parameters or arguments that do not fit the schema
	CodeInternal       Code = -32603 // the tool panicked, or returned what is not JSON

	CodeTool         Code = -32000 // the tool returned an error
	CodeUnauthorized Code = -32001 // wrong token, or nothing yet but hello is answered
	CodeNotFound     Code = -32002 // no tool of that name, or none that this run may see
	CodeDenied       Code = -32003 // the permission hook says no; the message says why
	CodeLimit        Code = -32004 // the run has made all the calls it may
	CodeTimeout      Code = -32005 // the tool took longer than a call may
	CodeCanceled     Code = -32006 // the guest canceled the call, or the run ended
	CodeTooLarge     Code = -32007 // the line, or the answer, is longer than a frame may be
	CodeCompleted    Code = -32008 // the run has its result
	CodeProtocol     Code = -32009 // no such version of the protocol
)

var codeNames = map[Code]string{
	CodeParse: "parse_error", CodeInvalidRequest: "invalid_request", CodeMethod: "method_not_found",
	CodeParams: "invalid_params", CodeInternal: "internal_error", CodeTool: "tool_error",
	CodeUnauthorized: "unauthorized", CodeNotFound: "not_found", CodeDenied: "denied", CodeLimit: "limit_exceeded",
	CodeTimeout: "timeout", CodeCanceled: "canceled", CodeTooLarge: "too_large", CodeCompleted: "completed",
	CodeProtocol: "protocol_version",
}

// String is the word for the code, as in data.type: "invalid_params".
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("code %d", int(c))
}

// Error is what a guest is told when a request is not answered otherwise. A
// tool that returns one, wrapped or not, chooses Type and Data; the guest gets
// it with CodeTool, or with CodeParams or CodeInternal if it has that.
type Error struct {
	Code    Code
	Type    string // data.type; "" is the word for the code
	Message string
	Data    any // data.details, as JSON; left out if it is nil or cannot be that

	panic string // what somebody's function panicked with, for the record
}

func (e *Error) Error() string { return e.Message }

// wireError is an Error on the wire.
type wireError struct {
	Code    Code      `json:"code"`
	Message string    `json:"message"`
	Data    errorData `json:"data"`
}

type errorData struct {
	Type    string          `json:"type"`
	Details json.RawMessage `json:"details,omitempty"`
}

func (e *Error) wire() *wireError {
	kind := e.Type
	if kind == "" {
		kind = e.Code.String()
	}
	return &wireError{Code: e.Code, Message: e.Message, Data: errorData{Type: kind, Details: details(e.Data)}}
}

// details is JSON of what a tool says beyond a message, which can be anything;
// nil where it cannot be JSON.
func details(v any) (j json.RawMessage) {
	if v == nil {
		return nil
	}
	defer func() {
		if recover() != nil { // in a method of v's
			j = nil
		}
	}()
	j, _ = json.Marshal(v) // the message has to do
	return j
}

func refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// refusal answers a request with an error. What answers with a result is put
// together by openResult.
type refusal struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *wireError      `json:"error"`
}

// line is the error as the answer to a request.
func (e *Error) line(id json.RawMessage) []byte {
	return encode(refusal{Version: "2.0", ID: id, Error: e.wire()})
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
	Pinned   string                     `json:"namespace,omitempty"` // all of it is of this namespace
	Language string                     `json:"language,omitempty"`
	Code     string                     `json:"code,omitempty"`
	Vars     map[string]json.RawMessage `json:"vars,omitempty"`
	Args     []string                   `json:"args,omitempty"`
	Stateful bool                       `json:"stateful,omitempty"`
}

type limitsInfo struct {
	Frame int `json:"frame"`
}
