"""Gradients for which a program itself asks, on frameworks without a tape: the calls before
are made once more, as a function of the leaves, which the framework differentiates.
"""

import functools
from time import monotonic

import plumb_table
from plumb_names import OF_GRADIENTS, Unsupported
from plumb_table import Module

PARAMETER = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
MOST = 5000  # calls that are made once more, over all gradients of a program
LONGEST = 25  # seconds from the first of these on: what is later would end at the time limit of a case
CASTS = {"double": "float64", "float": "float32", "half": "float16", "bfloat16": "bfloat16"}  # methods of modules
TOLD = ("getattr", "Tensor.retain_grad", "Tensor.backward", "torch.autograd.backward", "torch.autograd.grad")  # what asks for gradients, or whether there are any
UNUSED = "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior."
AGAIN = "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed)."
SAVING = frozenset("mul div pow exp log sqrt rsqrt sin cos tan tanh sigmoid abs relu gelu softmax log_softmax prod var std norm matmul mm bmm mv dot mse_loss".split())  # calls that keep tensors for their gradients
LIGHT = frozenset("add radd sub neg sum reshape view flatten transpose permute t squeeze unsqueeze expand cat stack clone".split())  # calls that keep none
NO_GRAD = "element %d of tensors does not require grad and does not have a grad_fn"


class Env:
    """The values of a program: for each what it is, the leaves on which it depends, the
    value whose memory it shares in PyTorch, and the first one that is the same tensor; of
    views the call that made them; and, of results that depend on one argument each, the
    leaves of every one.

    A leaf is named by the index of its value, by that and a number once it was changed,
    or by the call that makes a module and the parameter's name. `held` has the tensors of
    those that calls made or changed, `grads` their gradients so far by the value alone,
    `read` the values that programs took of these, `stale` leaves that are others now.
    `attributes` are the first values that programs took of modules, by module and name,
    `parameters` the leaves that these are now, where they have been changed. `past` are the values that a gradient
    reaches on its way to the leaves, `freed` those that no other gradient may, `retained`
    those that are no leaves and keep their gradients.
    """

    def __init__(self, values, depends):
        self.values, self.depends, self.memory = values, depends, list(range(len(values)))
        self.same, self.past = list(self.memory), [frozenset()] * len(values)
        self.views, self.parts = {}, {}
        self.leaf = {i: i for i, leaves in enumerate(depends) if leaves}
        self.held, self.grads, self.read, self.freed, self.changed = {}, {}, {}, set(), set()
        self.attributes, self.parameters, self.stale, self.retained = {}, {}, set(), set()

    def add(self, v, depends, memory, same=None):
        k = len(self.values)
        self.values.append(v)
        self.depends.append(depends)
        self.memory.append(k if memory is None else memory)
        self.same.append(k if same is None else same)

    def twins(self, k):
        """Lists the values that are the same tensor."""
        return [i for i, first in enumerate(self.same) if first == self.same[k]]

    def home(self, k):
        """Returns the first value that is the same module: the one that was made."""
        return next(i for i, v in enumerate(self.values) if v is self.values[k])

    def owners(self, k):
        """Lists the modules, by their index, that have a tensor, with the name."""
        return [owner for owner, first in self.attributes.items() if self.same[first] == self.same[k]]

    def sharing(self, k):
        """Lists the other values in the same memory."""
        return [i for i, memory in enumerate(self.memory) if memory == self.memory[k] and self.same[i] != self.same[k]]


def holds(module, other):
    """Tells whether a module is another, or has it as a part."""
    return module is other or any(holds(child, other) for child in module.children.values())


def base(leaf):
    """Returns the name that a leaf keeps when it is changed."""
    return leaf[0] if isinstance(leaf, tuple) and isinstance(leaf[1], int) else leaf


def version(leaf):
    """Returns the name of a leaf once it has been changed again."""
    return base(leaf), 1 if base(leaf) == leaf else leaf[1] + 1


def index(a):
    """Returns the value that an argument of a request names."""
    if type(a) is not list or a[0] != "r":
        raise Unsupported("a gradient of what is no tensor of the program")
    return a[1]


def indices(a):
    return [index(e) for e in a[1]] if type(a) is list and a[0] in ("l", "u") else [index(a)]


class Asked:
    """The part of a case in which a program asks for gradients."""

    again = 0  # calls that were made once more
    first = 0  # when they began

    def asks(self, env, at, call):
        """Makes a call about gradients; tells whether it is one."""
        ask = ASKS.get(call[0])
        if ask is None or call[0] == "getattr" and (call[1][1] not in OF_GRADIENTS or not self.adapter.is_tensor(env.values[index(call[1][0])])):
            return False
        if self.adapter.gradients is not True and call[0] in TOLD:
            raise Unsupported("%s tells no gradients within a program" % self.adapter.name)
        names = {name: a for name, a in call[2].items()} if len(call) > 2 else {}
        ask(self, env, at, *call[1], **names)
        return True

    def remember(self, env, call, refs):
        """Notes the past of the last value, and of all that a call gave it."""
        k = len(env.values) - 1
        way = env.depends[k] and k not in env.leaf and not isinstance(env.values[k], Module)
        past = frozenset().union(*[env.past[r] for r in refs], [k]) if way else frozenset()
        env.past.append(past)
        if env.memory[k] != k:
            for i, memory in enumerate(env.memory):
                if memory == env.memory[k] and i in env.changed:
                    env.past[i] = past if env.depends[i] and i not in env.leaf else frozenset()

    def given_leaf(self, leaf, v):
        """Returns the tensor that a leaf is where gradients are computed, else its own."""
        return self.variables.get(leaf, v)

    # Leaves.

    def require(self, env, at, t, requires_grad=True):
        k = index(t)
        if requires_grad and not env.depends[k]:
            if not self.differentiable(env.values[k]):
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            self.plant(env, env.same[k], self.another(env, k), env.values[k])
        elif not requires_grad and env.depends[k]:
            if k not in env.leaf:
                raise Unsupported("no gradient ends at what a call made of others")
            self.retire(env, env.leaf[k])
            for i in env.twins(k):
                env.values[i], env.depends[i] = self.adapter.stop(env.values[i]), frozenset()
                del env.leaf[i]
            self.stored(env, k)
        env.add(env.values[k], env.depends[k], env.memory[k], env.same[k])
        if k in env.leaf:
            env.leaf[len(env.values) - 1] = env.leaf[k]

    def plant(self, env, k, leaf, v):
        """Makes a leaf of a value."""
        apart = self.adapter.stop(v)
        if apart is v:  # gradients are told by the tensor
            apart = plumb_table.call(self.adapter, "torch.mul", v, 1)
        v = env.held[leaf] = self.given_leaf(leaf, apart)
        for i in env.twins(k):
            env.values[i], env.depends[i], env.leaf[i] = v, frozenset([leaf]), leaf
        self.stored(env, k)

    def another(self, env, k):
        """Returns a name for a leaf that a value becomes."""
        owners = [self.parameter_of(*owner) for owner in env.owners(k)]
        name = owners[0] if owners else env.same[k]
        before = len([leaf for leaf in env.stale if base(leaf) == name])
        return (name, before) if before else name

    def parameter_of(self, module, name):
        """Returns the name of a module's parameter as a leaf."""
        return module - len(self.case["inputs"]), name

    def leaf_of(self, env, module, name):
        """Returns the leaf that a module's parameter is now."""
        leaf = self.parameter_of(module, name)
        return env.parameters.get(leaf, leaf)

    def retire(self, env, leaf):
        """Notes that a leaf is another from here on."""
        env.stale.add(leaf)
        self.drop(env, leaf)

    def drop(self, env, leaf):
        """Notes that modules have a leaf no longer."""
        for i, v in enumerate(env.values):
            if isinstance(v, Module):
                env.depends[i] -= {leaf}

    def stored(self, env, k):
        """Gives modules what a parameter or buffer of theirs is now."""
        for module, name in env.owners(k):
            v, first = env.values[module], env.attributes[module, name]
            v.state = dict(v.state, **{name: env.values[first]})
            env.parameters[self.parameter_of(module, name)] = env.leaf.get(first)
            self.having(env, v, env.depends[first])

    def parameter(self, env, at, data, requires_grad=True):
        k = index(data)
        if any(k in self.named(call) for call in self.case["calls"][at + 1:]):
            raise Unsupported("no parameter that shares memory with what is used besides")
        env.add(self.adapter.stop(env.values[k]), frozenset(), None)
        if requires_grad:
            self.plant(env, len(env.values) - 1, len(env.values) - 1, env.values[-1])

    def replant(self, env, k, v):
        """Gives a leaf, which a call changed where no gradients are recorded, its new elements."""
        leaf = env.leaf[k]
        if any(env.depends[i] for i in env.sharing(k)):
            raise Unsupported("no views of what is changed in place")
        self.retire(env, leaf)
        self.plant(env, k, version(leaf), v)
        for i in env.sharing(k):
            self.renew(env, i, v, frozenset())
            env.changed.add(i)

    def retain(self, env, at, t):
        k = index(t)
        if not env.depends[k]:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if k not in env.leaf:
            env.retained.add(env.same[k])
        env.add(None, frozenset(), None)

    def attribute(self, env, at, t, name):
        k = index(t)
        is_leaf = not env.depends[k] or k in env.leaf
        if name == "grad":
            return self.read(env, base(env.leaf[k]) if k in env.leaf else env.same[k])
        if name == "grad_fn" and not is_leaf:
            raise Unsupported("%s has no grad_fn" % self.adapter.name)
        env.add({"requires_grad": bool(env.depends[k]), "is_leaf": is_leaf, "grad_fn": None}[name], frozenset(), None)

    def read(self, env, leaf):
        """Adds the gradient of a leaf: each time the same tensor."""
        v, depends = env.grads.get(leaf, (None, frozenset()))
        first = env.read.get(leaf) if v is not None else None
        env.add(v, depends, None if first is None else env.memory[first], None if first is None else env.same[first])
        if v is not None:
            env.read.setdefault(leaf, len(env.values) - 1)

    def assign(self, env, at, t, name, new):
        k = index(t)
        if name == "requires_grad" and self.adapter.is_tensor(env.values[k]):
            self.require(env, at, t, new)
            env.values[-1] = None
            return
        if isinstance(env.values[k], Module):
            self.furnish(env, k, name, new)
            return
        if name == "data":
            self.supply(env, at, k, index(new))
            return
        if name != "grad" or new is not None or k not in env.leaf:
            raise Unsupported("attribute %s cannot be assigned" % name)
        env.grads.pop(base(env.leaf[k]), None)
        env.read.pop(base(env.leaf[k]), None)
        env.add(None, frozenset(), None)

    def supply(self, env, at, k, new):
        """Gives a tensor other elements: those of another one."""
        v, old = self.adapter.stop(env.values[new]), env.values[k]
        if tuple(v.shape) != tuple(old.shape) or v.dtype != old.dtype or any(new in self.named(call) for call in self.case["calls"][at + 1:]):
            raise Unsupported("attribute data cannot be assigned to a tensor of another shape or dtype, or to be shared")
        if env.sharing(k) or env.depends[k] and k not in env.leaf:
            raise Unsupported("no views of what is changed in place")
        if k in env.leaf:
            self.replant(env, k, v)
        else:
            for i in env.twins(k):
                env.values[i] = v
            self.stored(env, k)
        env.add(None, frozenset(), None)

    def furnish(self, env, k, name, new):
        """Gives a module another tensor as its parameter or buffer."""
        tensor = type(new) is list and new[0] == "r" and self.adapter.is_tensor(env.values[new[1]])
        if not tensor or env.values[k].children or name not in env.values[k].state:
            raise Unsupported("attribute %s cannot be assigned" % name)
        k = env.home(k)
        self.drop(env, self.leaf_of(env, k, name))
        env.attributes[k, name] = env.same[new[1]]
        self.stored(env, new[1])
        env.add(None, frozenset(), None)

    def recast(self, env, k, dtype):
        """Gives the parameters and buffers of a module, and of what it holds, another dtype."""
        whole = env.values[k]
        for j, module in enumerate(env.values):
            if not isinstance(module, Module) or module.children or env.home(j) != j or not holds(whole, module):
                continue
            for name, t in list(module.state.items()):
                first, leaf = env.attributes.get((j, name)), self.leaf_of(env, j, name)
                if dtype is None or not self.differentiable(t):
                    continue
                v = self.adapter.cast(self.adapter.stop(t), dtype)
                if first in env.leaf:
                    self.replant(env, first, v)
                elif first is not None:
                    for i in env.twins(first):
                        env.values[i] = v
                    self.stored(env, first)
                else:
                    self.restate(env, j, name, leaf, v)
        env.add(whole, env.depends[k], env.memory[k], env.same[k])

    def restate(self, env, j, name, leaf, v):
        """Gives a module a tensor that no program has seen."""
        module = env.values[j]
        if leaf in env.depends[j]:
            self.retire(env, leaf)
            again = version(leaf)
            v = env.held[again] = self.given_leaf(again, v)
            env.parameters[self.parameter_of(j, name)] = again
            self.having(env, module, frozenset([again]))
        module.state = dict(module.state, **{name: v})

    def having(self, env, module, leaves):
        """Notes that a module, and what holds it, depends on leaves."""
        for i, holder in enumerate(env.values):
            if isinstance(holder, Module) and holds(holder, module):
                env.depends[i] |= leaves

    def written(self, env, memory):
        """Takes over what a call changed of gradients that programs read."""
        for leaf, k in env.read.items():
            if env.memory[k] == memory:
                env.grads[leaf] = env.values[k], env.depends[k]

    # Gradients.

    def back(self, env, at, t, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        self.backs(env, at, t, gradient, retain_graph, create_graph, inputs=inputs)

    def backs(self, env, at, tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
        if inputs is not None or grad_variables is not None:
            raise Unsupported("no gradients of some leaves alone")
        outputs = indices(tensors)
        leaves = sorted(self.reached(env, outputs), key=str) + sorted(env.retained & self.way(env, outputs))
        if env.retained & env.changed:
            raise Unsupported("no gradient of what was changed in place")
        for leaf, g in zip(leaves, self.pulled(env, at, outputs, leaves, grad_tensors, retain_graph, create_graph)):
            self.accumulate(env, base(leaf), g, self.depending(env, [*outputs, *self.weighing(grad_tensors)]) if create_graph else frozenset())
        env.add(None, frozenset(), None)

    def accumulate(self, env, leaf, g, depends):
        old, before = env.grads.get(leaf, (None, frozenset()))
        if old is not None:
            g, depends = old + g, depends | before
        env.grads[leaf] = g, depends
        if leaf in env.read:
            for i, memory in enumerate(env.memory):
                if memory == env.memory[env.read[leaf]]:
                    self.renew(env, i, g, depends)

    def ask(self, env, at, outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True, allow_unused=None, is_grads_batched=False):
        if is_grads_batched and grad_outputs is None:
            raise Unsupported("no batches of cotangents that are not given")
        outputs, wanted = indices(outputs), indices(inputs)
        reached, past = self.reached(env, outputs), self.way(env, outputs)
        for k in wanted:
            if not env.depends[k]:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if k not in env.leaf and k in env.changed:
                raise Unsupported("no gradient of what was changed in place")
        leaves = [env.leaf.get(k, k) for k in wanted]
        used = [leaf in reached or leaf in past or k in outputs for leaf, k in zip(leaves, wanted)]
        if not all(used) and not allow_unused:
            raise RuntimeError(UNUSED)
        asked = list(dict.fromkeys([leaf for leaf, u in zip(leaves, used) if u]))
        found = dict(zip(asked, self.pulled(env, at, outputs, asked, grad_outputs, retain_graph, create_graph, is_grads_batched) if asked else ()))
        env.add(tuple([found.get(leaf) for leaf in leaves]), self.depending(env, [*outputs, *self.weighing(grad_outputs)]) if create_graph else frozenset(), None)

    def reached(self, env, outputs):
        for n, k in enumerate(outputs):
            if not self.adapter.is_tensor(env.values[k]) or not env.depends[k]:
                raise RuntimeError(NO_GRAD % n)
        reached = self.depending(env, outputs)
        if reached & env.stale:
            raise Unsupported("no gradient of a leaf that was changed since")
        return reached

    def weighing(self, cotangents):
        """Lists the values that weigh results."""
        return [] if cotangents is None else indices(cotangents)

    def depending(self, env, outputs):
        return frozenset().union(*[env.depends[k] for k in outputs])

    def way(self, env, outputs):
        return frozenset().union(*[env.past[k] for k in outputs])

    def walked(self, env, outputs, leaves):
        """Returns the values through whose calls a gradient goes on its way to leaves, or refuses one through a graph that
        is there no more: only calls that keep tensors miss what another gradient freed."""
        wanted = frozenset(leaves)
        walked = frozenset([k for k in self.way(env, outputs) if env.depends[k] & wanted or env.past[k] & wanted - {k}])
        names = [self.case["calls"][k - len(self.case["inputs"])][0].rpartition(".")[2].strip("_") for k in walked & env.freed]
        if any(name in SAVING for name in names):
            raise RuntimeError(AGAIN)
        if not all(name in LIGHT for name in names):
            raise Unsupported("no graph that another gradient was computed by")
        return walked

    def pulled(self, env, at, outputs, leaves, cotangents, retain_graph, create_graph, batched=False):
        """Returns the gradient of each leaf; where the cotangents are batches of them, with that dimension first."""
        walked = self.walked(env, outputs, leaves)
        if not (create_graph if retain_graph is None else retain_graph):
            env.freed |= walked
        if at in self.found_by and not create_graph:
            return self.found_by[at]
        given = self.weighing(cotangents)
        weights = [env.values[k] for k in given]
        for k in outputs[len(given):]:
            if self.size(env.values[k]) != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            weights.append(self.cotangent(env.values[k], None, 1))
        weights = [self.adapter.cast(w, self.adapter.dtype_name(env.values[k].dtype)) if w.dtype != env.values[k].dtype else w for k, w in zip(outputs, weights)]
        lead = tuple(weights[0].shape[:1]) if batched else ()
        for k, w in zip(outputs, weights):
            if tuple(w.shape) != lead + tuple(env.values[k].shape):
                raise RuntimeError("Mismatch in shape: grad_output[0] has a shape of %s and output[0] has a shape of %s." % (tuple(w.shape), tuple(env.values[k].shape)))
        self.again += at * lead[0] if batched else at
        self.first = self.first or monotonic()
        if self.again > MOST or monotonic() - self.first > LONGEST:
            raise Unsupported("no gradients of so many calls made once more")
        inputs, states, variables, found_by, call = *self.origin, self.variables, self.found_by, self.call

        def of(*tensors):
            again = self.play(inputs, states, lambda i, env: None, at, dict(found_by), {**variables, **dict(zip(leaves, tensors))})
            return [again.values[k] for k in outputs]

        try:
            given = [self.tensor_of(env, leaf) for leaf in leaves]
            found = self.each(of, given, weights, lead[0]) if batched else self.adapter.vjp(of, given, weights)
        finally:
            self.variables, self.found_by, self.origin = variables, found_by, (inputs, states)
            self.env, self.call, self.memory.mark[1] = env.values, call, call
        if not create_graph:
            found = [self.adapter.stop(g) for g in found]
            self.found_by[at] = found
        return found

    def each(self, of, leaves, weights, n):
        """Returns the gradients by each of n cotangents, one upon the other."""
        if n == 0:
            raise Unsupported("no batch without cotangents")
        call = functools.partial(plumb_table.call, self.adapter)
        found = [self.adapter.vjp(of, leaves, [call("operator.getitem", w, i) for w in weights]) for i in range(n)]
        return [call("torch.stack", list(gs)) for gs in zip(*found)]

    def tensor_of(self, env, leaf):
        """Returns what a leaf is, and of another value the -0 that is added to it."""
        if leaf in self.variables or leaf in env.held:
            return self.variables.get(leaf, env.held.get(leaf))
        if isinstance(leaf, tuple):
            return self.origin[1][leaf[0]][leaf[1]]
        v = env.values[leaf]
        return v if leaf in env.leaf else self.cotangent(v, None, self.size(v)) * -0.0


def recast(dtype, asked, env, at, module):
    asked.recast(env, index(module), dtype)


def moved(asked, env, at, module, *args, dtype=None, device=None, non_blocking=None):
    """Gives a module the dtype that Module.to is told, if any."""
    dtype = dtype or next((a for a in args if type(a) is list and a[0] == "d"), None)
    asked.recast(env, index(module), dtype and dtype[1])


ASKS = {"Module.to": moved, "Tensor.backward": Asked.back, "torch.autograd.backward": Asked.backs, "torch.autograd.grad": Asked.ask, "Tensor.requires_grad_": Asked.require, "Tensor.retain_grad": Asked.retain,
        "getattr": Asked.attribute, "setattr": Asked.assign, **dict.fromkeys(PARAMETER, Asked.parameter),
        **{"Module." + name: functools.partial(recast, dtype) for name, dtype in CASTS.items()}}
