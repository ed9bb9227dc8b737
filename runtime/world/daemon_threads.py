"""run_side_by_side: calls in threads that never keep the process from ending."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stormline.runtime.world.world import Empty, Queue, World


def run_side_by_side(world: World, calls: Sequence[Callable[[], None]], threads_max: int) -> None:
    """Run all of `calls`, at most `threads_max` at a time, and return when all have ended.

    The threads are daemons (those of a ThreadPoolExecutor are waited for when the process ends, also where user code
    hangs in them). The first exception, in the order of `calls`, is raised at the end.
    """
    if len(calls) == 1:
        calls[0]()
        return
    todo: Queue[int] = world.queue()
    errors: dict[int, BaseException] = {}

    def work() -> None:
        while True:
            try:
                index = todo.get_nowait()
            except Empty:
                return
            try:
                calls[index]()
            except BaseException as error:
                errors[index] = error

    for index in range(len(calls)):
        todo.put(index)
    threads = [world.start_thread(f"stormline-commit-{n}", work) for n in range(min(threads_max, len(calls)))]
    for thread in threads:
        thread.join()
    if errors:
        raise errors[min(errors)]
