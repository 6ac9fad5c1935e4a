# Namespaces: their tools are attributes.


class Namespace:
    __module__ = "__main__"

    def __init__(self, name):
        self.__name__ = name

    def __dir__(self):
        return sorted(name for name in self.__dict__ if name != "__name__")

    def __getattr__(self, name):
        raise AttributeError("namespace %r has no tool %r; it has %s" % (self.__name__, name, ", ".join(dir(self))))

    def __repr__(self):
        return "<namespace %s: %s>" % (self.__name__, ", ".join(dir(self)))


def bind_spaces(spaces):
    for where, tools in spaces.items():
        for name in identifiers(where):
            # If a tool has the name of the namespace, the tools become its attributes.
            group = bound.setdefault(name, Namespace(where))
            for tool in tools:
                for n in identifiers(tool.__name__):
                    group.__dict__[n] = tool
