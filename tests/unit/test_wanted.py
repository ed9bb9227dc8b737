from __future__ import annotations

import threading

from stormline.runtime.own_thread import OwnThread
from stormline.runtime.wanted import wanted_here, while_wanted


def test_code_that_nobody_watches_is_wanted() -> None:
    assert wanted_here()


def test_who_runs_the_code_says_whether_it_is_wanted() -> None:
    wanted = [True]
    with while_wanted(lambda: wanted[0]):
        assert wanted_here()
        wanted[0] = False
        assert not wanted_here()
        with while_wanted(lambda: True):
            assert wanted_here()
        assert not wanted_here()
    assert wanted_here()


def test_code_in_a_thread_that_was_given_up_is_not_wanted() -> None:
    own = OwnThread("test")
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    seen: list[bool] = []

    def work() -> None:
        seen.append(wanted_here())
        begun.set()
        assert go_on.wait(20)
        seen.append(wanted_here())

    own.begin(work)
    assert begun.wait(20)
    own.give_up(at_end=ended.set)
    go_on.set()
    assert ended.wait(20)
    assert seen == [True, False]
