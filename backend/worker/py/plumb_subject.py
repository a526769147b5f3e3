"""Hosts a framework as a subject of Plumb: an Adapter says what the framework
is, this file runs programs on it (docs/subject.md).

Tensors cross as arrays of numpy (plumb_arrays.py), or as bytes where an adapter
says so (plumb_plain.py).
"""

import contextlib
import functools
import math
import re
from time import perf_counter_ns as now, process_time_ns as spent

import plumb_check as kernel  # plumb_subject.kernel.check judges one function
import plumb_layers  # modules of several steps, for plumb_table
import plumb_steps  # operators of several, likewise
import plumb_table
import plumb_targets
from plumb_mistakes import HERE, explained, raised_at
from plumb_names import DTYPES, Unsupported
from plumb_values import decoder, encoder
from plumb_words import Words

SCOPES = ("torch.no_grad", "torch.enable_grad", "torch.set_grad_enabled")
WATCHED = 1 << 18  # elements of a program's tensors up to which changes in place are looked for
MESSAGE = 8000  # characters kept of an exception's message
COLOURS = re.compile("\x1b\\[[0-9;]*m")


class Adapter(Words):
    """What Plumb has to know of a framework; one that copies PyTorch's API needs little of it.

    `root` is its module, `tensor_class` and `module_class` its classes (None: it
    has no modules), `gaps` the texts of exceptions which say that something is
    not there, `table` the differences of its names and arguments from PyTorch's.

    One with an interface of its own has `own`: its table says how it makes each
    operator's call (plumb_table.py). Where its tensors never change, `functional`
    says so, `vjp`, `stop` and `cast` take the place of the methods about
    gradients, and `modes` has what compiles a function of tensors. Where there is
    a tape, `modes` has what runs a function of tensors and modules as one program,
    given it, a list of tensors and the modules. `runs` has the classes of runs of further
    modes. One that has no `gradients`, or none in the modes
    `forward`, is asked for none; where they are "program", Plumb writes them as
    programs of forward calls. In the modes `quick` a new program costs no more than
    another case of an old one. Exceptions of the classes `forms` say, where a call
    raises them, that the framework does not take its arguments in this form.
    One that `watches` has calls change tensors as PyTorch's do, buffers of norms
    included: what they changed is told. `nodes` are the names of classes of what
    a tensor's grad_fn is, `scopes` those of the contexts that a program may enter,
    `exhaustion` texts of exceptions which say that memory was, `unheeded` a pattern of
    warnings which say that an argument changes nothing. `calls` has what an
    adapter with `own` does itself, by PyTorch's names: what is asked of a tape.
    PyTorch itself has no `table`.
    """

    name, version = "", ""
    root = tensor_class = module_class = None
    gaps = forms = nodes = ()
    scopes, exhaustion, unheeded = SCOPES, ("out of memory",), ""
    table = {}
    own = functional = False
    gradients = True
    forward = ()
    watches = False
    modes = {}
    runs = {}
    quick = ()
    calls = {}

    @property
    def arrays(self):
        """The module that carries tensors over: plumb_arrays, with numpy, or plumb_plain."""
        import plumb_arrays

        return plumb_arrays

    decode = functools.cached_property(decoder)
    encode = functools.cached_property(encoder)

    @property
    def tensor_classes(self):
        """Lists the classes by which a tensor is known at once."""
        return (self.tensor_class,)

    def is_tensor(self, v):
        """Tells whether a value, of any kind, is a tensor."""
        return isinstance(v, self.tensor_class)

    def is_module(self, v):
        return isinstance(v, (self.module_class or plumb_table.Module, plumb_table.Module))

    def word(self, v):
        """Returns the text that stands for a value in replies; None where there is none."""
        dtype = self.dtype_name(v)
        if dtype in DTYPES:
            return "torch." + dtype
        return "cpu" if str(v) == "cpu" else "grad_fn" if type(v).__name__ in self.nodes else None

    def cast(self, t, dtype):
        """Returns a tensor in a dtype, by its name."""
        raise Unsupported("%s converts no dtypes" % self.name)

    def vjp(self, f, leaves, cotangents):
        """Returns the gradient of each leaf, where f returns a list of tensors of the leaves."""
        raise Unsupported("%s has no gradients" % self.name)

    def stop(self, v):
        """Returns what is equal and has no gradient."""
        return v

    def seed(self, n):
        """Seeds what the framework draws: it is the same for the same n."""
        self.root.manual_seed(n)

    def settle(self):
        """Waits, at the end of a case, for what its calls left to do: what ends the process later
        would be told of another case."""

    def memory_format(self, name):
        """Returns the memory format of a name such as contiguous_format, or raises Unsupported."""
        return self.dtype(name)

    def dtype(self, name):
        """Returns the framework's dtype of a name such as float32 or bool, or raises Unsupported."""
        found = getattr(self.root, name, None)
        if found is None:
            raise Unsupported("%s has no %s" % (self.name, name))
        return found

    def dtype_name(self, dtype):
        """Returns the name of a dtype, such as float32; of what is none, any other text."""
        return str(dtype).rpartition(".")[2]

    def device(self, name):
        """Returns the framework's device of a name such as cpu."""
        return self.root.device(name)

    def tensor(self, array, dtype, requires_grad):
        """Returns a tensor of an array, which it may keep, in a dtype, by its name."""
        named = self.dtype(dtype)  # one that the framework lacks is told by its name
        t = self.root.from_numpy(array)
        if dtype == "bfloat16":
            t = t.to(named)
        return t.requires_grad_() if requires_grad else t

    def array(self, t):
        """Returns the elements of a tensor as an array of its dtype."""
        t = t.detach()
        for lazy in ("resolve_conj", "resolve_neg"):
            t = getattr(t, lazy, lambda: t)()
        if self.dtype_name(t.dtype) == "bfloat16":
            t = t.to(self.dtype("float32"))
        return t.numpy()

    def requires_grad(self, t):
        return bool(t.requires_grad)

    def is_leaf(self, t):
        return t.is_leaf

    def gradient(self, t):
        return t.grad

    def backward(self, values, cotangents):
        self.root.autograd.backward(values, cotangents)

    def backward_once(self, values, cotangents):
        """Differentiates results of one captured program."""
        self.root.autograd.backward(values, cotangents)

    def gradients_of(self, values, wanted, cotangents, create_graph):
        """Returns gradients with None for what the values do not depend on."""
        return self.root.autograd.grad(values, wanted, cotangents, create_graph=create_graph, allow_unused=True)

    def member(self, path):
        """Returns what PyTorch has under a path below torch, such as nn.functional.relu."""
        found = self.root
        for part in path.split("."):
            found = getattr(found, part, None)
            if found is None:
                raise Unsupported("%s has no %s" % (self.name, path))
        return found

    def method(self, name):
        found = getattr(self.tensor_class, name, None)
        if not callable(found):
            raise Unsupported("%s has no method %s of tensors" % (self.name, name))
        return found

    def elsewhere(self, target):
        """Returns what PyTorch has under a name of another package."""
        raise Unsupported("no callable %s" % target)

    def scope(self, name):
        return self.member(name.partition(".")[2])

    def construct(self, dtype, f, *args, **kwargs):
        """Calls a class; what is a module has parameters of a dtype."""
        made = f(*args, **kwargs)
        return made.to(self.dtype(dtype)) if self.is_module(made) else made

    def state(self, module):
        return module.state_dict().items()

    def parameters(self, module):
        return module.named_parameters()

    def load(self, module, state):
        module.load_state_dict(state)

    def gap(self, e):
        """Tells whether an exception says that something is not there."""
        return isinstance(e, GAPS) or any(g in str(e) for g in self.gaps)

    def refuses(self, e):
        """Tells whether the framework itself refuses a call by an exception that may also mean a gap."""
        missing = isinstance(e, GAPS) or any(g in str(e) for g in self.gaps)
        frame = raised_at(e).tb_frame
        ours = frame.f_code.co_filename.startswith(HERE) or frame.f_globals.get("__name__") == type(self).__module__
        return not missing and (not ours or frame.f_code is plumb_table.Evaluation.of.__code__)  # which calls functions in C

    def exhausted(self, e):
        """Tells whether an exception says that memory was full."""
        return isinstance(e, MemoryError) or any(text in str(e) for text in self.exhaustion)


table = plumb_table.load
GAPS = (Unsupported, NotImplementedError, Warning)  # of a warning, what `unheeded` makes an exception


# Cases.

class Run:
    """One case while it runs; `reply` grows with it."""

    late = False  # whether the value of the last call is stored after the backward pass

    def __init__(self, adapter, targets, memory, case):
        self.adapter, self.targets, self.memory, self.case = adapter, targets, memory, case
        self.env, self.values, self.changes, self.modules = [], [], [], {}  # modules by the index of the constructing call
        self.call = self.elapsed = self.cpu = self.watched = 0
        self.firsts = self.found = None  # gradients of the first and the second order, by the tensor's id
        self.last = None  # the value of the last call, until it is stored
        self.reply = {"status": "ok", "values": self.values}
        self.wanted = case.get("wanted")  # the calls whose values alone are told; None for all, and what they change
        if adapter.watches and self.wanted is None:
            self.reply["changes"] = self.changes

    def run(self):
        case = self.case
        self.adapter.seed(case["seed"])
        self.inputs()
        self.calls()
        self.finals()
        if case.get("backward"):
            try:
                need = self.backward()
            except Exception as e:
                if not self.gap(e):
                    raise
                self.reply["no_gradients"], need = told(e) or type(e).__name__, 0
            if need:
                return {"status": "need", "need": need}
        if case.get("measure"):
            self.reply["measured"] = self.measured(*case["measure"])
        if not case.get("leaves"):
            self.env[len(case["inputs"]):] = ()
        self.finish_values()
        if "no_gradients" in self.reply:
            return self.reply
        if case.get("grads"):
            self.gradients()
        if case.get("sgd"):
            self.step()
        return self.reply

    def measured(self, times, backward):
        raise Unsupported("no measurements")

    def step(self):
        """Takes one step of an optimizer."""

    def inputs(self):
        entries = self.case["inputs"]
        self.env = [self.load(entry, entry[4]) for entry in entries]
        self.leaves = [x for x, entry in zip(self.env, entries) if entry[4]]

    def calls(self):
        if self.wanted is not None:
            return self.observed()
        env, calls, makers, mark = self.env, self.case["calls"], self.targets.makers, self.memory.mark
        late = self.late and not any(call[0] == "getattr" and call[1][1] == "grad" for call in calls)  # to which a backward pass adds
        for i, call in enumerate(calls):
            self.call = mark[1] = i
            f, args, kwargs = self.prepared(call)
            kept = self.kept(call, f, args)
            t, cpu = now(), spent()
            if len(call) > 3:
                with self.entered(call[3]):
                    v = f(*args, **kwargs)
            else:
                v = f(*args, **kwargs)
            self.cpu += spent() - cpu
            self.elapsed += now() - t
            self.changed(i, call, kept, v)
            env.append(v)
            if call[0] in makers:
                self.constructed(i, v)
            if late and i == len(calls) - 1:
                self.last = (v,)
            else:
                self.values.append(self.adapter.encode(self, v))
            mark = self.memory.mark

    def observed(self):
        """Makes the calls for the values of some: nothing else is told, and calls of one block
        enter its contexts once."""
        makers, wanted, block, contexts = self.targets.makers, set(self.wanted), [], contextlib.ExitStack()
        try:
            for i, call in enumerate(self.case["calls"]):
                self.call = self.memory.mark[1] = i
                f, args, kwargs = self.prepared(call)
                scopes = call[3] if len(call) > 3 else []
                if scopes != block:
                    contexts.close()
                    block, contexts = scopes, self.entered(scopes)
                v = f(*args, **kwargs)
                self.env.append(v)
                if call[0] in makers:
                    self.constructed(i, v)
                self.values.append(self.adapter.encode(self, v) if i in wanted else None)
        finally:
            contexts.close()

    def prepared(self, call):
        """Returns what a call calls, and its arguments."""
        f, (args, kwargs) = self.targets[call[0]], self.given(call)
        if isinstance(f, type) and self.case.get("dtype"):
            f = functools.partial(self.adapter.construct, self.case["dtype"], f)
        return f, args, kwargs

    def given(self, call):
        env, decode = self.env, self.adapter.decode
        return [decode(a, env) for a in call[1]], {name: decode(a, env) for name, a in call[2].items()} if len(call) > 2 else {}

    def evaluate(self, call):
        """Makes a call and returns its value."""
        f, args, kwargs = self.prepared(call)
        return f(*args, **kwargs)

    def constructs(self, call):
        """Tells whether a call, which was made, makes a module."""
        return call[0] in self.targets.makers

    def entered(self, scopes):
        """Enters the contexts of a call, which the result leaves."""
        with contextlib.ExitStack() as stack:
            for scope in scopes:
                if scope[0] not in self.adapter.scopes:
                    raise Unsupported("no context %s" % scope[0])
                args, kwargs = self.given(scope)
                stack.enter_context(self.adapter.scope(scope[0])(*args, **kwargs))
            return stack.pop_all()

    def finish_values(self):
        """Stores the last call's value, which nothing changes: a large one after the
        backward pass, which takes the most memory."""
        if self.last:
            (v,), self.last = self.last, None
            self.values.append(self.adapter.encode(self, v))

    def finals(self):
        for entry in self.reply.get("modules", ()):
            entry["final"] = self.state(self.adapter.state(self.modules[entry["call"]]))

    def kept(self, call, f, args):
        """Lists the shapes and elements of all tensors before a call that may change some; watching ends
        where they are many."""
        if "changes" not in self.reply or not self.may_change(call):
            return []
        kept = [(k, v) for k, v in enumerate(self.env) if self.adapter.is_tensor(v) and self.adapter.dtype_name(v.dtype) in DTYPES]
        self.watched += len(kept)
        if self.watched > 1 << 12 or sum(self.size(v) for _, v in kept) > WATCHED:
            del self.reply["changes"]
            return []
        return [(k, self.elements(v)) for k, v in kept]

    def may_change(self, call):
        """Tells whether a call changes a tensor by its name, by an argument, or as norms and embeddings do."""
        named = len(call) > 2 and call[2].get("inplace")
        return plumb_table.changes(call[0]) or call[0].endswith(("_norm", "embedding", "Module.__call__")) or named or any(a is True for a in call[1])

    def elements(self, t):
        return tuple(t.shape), self.adapter.array(t).tobytes()

    def changed(self, i, call, kept, v):
        """Stores what call i, which returned v, changed among the values before it."""
        for k, old in kept:
            if self.elements(self.env[k]) != old:
                self.changes.append((i, k, self.store(self.env[k])))

    def constructed(self, i, module):
        self.fill(i, module)
        self.modules[i] = module
        if self.wanted is None:
            self.reply.setdefault("modules", []).append({"call": i, "initial": self.state(self.adapter.state(module))})

    def fill(self, i, module):
        """Gives a module the state that the request has for it."""
        state = (self.case.get("state") or {}).get(str(i))
        if state:
            self.adapter.load(module, {name: self.load(entry, self.adapter.own and trains(module, name, entry[0])) for name, entry in state.items()})

    def backward(self):
        """Differentiates; returns how long a cotangent stream must be, 0 when all were."""
        self.call = self.memory.mark[1] = len(self.case["calls"])
        indices, cotangents, need = self.differentiated()
        if indices and not need:
            t, cpu = now(), spent()
            self.differentiate(indices, cotangents)
            self.cpu += spent() - cpu
            self.elapsed += now() - t
        return need

    def differentiated(self):
        """Returns the values to differentiate, their cotangents, and how long a stream must be."""
        indices, cotangents, need = [], [], 0
        for index, offset, length, auto in self.case["backward"]:
            v = self.env[index]
            if not self.adapter.is_tensor(v):
                if auto:
                    continue
                raise TypeError("backward of a value that is not a tensor but %s" % type(v).__name__)
            if auto and not self.requires(index):
                continue
            n = self.size(v)
            if offset is not None and n > length:
                need = max(need, n)
                continue
            indices.append(index)
            cotangents.append(self.cotangent(v, offset, n))
        return indices, cotangents, need

    def requires(self, index):
        """Tells whether a value requires a gradient."""
        return self.adapter.requires_grad(self.env[index])

    def size(self, v):
        """Returns how many numbers the cotangent of a value has."""
        return math.prod(v.shape) * (2 if self.adapter.dtype_name(v.dtype).startswith("complex") else 1)

    def differentiate(self, indices, cotangents):
        values = [self.env[i] for i in indices]
        if "second" in self.case:
            self.twice(values, cotangents)
        else:
            self.adapter.backward(values, cotangents)

    def cotangent(self, v, offset, n):
        dtype = self.adapter.dtype_name(v.dtype)
        array = self.adapter.arrays.cotangent(self.memory.bytes, dtype, offset, n, tuple(v.shape))
        return self.adapter.tensor(array, dtype, False)

    def twice(self, values, cotangents):
        """Differentiates, and then the gradients of the inputs, each times its cotangent."""
        wanted = list(self.leaves)
        for _, named in self.parameters():
            wanted += [p for _, p in named if self.adapter.requires_grad(p) and all(p is not w for w in wanted)]
        if not wanted:
            return self.adapter.backward(values, cotangents)
        grads = self.adapter.gradients_of(values, wanted, cotangents, True)
        self.received(wanted, grads)
        firsts, seconds = [], []
        for g, offset in zip(grads[:len(self.leaves)], self.case["second"]):
            if g is not None and self.adapter.requires_grad(g):
                firsts.append(g)
                seconds.append(self.cotangent(g, offset, self.size(g)))
        found = self.adapter.gradients_of(firsts, wanted, seconds, False) if firsts else [None] * len(wanted)
        self.found = dict(zip(map(id, wanted), found))

    def parameters(self):
        for entry in self.reply.get("modules", ()):
            yield entry, list(self.adapter.parameters(self.modules[entry["call"]]))

    def received(self, wanted, grads):
        """Keeps gradients that were computed beside the tape."""
        self.firsts = dict(zip(map(id, wanted), grads))

    def gradient(self, x):
        return self.adapter.gradient(x) if self.firsts is None or id(x) not in self.firsts else self.firsts[id(x)]

    def gradients(self):
        self.reply["grads"] = [self.optional(self.gradient(x)) for x in self.leaves]
        for entry, named in self.parameters():
            entry["grads"] = self.state((name, self.gradient(p)) for name, p in named)
        if self.case.get("leaves"):
            self.reply["made"] = self.made()
        if self.found is not None:
            self.reply["grads2"] = [self.optional(self.found.get(id(x))) for x in self.leaves]
            for entry, named in self.parameters():
                entry["grads2"] = self.state((name, self.found.get(id(p))) for name, p in named)

    def made(self):
        """Returns the gradients of the leaves that calls made, under their first name."""
        seen = {id(x) for x in self.leaves}
        seen.update(id(p) for _, named in self.parameters() for _, p in named)
        made = []
        for i, v in enumerate(self.env):
            if self.adapter.is_tensor(v) and self.adapter.requires_grad(v) and self.adapter.is_leaf(v) and id(v) not in seen:
                seen.add(id(v))
                g = self.adapter.gradient(v)
                if g is not None:
                    made.append((i, self.store(g)))
        return made

    def gap(self, e):
        """Tells whether an exception of the call, or of the backward pass, says that something is not there."""
        return self.adapter.gap(e) or isinstance(e, self.adapter.forms) and self.call < len(self.case["calls"])

    def failed(self, e):
        self.finish_values()
        full = self.adapter.exhausted(e) and not isinstance(e, Unsupported)
        self.reply["status"] = "oom" if full else "unsupported" if self.gap(e) else "raised"
        if self.reply["status"] == "unsupported" and self.adapter.refuses(e):
            self.reply["refused"] = True
        self.reply["class"], self.reply["call"] = type(e).__name__, self.call
        self.reply["message"] = told(e) + explained(self.adapter, Adapter, self.env, e)
        return self.reply

    # Tensors and values.

    def load(self, entry, requires_grad):
        t = self.adapter.tensor(self.adapter.arrays.read(self.memory.bytes, *entry[:4]), entry[0], requires_grad)
        if not self.adapter.is_tensor(t):
            raise Unsupported("%s.tensor returned a %s, which its is_tensor takes for no tensor" % (type(self.adapter).__name__, type(t).__name__))
        return t

    def store(self, t):
        name = self.adapter.dtype_name(t.dtype)
        if name not in DTYPES:
            return ["x", "%s.Tensor(%s)" % (self.adapter.name, name)]
        offset = self.adapter.arrays.write(self.memory, name, self.adapter.array(t))
        return ["t", name, offset, list(t.shape), None, self.requires_grad(t)]

    def requires_grad(self, t):
        return self.adapter.requires_grad(t)

    def optional(self, t):
        return None if t is None else self.store(t)

    def state(self, named):
        return [(name, self.optional(t)) for name, t in named]


def told(e):
    """Returns the message of an exception as it goes into a reply."""
    return COLOURS.sub("", str(e)).strip()[:MESSAGE]


def trains(module, name, dtype):
    """Tells whether an entry of a module's state is a parameter."""
    return name not in module.buffers and not dtype.startswith(("bool", "int", "uint"))
