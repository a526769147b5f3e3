# The classes and functions of Python's library that are made of others.
import os
import tempfile


class defaultdict:
    def __init__(self, default_factory=None, *args):
        self.default_factory = default_factory
        self._dict = dict(*args)

    def __getitem__(self, key):
        if key not in self._dict and self.default_factory is not None:
            self._dict[key] = self.default_factory()
        return self._dict[key]

    def __setitem__(self, key, value):
        self._dict[key] = value

    def __contains__(self, key):
        return key in self._dict

    def __len__(self):
        return len(self._dict)

    def __iter__(self):
        return iter(list(self._dict))

    def get(self, key, default=None):
        return self._dict.get(key, default)

    def keys(self):
        return self._dict.keys()

    def values(self):
        return self._dict.values()

    def items(self):
        return self._dict.items()

    def __delitem__(self, key):
        self._dict.pop(key)

    def __eq__(self, other):
        return self._dict == (dict(other) if hasattr(other, "keys") else other)

    def pop(self, *args):
        return self._dict.pop(*args)

    def setdefault(self, key, default=None):
        return self._dict.setdefault(key, default)

    def update(self, *args, **kwargs):
        self._dict.update(*args, **kwargs)

    def clear(self):
        self._dict.clear()


# What a class derives from whose base is dict.
class Mapping(defaultdict):
    def __init__(self, *args, **kwargs):
        self.default_factory = None
        self._dict = dict(*args, **kwargs)

    def copy(self):
        return type(self)(self._dict)


class Counter(defaultdict):
    def __init__(self, elements=()):
        self.default_factory = None
        self._dict = {}
        self.update(elements)

    def __getitem__(self, key):
        return self._dict.get(key, 0)

    def update(self, elements=()):
        counts = elements if hasattr(elements, "items") else {}
        for e, n in counts.items():
            self._dict[e] = self[e] + n
        for e in [] if hasattr(elements, "items") else elements:
            self._dict[e] = self[e] + 1

    def elements(self):
        return [e for e, n in self.items() for _ in range(n)]

    def total(self):
        return sum(self.values())

    def most_common(self, n=None):
        return sorted(self._dict.items(), key=lambda kv: -kv[1])[:n]


class ChainMap:
    def __init__(self, *maps):
        self.maps = list(maps) or [{}]

    def __getitem__(self, key):
        for m in self.maps:
            if key in m:
                return m[key]
        raise KeyError(key)

    def __setitem__(self, key, value):
        self.maps[0][key] = value

    def __delitem__(self, key):
        del self.maps[0][key]

    def __contains__(self, key):
        return any([key in m for m in self.maps])

    def __iter__(self):
        return iter(self._merged())

    def __len__(self):
        return len(self._merged())

    def __eq__(self, other):
        return self._merged() == dict(other)

    def _merged(self):
        out = {}
        for m in reversed(self.maps):
            out.update(dict(m))
        return out

    def get(self, key, default=None):
        return self[key] if key in self else default

    def keys(self):
        return self._merged().keys()

    def values(self):
        return self._merged().values()

    def items(self):
        return self._merged().items()

    def new_child(self, m=None, **kwargs):
        return ChainMap(*([dict({} if m is None else m, **kwargs)] + self.maps))


class deque:
    def __init__(self, elements=(), maxlen=None):
        self._list = []
        self.maxlen = maxlen
        self.extend(elements)

    def append(self, v):
        self._list.append(v)
        if self.maxlen is not None and len(self._list) > self.maxlen:
            self._list.pop(0)

    def appendleft(self, v):
        self._list.insert(0, v)
        if self.maxlen is not None and len(self._list) > self.maxlen:
            self._list.pop()

    def pop(self):
        return self._list.pop()

    def popleft(self):
        return self._list.pop(0)

    def extend(self, values):
        for v in values:
            self.append(v)

    def extendleft(self, values):
        for v in values:
            self.appendleft(v)

    def rotate(self, n=1):
        if self._list:
            at = -n % len(self._list)
            self._list = self._list[at:] + self._list[:at]

    def remove(self, v):
        self._list.remove(v)

    def clear(self):
        self._list.clear()

    def __getitem__(self, i):
        return self._list[i]

    def __setitem__(self, i, v):
        self._list[i] = v

    def __contains__(self, v):
        return v in self._list

    def __eq__(self, other):
        return isinstance(other, deque) and self._list == other._list

    def __len__(self):
        return len(self._list)

    def __iter__(self):
        return iter(self._list)


def islice(iterable, *bounds):
    stop = bounds[0] if len(bounds) == 1 else bounds[1]
    start = 0 if len(bounds) == 1 else bounds[0] or 0
    step = bounds[2] if len(bounds) > 2 else 1
    it, i, end = iter(iterable), 0, "the end of an iterator"
    while stop is None or i < stop:
        v = next(it, end)
        if v is end:
            return
        if i >= start and (i - start) % step == 0:
            yield v
        i += 1


def zip_longest(*iterables, fillvalue=None):
    lists = [list(i) for i in iterables]
    n = max([len(v) for v in lists])
    return zip(*[v + [fillvalue] * (n - len(v)) for v in lists])


def pairwise(iterable):
    list_ = list(iterable)
    return zip(list_[:-1], list_[1:])


def starmap(function, iterable):
    for args in iterable:
        yield function(*args)


def takewhile(predicate, iterable):
    for v in iterable:
        if not predicate(v):
            return
        yield v


def dropwhile(predicate, iterable):
    dropping = True
    for v in iterable:
        dropping = dropping and predicate(v)
        if not dropping:
            yield v


def filterfalse(predicate, iterable):
    return iter([v for v in iterable if not (predicate(v) if predicate else v)])


def compress(data, selectors):
    return iter([v for v, s in zip(data, selectors) if s])


def count(start=0, step=1):
    n = start
    while True:
        yield n
        n += step


def cycle(iterable):
    list_ = list(iterable)
    while list_:
        for v in list_:
            yield v


def groupby(iterable, key=None):
    groups = []
    for v in iterable:
        k = key(v) if key else v
        if groups and groups[-1][0] == k:
            groups[-1][1].append(v)
        else:
            groups.append((k, [v]))
    return iter([(k, iter(group)) for k, group in groups])


def combinations_with_replacement(iterable, r):
    list_ = list(iterable)
    picks = [[]]
    for _ in range(r):
        picks = [p + [i] for p in picks for i in range(p[-1] if p else 0, len(list_))]
    return iter([tuple([list_[i] for i in p]) for p in picks])


def methodcaller(name, *args, **kwargs):
    return lambda v: getattr(v, name)(*args, **kwargs)


def itemgetter(*items):
    if len(items) == 1:
        return lambda v: v[items[0]]
    return lambda v: tuple([v[i] for i in items])


def attrgetter(name):
    return lambda v: getattr(v, name)


class SimpleNamespace:
    def __init__(self, **kwargs):
        for k, v in kwargs.items():
            setattr(self, k, v)


class Logger:
    def debug(self, *args, **kwargs):
        pass

    def setLevel(self, level):
        pass

    def addHandler(self, handler):
        pass

    info = warning = error = critical = exception = log = debug


def getLogger(name=None):
    return Logger()


def bisect_left(a, x, lo=0, hi=None):
    return lo + sum([1 for v in a[lo:hi] if v < x])


def bisect_right(a, x, lo=0, hi=None):
    return lo + sum([1 for v in a[lo:hi] if v <= x])


bisect = bisect_right


def insort(a, x):
    a.insert(bisect_right(a, x), x)


def heapify(heap):
    heap.sort()


def heappush(heap, item):
    insort(heap, item)


def heappop(heap):
    return heap.pop(0)


def nlargest(n, iterable, key=None):
    return sorted(iterable, key=key, reverse=True)[:n]


def nsmallest(n, iterable, key=None):
    return sorted(iterable, key=key)[:n]


def mean(data):
    data = list(data)
    return sum(data) / len(data)


def median(data):
    data = sorted(data)
    half = len(data) // 2
    return data[half] if len(data) % 2 else (data[half - 1] + data[half]) / 2


def getitem(a, b):
    return a[b]


def setitem(a, b, c):
    a[b] = c


def delitem(a, b):
    del a[b]


class approx:
    def __init__(self, expected, rel=None, abs=None, nan_ok=False):
        self.expected, self.rel, self.abs, self.nan_ok = expected, rel, abs, nan_ok

    def __eq__(self, actual):
        if isinstance(self.expected, dict):
            return set(self.expected) == set(actual) and all([approx(v, self.rel, self.abs, self.nan_ok) == actual[k] for k, v in self.expected.items()])
        if hasattr(self.expected, "ndim") and self.expected.ndim > 0:
            return approx(self.expected.tolist(), self.rel, self.abs, self.nan_ok) == actual
        if isinstance(self.expected, (list, tuple)) and hasattr(actual, "ndim") and actual.ndim > 0:
            actual = actual.tolist()
        if isinstance(self.expected, (list, tuple)):
            return len(self.expected) == len(actual) and all([approx(v, self.rel, self.abs, self.nan_ok) == a for v, a in zip(self.expected, actual)])
        if self.expected != self.expected or actual != actual:
            return self.nan_ok and self.expected != self.expected and actual != actual
        if actual == self.expected:
            return True
        absolute = 1e-12 if self.abs is None else self.abs
        relative = (0.0 if self.abs is not None else 1e-6) if self.rel is None else self.rel
        size = self.expected if self.expected >= 0 else -self.expected
        difference = actual - self.expected
        limit = max(absolute, relative * size)
        return -limit <= difference <= limit and limit < float("inf")


# Files, as far as tests name them: what torch.save writes stays in the draw.
class BytesIO:
    def seek(self, *args):
        return 0

    def close(self):
        pass

    def flush(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *args):
        pass


class Path:
    def __init__(self, *parts):
        self._text = os.path.join(*parts) if parts else "."

    def __fspath__(self):
        return self._text

    def __str__(self):
        return self._text

    def __repr__(self):
        return "PosixPath('%s')" % self._text

    def __eq__(self, other):
        return isinstance(other, Path) and self._text == str(other)

    def __truediv__(self, other):
        return Path(self._text, other)

    def joinpath(self, *others):
        return Path(self._text, *others)

    def join(self, *others):
        return Path(self._text, *others)

    def mkdir(self, *args, **kwargs):
        return self

    def exists(self):
        return os.path.exists(self._text)

    def is_file(self):
        return os.path.exists(self._text)

    def with_suffix(self, suffix):
        kept = self._text[: len(self._text) - len(self.suffix)]
        return Path(kept + suffix)

    @property
    def name(self):
        return self._text.split("/")[-1]

    @property
    def suffix(self):
        at = self.name.rfind(".")
        return self.name[at:] if at > 0 else ""

    @property
    def stem(self):
        return self.name[: len(self.name) - len(self.suffix)]

    @property
    def parent(self):
        kept = self._text.split("/")[:-1]
        return Path("/".join(kept) if kept else ".")


class TemporaryDirectory:
    def __init__(self, **kwargs):
        self.name = tempfile.mktemp()

    def __enter__(self):
        return self.name

    def __exit__(self, *args):
        pass

    def cleanup(self):
        pass


class NamedTemporaryFile(BytesIO):
    def __init__(self, mode="w+b", suffix="", **kwargs):
        self.name = tempfile.mktemp() + suffix

    def __fspath__(self):
        return self.name


TemporaryFile = NamedTemporaryFile


def mkdtemp(*args, **kwargs):
    return tempfile.mktemp()


def gettempdir():
    return "/tmp"


# pytest's monkeypatch. What it changes is the draw's own.
class MonkeyPatch:
    def __init__(self):
        self._undo = []

    def setenv(self, name, value, prepend=None):
        if prepend is not None and name in os.environ:
            value = str(value) + prepend + os.environ[name]
        self.setitem(os.environ, name, str(value))

    def delenv(self, name, raising=True):
        self.delitem(os.environ, name, raising)

    def setitem(self, dic, name, value):
        had = name in dic
        old = dic[name] if had else None
        self._undo.append(lambda: _put(dic, name, old) if had else _drop(dic, name))
        dic[name] = value

    def delitem(self, dic, name, raising=True):
        if name not in dic:
            if raising:
                raise KeyError(name)
            return
        old = dic[name]
        self._undo.append(lambda: _put(dic, name, old))
        del dic[name]

    def setattr(self, target, name, value=None, raising=True):
        if isinstance(target, str):
            raise NotImplementedError("monkeypatch.setattr of a path is not supported in test files")
        if raising and not hasattr(target, name):
            raise AttributeError(name)
        had = hasattr(target, name)
        old = getattr(target, name) if had else None
        self._undo.append(lambda: setattr(target, name, old) if had else delattr(target, name))
        setattr(target, name, value)

    def delattr(self, target, name, raising=True):
        old = getattr(target, name)
        self._undo.append(lambda: setattr(target, name, old))
        delattr(target, name)

    def chdir(self, path):
        pass

    def syspath_prepend(self, path):
        pass

    def undo(self):
        for f in reversed(self._undo):
            f()
        self._undo = []

    def context(self):
        return _Patches()


def _put(dic, name, value):
    dic[name] = value


def _drop(dic, name):
    if name in dic:
        del dic[name]


class _Patches:
    def __enter__(self):
        self.patch = MonkeyPatch()
        return self.patch

    def __exit__(self, *args):
        self.patch.undo()
