"""A pass of inductor's scheduler for functions of many cases, where PyTorch has the interface of one."""

from torch._inductor.custom_graph_pass import CustomSchedulerPass


class Stages(CustomSchedulerPass):
    """Orders what is scheduled so that loops adjoin, and calls into libraries do.

    Inductor ends a C++ function at each of these calls, and a function takes the
    compiler a second. Cases do not depend on each other: in this order there are
    as many functions as the case with the most of them has.
    """

    def __call__(self, nodes):
        waiting, ordered, done, calls = list(nodes), [], set(), False
        made = {name for node in nodes for name in node.get_buffer_names()}
        while waiting:
            ready = [node for node in waiting if all(d.name in done or d.name not in made for d in node.unmet_dependencies)]
            stage = [node for node in ready if is_call(node) == calls] or ready
            if not stage:
                return nodes
            calls = is_call(stage[0])
            ordered += stage
            waiting = [node for node in waiting if node not in stage]
            done.update(name for node in stage for name in node.get_buffer_names())
        return ordered

    def uuid(self):
        return "plumb: loops, then calls"


def is_call(node):
    return node.is_extern() or node.is_template()
