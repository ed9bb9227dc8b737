"""The graph as Mermaid, DOT and SVG: groupings on the edges, the two phases apart, any id as text."""

import re
from typing import Any
from xml.etree import ElementTree

import pytest

from stormline import MemoryTransactionalSpout, TransactionalTopologyBuilder, compile_topology
from stormline.topology.plan import Plan
from stormline.topology.visualize import COMMIT, FORMATS, PROCESSING, dot, mermaid, picture
from tests.kits.components import Batch, Store

HOSTILE = 'end "a" <b> & #1; `c` [d] \\ {e} |f|'


class TwoStreams(Batch):
    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(["tx", "value"])
        declarer.declare_stream("late", ["tx", "why"])


def plan(name: str = "words") -> Plan:
    builder = TransactionalTopologyBuilder("graph", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1), 3)
    bolt = builder.set_bolt(name, TwoStreams(), 2)
    bolt.fields_grouping("spout", "value")
    builder.set_bolt("store", Store("x")).global_grouping(name).shuffle_grouping(name, "late").all_grouping("spout")
    builder.set_bolt("after", Batch(), 4).shuffle_grouping("store")
    return compile_topology(builder.build_topology())


def test_mermaid_draws_nodes_with_tasks_and_edges_with_groupings_and_streams() -> None:
    assert (
        mermaid(plan())
        == """\
flowchart LR
    n0(["spout<br/>partitioned transactional spout<br/>3 tasks"]):::processing
    n1["words<br/>batch bolt<br/>2 tasks"]:::processing
    n2[["store<br/>batch bolt, committer<br/>1 task"]]:::commit
    n3["after<br/>batch bolt<br/>4 tasks"]:::commit
    n0 -->|"fields(value)"| n1
    n1 -->|"global"| n2
    n1 -->|"late: shuffle"| n2
    n0 -->|"all"| n2
    n2 -->|"shuffle"| n3
    classDef processing fill:#dbeafe,stroke:#1d4ed8,color:#111827
    classDef commit fill:#ffedd5,stroke:#c2410c,color:#111827
"""
    )


def test_mermaid_gets_no_character_of_an_id_that_it_would_read_itself() -> None:
    label = re.search(r'n1\["(.*)<br/>batch bolt', mermaid(plan(HOSTILE)))
    assert label is not None
    assert not set(label[1]) & set('"<>&`[]\\{}|')
    assert re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label[1]) == HOSTILE


def test_dot_draws_the_same_graph() -> None:
    lines = dot(plan()).splitlines()
    assert lines[0] == 'digraph "graph" {'
    assert lines[-1] == "}"
    assert (
        '    "store" [label="store\\nbatch bolt, committer\\n1 task", '
        'fillcolor="#ffedd5", color="#c2410c", peripheries=2]'
    ) in lines
    assert '    "words" -> "store" [label="late: shuffle"]' in lines


def test_dot_escapes_quotes_and_backslashes() -> None:
    assert '"a \\"b\\" \\\\ c" [label="a \\"b\\" \\\\ c\\nbatch bolt' in dot(plan('a "b" \\ c'))


def svg_texts(text: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(text).iter("{http://www.w3.org/2000/svg}text")]


def test_svg_is_xml_and_says_all_that_the_others_say() -> None:
    text = picture(plan())
    said = svg_texts(text)
    assert said[0] == "graph"
    assert {"spout", "words", "store", "after", "4 tasks", "fields(value)", "late: shuffle", "all"} <= set(said)
    assert said[-2:] == ["finishes in the processing phase", "finishes in the commit phase"]
    assert text.count('marker-end="url(#arrow)"') == len(plan().edges)


def test_svg_tells_the_phases_apart_by_colour() -> None:
    text = picture(plan())
    legend = 1
    assert text.count(PROCESSING.fill) == 2 + legend
    assert text.count(COMMIT.fill) == 2 + legend


def test_svg_escapes_what_xml_would_read() -> None:
    assert HOSTILE in svg_texts(picture(plan(HOSTILE)))


def test_svg_boxes_and_labels_do_not_overlap() -> None:
    root = ElementTree.fromstring(picture(wide()))
    boxes = [
        tuple(float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
        for rect in root.iter("{http://www.w3.org/2000/svg}rect")
        if rect.attrib.get("stroke-width") and float(rect.attrib["height"]) > 30
    ]
    assert len(boxes) == 9
    for i, (x, y, width, height) in enumerate(boxes):
        for left, top, wide_px, high in boxes[:i]:
            assert x >= left + wide_px or left >= x + width or y >= top + high or top >= y + height


def wide() -> Plan:
    builder = TransactionalTopologyBuilder("wide", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1))
    for i in range(6):
        builder.set_bolt(f"b{i}", Batch()).shuffle_grouping("spout")
    last = builder.set_bolt("join", Batch()).shuffle_grouping("spout")
    for i in range(6):
        last.fields_grouping(f"b{i}", "value")
    builder.set_bolt("end", Batch()).shuffle_grouping("join")
    return compile_topology(builder.build_topology())


@pytest.mark.parametrize("form", FORMATS)
def test_the_same_plan_gives_the_same_drawing(form: str) -> None:
    assert FORMATS[form](plan()) == FORMATS[form](plan())


@pytest.mark.parametrize("form", FORMATS)
def test_a_spout_alone_can_be_drawn(form: str) -> None:
    builder = TransactionalTopologyBuilder("alone", "spout", MemoryTransactionalSpout({0: [1]}, ["value"], 1))
    assert "alone" in FORMATS[form](compile_topology(builder.build_topology())) or form == "mermaid"
