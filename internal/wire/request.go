package wire

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf8"

	"github.com/tegmen-dev/tegmen/broker"
)

const (
	maxInvalid = 100  // invalid requests a link answers before it hangs up
	maxLists   = 1000 // requests for tools/list a link answers: each is long
	maxID      = 64   // bytes of a request's id
)

// request is a line from a guest, with the parameters of every method, so that it is
// parsed once.
type request struct {
	Version string  `json:"jsonrpc"`
	ID      part    `json:"id"`
	Method  *string `json:"method"`
	Params  *params `json:"params"`
}

type params struct {
	Protocol, Token            part // hello
	Name, Namespace, Arguments part // tools/call
	Progress                   part
	ID                         part // cancel
	Run, Value, Error          part // result
}

// part is JSON within a line. The line belongs to the request, so nothing is copied.
type part []byte

// UnmarshalJSON keeps b, which it may do since nobody else has the line.
func (p *part) UnmarshalJSON(b []byte) error { *p = b; return nil }

// id returns the id as it was sent, or nil if there is no valid one.
func (r *request) id() json.RawMessage {
	if len(r.ID) == 0 || len(r.ID) > maxID {
		return nil
	}
	if first := r.ID[0]; first != '"' && first != '-' && (first < '0' || first > '9') {
		return nil
	}
	return json.RawMessage(r.ID)
}

// handle serves one line, all but a call, which it returns. It reports whether to read
// on.
func (l *Link) handle(line []byte) (c *call, more bool) {
	req, e := parse(line)
	switch {
	case e != nil:
		return nil, l.refuse(req.id(), e)
	case *req.Method == "cancel" && req.ID == nil:
		return nil, l.cancel(req.Params)
	case req.id() == nil:
		const text = "%.64s: id must be a number or a string of at most %d bytes"
		return nil, l.refuse(nil, broker.Errorf(broker.CodeInvalidRequest, text, *req.Method, maxID))
	}
	l.mu.Lock()
	greeted, run := l.greeted, l.run
	l.mu.Unlock()
	if !greeted {
		return nil, l.hello(run, &req)
	}
	switch *req.Method {
	case "hello":
		return nil, l.refuse(req.id(), broker.Errorf(broker.CodeInvalidRequest, "hello was already sent"))
	case "tools/list":
		return nil, l.list(run, req.id())
	case "tools/call", "result":
		if req.Params == nil {
			return nil, l.refuse(req.id(), errNoParams())
		}
		if *req.Method == "result" {
			return nil, run.result(req.id(), req.Params)
		}
		return run.call(req.id(), req.Params, len(line))
	}
	return nil, l.refuse(req.id(), broker.Errorf(broker.CodeMethod, "unknown method: %.64s", *req.Method))
}

// parse decodes a line. A request without an error has a method.
func parse(line []byte) (req request, e *broker.Error) {
	if !utf8.Valid(line) {
		return request{}, broker.Errorf(broker.CodeParse, "not valid UTF-8")
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	err := json.Unmarshal(line, &req)
	switch {
	case errors.As(err, &syntax):
		return request{}, broker.Errorf(broker.CodeParse, "%v", err)
	case errors.As(err, &kind) && kind.Field == "params":
		req.Params = nil // each method refuses that
	case err != nil:
		return req, broker.Errorf(broker.CodeInvalidRequest, "%v", err)
	}
	switch {
	case req.Version != "2.0":
		return req, broker.Errorf(broker.CodeInvalidRequest, `jsonrpc must be "2.0"`)
	case req.Method == nil:
		return req, broker.Errorf(broker.CodeInvalidRequest, "method is missing")
	}
	return req, nil
}

func errNoParams() *broker.Error {
	return broker.Errorf(broker.CodeParams, "params must be an object")
}

// refuse answers an invalid request. It reports whether to read on.
func (l *Link) refuse(id json.RawMessage, e *broker.Error) bool {
	l.mu.Lock()
	l.invalid++
	enough := l.invalid > maxInvalid
	l.mu.Unlock()
	return l.answer(id, nil, e) && !enough
}

// hello serves the first request. The link hangs up on a guest that sends another
// request or the wrong token.
func (l *Link) hello(run *Run, req *request) bool {
	var e *broker.Error
	switch p := req.Params; {
	case *req.Method != "hello":
		e = broker.Errorf(broker.CodeUnauthorized, "expected hello")
	case p == nil || !l.isToken(p.Token):
		e = broker.Errorf(broker.CodeUnauthorized, "unauthorized")
	case string(p.Protocol) != strconv.Itoa(broker.Protocol):
		e = broker.Errorf(broker.CodeProtocol, "protocol %.16s is not supported; want %d", p.Protocol, broker.Protocol)
	}
	if e != nil {
		l.answer(req.id(), nil, e)
		return false
	}
	l.mu.Lock()
	l.greeted = true
	l.mu.Unlock()
	return l.answer(req.id(), run.job, nil)
}

// isToken reports whether a JSON string is the token, in constant time, so that its
// duration reveals nothing.
func (l *Link) isToken(j part) bool {
	var token string
	return json.Unmarshal(j, &token) == nil && subtle.ConstantTimeCompare([]byte(token), []byte(l.token)) == 1
}

// list answers tools/list.
func (l *Link) list(run *Run, id json.RawMessage) bool {
	l.mu.Lock()
	l.lists++
	many := l.lists > maxLists
	l.mu.Unlock()
	if e := run.refuseClosed(); e != nil {
		return l.answer(id, nil, e)
	}
	if many {
		return l.answer(id, nil, broker.Errorf(broker.CodeLimit, "tools/list: more than %d requests", maxLists))
	}
	return l.answer(id, bytes.TrimSuffix(encode(map[string]any{"tools": run.tools}), []byte("\n")), nil)
}

// cancel serves the guest's cancel of one of its calls.
func (l *Link) cancel(p *params) bool {
	if p == nil {
		return l.refuse(nil, errNoParams())
	}
	l.current().cancelCall(string(p.ID))
	return true
}
