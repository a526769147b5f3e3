"""Runs cases on frameworks whose tensors never change and keep no tape: a
program is a function of its leaves, which the framework differentiates and, in
other modes than eager, compiles.
"""

import collections
import functools
import json
from time import perf_counter_ns as now

import plumb_table
from plumb_asked import Asked, Env, base
from plumb_graphs import part, whole
from plumb_names import Unsupported
from plumb_subject import SCOPES, Run
from plumb_table import GROUPS, Module, changes, constant, shares

MAYBE = frozenset("contiguous flatten ravel reshape reshape_as to type_as bool byte char short int long half bfloat16 float double cfloat cdouble".split())  # calls that copy where they have to
MANY = frozenset("split split_with_sizes chunk tensor_split hsplit vsplit dsplit unbind broadcast_tensors meshgrid".split())  # calls whose results share memory
LIKE = ("view_as", "reshape_as", "expand_as", "type_as")  # calls that read the second argument's shape or dtype alone
TURNED = ("t_", "transpose_", "swapaxes_", "swapdims_")  # calls that change how a tensor lies, not its elements
OVERLAPPING = ("expand", "expand_as", "broadcast_to", "broadcast_tensors", "meshgrid", "unfold", "as_strided")  # views that have an element more than once
APART = ("broadcast_tensors", "meshgrid")  # calls whose results depend on one argument each


KEPT = 64  # programs whose compiled functions are kept


class Programs:
    """The compiled functions of the programs that were run last: cases that differ in
    elements alone share them."""

    def __init__(self):
        self.kept = collections.OrderedDict()

    def of(self, case):
        """Returns what is kept of a program: a dict."""
        key = program(case)
        self.kept.setdefault(key, {})
        self.kept.move_to_end(key)
        if len(self.kept) > KEPT:
            self.kept.popitem(last=False)
        return self.kept[key]


def program(case):
    """Returns a text of all of a case but its elements."""
    state = {i: {name: shaped(entry) for name, entry in named.items()} for i, named in (case.get("state") or {}).items()}
    ends = [(index, offset is None, auto) for index, offset, _, auto in case.get("backward") or ()]
    return json.dumps([case.get("mode"), case.get("dtype"), case["calls"], [shaped(entry) for entry in case["inputs"]], state, ends,
                       [offset is None for offset in case.get("second") or ()], "second" in case])


def shaped(entry):
    """Returns an entry for a tensor without the place of its elements."""
    return [entry[0], *entry[2:]]


PROGRAMS = Programs()


def references(a):
    """Lists the values that an argument of a request names."""
    if type(a) is not list:
        return []
    if a and a[0] == "r":
        return [a[1]]
    return [k for e in a for k in references(e)]


def named(call):
    """Lists the values that the arguments of a call name."""
    return references([call[1], *(call[2].values() if len(call) > 2 else ())])


def without(call, name):
    """Returns a call without an argument."""
    return [*call[:2], {n: a for n, a in call[2].items() if n != name}, *call[3:]]


def last(call):
    """Returns the last part of a call's name."""
    return call[0].rpartition(".")[2] if call else ""


def in_place(call):
    """Tells whether a function is told to change its first argument."""
    makes = call[0].startswith("torch.nn.") and not call[0].startswith("torch.nn.functional.")
    return len(call) > 2 and call[2].get("inplace") is True and not makes


def assigns(call):
    """Tells whether a call is an assignment to elements, which returns nothing."""
    return call[0].rstrip("_").endswith("setitem")


def shares_memory(call):
    """Tells whether what a call returns may share the memory of its first argument."""
    if last(call) in ("getitem", "__getitem__"):
        index = call[1][1]
        parts = index[1] if type(index) is list and index[0] == "u" else [index]
        return not any(type(p) is bool or type(p) is list and p[0] in ("l", "r") for p in parts)  # such an index copies
    return shares(call[0]) or last(call) in MANY


class Functional(Asked, Run):
    """A case on such a framework. Its leaves are named by the index of the input,
    or by that of the call that makes a module and the parameter's name."""

    requiring = False  # what is stored requires a gradient
    named = staticmethod(named)

    def calls(self):
        self.states = {int(i): {name: self.load(entry, False) for name, entry in state.items()}
                       for i, state in (self.case.get("state") or {}).items()}
        mode = self.case.get("mode") or "eager"
        self.given_inputs = list(self.env)
        t = now()
        if mode == "eager":
            self.trace = self.play(self.env, self.states, self.keep)
        else:
            self.compiled(self.adapter.modes[mode], self.shared())
        self.elapsed += now() - t
        self.env = self.trace.values
        self.asked = {id(x): self.trace.grads[leaf][0] for leaf, x in self.latest().items() if leaf in self.trace.grads}

    def shared(self):
        """Returns what cases of the same program share."""
        mode = self.case.get("mode") or "eager"
        return {} if mode == "eager" or mode in self.adapter.quick else PROGRAMS.of(self.case)

    def leaves_given(self):
        """Returns the tensors that the case gives, by the names of leaves."""
        return {**dict(enumerate(self.given_inputs)), **{(i, name): t for i, state in self.states.items() for name, t in state.items()}}

    def latest(self):
        """Returns the tensors whose gradients are asked for, by the names of leaves that they keep: the case's inputs, and
        parameters as they are at the end."""
        held = {base(leaf): t for leaf, t in self.trace.held.items() if not isinstance(base(leaf), int) or base(leaf) >= len(self.given_inputs)}
        return {**self.leaves_given(), **held}

    def play(self, inputs, states, done, end=None, found_by=None, given={}):
        """Makes the calls, or those before one, on inputs and on the states of modules; `done` is told of each. What they draw
        is the same every time. `found_by` has the gradients that calls among them found, `given` what leaves are."""
        self.variables = given
        self.origin, self.found_by = (inputs, states), {} if found_by is None else found_by
        self.adapter.seed(self.case["seed"])
        leaf = [frozenset([i] if entry[4] else []) for i, entry in enumerate(self.case["inputs"])]
        env = Env([self.given_leaf(i, x) for i, x in enumerate(inputs)], leaf)
        for i, call in enumerate(self.case["calls"][:end]):
            self.call = self.memory.mark[1] = i
            self.env, k = env.values, len(env.values)
            if call[0] == "getattr" and call[1][1] == "data":
                call = ["Tensor.detach", call[1][:1], *call[2:]]
            if not self.asks(env, i, call):
                v = self.evaluate(call)
                if self.constructs(call):
                    v.state = {name: self.given_leaf((i, name), t) for name, t in states.get(i, {}).items()}
                    own = frozenset((i, name) for name, t in v.named_parameters() if self.differentiable(t))
                    env.add(v, frozenset().union(*[env.depends[k] for k in references(call[1])]) if v.children else own, None)
                else:
                    self.result(env, call, v)
            if k in self.variables and k not in env.leaf:
                env.values[k] = env.values[k] + self.variables[k]  # −0, of which the gradient is that of the sum
            self.remember(env, call, named(call))
            done(i, env)
        self.call = self.memory.mark[1] = len(self.case["calls"])  # what is raised from here on, no call raised
        return env

    def result(self, env, call, v):
        refs = named(call)
        if call[0] == "getattr" and isinstance(env.values[refs[0]], Module):
            self.take(env, refs[0], call[1][1], v)
            return
        if call[0] == "Module.__call__":
            self.refresh(env)
        depends = self.leaves_of(env, call, refs)
        changed = self.changed_by(env, call, refs)
        written = v if changed is None else self.fitted(call, env.values[changed], v)
        cast, v = written is not v, written
        if constant(call[0]) and not cast or not self.recording(call) or not self.differentiable(v):
            if depends and self.differentiable(v):
                v = self.adapter.stop(v)
            depends = frozenset()
        if changed is not None:
            return self.change(env, call, changed, v, depends)
        if depends and call[0].endswith(APART):
            env.parts[len(env.values)] = [env.depends[k] for k in refs]
        same = [k for k in refs if v is env.values[k]]
        if not same and refs and shares_memory(call):
            same = refs[:1]
            env.views[len(env.values)] = call
        env.add(v, depends, env.memory[same[0]] if same else None)
        k = len(env.values) - 1
        if len(call) > 2 and call[2].get("requires_grad") is True:
            self.plant(env, k, k, v)

    def take(self, env, module, name, v):
        """Adds what a module has under a name: each time the same tensor."""
        module = env.home(module)
        k, leaf = env.attributes.setdefault((module, name), len(env.values)), self.leaf_of(env, module, name)
        known = k < len(env.values)
        depends = env.depends[k] if known else env.depends[module] & {leaf}
        env.add(v, depends, env.memory[k] if known else None, env.same[k] if known else None)
        if k in env.leaf or depends and not known:
            env.leaf[len(env.values) - 1] = env.leaf.get(k, leaf)

    def refresh(self, env):
        """Renews the buffers that programs took of modules before these were called."""
        for (module, name), k in env.attributes.items():
            v = env.values[module].state.get(name)
            if v is not None and v is not env.values[k]:
                for i in env.twins(k):
                    env.values[i] = v

    def changed_by(self, env, call, refs):
        """Returns the index of the value that a call changes in place, or None."""
        if call[0] == "Module.__call__":
            return refs[1] if env.values[refs[0]].inplace() else None
        return refs[0] if changes(call[0]) or in_place(call) else None

    def evaluate(self, call):
        if in_place(call):  # the result is put where the input stood
            call = without(call, "inplace")
        if len(call) > 2 and type(call[2].get("requires_grad")) is bool:
            call = without(call, "requires_grad")
        return super().evaluate(call)

    def leaves_of(self, env, call, refs):
        """Returns the leaves on which what a call returns depends."""
        if refs and refs[0] in env.parts and call[0] == "operator.getitem" and type(call[1][1]) is int:
            return env.parts[refs[0]][call[1][1]]
        return frozenset().union(*[env.depends[k] for k in (refs[:1] if call[0].endswith(LIKE) else refs)])

    def fitted(self, call, old, v):
        """Returns what a call writes in the dtype of the tensor that it changes: comparisons and integers are cast to it."""
        if not self.adapter.is_tensor(v) or v.dtype == old.dtype:
            return v
        here, new = self.adapter.dtype_name(old.dtype), self.adapter.dtype_name(v.dtype)
        asked = len(call) > 2 and "dtype" in call[2]  # for another dtype, which PyTorch refuses
        whole = here in GROUPS["integers"] and new in GROUPS["integers"]
        return self.adapter.cast(v, here) if not asked and (new == "bool" or whole) else v

    def change(self, env, call, k, v, depends):
        """Puts what is changed in place where it stood."""
        old, memory = env.values[k], env.memory[k]
        same = tuple(v.shape) == tuple(old.shape) and v.dtype == old.dtype and last(call) not in TURNED
        whole = env.memory[k]
        if whole in env.leaf and same and not (env.depends[k] and self.recording(call)):
            self.replant(env, whole, v if env.same[k] == env.same[whole] else self.around(env, k, v, frozenset())[0])
            if assigns(call):
                env.add(None, frozenset(), None)
                return
            env.add(env.values[k], env.depends[k], env.memory[k], env.same[k])
            env.leaf.update({len(env.values) - 1: env.leaf[k]} if k in env.leaf else {})
            return
        if env.depends[k] and (k < len(self.case["inputs"]) or k in env.leaf):
            raise Unsupported("no change in place of a leaf")
        views = [i for i, m in enumerate(env.memory) if m == memory and env.values[i] is not old]
        if any(last(env.views.get(i)) in MAYBE for i in views):
            raise Unsupported("no views of what is changed in place")
        if not env.depends[k] and any(m == memory and env.depends[i] for i, m in enumerate(env.memory)):
            raise Unsupported("no change in place of what was detached from its gradient")
        turned = last(call) in TURNED and any(m == memory for i, m in enumerate(env.memory) if i != k)
        if tuple(v.shape) != tuple(old.shape) or v.dtype != old.dtype or turned:
            raise Unsupported("no change in place of the shape or dtype")
        held = v
        if views and env.values[memory] is not old:
            held, depends = self.around(env, k, v, depends)
            env.views[len(env.values)] = env.views[k]
        for i, m in enumerate(env.memory):
            if m == memory:
                self.renew(env, i, held, depends)
                env.changed.add(i)
        self.written(env, memory)
        self.stored(env, memory)
        env.add(None if assigns(call) else v, depends, memory, None if assigns(call) else env.same[k])

    def around(self, env, k, v, depends):
        """Returns all of the memory of a view that was changed, which getitem made, and the leaves on which that depends."""
        whole = env.memory[k]
        while k in env.views:
            call = env.views[k]
            index, parent = self.given(call)[0][1:2], references(call[1])[0]
            if last(call) not in ("getitem", "__getitem__", "detach") or not self.adapter.is_tensor(env.values[parent]):
                v, depends, k = self.through(env, k, v), depends | env.depends[whole], whole
                break
            if index:
                v, depends = plumb_table.call(self.adapter, "operator.setitem", env.values[parent], *index, v), depends | env.depends[parent]
            k = parent
        if env.values[k] is not env.values[whole] or env.depends[k] and k < len(self.case["inputs"]) and depends:
            raise Unsupported("no views of what is changed in place")
        return v, depends

    def through(self, env, k, v):
        """Returns all of the memory of a view with other elements in it: to which of its elements they go, the same view
        of the numbers of all tells."""
        t = env.values[env.memory[k]]
        places = self.numbered(env, k)
        if env.values[k].dtype != t.dtype or tuple(places.shape) != tuple(v.shape):
            raise Unsupported("no views of what is changed in place")
        call = functools.partial(plumb_table.call, self.adapter)
        flat = call("operator.setitem", call("torch.reshape", t, [-1]), call("torch.reshape", places, [-1]), call("torch.reshape", v, [-1]))
        return call("torch.reshape", flat, list(t.shape))

    def numbered(self, env, k):
        """Returns a view of the numbers of the elements of its memory."""
        t = env.values[k]
        if k not in env.views:
            return plumb_table.call(self.adapter, "torch.reshape", plumb_table.call(self.adapter, "torch.arange", self.size(t)), list(t.shape))
        call = env.views[k]
        if last(call) in OVERLAPPING or last(call) in MAYBE:
            raise Unsupported("no views of what is changed in place")
        parent, held = references(call[1])[0], self.env
        self.env = [*env.values]
        self.env[parent] = self.numbered(env, parent)
        try:
            return self.evaluate(call)
        finally:
            self.env = held

    def renew(self, env, i, v, depends):
        """Gives a value that shares the memory of what was changed what it is now."""
        if i in env.views:
            v = self.evaluate(env.views[i])
            if last(env.views[i]) == "detach" or not self.recording(env.views[i]):
                v, depends = self.adapter.stop(v), frozenset()
        env.values[i], env.depends[i] = v, depends

    def recording(self, call):
        """Tells whether the call is made where gradients are recorded."""
        on = True
        for scope in call[3] if len(call) > 3 else ():
            if scope[0] not in SCOPES:
                raise Unsupported("no context %s" % scope[0])
            on = self.given(scope)[0][0] if scope[1] else scope[0].endswith("enable_grad")
        return on

    def differentiable(self, v):
        if isinstance(v, (tuple, list)):
            return any(self.differentiable(e) for e in v)
        return self.adapter.is_tensor(v) and self.adapter.dtype_name(v.dtype).startswith(("float", "bfloat", "complex"))

    def keep(self, i, env):
        """Puts a value into the reply."""
        v = env.values[-1]
        if self.constructs(self.case["calls"][i]):
            self.constructed(i, v)
        parts = env.parts.get(len(env.values) - 1)
        if parts:
            self.values.append(["u", [self.requiring_by(depends, e) for depends, e in zip(parts, v)]])
        else:
            self.values.append(self.requiring_by(env.depends[-1], v))

    def requiring_by(self, depends, v):
        """Returns a value as it is in the reply, with what it requires."""
        self.requiring = bool(depends)
        encoded = self.adapter.encode(self, v)
        self.requiring = False
        return encoded

    def fill(self, i, module):
        pass  # play did

    def requires_grad(self, t):
        return self.requiring and self.differentiable(t)

    def compiled(self, compile, kept):
        """Makes the calls in one compiled function of all tensors; `kept` has that of
        an earlier case of the same program."""
        names = self.parameters_of(self.states)
        inputs, results, after, held, grads = self.env, [], {}, {}, {}
        n = len(inputs)

        def program(*tensors):
            del results[:]
            flat = []
            states = self.with_parameters(dict(zip(names, tensors[n:])))
            self.trace = self.play(tensors[:n], states, lambda i, env: results.append((part(self.adapter, env.values[-1], flat), env.depends[-1])))
            after.update({key: part(self.adapter, t, flat) for key, t in self.renewed(states)})
            held.update({leaf: part(self.adapter, t, flat) for leaf, t in self.trace.held.items()})
            grads.update({leaf: part(self.adapter, g, flat) for leaf, (g, _) in self.trace.grads.items()})
            return tuple(flat)

        function, results, after, held, grads, traced = kept.get("forward") or (compile(program), results, after, held, grads, None)
        flat = function(*inputs, *[self.states[i][name] for i, name in names])
        kept["forward"] = function, results, after, held, grads, traced or self.trace
        self.trace = kept["forward"][-1]
        env = Env(list(inputs), self.trace.depends[:n])
        for i, (v, depends) in enumerate(results):
            v = whole(v, flat)
            if i in self.states:
                v.state = self.states[i]
            env.add(v, depends, None)
            self.keep(i, env)
        for (i, name), t in after.items():
            module = self.modules[i]
            module.state = dict(module.state, **{name: whole(t, flat)})
        env.held = {leaf: whole(t, flat) for leaf, t in held.items()}
        leaves = {**self.leaves_given(), **env.held}
        for (i, name), leaf in self.trace.parameters.items():
            if leaf in leaves:
                self.modules[i].state = dict(self.modules[i].state, **{name: leaves[leaf]})
        env.grads = {leaf: (whole(g, flat), self.trace.grads[leaf][1]) for leaf, g in grads.items()}
        for of in ("depends", "leaf", "past", "freed", "same"):  # after all changes in place
            setattr(env, of, getattr(self.trace, of))
        self.trace = env

    def renewed(self, states):
        """Lists the buffers that calls have given other values, by module and name."""
        for i, before in states.items():
            for name, t in self.trace.values[len(self.case["inputs"]) + i].state.items():
                if t is not before[name]:
                    yield (i, name), t

    def parameters_of(self, states):
        return [(i, name) for i, state in states.items() for name in state]

    def with_parameters(self, tensors):
        return {i: {name: tensors.get((i, name), t) for name, t in state.items()} for i, state in self.states.items()}

    # Gradients.

    def requires(self, index):
        return bool(self.trace.depends[index])

    def differentiate(self, indices, cotangents):
        if not all(map(self.requires, indices)):
            raise RuntimeError("element 0 of tensors does not require grad and does not have a grad_fn")
        self.walked(self.trace, indices, frozenset().union(*[self.trace.depends[k] for k in indices]))
        inputs, held = self.given_inputs, self.trace.held
        wanted = [self.trace.leaf.get(i, i) for i, entry in enumerate(self.case["inputs"]) if entry[4]]
        wanted += [(i, name) for i, v in enumerate(self.trace.values[len(inputs):]) if i in self.modules and not v.children
                   for name, t in v.named_parameters() if self.differentiable(t)]
        wanted += [leaf for leaf in held if leaf not in wanted]
        rest = [k for k in [*range(len(inputs)), *self.parameters_of(self.states)] if k not in wanted]
        given = self.leaves_given()
        variables, others = ([held.get(k, given.get(k)) for k in keys] for keys in (wanted, rest))
        n, end = len(wanted), len(wanted) + len(rest)

        def program(others):
            def of(*tensors):
                given = dict(zip([*wanted, *rest], [*tensors, *others]))
                env = self.play([given.get(i, x) for i, x in enumerate(inputs)], self.with_parameters(given), lambda i, env: None, given=given)
                return [env.values[i] for i in indices]
            return of

        mode = self.adapter.modes.get(self.case.get("mode") or "eager", lambda f: f)
        kept = self.shared()
        second = self.case.get("second")

        def gradients(*tensors):
            return self.adapter.vjp(program(tensors[n:end]), tensors[:n], tensors[end:])

        firsts = kept.setdefault(("first", *indices), mode(gradients))(*variables, *others, *cotangents)
        if second is not None:
            weights = [self.cotangent(g, offset, self.size(g)) for g, offset in zip(firsts, second)]
            ends = end + len(cotangents)

            def twice(*tensors):
                return self.adapter.vjp(lambda *v: gradients(*v, *tensors[n:ends])[:len(self.leaves)], tensors[:n], tensors[ends:])

            seconds = kept.setdefault(("second", *indices), mode(twice))(*variables, *others, *cotangents, *weights)
        reached = frozenset().union(*[self.trace.depends[i] for i in indices])
        latest = self.latest()
        ids = [id(latest[base(key)]) for key in wanted]
        self.firsts = {x: g if key in reached else None for key, x, g in zip(wanted, ids, firsts)}
        if second is not None:
            self.found = {x: g if key in reached else None for key, x, g in zip(wanted, ids, seconds)}

    def gradient(self, x):
        return total(self.asked.get(id(x)), (self.firsts or {}).get(id(x)))

    def made(self):
        found, n, latest = {}, len(self.case["inputs"]), self.latest()
        told = {base(leaf) for leaf in self.trace.parameters.values() if leaf is not None}  # among their modules' gradients
        for k, leaf in sorted(self.trace.leaf.items()):
            first = base(leaf)
            if first not in told and isinstance(first, int) and (first >= n or not self.case["inputs"][first][4]) and first not in found:
                found[first] = k, total(self.trace.grads.get(first, (None,))[0], (self.firsts or {}).get(id(latest[first])))
        return [(k, self.store(g)) for k, g in found.values() if g is not None]


def total(asked, last):
    """Returns the gradient for which a program asked together with that of its end."""
    return last if asked is None else asked if last is None else asked + last
