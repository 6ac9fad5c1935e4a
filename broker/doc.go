// Package broker is the host's side of tool calls: which functions a sandboxed program
// may call, with which arguments, and what became of each call. Tools run in the host's
// process, with the host's rights, on arguments that a guest has chosen. It works on
// every operating system and needs no privileges.
//
// Add puts functions into a Set, and package engine serves the set to the code that it
// runs. Set.Call serves one over any other transport.
//
// # The protocol
//
// A guest holds one end of a socket pair. It finds the number of the descriptor in
// TEGMEN_FD and its token in TEGMEN_TOKEN. Messages are JSON-RPC 2.0 in UTF-8, one a
// line, at most Limits.Frame bytes a line in either direction.
//
//	guest -> host  hello       {protocol: 1, token}
//	               result      {protocol: 1, run, tools: […], limits: {frame}, namespace?,
//	                            language, code?, vars?, args?, stateful?}
//	guest -> host  tools/list  {}
//	               result      {tools: [{name, namespace?, description, schema, output?}]}
//	guest -> host  tools/call  {name, namespace?, arguments?: {…}, progress?: true}
//	               result      {value}
//	host -> guest  progress    {id, value}         notification, for a call that asked for it
//	guest -> host  cancel      {id}                notification: cancels the guest's call
//	guest -> host  result      {run?, value?}  or  {run?, error: {type, message, traceback?}}
//	               result      {}                  the first result counts
//	host -> guest  run         like the result of hello: notification, the next job of a stateful guest
//	host -> guest  cancel      {}                  notification: the run has ended
//
// A request's id is a number or a string of at most 64 bytes; an id that is in use is
// refused. Requests are served concurrently and answered as they complete. Errors carry
// a Code, and in data.type its word or the type that the tool chose; see Error. A line
// that is too long is skipped and answered with an error whose id is null.
//
// A []byte travels as a base64 string. Its schema has contentEncoding "base64", which
// tells a guest to decode it.
//
// Requests before hello are refused. After result, every request gets an error. The
// host stops reading while a guest has Limits.AtOnce calls in flight, so pending
// requests never accumulate in its memory.
package broker
