// The user's code runs like a module: strict, with imports, await and return at the top
// level. It becomes the body of an async function whose head is a line of its own,
// numbered 0, so that lines and columns are those of the user.

const vm = require('vm');

const file = '<code>';

const wrap = (head, code) => new vm.Script(
  `(async(__tegmen)=>{"use strict";__tegmen.peek=[()=>result,()=>__result__];${head}\n${code}\n;return __tegmen})`,
  { filename: file, lineOffset: -1 });

// load replaces import statements. Relative names refer to the working directory, where
// Node sees this file.
async function load(name, exports, attributes) {
  const module = await import(name, attributes && { with: attributes });
  for (const e of exports) {
    if (!(e in module)) throw new SyntaxError(`The requested module '${name}' does not provide an export named '${e}'`);
  }
  return module;
}

// compile turns the code into a function of one object: it sets last to the value of the
// last statement, if that is an expression, and peek; it uses load, import, meta and
// hoist. The function returns the object unless the code returns.
function compile(code, stateful) {
  code = code.replace(/^#!/, '//');
  const simple = stateful ? undefined : quick(code);
  if (simple) return { main: simple.runInThisContext(), names: [] };
  let parsed = { head: '', text: code, names: [] };
  let wrong;
  try {
    parsed = rewrite(code, stateful);
  } catch (e) {
    wrong = e; // V8 has better messages, and may know syntax that acorn does not
  }
  let main;
  try {
    main = wrap(parsed.head, parsed.text).runInThisContext();
  } catch (e) {
    const at = /^<code>:(\d+)/.exec(e?.stack);
    if (wrong?.loc && at && (at[1] < 1 || at[1] > code.split('\n').length)) throw misplaced(code, wrong);
    throw e;
  }
  if (wrong && stateful) throw wrong.loc ? misplaced(code, wrong) : wrong; // otherwise its variables would be lost
  return { main, names: parsed.names, moved: parsed.moved };
}

// misplaced returns acorn's error in the form of V8. V8 itself shows a line that the user
// has not written if something is not closed, or closed twice.
function misplaced(code, { message, pos, loc: { line, column } }) {
  const ends = code.slice(pos).trim() === '';
  const what = message.replace(/ \(\d+:\d+\)$/, '').replace(/^Unexpected token$/, `$& '${code[pos]}'`);
  const e = new SyntaxError(ends ? 'Unexpected end of input' : what);
  e.stack = `${file}:${line}\n${code.split('\n')[line - 1]}\n${' '.repeat(column)}^\n\n${e}`;
  return e;
}

const mark = '__tegmen.last=('; // inserted before the expression that is the value

// quick avoids acorn, which costs 8 ms, if V8 can decide: the text before the last line
// that starts with a word is complete, and the rest is one statement. A statement only
// continues in such a line if the word is one like else or in, which starts no
// statement. Functions and classes need acorn, since they look like expressions.
function quick(code) {
  if (/\b(?:import|export)\b/.test(code)) return undefined;
  let at = code.length;
  do at = code.lastIndexOf('\n', at - 1); while (at > 0 && !/[\w$]/.test(code.charAt(at + 1)));
  const last = code.slice(at + 1).replace(/[\s;]+$/, '');
  const [word] = /^[A-Za-z_$]+\b/.exec(last) ?? [];
  if (!word || /^(?:async|class|function)$/.test(word)) return undefined;
  const before = code.slice(0, at + 1);
  const one = single[word];
  // The mark of the last expression must be in a line before it, to keep columns, and
  // outside of a comment.
  const kept = before.replace(/(?:\s|^[ \t]*\/\/[^`*\n]*$)+(?![^])/m, '');
  if (!one && kept.slice(kept.lastIndexOf('\n') + 1).includes('//')) return undefined;
  try {
    new vm.Script(`async()=>{"use strict";${before}\n};async()=>{"use strict";${(one ?? expression)(last)}\n}`);
    if (one) return wrap('', code);
    if (!kept) return wrap(mark, `${before}${last}\n)`);
    return wrap('', `${kept};${mark}${before.slice(kept.length)}${last}\n)`);
  } catch {
    return undefined;
  }
}

// Valid only if the text is one expression, or one statement if it begins with a keyword.
const expression = (text) => `return(${text}\n);return ${text}`;
const statement = (text) => `if(1)${text}\nelse;`;
const declaration = (text) => `for(${text}\n;;);`;
const single = Object.assign(Object.create(null), {
  const: declaration, let: declaration, var: declaration,
  do: statement, for: statement, if: statement, return: statement, switch: statement, throw: statement, try: statement, while: statement,
});

// rewrite turns the text of a module into the body of a function: imports become calls of
// load in the head, where they are hoisted to, and exports are dropped. If stateful,
// declarations at the top level become properties of the global object, listed in names,
// for the next code.
function rewrite(code, stateful) {
  // Node ships its parser for its own REPL.
  const acorn = require('internal/deps/acorn/acorn/dist/acorn');
  const { body } = acorn.parse(code, { ecmaVersion: 'latest', sourceType: 'module',
    allowAwaitOutsideFunction: true, allowReturnOutsideFunction: true });
  const edits = []; // {at, end, text}, never nested
  const names = [];
  const hoisted = [];
  let head = '';
  let moved; // text after a column of a line is shifted right by an insertion
  const edit = (at, end, text) => edits.push({ at, end, text });
  const semicolon = (n) => (code[n.end - 1] === ';' ? n.end - 1 : n.end);
  const blank = (at, end) => edit(at, end, `;${code.slice(at + 1, end).replace(/[^\n]/g, ' ')}`);

  for (const node of body) {
    const source = node.source?.raw;
    let declared = node;
    if (node.type === 'ImportDeclaration') {
      head += importOf(node, code, stateful ? names : undefined);
      blank(node.start, node.end);
    } else if (source) { // export … from
      head += `await __tegmen.load(${source});`;
      blank(node.start, node.end);
    } else if (node.type.startsWith('Export')) {
      declared = node.declaration;
      if (!declared) {
        blank(node.start, node.end);
      } else if (node.type === 'ExportDefaultDeclaration' && !declared.id) {
        edit(node.start, code.indexOf('default', node.start) + 'default'.length, `;${mark}`);
        edit(semicolon(node), semicolon(node), ')');
      } else {
        blank(node.start, declared.start);
      }
    }
    if (stateful && declared) globalise(declared, code, edit, names, hoisted);
  }
  if (/import\s*[.(]/.test(code)) {
    walk(body, (n) => {
      if (n.type === 'MetaProperty' && n.meta.name === 'import') edit(n.start, n.end, '__tegmen.meta');
      if (n.type === 'ImportExpression') edit(n.start, n.start + 'import'.length, '__tegmen.import');
    });
  }
  if (hoisted.length) head += `__tegmen.hoist({${hoisted}});`;

  const last = body.at(-1);
  if (last?.type === 'ExpressionStatement') {
    const before = body.at(-2);
    if (before) {
      edit(before.end, before.end, `;${mark}`);
      const above = code.slice(0, before.end).split('\n');
      moved = { line: above.length, column: above.at(-1).length, by: mark.length + 1 };
    } else {
      head += mark;
    }
    edit(semicolon(last), semicolon(last), ')');
  }
  return { head, names, moved, text: apply(code, edits) };
}

function apply(code, edits) {
  let text = '';
  let at = 0;
  for (const e of edits.sort((a, b) => a.at - b.at || a.end - b.end)) {
    text += code.slice(at, e.at) + e.text;
    at = e.end;
  }
  return text + code.slice(at);
}

// importOf returns an import statement as an assignment.
function importOf(node, code, names) {
  const quote = (n) => (n.type === 'Identifier' ? JSON.stringify(n.name) : n.raw);
  const exports = [];
  const parts = [];
  let all = '';
  for (const s of node.specifiers) {
    names?.push(s.local.name);
    if (s.type === 'ImportNamespaceSpecifier') {
      all = s.local.name;
      continue;
    }
    const name = s.type === 'ImportDefaultSpecifier' ? '"default"' : quote(s.imported);
    exports.push(name);
    parts.push(`${name}:${s.local.name}`);
  }
  const attributes = (node.attributes ?? []).map((a) => `${quote(a.key)}:${a.value.raw}`);
  const loaded = `await __tegmen.load(${node.source.raw},[${exports}],${attributes.length ? `{${attributes}}` : undefined})`;
  const pattern = `{${parts}}`;
  if (names) return all ? `${all}=${loaded};(${pattern}=${all});` : `(${pattern}=${loaded});`;
  return all ? `const ${all}=${loaded},${pattern}=${all};` : `const ${pattern}=${loaded};`;
}

// globalise turns the declarations of a top-level statement into assignments to names,
// which the caller makes globals. Functions stay, as they may be called before their
// declaration; they are copied.
function globalise(node, code, edit, names, hoisted) {
  if (node.type === 'FunctionDeclaration' && node.id) {
    hoisted.push(node.id.name);
  } else if (node.type === 'ClassDeclaration' && node.id) {
    names.push(node.id.name);
    edit(node.start, node.start, `;(${node.id.name}=`);
    edit(node.end, node.end, ')');
  } else if (node.type === 'VariableDeclaration' && !node.kind.includes('using')) {
    assign(node, 'statement');
  } else {
    nested(node);
  }

  // In blocks and loops only var belongs to the top level.
  function nested(n) {
    walk(n, (child, parent, key) => {
      if (/Function|^Class/.test(child.type)) return false;
      if (child.type !== 'VariableDeclaration' || child.kind !== 'var') return undefined;
      const loop = /^For/.test(parent?.type) && key !== 'body';
      const list = /^(?:BlockStatement|SwitchCase|StaticBlock)$/.test(parent?.type);
      assign(child, loop ? 'loop' : list ? 'statement' : 'single');
      return undefined;
    });
  }

  function assign(n, where) {
    const width = n.declarations[0].start - n.start;
    const gap = code.slice(n.start, n.declarations[0].start).replace(/[^\n]/g, ' ');
    if (where === 'loop') {
      edit(n.start, n.start + width, gap);
    } else {
      edit(n.start, n.start + width, (where === 'statement' ? ';(' : ' (') + gap.slice(2));
    }
    for (const d of n.declarations) {
      namesOf(d.id, names);
      if (!d.init && n.kind !== 'var') edit(d.end, d.end, '=void 0');
    }
    const end = n.declarations.at(-1).end;
    if (where !== 'loop') edit(end, end, ')');
  }
}

// namesOf collects the names that a pattern binds.
function namesOf(pattern, names) {
  switch (pattern?.type) {
    case 'Identifier': names.push(pattern.name); break;
    case 'ObjectPattern': for (const p of pattern.properties) namesOf(p.value ?? p.argument, names); break;
    case 'ArrayPattern': for (const p of pattern.elements) namesOf(p, names); break;
    case 'AssignmentPattern': namesOf(pattern.left, names); break;
    case 'RestElement': namesOf(pattern.argument, names); break;
  }
}

// walk visits a tree from its root. If visit returns false, the nodes below are skipped.
function walk(node, visit, parent, key) {
  if (Array.isArray(node)) {
    for (const n of node) walk(n, visit, parent, key);
  } else if (typeof node?.type === 'string') {
    if (visit(node, parent, key) === false) return;
    for (const k of Object.keys(node)) if (typeof node[k] === 'object') walk(node[k], visit, node, k);
  }
}
