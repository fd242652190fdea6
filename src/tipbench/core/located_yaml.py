"""YAML loading that records the line of every value, so that problems can be reported by line."""

import re
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import yaml

DataPath = tuple[str | int, ...]
_MAX_DEPTH = 40
_MAX_VALUES = 50_000
_TOO_MUCH = "it is nested too deeply or holds too many values"


class _Loader(yaml.CSafeLoader):
    """libyaml's parser, read event by event: its own tree builder crashes on deeply nested input.

    Also accepts numbers in JSON notation: YAML 1.1 would read 1e-05 as a string.
    """


class _Dumper(yaml.SafeDumper):
    """Puts a text in quotes that the loader would read as such a number."""


for _kind in (_Loader, _Dumper):
    _kind.add_implicit_resolver(
        "tag:yaml.org,2002:float",
        re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?[eE][-+]?\d+\Z", re.ASCII),
        list("-0123456789"),
    )


def dump_yaml(data: Any, **layout: Any) -> str:
    """Return YAML that `load_located` reads as the same data, but for characters that YAML can't hold."""
    text: str = yaml.dump(data, Dumper=_Dumper, width=10_000, **layout)
    return text


@dataclass
class LocatedData:
    """Plain data and, for each path into it, the line of that value, counted from 1."""

    data: Any
    lines: dict[DataPath, int] = field(default_factory=dict)
    text_lines: dict[DataPath, int] = field(default_factory=dict)  # where the first line of a string's content is
    problems: list[tuple[int, str]] = field(default_factory=list)

    def line(self, path: DataPath) -> int:
        """Return the line of the value, or of the nearest enclosing value that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def load_located(text: str, first_line: int = 1) -> LocatedData:
    """Load one YAML document; problems are collected in `problems`, and nothing is raised."""
    located = LocatedData(data=None)
    try:
        loader = _Loader(text)
        try:
            node = _document(loader)
            if node is not None:
                located.data = _convert(loader, node, (), located, first_line)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        located.problems.append((line, f"not valid YAML: {error.problem or error.context}"))
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        located.problems.append((first_line, f"not valid YAML: {' '.join(str(error).split())}"))
    return located


def _document(loader: _Loader) -> yaml.Node | None:
    """Return the tree of the only document, or None if there is no content."""
    loader.get_event()  # stream start
    if loader.check_event(yaml.StreamEndEvent):
        return None
    loader.get_event()
    node = _node(loader, {}, 0)
    loader.get_event()
    after: Any = loader.get_event()
    if not isinstance(after, yaml.StreamEndEvent):
        raise yaml.MarkedYAMLError(
            problem="a second document begins here; only one is allowed", problem_mark=after.start_mark
        )
    return node


def _node(loader: _Loader, anchors: dict[str, yaml.Node], depth: int) -> yaml.Node:
    event: Any = loader.get_event()
    start = event.start_mark
    if depth > _MAX_DEPTH:
        raise yaml.MarkedYAMLError(problem=_TOO_MUCH, problem_mark=start)
    if isinstance(event, yaml.AliasEvent):
        if event.anchor not in anchors:
            raise yaml.MarkedYAMLError(problem=f"there is no anchor '{event.anchor}'", problem_mark=start)
        return anchors[event.anchor]
    node: yaml.Node
    tag = event.tag
    if isinstance(event, yaml.ScalarEvent):
        if tag is None or tag == "!":
            tag = loader.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call]
        node = yaml.ScalarNode(tag, event.value, start, style=event.style)
    elif isinstance(event, yaml.SequenceStartEvent):
        node = yaml.SequenceNode(tag, [], start)
    else:
        node = yaml.MappingNode(tag, [], start)
    if event.anchor is not None:
        anchors[event.anchor] = node
    if isinstance(node, yaml.SequenceNode):
        while not loader.check_event(yaml.SequenceEndEvent):
            node.value.append(_node(loader, anchors, depth + 1))
        loader.get_event()
    elif isinstance(node, yaml.MappingNode):
        while not loader.check_event(yaml.MappingEndEvent):
            node.value.append((_node(loader, anchors, depth + 1), _node(loader, anchors, depth + 1)))
        loader.get_event()
    return node


def _convert(loader: _Loader, node: yaml.Node, path: DataPath, located: LocatedData, first_line: int) -> Any:
    if len(path) > _MAX_DEPTH or len(located.lines) > _MAX_VALUES:
        raise yaml.MarkedYAMLError(problem=_TOO_MUCH, problem_mark=node.start_mark)
    located.lines.setdefault(path, node.start_mark.line + first_line)
    if isinstance(node, yaml.MappingNode):
        result: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + first_line
            key = _scalar(loader, key_node) if isinstance(key_node, yaml.ScalarNode) else None
            if not isinstance(key, str):
                shown = key_node.value if isinstance(key_node, yaml.ScalarNode) else "of several values"
                located.problems.append((line, f"the key {shown} is not text; put it in quotes"))
                key = str(shown)
            if key in result:
                located.problems.append((line, f"the key '{key}' is given twice"))
            located.lines[(*path, key)] = line
            result[key] = _convert(loader, value_node, (*path, key), located, first_line)
        return result
    if isinstance(node, yaml.SequenceNode):
        return [_convert(loader, child, (*path, index), located, first_line) for index, child in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    is_block = node.style in ("|", ">")  # its content starts on the line after the indicator
    located.text_lines[path] = node.start_mark.line + first_line + is_block
    return _scalar(loader, node)


def _scalar(loader: _Loader, node: yaml.ScalarNode) -> Any:
    try:
        return loader.construct_object(node)
    except (ValueError, LookupError, AttributeError) as error:
        # PyYAML's own constructors don't check their input: a 13th month, !!bool maybe, !!int "".
        problem = f"{node.value!r} is no {node.tag.rpartition(':')[2]} ({error})"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from None
