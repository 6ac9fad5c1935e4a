# Code with a return at the top level becomes the body of a function in which all variables
# are global, so that the rest means the same as in a module.


def wrap(tree):
    body = tree.body
    top = []
    if isinstance(body[0], _ast.Expr) and isinstance(getattr(body[0].value, "value", None), str):
        space["__doc__"] = body.pop(0).value.value
    while body and isinstance(body[0], _ast.ImportFrom) and body[0].module == "__future__":
        top.append(body.pop(0))
    simplify(body)
    body.append(parse("def f(): return %r" % END).body[0].body[0])
    try:
        code = function(parse("def f(): pass"), top, body)
        coroutine = False
    except SyntaxError as e:
        try:
            code = function(parse("async def f(): pass"), top, body)
        except SyntaxError:
            raise e from None
        coroutine = True
    if code.co_flags & 0x220:  # a generator, sync or async
        raise SyntaxError("'yield' outside function")
    # Without a function's flags it runs like a module: exec, locals and dir use the module's variables.
    code = code.replace(co_flags=code.co_flags & ~3)
    return (lambda: eval(code, space)), coroutine, True


def parse(source):
    return compile(source, FILE, "exec", _ast.PyCF_ONLY_AST, True)


def function(tree, top, body):
    f = tree.body[0]
    f.name = "<module>"
    f.body = body
    tree.body = top + [f]
    code = compiled(tree)
    names = sorted(set(code.co_varnames + code.co_cellvars))
    if not names:
        return code
    names = [name for name in names if name[0] != "."]  # comprehensions inlined into it
    f.body = [_ast.Global(names, lineno=1, col_offset=0, end_lineno=1, end_col_offset=0)] + body
    return compiled(tree)


def compiled(tree):
    module = compile(tree, FILE, "exec", 0, True)
    for c in module.co_consts:
        if getattr(c, "co_name", None) == "<module>":
            return c


def simplify(body):
    """Turns annotated assignments into plain ones: annotated names cannot be global."""
    for i, node in enumerate(body):
        if isinstance(node, _ast.AnnAssign) and isinstance(node.target, _ast.Name):
            at = {k: getattr(node, k) for k in ("lineno", "col_offset", "end_lineno", "end_col_offset")}
            if node.value is None:
                body[i] = _ast.Pass(**at)
            else:
                body[i] = _ast.Assign([node.target], node.value, **at)
        elif type(node).__name__ not in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            for field in "body", "orelse", "finalbody":
                simplify(getattr(node, field, ()))
            for part in getattr(node, "handlers", None) or getattr(node, "cases", ()):
                simplify(part.body)


def stores(node, name):
    """Reports whether code may set a variable."""
    if isinstance(node, list):
        return any(stores(n, name) for n in node)
    if not isinstance(node, _ast.AST):
        return False
    if isinstance(node, _ast.Name) and node.id == name and isinstance(node.ctx, _ast.Store):
        return True
    return any(stores(getattr(node, field, None), name) for field in node._fields)
