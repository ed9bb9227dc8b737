"""A grouping is a value."""

import pytest

from stormline.topology.grouping import CustomStreamGrouping, GlobalStreamId, Grouping, GroupingKind
from tests.kits.declaring import FirstTask


def test_groupings_are_equal_by_what_they_say() -> None:
    assert Grouping(GroupingKind.FIELDS, ("word",)) == Grouping(GroupingKind.FIELDS, ("word",))
    assert Grouping(GroupingKind.FIELDS, ("word",)) != Grouping(GroupingKind.PARTIAL_KEY, ("word",))
    assert hash(Grouping(GroupingKind.ALL)) == hash(Grouping(GroupingKind.ALL))


@pytest.mark.parametrize(
    ("grouping", "text"),
    [
        (Grouping(GroupingKind.SHUFFLE), "shuffle"),
        (Grouping(GroupingKind.LOCAL_OR_SHUFFLE), "local or shuffle"),
        (Grouping(GroupingKind.FIELDS, ("word", "n")), "fields(word, n)"),
        (Grouping(GroupingKind.CUSTOM, custom=FirstTask()), "custom"),
    ],
)
def test_a_grouping_prints_as_storm_names_it(grouping: Grouping, text: str) -> None:
    assert str(grouping) == text


def test_a_stream_prints_with_its_component_and_hides_the_default() -> None:
    assert (str(GlobalStreamId("words")), str(GlobalStreamId("words", "loud"))) == ("words", "words.loud")
    assert GlobalStreamId("words") == GlobalStreamId("words", "default")


def test_an_object_with_both_methods_is_a_custom_grouping() -> None:
    assert isinstance(FirstTask(), CustomStreamGrouping)
    assert not isinstance(object(), CustomStreamGrouping)
