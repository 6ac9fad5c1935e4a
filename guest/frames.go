package guest

import (
	"bytes"
	"encoding/json"
)

// maxFrame is the longest line that is read until the host has sent its limit.
const maxFrame = 8 << 20

// frame is a message from the host about a request.
type frame struct {
	id       uint64
	progress bool
	result   json.RawMessage // or the progress
	err      error
}

// parse decodes a line. It only cuts the usual answer, since the caller, who knows the
// type of the value, parses that again.
func parse(line []byte) (f frame, ok bool) {
	if rest, found := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`)); found {
		i := 0
		for ; i < len(rest) && i < 19 && rest[i] >= '0' && rest[i] <= '9'; i++ {
			f.id = f.id*10 + uint64(rest[i]-'0')
		}
		result, found := bytes.CutPrefix(rest[i:], []byte(`,"result":`))
		if found && i > 0 && bytes.HasSuffix(result, []byte("}}")) {
			f.result = result[:len(result)-1] // the line belongs to the frame
			return f, true
		}
	}
	var m struct {
		ID     json.RawMessage
		Result json.RawMessage
		Method string
		Params struct {
			ID    uint64
			Value json.RawMessage
		}
		Error *struct {
			Code    int
			Message string
			Data    struct {
				Type    string
				Details json.RawMessage
			}
		}
	}
	if json.Unmarshal(line, &m) != nil {
		return frame{}, false
	}
	if m.Method != "" {
		return frame{id: m.Params.ID, progress: true, result: m.Params.Value}, m.Method == "progress"
	}
	f = frame{result: m.Result}
	if e := m.Error; e != nil {
		f.err = &ToolError{Code: e.Code, Type: e.Data.Type, Message: e.Message, Details: e.Data.Details}
	}
	return f, json.Unmarshal(m.ID, &f.id) == nil
}
