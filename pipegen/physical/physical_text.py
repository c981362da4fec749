"""Physical plans as text and JSON: a line for each operation, and for each function that it calls."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pipegen.physical import nodes as p
from pipegen.physical.facts import RARELY, facts, inside, needs
from pipegen.plan.nodes import Element, Read
from pipegen.plan.plan_text import bucket_text, emit_text, mix_text, order_text, send_text, stage_text
from pipegen.types import times

_ENTERS = {
    "variable": "from a variable",
    "constant": "a constant",
    "queue": "from a queue",
    "list": "from a list",
    "request": "from a request",
}
_ENTERING = {
    "epoch": "an epoch, and its first step",
    "step": "a step of an epoch",
    "record": "a record, and a cycle through the data",
    "batch": "a batch of stored values",
}
_GUARDS = {
    "name": "a failure names the file",
    "replace": "damaged records are replaced",
    "tell": "only whether that works",
    "mark": "damaged records are marked",
}


def render_physical(plan: p.Physical) -> str:
    """The physical plan as text, ending in a newline."""
    lines = [f"form: {plan.form.name}"]
    for entry in physical_json(plan)["operations"]:
        lines.append(f"{entry['name']:<12}{_line(entry)}")
        for function in entry.get("functions", ()):
            lines.append(f"  {function['function']:<16} {_line(function)}".rstrip())
            lines += [f"      {stage}" for stage in function.get("stages", ())]
    kept = dict.fromkeys(word for found in needs(plan) for word in (*found.variables, *found.python) if word != RARELY)
    lines.append(f"only in this process: {', '.join(kept)}" if kept else "portable: runs in any process with TensorFlow")
    return "\n".join(lines) + "\n"


def physical_json(plan: p.Physical) -> dict[str, Any]:
    """The physical plan as JSON values."""
    operations = []
    for name, operation in plan.named():
        entry = {"name": name, "operation": p.node_name(operation), "text": _operation(operation), **_facts(operation, plan)}
        if isinstance(operation, p.Map):
            entry |= {"grain": operation.grain, "threads": operation.threads}
            entry["functions"] = [described for function in operation.functions for described in _functions(function, plan)]
        operations.append(entry)
    return {"form": plan.form.name, "operations": operations, "portable": all(f.portable for f in needs(plan))}


def _line(entry: dict[str, Any]) -> str:
    notes = [said for key, said in _NOTES.items() if entry[key]]
    notes += [f"variables: {', '.join(entry['variables'])}"] if entry["variables"] else []
    notes += [f"Python: {', '.join(entry['python'])}"] if entry["python"] else []
    return " ".join(part for part in (entry["text"], f"[{'; '.join(notes)}]" if notes else "") if part)


_NOTES = {"compiled": "XLA", "device": "may run on a device", "asserts": "assertions"}


def _facts(part: p.Operation | p.Function | Read | Element, plan: p.Physical) -> dict[str, Any]:
    found = facts(part, plan)
    return asdict(found) | {"portable": found.portable}


def _operation(operation: p.Operation) -> str:
    match operation:
        case p.Enter():
            return f"{_ENTERING[operation.grain]}, {_ENTERS[operation.enters]}"
        case p.Steps():
            return "flat map to the steps of the epoch, from the first on"
        case p.Map():
            over = {"batch": "batches"}.get(operation.grain, f"{operation.grain}s")
            return f"map over {over}" + (", in parallel" if operation.threads is not None else "")
        case p.Unbatch():
            return "one by one from here"
        case p.Filter():
            return "filter: this host's block of each global batch"
        case p.Stack():
            held = "every example of an epoch" if operation.held else f"{operation.size}"
            return f"batch of {held}" + ("" if operation.full or operation.held else ", or the rest")
        case p.Prefetch(steps=True):
            return f"{operation.batches} steps whose records are being fetched"
        case p.Prefetch():
            batches = "batches" if operation.batches > 1 else "batch"
            where = f"{batches} on device {operation.device}" if operation.device else f"finished {batches}"
            return f"{operation.batches} {where}"


def _functions(function: p.Function, plan: p.Physical) -> list[dict[str, Any]]:
    """Describes a function, and below it the nodes that it runs on single examples."""
    entry = {"function": p.node_name(function), "text": _function(function), **_facts(function, plan)}
    if isinstance(function, (p.Kernel, p.Prepare)):
        entry["stages"] = [stage_text(stage) for stage in function.node.stages]
    if isinstance(function, p.SwitchBucket):  # all buckets have nearly the same functions
        return [entry, *(described for own in function.functions[0] for described in _functions(own, plan))]
    found = [entry]
    for node in () if isinstance(function, p.ReadCache) else inside(function):
        found.append({"function": type(node).__name__.lower(), **_facts(node, plan)})
        if isinstance(node, Element):
            found[-1] |= {"text": "", "stages": [stage_text(stage) for stage in node.stages]}
        else:
            found[-1]["text"] = "rows" if node.rows else "stored bytes"
    return found


_TEXTS: dict[type, str] = {
    p.PrefetchRemote: "begins to fetch the records",
    p.Fill: "up to {f.size} rows",
    p.Cut: "into chunks of {f.chunk}",
    p.MapRequest: "example of the request",
    p.Sort: "by slot",
    p.Trim: "the repeated rows",
    p.SetBatchSize: "{f.rows} rows",
    p.Prepare: "parameters of a kernel on the device:",
    p.SliceOwnRows: "rows of this host",
}


def _function(function: p.Function) -> str:  # noqa: C901 - a line or two for each function of a closed set
    match function:
        case p.Index():
            return _index(function)
        case p.Draw():
            return _drawn(function.draws)
        case p.Examples():
            chunk = f"{function.chunk} a call" if function.chunk > 1 else "one a call"
            return chunk + (f"; {_GUARDS[function.guard]}" if function.guard != "none" else "")
        case p.FillCache():
            missing = "missing records" if function.at_once is None else f"missing records, {function.at_once} at a time"
            return missing + (f"; {_GUARDS[function.examples.guard]}" if function.examples.guard != "none" else "")
        case p.ReadCache():
            return "a whole batch from the cache" if function.whole else "an example from the cache"
        case p.Join():
            return f"{function.size // function.chunk} chunks to a batch"
        case p.Rows():
            in_place = " and ".join(function.in_place)
            return f"of a whole batch, except {in_place}, which the kernel reads in place" if in_place else "of a whole batch"
        case p.Kernel():
            return f"{function.batch} rows" if function.batch else "any number of rows"
        case p.SwitchBucket():
            return f"one of {len(function.sizes)} buckets; the functions of {times(function.sizes[0])}:"
        case p.Emit():
            return emit_text(function.node) + (", padding has weight 0" if function.weighs else "")
        case p.Send() | p.Receive():
            return send_text(function.node)
        case p.SplitForDevice():
            weights = ", with the weights" if function.weighs else ""
            return f"{', '.join(function.features)} and the parameters{weights}; there: {emit_text(function.node)}"
        case p.Deliver():
            what = "the batch, its epoch and step" if function.numbered else "the batch alone"
            return what + ("; the position is stored" if function.notes else "")
    return _TEXTS[type(function)].format(f=function)


def _index(index: p.Index) -> str:
    node = index.node
    mix = mix_text(node.names, interleaves=node.interleaves)
    parts = [mix + order_text(node.order, node.window_bytes, blocks=node.blocks)]
    parts += [bucket_text(node.buckets)] if node.buckets else []
    parts += ["sampled"] if node.sampled else []
    parts += [f"block {index.shard[0]} of {index.shard[1]}"] if index.shard[1] > 1 else []
    parts += [f"{index.rows} rows in whole combined groups"] if index.rows else []
    parts += [_drawn(node.num_draws)] if node.num_draws else []
    return ", ".join(parts)


def _drawn(draws: int) -> str:
    return f"{draws} draw{'' if draws == 1 else 's'} each"
