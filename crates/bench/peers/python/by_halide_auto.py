"""The effects with Halide, scheduled by its autoscheduler: the algorithms of `by_halide` without their schedules."""
import importlib.util
import pathlib

import halide as hl

import by_halide
from peer import THREADS

# The autoscheduler of Mullapudi et al. (2016). That of Adams et al. (2019) takes a minute for a graph.
SCHEDULER = "Mullapudi2016"
EFFECTS = "degrain diffusion separable bilateral_grid local_laplacian camera nlmeans unsharp gaussian".split()
SCHEDULES = "bound compute_at compute_root fold_storage parallel reorder reorder_storage split store_at tile unroll vectorize".split()


def finished(function, result):
    function.set_estimates([(0, int(extent)) for extent in result.shape[::-1]])
    pipeline, target = hl.Pipeline(function), hl.get_host_target()
    settings = {"parallelism": str(THREADS), "last_level_cache_size": str(16 << 20), "balance": "10"}
    pipeline.apply_autoscheduler(target, hl.AutoschedulerParams(SCHEDULER, settings))
    pipeline.compile_jit(target)
    buffer = hl.Buffer(result)

    def run():
        pipeline.realize(buffer)
        return result

    return run


def unscheduled():
    """Makes schedules of this process do nothing."""
    folder = pathlib.Path(importlib.util.find_spec("halide").origin).parent
    hl.load_plugin(str(next(folder.rglob(f"libautoschedule_{SCHEDULER.lower()}.*"))))
    for kind in (hl.Func, hl.Stage):
        for name in SCHEDULES:
            if hasattr(kind, name):
                setattr(kind, name, lambda self, *_: self)
    by_halide.finished = finished


def automatic(name):
    def build(*inputs):
        unscheduled()
        return getattr(by_halide, name)(*inputs)

    return build


for effect in EFFECTS:
    globals()[effect] = automatic(effect)
