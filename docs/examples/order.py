"""A scheduler in Python: each block in the order of critical paths, with the control words of orias."""

from orias.stage import Context, Unit, control_words, dependences, stage


def order(unit: Unit, ctx: Context) -> None:
    """Reorder the blocks of a unit."""
    for function in unit.functions:
        for block in function.blocks:
            graph = dependences(block.insts, ctx.header.target)
            paths = graph.critical_paths()
            waits = list(graph.waits)
            ready = [n for n, count in enumerate(waits) if not count]
            new = []
            while ready:
                best = max(ready, key=lambda n: (paths[n], -n))
                ready.remove(best)
                new.append(block.insts[best])
                for later, _ in graph.succs[best]:
                    waits[later] -= 1
                    if not waits[later]:
                        ready.append(later)
            block.insts = new
    control_words(unit, ctx)


if __name__ == "__main__":
    stage("schedule", "allocated", "scheduled", order)
