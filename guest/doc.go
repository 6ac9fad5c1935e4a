// Package guest is the client library for programs written in Go that run in a
// sandbox: they call tools of the host and return a value. It is the other end of
// the protocol in the comment of package broker. It needs a Unix system and no
// privileges.
//
// A program that calls a tool and returns the number of rows:
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
