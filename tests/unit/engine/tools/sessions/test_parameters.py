"""Parameters of session tools: one type gives the reader and the schema; mistakes name the parameter."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from openclaw.engine.tools.sessions.parameters import (
    Parameters,
    answer,
    read_parameters,
    schema_of,
    tool_spec,
)
from openclaw.errors import InvalidRequest
from tests.unit.engine.tools.sessions.room import Room, text_of

_TYPES = ("string", "integer", "number", "boolean", "array", "object")


class Asked(Parameters, frozen=True):
    session_key: Annotated[str, Meta(description="which one")]
    limit: Annotated[int | None, Meta(description="how many", extra_json_schema={"minimum": 1})] = None
    kinds: Annotated[tuple[str, ...], Meta(description="of which kinds")] = ()
    include_tools: Annotated[bool, Meta(description="all of it")] = False


@pytest.mark.spec("TOOL-7")
def test_the_schema_says_what_the_reader_takes() -> None:
    assert schema_of(Asked) == {
        "type": "object",
        "properties": {
            "sessionKey": {"description": "which one", "type": "string"},
            "limit": {"description": "how many", "minimum": 1, "type": "integer"},
            "kinds": {"description": "of which kinds", "type": "array", "items": {"type": "string"}},
            "includeTools": {"description": "all of it", "type": "boolean"},
        },
        "required": ["sessionKey"],
        "additionalProperties": False,
    }


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    class Nothing(Parameters, frozen=True):
        pass

    spec = tool_spec("nothing", "Does nothing.", Nothing, parallel=False)
    assert spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert (spec.name, spec.description, spec.parallel) == ("nothing", "Does nothing.", False)
    assert tool_spec("nothing", "", Nothing).parallel is True


def test_null_counts_as_not_given_and_whole_numbers_may_have_a_point() -> None:
    asked = read_parameters({"sessionKey": "main", "limit": None, "kinds": None, "includeTools": None}, Asked)
    assert asked == Asked(session_key="main")
    assert read_parameters({"sessionKey": "main", "limit": 5.0}, Asked).limit == 5
    assert read_parameters({"sessionKey": "main", "kinds": ["cron"]}, Asked).kinds == ("cron",)


@pytest.mark.spec("TOOL-7")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "Object missing required field `sessionKey`"),
        ({"sessionKey": None}, "Object missing required field `sessionKey`"),
        ({"sessionKey": 7}, "sessionKey: Expected `str`, got `int`"),
        ({"sessionKey": "a", "limit": "many"}, "limit: Expected `int | null`, got `str`"),
        ({"sessionKey": "a", "limit": 1.5}, "limit: Expected `int | null`, got `float`"),
        ({"sessionKey": "a", "limit": True}, "limit: Expected `int | null`, got `bool`"),
        ({"sessionKey": "a", "kinds": ["a", 1]}, "kinds: Expected `str`, got `int`"),
        ({"sessionKey": "a", "includeTools": "yes"}, "includeTools: Expected `bool`, got `str`"),
        ({"sessionKey": "a", "depth": 1}, "Object contains unknown field `depth`"),
    ],
)
def test_a_wrong_argument_names_the_parameter(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_parameters(arguments, Asked)
    assert caught.value.message == f"invalid arguments: {problem}"


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.sampled_from(("sessionKey", "limit", "kinds", "includeTools")) | st.text(max_size=8),
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text()),
        max_size=4,
    )
)
def test_whatever_is_passed_is_read_or_refused(arguments: dict[str, Any]) -> None:
    try:
        asked = read_parameters(arguments, Asked)
    except InvalidRequest as error:
        assert error.message.startswith("invalid arguments: ")
        assert len(error.message) < 400
    else:
        assert isinstance(asked.session_key, str)


def test_an_answer_is_json_with_details() -> None:
    said = answer({"count": 1, "name": "é"})
    assert text_of(said) == '{"count":1,"name":"é"}'
    assert said.details == {"count": 1, "name": "é"}
    assert said.is_error is False
    assert answer({"count": 1}, {}).details == {}


@pytest.mark.spec("TOOL-1")
async def test_every_parameter_of_every_tool_is_described(room: Room) -> None:
    for spec in room.registry.specs(room.registry.names()):
        assert spec.description.endswith(".")
        assert spec.parameters["additionalProperties"] is False
        for name, field in spec.parameters["properties"].items():
            assert field["description"], (spec.name, name)
            assert field["type"] in _TYPES, (spec.name, name)
            assert "anyOf" not in field
            assert "default" not in field
