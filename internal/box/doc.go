// Package box is the seam between the engine, which decides and reports, and the
// operating system. A [Machine] starts a sandbox from a [Config], the decisions of
// a Plan as plain data. The [Box] it returns starts commands, reports what the
// sandbox uses and which limits were exceeded, and ends everything in it. Each
// command is a [Process].
//
//	engine ── Config ──▶ Machine.Start ──▶ Box ── Request ──▶ Exec ──▶ Process
//	       ◀── Usage, Exceeded ──────────── Box               Process ── Exit ──▶ engine
//
// Nothing here knows engine types, and nothing below knows this package's users:
// a second engine, or a Box on another system, needs no more than these types.
package box
