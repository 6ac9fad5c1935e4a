package broker

import (
	"errors"
	"fmt"
	"time"
)

// Protocol is the version of the protocol in the package comment.
const Protocol = 1

// ErrClosed is returned when the guest is gone: the connection to it has ended.
var ErrClosed = errors.New("link closed")

// Limits bound what a guest may ask for. Zero fields mean the defaults. A guest that
// does not read makes the host keep up to AtOnce answers of up to Frame bytes.
type Limits struct {
	Frame     int           // bytes of a line in either direction; default 8 MiB
	Calls     int           // calls that a run may make, refused ones not counted; default 1000
	AtOnce    int           // calls served concurrently; default 32
	CallTime  time.Duration // time for a call of a tool without a Timeout; default: until the run ends
	Handshake time.Duration // from the start of the first run to hello; default 30 s
}

// WithDefaults returns l with the default for each field that is zero.
func (l Limits) WithDefaults() Limits {
	orDefault := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	orDefault(&l.Frame, 8<<20)
	orDefault(&l.Calls, 1000)
	orDefault(&l.AtOnce, 32)
	if l.Handshake == 0 {
		l.Handshake = 30 * time.Second
	}
	return l
}

// Code is the code of an error on the wire.
type Code int

// The codes: those of JSON-RPC 2.0 first, then this protocol's own. Code.String
// returns the word for each.
const (
	CodeParse          Code = -32700 // not JSON, not UTF-8, or nested too deeply
	CodeInvalidRequest Code = -32600 // not a request, an id that is in use, or a second hello
	CodeMethod         Code = -32601 // unknown method
	CodeParams         Code = -32602 // invalid parameters, or arguments that do not fit the schema
	CodeInternal       Code = -32603 // the tool panicked or returned invalid JSON

	CodeTool         Code = -32000 // the tool returned an error
	CodeUnauthorized Code = -32001 // wrong token, or a request before hello
	CodeNotFound     Code = -32002 // no such tool, or hidden from this run
	CodeDenied       Code = -32003 // refused by Set.Permit; the message says why
	CodeLimit        Code = -32004 // the run has made Limits.Calls calls
	CodeTimeout      Code = -32005 // the call took longer than Tool.Timeout or Limits.CallTime
	CodeCanceled     Code = -32006 // the guest canceled the call, or the run ended
	CodeTooLarge     Code = -32007 // the line, the answer or the arguments exceed a limit
	CodeCompleted    Code = -32008 // the run already has its result
	CodeProtocol     Code = -32009 // unsupported version of the protocol
)

var codeNames = map[Code]string{
	CodeParse: "parse_error", CodeInvalidRequest: "invalid_request", CodeMethod: "method_not_found",
	CodeParams: "invalid_params", CodeInternal: "internal_error", CodeTool: "tool_error",
	CodeUnauthorized: "unauthorized", CodeNotFound: "not_found", CodeDenied: "denied", CodeLimit: "limit_exceeded",
	CodeTimeout: "timeout", CodeCanceled: "canceled", CodeTooLarge: "too_large", CodeCompleted: "completed",
	CodeProtocol: "protocol_version",
}

// String returns the word for the code that data.type has: "invalid_params".
func (c Code) String() string {
	if s, ok := codeNames[c]; ok {
		return s
	}
	return fmt.Sprintf("code %d", int(c))
}

// Error is the error that a guest receives instead of a result. A tool that returns
// one, wrapped or not, chooses Type and Data; the guest gets it with CodeTool, unless
// Code is CodeParams or CodeInternal, which are kept.
type Error struct {
	Code    Code   // set by broker where a tool leaves it 0
	Type    string // data.type; "" means the word for Code
	Message string // for people
	Data    any    // data.details, as JSON; left out if it is nil or cannot be marshaled
	Panic   string // for the Record only: what a tool or hook panicked with, and the stack
}

func (e *Error) Error() string { return e.Message }

// Errorf returns an Error with a formatted message. %w is not supported.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeError describes an exception that the guest's code did not catch.
type CodeError struct {
	Type      string `json:"type"`                // class of the exception
	Message   string `json:"message"`             // its text
	Traceback string `json:"traceback,omitempty"` // as the language prints it; may be empty
}

func (e *CodeError) Error() string { return e.Type + ": " + e.Message }
