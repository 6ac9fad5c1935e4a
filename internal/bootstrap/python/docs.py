# Signatures and docstrings of tools, for help() and inspect.
import inspect

JSON_TYPES = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}


class Omitted:
    """Shown as "...", like in type stubs: the default of an optional parameter without one."""

    def __repr__(self):
        return "..."


OMITTED = Omitted()


def properties(spec):
    schema = spec.get("schema")
    schema = schema if isinstance(schema, dict) else {}
    required = schema.get("required") or ()
    for name, prop in (schema.get("properties") or {}).items():
        yield name, prop if isinstance(prop, dict) else {}, name in required


def signature(spec):
    parameters, optional = [], False
    for name, prop, required in properties(spec):
        if not name.isidentifier() or name in KEYWORDS:
            continue
        optional = optional or not required
        parameters.append(inspect.Parameter(
            name,
            # In Python, required parameters after an optional one are keyword-only.
            inspect.Parameter.KEYWORD_ONLY if optional and required else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if required else prop.get("default", OMITTED),
            annotation=json_type(prop)))
    parameters.sort(key=lambda p: p.kind)
    output = spec.get("output")
    returns = json_type(output) if isinstance(output, dict) else inspect.Signature.empty
    return inspect.Signature(parameters, return_annotation=returns)


def json_type(prop):
    kind = prop.get("type")
    if isinstance(kind, list):
        rest = [k for k in kind if k != "null"]
        kind = rest[0] if len(rest) == 1 else None
    if kind == "string" and prop.get("contentEncoding") == "base64":
        return bytes
    return JSON_TYPES.get(kind, inspect.Parameter.empty) if isinstance(kind, str) else inspect.Parameter.empty


def doc(spec):
    lines = []
    for name, prop, required in properties(spec):
        kind = prop.get("type")
        kind = " or ".join(kind) if isinstance(kind, list) else kind or "any"
        line = "    %s (%s%s)" % (name, kind, "" if required else ", optional")
        if "enum" in prop:
            line += ", one of " + ", ".join(map(repr, prop["enum"]))
        lines.append(line + (": " + prop["description"] if prop.get("description") else ""))
    parts = [spec.get("description") or "A tool of the host.", "\n".join(["Parameters:"] + lines) if lines else ""]
    return "\n\n".join(filter(None, parts))
