// Values as JSON, including types that have one obvious form in it.

// stringify is a strict JSON.stringify: it throws, with the path, for a value that JSON
// cannot represent, instead of dropping it. Bytes become base64, a Date ISO 8601, a Map
// an object, a Set an array, a BigInt an integer with all its digits. toJSON is honoured.
function stringify(value, path) {
  const above = new Set(); // the containers of the current value, to detect cycles

  function refuse(what, at) {
    const e = new TypeError(`${what} at ${at} cannot be given to the host as JSON`);
    Error.captureStackTrace(e, stringify);
    throw e;
  }

  function holder(value, at, write) {
    if (above.has(value)) refuse('a cycle', at);
    above.add(value);
    const text = write();
    above.delete(value);
    return text;
  }

  const list = (items, at) => holder(items, at, () =>
    `[${Array.from(items, (item, i) => item === undefined ? 'null' : json(item, `${at}[${i}]`, i))}]`);

  const members = (value, pairs, at) => holder(value, at, () => {
    const out = [];
    for (const [key, member] of pairs) {
      if (member === undefined) continue;
      const name = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
      out.push(`${JSON.stringify(key)}:${json(member, at + name, key)}`);
    }
    return `{${out}}`;
  });

  function map(value, at) {
    for (const key of value.keys()) if (typeof key !== 'string') refuse(`a Map with a key of type ${typeof key}`, at);
    return members(value, value, at);
  }

  function object(value, at, key) {
    if (value instanceof Uint8Array) return `"${Buffer.from(value.buffer, value.byteOffset, value.length).toString('base64')}"`;
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return `"${Buffer.from(value).toString('base64')}"`;
    if (typeof value.toJSON === 'function') return holder(value, at, () => json(value.toJSON(String(key)), at, key));
    if (Array.isArray(value) || value instanceof Set) return list(value, at);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return list(value, at);
    if (value instanceof Map) return map(value, at);
    if (value instanceof Number || value instanceof String || value instanceof Boolean) return json(value.valueOf(), at, key);
    if (value instanceof Error) return members(value, [['name', value.name], ['message', value.message], ...Object.entries(value)], at);
    if (value instanceof Promise) refuse('a Promise that was not awaited', at);
    return members(value, Object.entries(value), at);
  }

  function json(value, at, key) {
    switch (typeof value) {
      case 'string': return JSON.stringify(value);
      case 'boolean': return String(value);
      case 'bigint': return String(value);
      case 'undefined': return 'null';
      case 'number':
        if (!Number.isFinite(value)) refuse(String(value), at);
        return JSON.stringify(value);
      case 'object': return value === null ? 'null' : object(value, at, key);
      default: return refuse(`value of type ${typeof value}`, at);
    }
  }

  // JSON.stringify is faster, and correct for most values.
  return isJSON(value, 0) ? JSON.stringify(value) : json(value, path, '');
}

// isJSON reports whether JSON.parse could have made the value, and it is not deep.
function isJSON(value, depth) {
  switch (typeof value) {
    case 'string': case 'boolean': return true;
    case 'number': return Number.isFinite(value);
    case 'object': break;
    default: return false;
  }
  if (value === null) return true;
  if (depth > 32 || typeof value.toJSON === 'function') return false;
  if (Array.isArray(value)) return value.every((v) => isJSON(v, depth + 1));
  if (!isPlain(value)) return false;
  for (const key in value) if (!isJSON(value[key], depth + 1)) return false;
  return true;
}

// isPlain reports whether an object is a literal {…} and not of a class.
function isPlain(value) {
  if (typeof value !== 'object' || value === null) return false;
  const proto = Object.getPrototypeOf(value);
  return proto === null || Object.getPrototypeOf(proto) === null && Object.hasOwn(proto, 'isPrototypeOf');
}

// isBytes reports whether a schema describes bytes in base64.
const isBytes = (schema) => schema?.contentEncoding === 'base64' && [schema.type].flat().includes('string');
