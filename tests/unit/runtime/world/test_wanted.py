from __future__ import annotations

from stormline.runtime.world.wanted import WhileWanted, wanted_here


def test_code_that_nobody_watches_is_wanted() -> None:
    assert wanted_here()


def test_who_runs_the_code_says_whether_it_is_wanted() -> None:
    wanted = [True]
    with WhileWanted(lambda: wanted[0]):
        assert wanted_here()
        wanted[0] = False
        assert not wanted_here()
        with WhileWanted(lambda: True):
            assert wanted_here()
        assert not wanted_here()
    assert wanted_here()
