# PyTorch's side of `plumb bench graph`. The first line is a JSON object: the
# number of threads, and for each block its tensors by name, with a file of
# elements each. Every line after it asks for one thing,
#
#     check BLOCK STEP MODE FILE    writes all results into FILE, answers their shapes
#     time BLOCK STEP MODE REPEATS  answers seconds per step
#     cpu BLOCK STEP MODE REPEATS   answers seconds of CPU time per step
#     memory BLOCK STEP MODE 0      answers the most bytes held above those held before
#
# where STEP is forward or train and MODE eager, trace or compile. An answer is
# a line of JSON; "error" says why there is none.
import json
import sys
import time

import torch
import torch.nn.functional as F


def mlp(x, p, training):
    x = F.relu(F.linear(x, p["w1"], p["b1"]))
    x = F.relu(F.linear(x, p["w2"], p["b2"]))
    return F.linear(x, p["w3"], p["b3"])


def resnet(x, p, training):
    def normal(x, i):
        return F.batch_norm(x, p["mean" + i], p["var" + i], p["gain" + i], p["shift" + i], training)

    y = F.relu(normal(F.conv2d(x, p["conv1"], padding=1), "1"))
    return F.relu(normal(F.conv2d(y, p["conv2"], padding=1), "2") + x)


HEADS = 4


def transformer(x, p, training):
    b, n, d = x.shape

    def heads(y):
        return y.reshape(b, n, HEADS, d // HEADS).transpose(1, 2)

    y = F.layer_norm(x, (d,), p["gain1"], p["shift1"])
    q, k, v = (heads(F.linear(y, p["w" + c], p.get("b" + c))) for c in "qkv")
    weights = F.softmax(torch.matmul(q, k.transpose(-2, -1)) * (d // HEADS) ** -0.5, -1)
    y = torch.matmul(weights, v).transpose(1, 2).reshape(b, n, d)
    x = x + F.linear(y, p["wo"], p["bo"])
    y = F.layer_norm(x, (d,), p["gain2"], p["shift2"])
    return x + F.linear(F.gelu(F.linear(y, p["w1"], p["b1"])), p["w2"], p["b2"])


BLOCKS = {"mlp": mlp, "resnet": resnet, "transformer": transformer}


def load(t):
    with open(t["file"], "rb") as f:
        data = bytearray(f.read())
    return torch.frombuffer(data, dtype=getattr(torch, t["dtype"])).reshape(t["shape"]).clone()


class Step:
    """One block in one mode, with parameters of its own."""

    def __init__(self, block, step, mode):
        tensors = {t["name"]: load(t) for t in setup["blocks"][block]}
        self.x, self.target = tensors.pop("x"), tensors.pop("target")
        self.names, self.training = list(tensors), step == "train"
        self.state = list(tensors.values())
        self.weights = [v for n, v in tensors.items() if not n.startswith(("mean", "var"))]
        if self.training:
            for v in self.weights:
                v.requires_grad_()
            self.optimizer = torch.optim.SGD(self.weights, lr=0.1, momentum=0.9)
            for v in self.weights:  # with a buffer of zeros the first step is like the others
                self.optimizer.state[v]["momentum_buffer"] = torch.zeros_like(v)

        def forward(x, *state):
            return BLOCKS[block](x, dict(zip(self.names, state)), self.training)

        self.forward = forward
        if mode == "trace":
            running = {i: v.clone() for i, v in enumerate(self.state) if not v.requires_grad}
            self.forward = torch.jit.trace(forward, (self.x, *self.state), check_trace=False)
            with torch.no_grad():
                for i, v in running.items():  # tracing ran the block once
                    self.state[i].copy_(v)
        elif mode == "compile":
            self.forward = torch.compile(forward)

    def run(self):
        if not self.training:
            with torch.no_grad():
                return self.forward(self.x, *self.state)
        loss = F.cross_entropy if self.target.dtype == torch.int64 else F.mse_loss
        value = loss(self.forward(self.x, *self.state), self.target)
        for v in self.weights:
            v.grad = None
        value.backward()
        self.optimizer.step()
        for v in self.weights:
            v.grad = None
        return value.detach()

    def results(self):
        out = [self.run()]
        if self.training:
            out += [v.detach() for v in self.state]
            out += [self.optimizer.state[v]["momentum_buffer"] for v in self.weights]
        return out


def check(block, step, mode, file):
    out = Step(block, step, mode).results()
    with open(file, "wb") as f:
        for t in out:
            f.write(t.contiguous().numpy().tobytes())
    return [list(t.shape) for t in out]


def prepared(block, step, mode):
    key = (block, step, mode)
    if key not in steps:
        steps[key] = Step(*key)
        for _ in range(3):  # the profiling executor optimises after two runs
            steps[key].run()
    return steps[key]


def measure(clock):
    def seconds(block, step, mode, repeats):
        s = prepared(block, step, mode)
        start = clock()
        for _ in range(int(repeats)):
            s.run()
        return (clock() - start) / int(repeats)

    return seconds


def memory(block, step, mode, _):
    s = prepared(block, step, mode)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as p:
        s.run()
    held = most = 0
    events = [e for e in p.profiler.kineto_results.events() if e.name() == "[memory]"]
    for e in sorted(events, key=lambda e: e.start_ns() if hasattr(e, "start_ns") else e.start_us()):
        held += e.nbytes()
        most = max(most, held)
    return most


ACTIONS = {"check": check, "time": measure(time.perf_counter), "cpu": measure(time.process_time), "memory": memory}

setup, steps = json.loads(sys.stdin.readline()), {}
torch.set_num_threads(setup["threads"])
print(json.dumps({"torch": torch.__version__, "compile": hasattr(torch, "compile")}), flush=True)
for line in sys.stdin:
    action, *args = line.split()
    try:
        answer = ACTIONS[action](*args)
    except Exception as e:
        answer = {"error": " ".join(f"{type(e).__name__}: {e}".split())[:300]}
    print(json.dumps(answer), flush=True)
