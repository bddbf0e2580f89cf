"""The resource's schema and the model say the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from policysched.app.checking.schema import policy_definition, policy_schema
from policysched.language.syntax.parser import MAX_CHARACTERS
from policysched.model.objects.meta import LabelSelector
from policysched.model.policy import (
    API_GROUP,
    API_VERSION,
    API_VERSIONS,
    KIND,
    PLURAL,
    FilterRule,
    Let,
    MetricQuery,
    PolicyCondition,
    PolicyCost,
    PolicyDiagnostic,
    PolicyInput,
    PolicyInstance,
    PolicySpec,
    PolicyStatus,
    ScoreRule,
)
from policysched.rules.compile.compiler import MAX_RULES
from policysched.rules.policy_status.status import MAX_DIAGNOSTICS

Schema = dict[str, Any]
ROOT: Schema = policy_schema()["properties"]
SPEC, STATUS = ROOT["spec"], ROOT["status"]


def _at(schema: Schema, *names: str) -> Schema:
    """The schema of a field; of a list's items where it is one."""
    for name in names:
        schema = schema["properties"][name]
        schema = schema.get("items", schema)
    return schema


STRUCTS: list[tuple[type[msgspec.Struct], Schema]] = [
    (PolicySpec, SPEC),
    (MetricQuery, _at(SPEC, "metrics")),
    (Let, _at(SPEC, "let")),
    (FilterRule, _at(SPEC, "filters")),
    (ScoreRule, _at(SPEC, "scores")),
    (LabelSelector, _at(SPEC, "podSelector")),
    (LabelSelector, _at(SPEC, "namespaceSelector")),
    (PolicyStatus, STATUS),
    (PolicyCondition, _at(STATUS, "conditions")),
    (PolicyDiagnostic, _at(STATUS, "diagnostics")),
    (PolicyCost, _at(STATUS, "cost")),
    (PolicyInstance, _at(STATUS, "instances")),
    (PolicyInput, _at(STATUS, "instances", "inputs")),
]


@pytest.mark.parametrize(("struct", "schema"), STRUCTS)
def test_schema_has_the_fields_of_the_model(struct: type[msgspec.Struct], schema: Schema) -> None:
    assert set(schema["properties"]) == set(struct.__struct_encode_fields__)


@pytest.mark.parametrize(("struct", "schema"), STRUCTS[:5])
def test_schema_requires_what_the_model_requires(struct: type[msgspec.Struct], schema: Schema) -> None:
    required = [field.encode_name for field in msgspec.structs.fields(struct) if field.required]
    assert sorted(schema.get("required", [])) == sorted(required)


@pytest.mark.parametrize(("struct", "schema"), STRUCTS[:5])
def test_defaults_and_bounds_and_choices_are_those_of_the_model(struct: type[msgspec.Struct], schema: Schema) -> None:
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        described = schema["properties"][field.encode_name]
        if "default" in described:
            assert described["default"] == field.default, field.name
        kinds = [one for one in (hints[field.name], *get_args(hints[field.name])) if get_origin(one) is Literal]
        assert described.get("enum") == (list(get_args(kinds[0])) if kinds else None), field.name
        bounds = [one for one in get_args(hints[field.name]) if isinstance(one, msgspec.Meta)]
        limits = (bounds[0].ge, bounds[0].le) if bounds else (None, None)
        assert (described.get("minimum"), described.get("maximum")) == limits, field.name


def test_lists_and_texts_are_as_long_as_the_compiler_takes() -> None:
    fields = SPEC["properties"]
    assert fields["filters"]["maxItems"] == fields["scores"]["maxItems"] == MAX_RULES
    assert STATUS["properties"]["diagnostics"]["maxItems"] == MAX_DIAGNOSTICS
    expressions = [
        fields["appliesTo"],
        _at(SPEC, "let", "value"),
        *(_at(SPEC, "filters", name) for name in ("when", "require")),
        *(_at(SPEC, "scores", name) for name in ("when", "value", "cases")),
    ]
    assert {one["maxLength"] for one in expressions} == {MAX_CHARACTERS}


def _undescribed(schema: Schema, path: str) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        here = f"{path}.{name}"
        if not field.get("description", "").endswith("."):
            yield here
        yield from _undescribed(field, here)
        yield from _undescribed(field.get("items", {}), f"{here}[]")


def test_every_field_has_a_description() -> None:
    # API servers reject a description of metadata.
    assert [one for one in _undescribed(policy_schema(), "") if one != ".metadata"] == []


def test_definition_is_named_as_the_model_names_it() -> None:
    definition = policy_definition()
    spec = definition["spec"]
    assert definition["metadata"]["name"] == f"{PLURAL}.{API_GROUP}"
    assert (spec["group"], spec["names"]["kind"], spec["names"]["plural"]) == (API_GROUP, KIND, PLURAL)
    assert tuple(f"{spec['group']}/{version['name']}" for version in spec["versions"]) == API_VERSIONS
    assert (spec["scope"], spec["names"]["shortNames"]) == ("Cluster", ["spol"])


def test_versions_share_one_schema_so_that_no_conversion_loses_anything() -> None:
    spec = policy_definition()["spec"]
    assert spec["conversion"] == {"strategy": "None"}
    newest, *older = spec["versions"]
    for version in older:
        for part in ("schema", "subresources", "additionalPrinterColumns"):
            assert version[part] is newest[part], f"{part}: write the alias of the first version"


def test_policies_are_stored_in_the_newest_version_and_older_ones_are_deprecated() -> None:
    newest, *older = policy_definition()["spec"]["versions"]
    assert (newest["served"], newest["storage"], newest.get("deprecated")) == (True, True, None)
    for version in older:
        assert (version["served"], version["storage"], version["deprecated"]) == (True, False, True)
        assert API_VERSION in version["deprecationWarning"]
        assert len(version["deprecationWarning"]) <= 256
