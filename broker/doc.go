// Package broker is the host's side of what a guest may ask for: it serves tool
// calls on one end of a socket pair, whose other end a sandboxed program holds
// as descriptor 3. It runs in the host's process, with the host's rights, on
// arguments that a guest has chosen.
//
// # The wire
//
// JSON-RPC 2.0, UTF-8, one message a line, at most Limits.Frame bytes a line in
// either direction. The guest finds the number of the descriptor in TEGMEN_FD
// and its token in TEGMEN_TOKEN.
//
//	guest -> host  hello       {protocol: 1, token}
//	               result      {protocol: 1, run, tools: […], limits: {frame}, namespace?, language, code?, vars?, args?, stateful?}
//	guest -> host  tools/list  {}
//	               result      {tools: [{name, namespace?, description?, schema, output?}]}
//	guest -> host  tools/call  {name, namespace?, arguments?: {…}, progress?: true}
//	               result      {value}
//	host -> guest  progress    {id, value}         notification: of a call that asked for it
//	guest -> host  cancel      {id}                notification: that call is not wanted any more
//	guest -> host  result      {run?, value?}  or  {run?, error: {type, message, traceback?}}
//	               result      {}                  the first one counts
//	host -> guest  run         as the result of hello: notification, a stateful guest's next job
//	host -> guest  cancel      {}                  notification: the run is over
//
// A request's id is a number or a string of at most 64 bytes; one that is in
// use is refused. Requests are served concurrently, and answered in the order in
// which they are done. Errors have one of the codes below, and in data.type a
// word for it, or what the tool says of itself; see Error. A line that is too
// long is skipped and answered by an error with id null.
//
// A []byte travels as base64 in a string; the schema of such a string has
// contentEncoding "base64", by which a guest knows to decode one it is given.
//
// Nothing is served before hello, and but for the answer that says so nothing
// after result. A guest that sends more calls than are served at once is not
// read from meanwhile, so what it sends is never held in memory beyond that.
package broker
