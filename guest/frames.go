package guest

import (
	"bytes"
	"encoding/json"
)

// maxFrame is the longest line that is read before the host has said its limit.
const maxFrame = 8 << 20

// frame is a message of the host's that concerns a request.
type frame struct {
	id       uint64
	progress bool
	result   json.RawMessage // or what the progress is
	err      error
}

// parse reads a line. The usual answer is cut, for what is in it is parsed
// again, by who knows its type.
func parse(line []byte) (f frame, ok bool) {
	if rest, found := bytes.CutPrefix(line, []byte(`{"jsonrpc":"2.0","id":`)); found {
		i := 0
		for ; i < len(rest) && i < 19 && rest[i] >= '0' && rest[i] <= '9'; i++ {
			f.id = f.id*10 + uint64(rest[i]-'0')
		}
		if result, found := bytes.CutPrefix(rest[i:], []byte(`,"result":`)); found && i > 0 && bytes.HasSuffix(result, []byte("}}")) {
			f.result = result[:len(result)-1] // the line is ours
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
	if m.Error != nil {
		f.err = &ToolError{Code: m.Error.Code, Type: m.Error.Data.Type, Message: m.Error.Message, Details: m.Error.Data.Details}
	}
	return f, json.Unmarshal(m.ID, &f.id) == nil
}
