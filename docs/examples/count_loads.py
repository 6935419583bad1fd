"""A user pass: counts the loads of each kernel and says where they are. It changes nothing."""

from orias.stage import Context, Unit


def count_loads(unit: Unit, ctx: Context) -> None:
    """Called with each kernel."""
    for function in unit.functions:
        loads = [i for block in function.blocks for i in block.insts if i.op in ("LDG", "LDS", "LDL")]
        ctx.count("loads", len(loads))
        for inst in loads:
            ctx.remark("analysis", "count-loads", "Load", function.name, inst.line, f"{inst.op} stays")
