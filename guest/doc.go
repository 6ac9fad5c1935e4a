// Package guest is what runs inside a sandbox on behalf of the engine: the
// bootstraps that interpreters are started with, and Client for programs written
// in Go. It is the other side of package broker, whose comment has the wire.
//
// A program in Go that calls a tool and returns what it makes of the answer:
//
//	c, err := guest.Dial()
//	if err != nil {
//		return err
//	}
//	var rows []string
//	if err := c.Call(ctx, "db.query", map[string]any{"sql": "…"}, &rows); err != nil {
//		return c.Fail(err)
//	}
//	return c.Result(len(rows))
package guest
