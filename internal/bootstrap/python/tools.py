# Tools, as code sees them. channel.py is loaded at the first call.


class ToolError(RuntimeError):
    """A tool call that failed. type is a word for the error, code its number, details the tool's data."""

    __module__ = "__main__"

    def __init__(self, message="", type="tool_error", code=-32000, details=None):
        super().__init__(message)
        self.message, self.type, self.code, self.details = message, type, code, details


class Tool:
    __module__ = "__main__"
    _head = None

    def __init__(self, name, spec):
        self.__name__, self.__qualname__, self._spec = spec["name"], name, spec

    def __call__(self, /, *args, **kwargs):
        return call_tool(self, args, kwargs, None)

    # Calls the tool with a dict of arguments; progress is called with each value that the tool reports.
    def call(self, arguments, progress=None):
        return call_tool(self, (), arguments, progress)

    def __get__(self, instance, owner=None):
        return self  # makes help() treat the tool as a function

    def __repr__(self):
        return "<tool %s>" % self.__qualname__

    @property
    def __doc__(self):
        load("docs")
        return doc(self._spec)

    @property
    def __signature__(self):
        load("docs")
        return signature(self._spec)


class Tools(dict):
    """All tools by full name."""

    def __missing__(self, name):
        raise KeyError("no tool %r; available: %s" % (name, ", ".join(self) or "none"))


if "request" not in CORE:
    def call_tool(*args):
        load("channel")  # which defines the real one
        return call_tool(*args)


KEYWORDS = set("""False None True and as assert async await break class continue def del elif else except finally for
from global if import in is lambda nonlocal not or pass raise return try while with yield __debug__""".split())


# The names under which code can use something, if any.
def identifiers(name):
    return [n for n in {name, name.replace("-", "_")} if n.isidentifier() and n not in KEYWORDS]


bound = {}


# Makes variables of a job's tools, except for names that the code of an earlier job uses.
def bind(job):
    for name, value in bound.items():
        if space.get(name) is value:
            del space[name]
    bound.clear()
    tools, spaces = Tools(), {}
    for spec in job["tools"]:
        where, name = spec.get("namespace"), spec["name"]
        full = where + "." + name if where else name
        tool = tools[full] = Tool(full, spec)
        if where:
            spaces.setdefault(where, []).append(tool)
        if not where or where == job.get("namespace"):
            for n in identifiers(name):
                bound[n] = tool
    if spaces:
        load("namespaces")
        bind_spaces(spaces)
    bound.update(tools=tools, ToolError=ToolError)
    for name, value in bound.items():
        space.setdefault(name, value)
