// The channel to the host: descriptor 3, one JSON text a line. hello uses it
// synchronously; node:net, which takes longer to load than a call takes, is loaded at
// the first call.

// Tools and variables of the code may take these names, so copies are kept.
const {
  Array, ArrayBuffer, Atomics, Boolean, Buffer, DataView, Error, Int32Array, JSON, Map, Number, Object, Promise, Set,
  SharedArrayBuffer, String, SyntaxError, TypeError, Uint8Array, process, require, setImmediate,
} = globalThis;

const fs = require('fs');

const channelFD = Number(process.env.TEGMEN_FD);
const token = process.env.TEGMEN_TOKEN;
delete process.env.TEGMEN_FD;
delete process.env.TEGMEN_TOKEN;

// ToolError is the error of a call.
class ToolError extends Error {
  constructor(message, type = 'tool_error', code = -32000, details = undefined) {
    super(message);
    this.type = type;
    this.code = code;
    if (details !== undefined) this.details = details;
  }
}
Object.defineProperty(ToolError.prototype, 'name', { value: 'ToolError', writable: true, configurable: true });

const hostGone = () => new ToolError('the host closed the connection', 'canceled', -32006);

const completed = () => new ToolError('the run already has its result', 'completed', -32008);

// writeAll writes to a descriptor, blocking or not.
function writeAll(fd, data) {
  for (let rest = Buffer.from(data); rest.length;) {
    try {
      rest = rest.subarray(fs.writeSync(fd, rest));
    } catch (e) {
      if (e.code !== 'EAGAIN') throw e;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

class Channel {
  #calls = new Map(); // in flight: id to {resolve, reject, progress}
  #next = 1;
  #parts = []; // of an incomplete line
  #socket;
  #closed = false;
  #always = false; // the host may send another run
  #kept = false; // the socket keeps the process alive
  #quiet; // called once no call is in flight
  over = false; // the run has its result: calls are refused
  frame = Infinity; // longest line in bytes
  notified = () => {}; // called for each notification: (method, params)
  onclose = () => {};

  // ask sends a request and waits for its answer; nothing else may be in flight.
  ask(method, params) {
    const id = this.#next++;
    let answer;
    writeAll(channelFD, `${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    const buffer = Buffer.allocUnsafe(1 << 16);
    while (!answer) {
      let n;
      try {
        n = fs.readSync(channelFD, buffer);
      } catch (e) {
        if (e.code !== 'EAGAIN') throw e;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
        continue;
      }
      if (n === 0) throw hostGone();
      this.#read(buffer.subarray(0, n), (m) => {
        if (m.id === id) answer = m;
      });
    }
    if (answer.error) throw new Error(answer.error.message);
    return answer.result;
  }

  // line returns a request as a line, or throws if it is too long.
  #line(id, method, params) {
    const line = Buffer.from(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}\n`);
    if (line.length - 1 > this.frame) {
      throw new ToolError(`message of ${line.length - 1} bytes exceeds the limit of ${this.frame}`, 'too_large', -32007);
    }
    return line;
  }

  // call sends a request and returns its id. The answer goes to the functions of
  // caller.
  call(method, params, caller) {
    if (this.#closed) throw hostGone();
    if (this.over) throw completed();
    const id = this.#next++;
    const line = this.#line(id, method, params);
    this.#calls.set(id, caller);
    this.#send(line);
    this.open();
    this.#keep();
    return id;
  }

  // cancel cancels a call on the host.
  cancel(id) {
    if (!this.#calls.delete(id)) return;
    this.#send(Buffer.from(`{"jsonrpc":"2.0","method":"cancel","params":{"id":${id}}}\n`));
    this.#keep();
  }

  // final returns the last request of a run, for last to send.
  final(method, params) {
    return this.#line(this.#next++, method, params);
  }

  // last sends a request without waiting for the answer, and then calls then. If then is
  // null, the process is exiting and the request is sent synchronously.
  last(line, then) {
    if (this.#closed) {
      then?.();
    } else if (!then) {
      if (!this.#socket?.writableLength) writeAll(channelFD, line);
    } else {
      this.#send(line);
      if (this.#socket?.writableLength) this.#socket.write('', then);
      else then();
    }
  }

  // quiet calls then once no call is in flight. Calls made in the same turn of the event
  // loop in which others ended count.
  quiet(then) {
    this.#quiet = then;
    setImmediate(() => {
      if (this.#calls.size > 0 || this.#quiet !== then) return;
      this.#quiet = undefined;
      then();
    });
  }

  // fail rejects the calls in flight.
  fail(error = completed) {
    const calls = [...this.#calls.values()];
    this.#calls.clear();
    for (const c of calls) c.reject(error());
    this.#keep();
  }

  // Writes directly if possible: the socket would do the same at a higher cost.
  #send(line) {
    let rest = line;
    try {
      if (!this.#socket?.writableLength) rest = line.subarray(fs.writeSync(channelFD, line));
      if (rest.length && !this.#socket) {
        writeAll(channelFD, rest);
        return;
      }
    } catch (e) {
      if (e.code !== 'EAGAIN') {
        this.#close();
        return;
      }
    }
    if (rest.length) this.open().write(rest);
  }

  open() {
    if (this.#socket || this.#closed) return this.#socket;
    const { Socket } = require('net');
    const callback = (n, buffer) => {
      this.#read(buffer.subarray(0, n), (m) => this.#dispatch(m));
      return true;
    };
    const socket = new Socket({ fd: channelFD, onread: { buffer: Buffer.allocUnsafe(1 << 16), callback } });
    socket.on('error', () => {});
    socket.on('close', () => this.#close());
    socket.unref();
    this.#socket = socket;
    return socket;
  }

  // stay keeps the process alive for messages from the host.
  stay() {
    this.#always = true;
    this.open();
    this.#keep();
  }

  #keep() {
    if (this.#quiet && this.#calls.size === 0) this.quiet(this.#quiet);
    const keep = this.#always || this.#calls.size > 0;
    if (keep === this.#kept || !this.#socket) return;
    this.#kept = keep;
    if (keep) this.#socket.ref();
    else this.#socket.unref();
  }

  #close() {
    if (this.#closed) return;
    this.#closed = true;
    this.fail(hostGone);
    this.onclose();
  }

  // read splits the received bytes into lines. The buffer is reused afterwards.
  #read(buffer, each) {
    let at = 0;
    for (let end; (end = buffer.indexOf(10, at)) >= 0; at = end + 1) {
      let line;
      if (this.#parts.length) {
        line = Buffer.concat([...this.#parts, buffer.subarray(at, end)]).toString();
        this.#parts = [];
      } else {
        line = buffer.toString('utf8', at, end);
      }
      each(JSON.parse(line));
    }
    if (at < buffer.length) this.#parts.push(Buffer.from(buffer.subarray(at)));
  }

  #dispatch({ id, method, params, result, error }) {
    if (method === 'progress') {
      const caller = this.#calls.get(params.id);
      caller?.progress?.(params.value);
      return;
    }
    if (method) {
      this.notified(method, params);
      return;
    }
    const caller = this.#calls.get(id);
    if (!this.#calls.delete(id)) return;
    this.#keep();
    if (error) caller.reject(new ToolError(error.message, error.data?.type, error.code, error.data?.details));
    else caller.resolve(result.value);
  }
}
