// A run: hello, the code, one result.

const exit = process.exit.bind(process); // a stateful run has another
const channel = new Channel();
let job; // the current one
let code; // the object that its code works on: see compile
let ran = true; // its result has been sent
let taken; // its result once the top level is done; sent when everything it started is
let bound = {}; // its tools as globals
const own = new Set(); // names of tools that earlier code has used for variables

// SystemExit is thrown by process.exit in a stateful guest, which lives on.
class SystemExit extends Error {
  constructor(status = process.exitCode ?? 0) {
    super(String(status));
    this.status = Number(status);
  }
}
Object.defineProperty(SystemExit.prototype, 'name', { value: 'SystemExit' });

// slots are the variables with which code sets its value. Code may assign them
// undeclared, which only a setter sees, or declare its own, which peek reads.
const slots = ['result', '__result__'].map((name, i) => {
  let value;
  let initial;
  let set;
  return {
    reset() {
      value = initial = globalThis[name];
      set = false;
      Object.defineProperty(globalThis, name, { configurable: true, enumerable: true, get: () => value, set(v) {
        value = v;
        set = true;
      } });
    },
    read() {
      let seen;
      try {
        seen = code.peek[i]();
      } catch {
        return undefined; // declared in code that was not reached, or did not compile
      }
      // A function is a helper with that name, or a tool.
      if (typeof seen === 'function') return undefined;
      return set || seen !== initial && seen !== undefined ? [seen] : undefined;
    },
  };
});

// told returns the value that the code has set, as [value], or undefined.
const told = () => slots[0].read() ?? slots[1].read();

// define sets globals, replacing existing ones.
function define(all) {
  for (const [name, value] of Object.entries(all)) {
    try {
      Object.defineProperty(globalThis, name, { value, configurable: true, enumerable: true, writable: true });
    } catch {
      // undefined, NaN and Infinity stay what they are
    }
  }
}

// declare makes globals of the names that a stateful run declares. Existing values are
// kept.
function declare(names) {
  for (const name of names) {
    const d = Object.getOwnPropertyDescriptor(globalThis, name);
    if (!d || !d.set && !d.writable) define({ [name]: globalThis[name] });
  }
}

// meta returns import.meta for the code.
function meta() {
  const { pathToFileURL, URL } = require('url');
  const filename = `${process.cwd()}/${file}`;
  return { url: pathToFileURL(filename).href, filename, dirname: process.cwd(),
    resolve: (name) => (/^\.{0,2}\//.test(name) ? new URL(name, pathToFileURL(filename)).href : pathToFileURL(require.resolve(name)).href) };
}

function run(next) {
  job = next;
  ran = channel.over = false;
  taken = undefined;
  channel.frame = job.limits?.frame ?? Infinity;
  for (const [name, value] of Object.entries(bound)) {
    if (globalThis[name] === value) delete globalThis[name];
    else own.add(name);
  }
  bound = bind(channel, job);
  for (const name of own) delete bound[name];
  define(bound);
  define(job.vars ?? {});
  for (const slot of slots) slot.reset();
  if (job.args) process.argv = [process.execPath, file, ...job.args];
  code = { load, import: (name, options) => import(name, options), hoist: define, get meta() { return meta(); } };
  let main;
  try {
    const compiled = compile(job.code ?? '', job.stateful);
    main = compiled.main;
    if (!job.stateful) code.moved = compiled.moved;
    declare(compiled.names);
  } catch (e) {
    fail(e);
    return;
  }
  const mine = code;
  // Without await: it would put this function into the code's stack.
  Promise.resolve(code).then(main).then(end).catch((e) => (mine === code ? fail(e) : complain(report(describe(e)))));

  async function end(returned) {
    const found = returned === code ? told() ?? ('last' in code ? [code.last] : undefined) : [returned];
    const value = found && [await found[0]];
    if (mine === code && !ran) take(value); // otherwise something it started has ended the run already
  }
}

// take prepares the result from [value], or undefined for none. If the process ends
// with the run, it is sent when nothing is left to do: see exit below.
function take(found) {
  taken = request(found ? `"value":${stringify(found[0], 'result')}` : '');
  const mine = taken;
  if (job.stateful) channel.quiet(() => taken === mine && !ran && send(mine));
}

// request returns a result request; members is JSON.
function request(members) {
  const id = job.run === undefined ? '' : `"run":${JSON.stringify(job.run)}${members && ','}`;
  return channel.final('result', `{${id}${members}}`);
}

// send sends the result, once.
function send(line, then = () => {}) {
  channel.last(line, then);
  ran = channel.over = true;
  channel.fail();
}

// fail ends the run with an error.
function fail(e) {
  const left = e instanceof SystemExit;
  if (left && !ran && e.status === 0) {
    try {
      if (!taken) take(told());
    } catch (wrong) {
      fail(wrong);
      return;
    }
    send(taken);
    return;
  }
  const error = describe(e);
  if (!left) complain(report(error));
  const then = () => job.stateful || exit(1);
  if (ran) {
    then();
    return;
  }
  let line;
  try {
    line = request(`"error":${JSON.stringify(error)}`);
  } catch (tooLarge) {
    fail(tooLarge);
    return;
  }
  send(line, then);
}

const report = ({ traceback }) => `${traceback}\n\nNode.js ${process.version}\n`;

function complain(text) {
  try {
    writeAll(2, text);
  } catch {
    // stderr is closed
  }
}

// describe returns an error in the form of the protocol.
function describe(e) {
  const { inspect, types } = require('util');
  const wrong = types.isNativeError(e) || e instanceof Error;
  const tooLarge = e instanceof ToolError && e.type === 'too_large';
  const most = 1 << 16; // characters, so that it fits into a frame
  return {
    type: String((tooLarge ? e.type : wrong ? e.name : e?.constructor?.name) ?? typeof e),
    message: (wrong ? String(e.message) : inspect(e)).slice(0, most),
    traceback: traceback(e, wrong, inspect(e)).slice(0, most),
  };
}

// traceback returns what Node prints for an error, without the stack frames of Node and
// of this file.
function traceback(e, wrong, text) {
  if (!wrong) return `Uncaught ${text}`;
  if (e.stack?.startsWith(`${file}:`)) text = e.stack; // a syntax error, which includes the line
  text = text.replace(/\n +at [^\n]*?(?:\bnode:|tegmen:guest|\[eval\]-wrapper)[^\n]*?(?=\n| \{\n|$)/g, '');
  const { line: of, column, by } = code.moved ?? {};
  text = text.replace(/<code>:(\d+):(\d+)/g, (_, l, c) => `${file}:${l}:${Number(l) === of && c > column ? c - by : c}`);
  const at = /<code>:(\d+):(\d+)/.exec(text);
  const line = at && job.code?.split('\n')[at[1] - 1];
  if (!line || line.length > 500 || job.stateful || text.startsWith(file)) return text;
  return `${file}:${at[1]}\n${line}\n${' '.repeat(at[2] - 1)}^\n\n${text}`;
}

process.on('uncaughtException', (e, origin) => {
  if (process.listenerCount('uncaughtException') > 1) return; // the code has a handler
  // Calls that the code did not wait for end with the run: no need to report that.
  if (ran && origin === 'unhandledRejection' && (e?.code === -32006 || e?.code === -32008)) return;
  fail(e);
});

let idle = false; // nothing is left to do
process.on('beforeExit', () => {
  idle = true;
});
process.on('exit', (status) => {
  if (ran) return;
  if (taken) {
    if (idle || status === 0) send(taken, null);
  } else if (idle) {
    const e = new Error('top-level await can never settle');
    complain(`${e.message}\n`);
    process.exitCode = 13; // as in node
    send(request(`"error":${JSON.stringify({ type: 'UnsettledAwait', message: e.message })}`), null);
  } else if (status === 0 && told()) {
    try {
      take(told());
      send(taken, null);
    } catch {
      // it exits without a valid result
    }
  }
});

// Node writes to pipes in the background, and drops the rest when it exits.
for (const name of ['stdout', 'stderr']) {
  const d = Object.getOwnPropertyDescriptor(process, name);
  Object.defineProperty(process, name, { ...d, get() {
    Object.defineProperty(process, name, d);
    process[name]._handle?.setBlocking?.(true);
    return process[name];
  } });
}

process.argv = [process.execPath, file, ...process.argv.slice(1)];
process.execArgv = []; // children must not inherit the options of this process
delete process._eval;

let first;
try {
  first = channel.ask('hello', { protocol: 1, token });
} catch (e) {
  complain(`tegmen: hello: ${e.message}\n`);
  exit(125);
}
if (first.stateful) {
  process.exit = (status) => {
    throw new SystemExit(status);
  };
  channel.notified = (method, params) => {
    if (method === 'run') run(params);
    if (method === 'cancel') channel.fail(hostGone);
  };
  channel.onclose = () => exit(0);
  channel.stay();
} else {
  channel.notified = (method) => method === 'cancel' && channel.fail(hostGone);
}
run(first);
