# Tools, as code sees them. What a call needs comes with the first, in channel.py.


class ToolError(RuntimeError):
    """A tool call that failed. type says how in a word, code in a number; details is what the tool says beyond."""

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

    # Calls the tool with a dict of arguments; progress is called with each value the tool reports meanwhile.
    def call(self, arguments, progress=None):
        return call_tool(self, (), arguments, progress)

    def __get__(self, instance, owner=None):
        return self  # help() takes what has this for a function

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
    """All tools by their full names."""

    def __missing__(self, name):
        raise KeyError("no tool %r; there are: %s" % (name, ", ".join(self) or "none"))


if "request" not in CORE:
    def call_tool(*args):
        load("channel")  # with the true one
        return call_tool(*args)


KEYWORDS = set("""False None True and as assert async await break class continue def del elif else except finally for
from global if import in is lambda nonlocal not or pass raise return try while with yield __debug__""".split())


# The names under which something can be had in code, if any.
def identifiers(name):
    return [n for n in {name, name.replace("-", "_")} if n.isidentifier() and n not in KEYWORDS]


bound = {}


# Makes a job's tools variables, but for names that the code of an earlier job has taken.
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
