# Values of types that JSON does not have, or that convert themselves.


def plain(value, path):
    """Converts a value to None, bool, int, float, str, list and dict. Raises with the path if it cannot."""
    try:
        return convert(value, path, ())
    except RecursionError:
        raise ValueError("value at %s is nested too deeply to be given to the host as JSON" % path) from None


def refusal(error, what, path):
    e = error("%s at %s cannot be given to the host as JSON" % (what, path))
    e.path = path
    return e


def type_name(value):
    kind = type(value)
    return kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "." + kind.__qualname__


def known(module, *names):
    """Types of a module, or () if nothing has imported it: then no value can have them."""
    module = sys.modules.get(module)
    return tuple(t for t in (getattr(module, name, None) for name in names) if isinstance(t, type))


LISTS = (list, tuple, range, type({}.keys()), type({}.values()), type({}.items()))


def convert(value, path, above):
    if value is None or value is True or value is False:
        return value
    if isinstance(value, known("enum", "Enum")):
        return convert(value.value, path, above)
    if isinstance(value, str):
        return unicode(str.__str__(value), path)
    if isinstance(value, int):
        return integer(int.__int__(value), path)
    if isinstance(value, float):
        return finite(float.__float__(value), path)
    if isinstance(value, (bytes, bytearray, memoryview)):
        import binascii
        return binascii.b2a_base64(value, newline=False).decode()
    if id(value) in above:
        raise refusal(ValueError, "value that contains itself", path)
    above += (id(value),)
    if isinstance(value, sys.modules["_collections_abc"].Mapping):
        return members(value.items(), path, above)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return members(zip(value._fields, value), path, above)
    if isinstance(value, (set, frozenset)):
        try:
            value = sorted(value)
        except TypeError:
            value = list(value)
    if isinstance(value, LISTS + known("collections", "deque")):
        return [convert(v, "%s[%d]" % (path, i), above) for i, v in enumerate(value)]
    return special(value, path, above)


def special(value, path, above):
    kind = type(value)
    if kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas."):
        return None
    if hasattr(kind, "__dataclass_fields__"):
        import dataclasses
        return members([(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)], path, above)
    if isinstance(value, known("datetime", "date", "time")):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, known("datetime", "timedelta")):
        return value.total_seconds()
    if isinstance(value, scalars()):
        return unicode(str(value), path)
    if isinstance(value, known("pandas", "DataFrame", "Series")):  # missing values are NaN
        value = value.astype(object).where(value.notna(), None)
        return convert(value.to_dict("records") if hasattr(value, "columns") else value.tolist(), path, above)
    if hasattr(kind, "dtype") and hasattr(kind, "tolist"):  # numpy arrays, scalars and lookalikes
        value = value.tolist()
        if hasattr(type(value), "dtype"):  # still not a plain value
            raise refusal(TypeError, "value of type " + type_name(value), path)
        return convert(value, path, above)
    if hasattr(kind, "model_dump"):  # pydantic
        return convert(value.model_dump(), path, above)
    if hasattr(kind, "dict") and hasattr(kind, "__fields__"):  # before version 2
        return convert(value.dict(), path, above)
    if hasattr(kind, "__attrs_attrs__"):
        return members([(a.name, getattr(value, a.name)) for a in kind.__attrs_attrs__], path, above)
    raise refusal(TypeError, "value of type " + type_name(value), path)


def scalars():
    """Types that are converted to their text."""
    return (known("decimal", "Decimal") + known("fractions", "Fraction") + known("uuid", "UUID")
            + known("pathlib", "PurePath")
            + known("ipaddress", "IPv4Address", "IPv6Address", "IPv4Network", "IPv6Network"))


def unicode(value, path):
    try:
        value.encode()
    except UnicodeEncodeError:
        raise refusal(ValueError, "text with a lone surrogate", path) from None
    return value


def integer(value, path):
    try:
        int.__repr__(value)
    except ValueError:  # sys.set_int_max_str_digits
        raise refusal(ValueError, "integer of too many digits", path) from None
    return value


def finite(value, path):
    if value - value != 0:
        raise refusal(ValueError, repr(value), path)
    return value


def members(items, path, above):
    new = {}
    for key, value in items:
        name = key_of(key, path)
        new[name] = convert(value, "%s[%s]" % (path, ascii(name)[1:-1].join('""')), above)
    return new


def key_of(key, path):
    if isinstance(key, known("enum", "Enum")):
        key = key.value
    if key is None or key is True or key is False:
        return {None: "null", True: "true", False: "false"}[key]
    if isinstance(key, str):
        return unicode(str.__str__(key), path)
    if isinstance(key, int):
        return int.__repr__(integer(key, path))
    if isinstance(key, float):
        return float.__repr__(finite(key, path))
    if isinstance(key, known("datetime", "date", "time")):
        return key.isoformat()
    if isinstance(key, scalars()):
        return str(key)
    if hasattr(type(key), "dtype") and hasattr(key, "item"):  # numpy scalars
        key = key.item()
        if not hasattr(type(key), "dtype"):
            return key_of(key, path)
    raise refusal(TypeError, "key of type " + type_name(key), path)
