"""Session entries for tests: any that can exist, and one for each field."""

from __future__ import annotations

from typing import Any, Literal, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from openclaw.domain import entry as entry_module
from openclaw.domain.entry import DeliveryContext, Origin, PendingDelivery, SessionEntry
from tests.conformance.making import NOON

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBER = st.integers(-(2**63), 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
ROUTE = st.builds(
    DeliveryContext, channel=TEXT, to=st.none() | TEXT, account_id=st.none() | TEXT, thread_id=TEXT
)
BY_TYPE: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXT,
    int: NUMBER,
    bool: st.booleans(),
    float: st.floats(allow_nan=False, allow_infinity=False),
    type(None): st.none(),
    DeliveryContext: ROUTE,
    Origin: st.builds(Origin, label=st.none() | TEXT, from_=st.none() | TEXT, chat_type=st.just("group")),
    PendingDelivery: st.builds(PendingDelivery, text=TEXT, context=ROUTE, attempt_count=NUMBER),
    dict[str, Any]: st.dictionaries(TEXT, JSON, max_size=3),
    tuple[str, ...]: st.lists(TEXT, max_size=3).map(tuple),
}


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if kind in BY_TYPE:
        return BY_TYPE[kind]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    return st.one_of(*(values_of(part) for part in get_args(kind)))


def entry_with(**fields: Any) -> SessionEntry:
    known: dict[str, Any] = {"session_id": "id-1", "updated_at": NOON, "created_at": NOON}
    return SessionEntry(**known | fields)


HINTS = get_type_hints(SessionEntry, vars(entry_module))
SET_BY_THE_STORE = ("session_id", "updated_at")
FIELDS = {name: values_of(kind) for name, kind in HINTS.items() if name not in SET_BY_THE_STORE}
ENTRIES = st.fixed_dictionaries({}, optional=FIELDS | {"created_at": NUMBER}).map(
    lambda chosen: entry_with(**chosen)
)


def example_of(name: str) -> Any:
    """A value of this field that is not its default."""
    structured = {
        "origin": Origin(label="x"),
        "delivery_context": DeliveryContext(to="42"),
        "pending_final_delivery": PendingDelivery("text", DeliveryContext(channel="c")),
        "skills_snapshot": {"name": ["value"]},
        "system_prompt_report": {"name": {"nested": True}},
        "usage_family_session_ids": ("a", "b"),
    }
    if name in structured:
        return structured[name]
    simple = {str: "x", int: 5, bool: True, float: 0.5}
    kind = HINTS[name] if HINTS[name] in simple else get_args(HINTS[name])[0]
    return simple[kind] if kind in simple else get_args(kind)[-1]
