// Tools as functions.

// caller returns the function that calls a tool.
function caller(channel, tool) {
  const decode = isBytes(tool.output) ? (v) => (typeof v === 'string' ? Buffer.from(v, 'base64') : v) : (v) => v;
  const named = JSON.stringify(tool.name) + (tool.namespace ? `,"namespace":${JSON.stringify(tool.namespace)}` : '');

  function call(args, from, { progress, signal } = {}) {
    const site = {}; // the call site, for the stack of a later error
    Error.captureStackTrace(site, from);
    const params = `{"name":${named},"arguments":${stringify(args, 'arguments')}${progress ? ',"progress":true' : ''}}`;
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      let id;
      const abort = () => {
        channel.cancel(id);
        reject(signal.reason);
      };
      const end = (settle, value) => {
        signal?.removeEventListener('abort', abort);
        settle(value);
      };
      const failed = (e) => {
        e.stack = `${e.name}: ${e.message}${site.stack.slice(site.stack.indexOf('\n'))}`;
        end(reject, e);
      };
      const progressed = progress && ((value) => {
        try {
          progress(value);
        } catch (e) {
          channel.cancel(id);
          end(reject, e);
        }
      });
      try {
        id = channel.call('tools/call', params, { resolve: (v) => end(resolve, decode(v)), reject: failed, progress: progressed });
      } catch (e) {
        failed(e);
        return;
      }
      signal?.addEventListener('abort', abort);
    });
  }

  const f = { [tool.name]: async (...args) => call(argumentsOf(tool, args), f) }[tool.name];
  return Object.assign(f, {
    description: tool.description ?? '',
    schema: tool.schema,
    call: async (args = {}, options = {}) => call(args, f.call, options),
  });
}

// argumentsOf returns the arguments of a call: a single plain object as it is, otherwise
// an object that maps the schema's properties, in order, to the values.
function argumentsOf(tool, args) {
  if (args.length === 1 && isPlain(args[0])) return args[0];
  const names = Object.keys(tool.schema?.properties ?? {});
  if (args.length > names.length) {
    throw new TypeError(`${tool.name} takes at most ${names.length} argument${names.length === 1 ? '' : 's'}, ${args.length} given`);
  }
  return Object.fromEntries(args.map((value, i) => [names[i], value]));
}

// bind returns the globals for a job's tools: name to value.
function bind(channel, job) {
  const globals = Object.create(null);
  const tools = Object.create(null);
  const alias = Object.create(null); // with _ for -, unless that name is taken
  const put = (o, name, value) => {
    if (/^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(name)) o[name] = value;
    else if (/^[\p{ID_Start}$_][\p{ID_Continue}$-]*$/u.test(name)) (alias[name] ??= []).push([o, value]);
  };
  for (const tool of job.tools ?? []) {
    const f = caller(channel, tool);
    tools[tool.namespace ? `${tool.namespace}.${tool.name}` : tool.name] = f;
    if (!tool.namespace || tool.namespace === job.namespace) put(globals, tool.name, f);
  }
  const spaces = Object.create(null);
  for (const tool of job.tools ?? []) {
    if (!tool.namespace) continue;
    const f = tools[`${tool.namespace}.${tool.name}`];
    let space = spaces[tool.namespace];
    if (!space) {
      // If a tool has the name of a namespace, the tools in it become its properties.
      space = spaces[tool.namespace] = globals[tool.namespace] ?? Object.create(null);
      put(globals, tool.namespace, space);
    }
    Object.defineProperty(space, tool.name, { value: f, configurable: true, enumerable: true, writable: true });
    put(space, tool.name, f);
  }
  for (const [name, all] of Object.entries(alias)) {
    for (const [o, value] of all) o[name.replaceAll('-', '_')] ??= value;
  }
  return Object.assign(globals, { tools, ToolError });
}
