"""What the webhook says of policies: carets, warnings that fit, and the same verdict as the scheduler's."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest

from policysched.app.webhook.review import LONGEST_MESSAGE, LONGEST_WARNING, MOST_WARNINGS, answer
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from policysched.model.policy import decode_policy
from policysched.rules.compile.compiler import compile_policy
from tests.app.dry_runs import Object, policy, requiring
from tests.work import calls


def reviewed(new: Any, old: Any = None, operation: str = "CREATE") -> Object:
    return reviewed_texts(json.dumps(new), json.dumps(old), operation)


def reviewed_texts(new: str, old: str = "null", operation: str = "CREATE") -> Object:
    request = f'{{"uid": "u1", "operation": "{operation}", "object": {new}, "oldObject": {old}}}'
    review = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {request}}}'
    said: Object = json.loads(answer(review.encode()))
    assert (said["apiVersion"], said["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert said["response"].pop("uid") == "u1"
    response: Object = said["response"]
    return response


def test_policy_with_an_error_is_refused_with_carets() -> None:
    said = reviewed(policy(**requiring('node.labels["cores"] > 10')))
    assert not said["allowed"]
    assert said["status"]["message"] == (
        "the policy does not compile:\n"
        "error[E0301]: cannot compare string with number\n"
        "  --> spec.filters[0].require:1:1\n"
        "   |\n"
        ' 1 | node.labels["cores"] > 10\n'
        "   | ^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "   = help: labels are strings; convert them with number(...)"
    )


def causes(said: Object) -> list[tuple[str, str]]:
    details = said["status"]["details"]
    assert (details["name"], details["group"], details["kind"]) == ("p", "policysched.io", "SchedulingPolicy")
    return [(one["field"], one["message"]) for one in details["causes"]]


def test_refusal_has_a_cause_with_field_and_message_for_each_error() -> None:
    filters = [{"name": "a", "require": 'node.labels["cores"] > 10'}, {"name": "b", "require": "nod.ready"}]
    said = reviewed(policy(filters=filters, weight=101))
    found = causes(said)
    assert sorted(field for field, _ in found) == ["spec.filters[0].require", "spec.filters[1].require", "spec.weight"]
    assert said["status"]["message"] == "\n".join(["the policy does not compile:", *(text for _, text in found)])
    [first] = [text for field, text in found if field == "spec.filters[0].require"]
    assert first.startswith("error[E0301]: cannot compare string with number\n")
    assert first.endswith("   = help: labels are strings; convert them with number(...)")


def test_causes_are_cut_and_the_others_are_counted() -> None:
    cases = [f"nod.ready{number} → 1" for number in range(256)]
    said = reviewed(policy(scores=[{"name": f"s{number}", "cases": cases} for number in range(2)]))
    found = causes(said)
    assert len("".join(field + text for field, text in found).encode()) < LONGEST_MESSAGE + 100
    assert found[-1] == ("spec", f"{2 * 256 - len(found) + 1} more errors")


def test_policy_that_compiles_passes() -> None:
    assert reviewed(policy(**requiring("node.ready"))) == {"allowed": True}


@pytest.mark.parametrize(("version", "allowed"), [("v1alpha1", True), ("v1beta1", True), ("v1", False), ("v2", False)])
def test_policies_of_known_versions_alone_pass(version: str, allowed: bool) -> None:
    said = reviewed(policy(**requiring("node.ready")) | {"apiVersion": f"policysched.io/{version}"})
    assert said["allowed"] is allowed
    assert allowed or f'got "policysched.io/{version}"' in said["status"]["message"]


def test_warnings_are_told_and_fit() -> None:
    text = 'node.ready or node.name == "' + "a\u200b" * 200 + '"'
    filters = [{"name": f"f{number}", "require": text} for number in range(30)]
    said = reviewed(policy(filters=filters))
    assert said["allowed"]
    assert len(said["warnings"]) == MOST_WARNINGS
    assert all(len(one.encode()) <= LONGEST_WARNING for one in said["warnings"])
    assert said["warnings"][0].startswith("W0")


def test_update_that_puts_a_number_in_place_of_a_truth_value_is_another_spec() -> None:
    broken = policy(**requiring("nod.ready"), includeSystemPods=True)
    other = broken | {"spec": broken["spec"] | {"includeSystemPods": 1}}
    assert not reviewed(other, broken, "UPDATE")["allowed"]
    assert reviewed(broken, broken, "UPDATE") == {"allowed": True}


def test_update_that_leaves_the_spec_passes_though_it_does_not_compile() -> None:
    broken = policy(**requiring("nod.ready"))
    labelled = broken | {"metadata": broken["metadata"] | {"labels": {"a": "b"}}}
    assert reviewed(labelled, broken, "UPDATE") == {"allowed": True}
    other = policy(**requiring("nod.name"))
    assert not reviewed(other, broken, "UPDATE")["allowed"]
    assert reviewed(None, broken, "DELETE") == {"allowed": True}


def test_long_messages_are_cut() -> None:
    cases = [f"nod.ready{number} → 1" for number in range(256)]
    scores = [{"name": f"s{number}", "cases": cases} for number in range(2)]
    message = reviewed(policy(scores=scores))["status"]["message"]
    assert len(message.encode()) <= LONGEST_MESSAGE
    assert message.endswith("...")


@pytest.mark.parametrize(
    "raw", [b"", b"{", b"[]", b"null", b'{"kind":"AdmissionReview"}', b"[" * 100_000,
            b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","request":{"uid":"1"}}'],
)  # fmt: skip
def test_what_is_no_review_is_refused(raw: bytes) -> None:
    with pytest.raises(UsageError, match="expected an AdmissionReview"):
        answer(raw)


TEXTS = (
    "node.ready", "nod.ready", 'node.labels["a"] == "b"', "1 +", "node.free.cpu >= pod.requests.cpu",
    "node.free.cpu > 3", "x > 1", 'node.zone in ["a"]', "pods.any(p, p.labels[", "true", "",
    "node.name", "now.hour > 3",
)  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("field", ["require", "value", "appliesTo", "let", "case"])
def test_policy_passes_exactly_if_it_compiles_in_the_scheduler(text: str, field: str) -> None:
    spec: Object = {
        "require": {"filters": [{"name": "r", "require": text}]},
        "value": {"scores": [{"name": "s", "value": text}]},
        "appliesTo": {"appliesTo": text, **requiring("node.ready")},
        "let": {"let": [{"name": "v", "value": text}], **requiring("node.ready")},
        "case": {"scores": [{"name": "s", "cases": [f"{text} → 10", "else → 1"]}]},
    }[field]
    given = policy(**spec)
    try:
        compiles = compile_policy(decode_policy(given)).policy is not None
    except ObjectError:
        compiles = False
    assert reviewed(given)["allowed"] is compiles


@pytest.mark.parametrize("spec", [{"filters": [{}] * 400_000}, {"let": [{"name": "a", "value": "x" * (1 << 20)}]}])
def test_policy_that_is_too_large_is_refused_unread(spec: Object) -> None:
    large = policy() | {"spec": spec}
    assert calls(lambda: reviewed(large)) < 2 * calls(lambda: reviewed(policy(filters=[])))
    assert not reviewed(large)["allowed"]
    [message] = {reviewed(large, old, "UPDATE")["status"]["message"] for old in (policy(), large | {"spec": {}})}
    assert message.endswith("the policy is larger than 1024 KiB")
    assert reviewed(large)["status"]["details"]["causes"] == [
        {"reason": "FieldValueInvalid", "field": "spec", "message": message}
    ]
    assert reviewed(large | {"metadata": {"name": "p", "labels": {"a": "b"}}}, large, "UPDATE") == {"allowed": True}


@pytest.mark.parametrize(
    "large",
    [
        {"kind": "SchedulingPolicy", "apiVersion": [[]] * 400_000},
        {"kind": [[]] * 400_000, "apiVersion": "policysched.io/v1beta1"},
        policy() | {"metadata": {"name": [[]] * 400_000}},
        policy() | {"metadata": [[]] * 400_000},
        policy() | {f"f{number}": 0 for number in range(150_000)},
    ],
    ids=["apiVersion", "kind", "name", "metadata", "fields"],
)
def test_nothing_of_a_review_is_read_before_its_size_is_known(large: Object) -> None:
    """Of 8 MiB each of these took 0.7 to 9 s and up to half a GiB."""
    raw = json.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {"uid": "u", "operation": "CREATE", "object": large},
        }
    ).encode()
    tracemalloc.start()
    try:
        assert b'"allowed":false' in answer(raw)
        assert tracemalloc.get_traced_memory()[1] < 40 << 20
    finally:
        tracemalloc.stop()


def test_large_metadata_and_status_of_a_policy_are_nothing_to_check() -> None:
    fine = policy(**requiring("node.ready"))
    fields = {"managedFields": [{"f": number} for number in range(200_000)]}
    large = fine | {"metadata": fine["metadata"] | fields, "status": fields}
    assert reviewed(large) == {"allowed": True}
    assert reviewed(large | {"metadata": {"name": 3} | fields})["status"]["message"].count("metadata.name") == 1


@pytest.mark.parametrize("deep", ["[" * 5000 + "]" * 5000, '{"a":' * 1500 + "1" + "}" * 1500], ids=["5000", "1500"])
def test_only_what_is_checked_may_not_be_nested_thousands_deep(deep: str) -> None:
    def large(**fields: Any) -> str:
        unread = f'"status": {deep}, "metadata": {{"managedFields": {deep}, '
        return json.dumps(policy(**fields)).replace('"metadata": {', unread)

    fine, broken = large(**requiring("node.ready")), large(**requiring("(("))
    assert reviewed_texts(fine) == {"allowed": True}
    assert not reviewed_texts(broken)["allowed"]
    assert reviewed_texts(broken, broken, "UPDATE") == {"allowed": True}
    said = reviewed_texts(json.dumps(policy(filters="here")).replace('"here"', deep))
    assert (said["allowed"], said["status"]["message"]) == (False, "the policy is nested too deeply")


def test_reviews_of_a_million_brackets_are_refused_with_little_memory() -> None:
    raw = b'{"request": {"uid": "u1", "object": %b%b}}' % (b"[" * (1 << 22), b"]" * (1 << 22))
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"^expected an AdmissionReview: it is nested deeply and has more than 100,0"):
        answer(raw)
    assert tracemalloc.get_traced_memory()[1] < 2 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_policy_nested_too_deeply_is_refused(operation: str) -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    said = reviewed(policy(filters=deep), policy(filters=[]), operation)
    assert not said["allowed"]
    assert said["status"]["message"] == "the policy is nested too deeply"


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_number_that_no_double_holds_is_refused(operation: str) -> None:
    text = json.dumps({"uid": "u1", "operation": operation, "object": policy(**requiring("node.ready"), weight=77)})
    review = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {text}}}'
    said = json.loads(answer(review.replace("77", "1e999").encode()))["response"]
    assert not said["allowed"]
    assert said["status"]["message"].startswith("the policy cannot be read: ")


def test_text_that_is_no_utf_8_is_refused() -> None:
    text = json.dumps({"uid": "u1", "operation": "CREATE", "object": policy(**requiring('node.name == "QQ"'))})
    review = f'{{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {text}}}'
    said = json.loads(answer(review.encode().replace(b"QQ", b"\xff\xfe")))["response"]
    assert not said["allowed"]
