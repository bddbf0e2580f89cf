"""What drivers are told of devices: JSON that an API server keeps as it is, and that is handed on as it is."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

import msgspec
import pytest

from policysched.app.recording import entries
from policysched.model.decode import ObjectError
from policysched.model.device_decoding import decode_devices
from policysched.model.kinds import DEVICE_CLASSES, PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from policysched.model.objects import DeviceClass, ResourceClaim, ResourceClaimTemplate
from tests.work import calls

TEXTS: Final = [
    b"{}",
    b"null",
    b'{"a": null, "b": [null, {"c": null}]}',
    b'{"a":"\\ud800"}',
    b'{"\\udc00":"\\ud83d\\ude00 \\ud83d"}',
    b'"' + b"\\udfff" * 5_000 + b'"',
    b'{"a":"\xff\xfe"}',
    b'{"a":[0.10000000000000000555,1e-400,1E2,1e999,' + b"9" * 5000 + b"]}",
    b"[" * 1500 + b"]" * 1500,
    b'{"a":' * 5000 + b"7" + b"}" * 5000,
    b'{"parameters":{"parameters":"\\ud800"},"config":[{"opaque":{"parameters":1}}]}',
]
IDS: Final = [f"{number}: {text[:20].decode(errors='replace')}" for number, text in enumerate(TEXTS)]
METADATA: Final = b'"metadata":{"name":"c","namespace":"n","uid":"u"}'


def configuration(parameters: bytes, more: bytes = b"") -> bytes:
    empty = b'{"opaque":{"driver":"e","parameters":{}}}'
    return b'"config":[%b,{"opaque":{"driver":"d","parameters":%b}%b}]' % (empty, parameters, more)


def device_class(parameters: bytes) -> bytes:
    return b'{%b,"spec":{%b}}' % (METADATA, configuration(parameters))


def template(parameters: bytes) -> bytes:
    return b'{%b,"spec":{"spec":{"devices":{%b}}}}' % (METADATA, configuration(parameters))


def claim(parameters: bytes, data: bytes = b"1") -> bytes:
    allocated = b'{"devices":{"results":[{"driver":"d","pool":"p","device":"x"}],%b}}' % configuration(
        parameters, b',"source":"FromClaim"'
    )
    spec, said = configuration(parameters), b'[{"driver":"d","pool":"p","device":"x","data":%b}]' % data
    status = b'{"allocation":%b,"devices":%b}' % (allocated, said)
    return b'{%b,"spec":{"devices":{%b}},"status":%b}' % (METADATA, spec, status)


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_parameters_are_kept_as_they_are(text: bytes) -> None:
    made = RESOURCE_CLAIMS.decode(claim(text))
    assert made.key == "n/c"
    assert made.status.allocation is not None
    devices = made.status.allocation.devices
    assert [one.device for one in devices.results] == ["x"]
    classes, templates = DEVICE_CLASSES.decode(device_class(text)), RESOURCE_CLAIM_TEMPLATES.decode(template(text))
    asked = made.spec.devices.config, templates.spec.spec.devices.config
    for configured in (*asked, devices.config, classes.spec.config):
        assert [bytes(one.opaque.parameters) for one in configured if one.opaque] == [b"{}", text]
    assert b'"parameters":' + text in msgspec.json.encode(made.status)
    assert hash(made.spec.devices.config[1]) == hash(RESOURCE_CLAIMS.decode(claim(text)).spec.devices.config[1])


@pytest.mark.parametrize("text", TEXTS, ids=IDS)
def test_what_drivers_say_of_devices_does_not_keep_a_claim_from_being_read(text: bytes) -> None:
    made = RESOURCE_CLAIMS.decode(claim(b'{"a":"\\ud800"}', text))
    assert [one.device for one in made.status.devices] == ["x"]
    assert bytes(made.spec.devices.config[1].opaque.parameters) == b'{"a":"\\ud800"}'  # type: ignore[union-attr]


def test_objects_of_files_keep_them_too() -> None:
    given: dict[str, Any] = json.loads(claim(b'{"a":null,"b":[1.5,"\\u00e4"]}'))
    made = RESOURCE_CLAIMS.decode(given)
    assert json.loads(bytes(made.spec.devices.config[1].opaque.parameters)) == {"a": None, "b": [1.5, "ä"]}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("shape", "raw", "said"),
    [
        (ResourceClaim, claim(b"{}").replace(b'"driver":"d"', b'"driver":5'), "opaque.driver: expected text, got int"),
        (ResourceClaim, claim(b'"\\ud800"').replace(b'"uid":"u"', b'"uid":5'), "metadata.uid: expected text, got int"),
        (ResourceClaim, claim(b"nul"), "not valid JSON"),
        (ResourceClaim, claim(b'{"a":'), "not valid JSON"),
        (ResourceClaim, claim(b'"' + b"\\udfff" * 10_001 + b'"'), "more than 10000 halves of characters"),
        (DeviceClass, device_class(b"1").replace(b'"config":[', b'"config":7,"x":['), "expected array, got int"),
        (DeviceClass, b"[]", "expected object, got array"),
        (ResourceClaimTemplate, b'{"spec":{"spec":{"devices":[]}}}', "spec.spec.devices: expected object, got array"),
    ],
)
def test_malformed_objects_are_told(shape: type, raw: bytes, said: str) -> None:
    with pytest.raises(ObjectError) as caught:
        decode_devices(shape, raw)
    assert said in str(caught.value)


POD: Final = b'{"kind":"Pod","metadata":{"name":"p","uid":"u"},"spec":{"nodeName":null}}'


@pytest.mark.parametrize("raw", [claim(b'{"a":1}'), POD], ids=["claim", "pod"])
def test_deep_fields_that_nobody_reads_cost_little(raw: bytes) -> None:
    """1.5 MB of them took an event of a claim 0.35 s, and one of a pod 0.12."""
    one = b'{"fieldsV1":%b}' % (b'{"f:a":' * 1500 + b"{}" + b"}" * 1500)
    kind = PODS if b"Pod" in raw else RESOURCE_CLAIMS
    called = []
    for count in (1, 120):
        deep = b'"metadata":{"managedFields":[%b],' % b",".join([one] * count)
        large = raw.replace(b'"metadata":{', deep)
        assert kind.decode(large) == kind.decode(raw)
        called.append(calls(partial(kind.decode, large)))
    assert called[1] == called[0]


@pytest.mark.parametrize("kind", [b"\\u003c", b"\\\\", b'\\"'])
def test_escapes_beside_odd_parameters_cost_little(kind: bytes) -> None:
    """1.4 MB of comparisons in selectors, each of which an API server writes as `\\u003c`, took an event 1.3 s."""
    selector = b'{"requests":[{"name":"r","exactly":{"selectors":[{"cel":{"expression":"%b"}}]}}],'
    called = []
    for count in (10, 300_000):
        large = b'"spec":{"devices":' + selector % (kind * count)
        raw = claim(b'{"a":"\\ud800"}').replace(b'"spec":{"devices":{', large)
        made = RESOURCE_CLAIMS.decode(raw)
        assert len(made.spec.devices.requests) == 1
        called.append(calls(partial(RESOURCE_CLAIMS.decode, raw)))
    assert called[1] == called[0]


def test_records_do_not_hold_them() -> None:
    for kind, raw in ((RESOURCE_CLAIMS, claim), (DEVICE_CLASSES, device_class), (RESOURCE_CLAIM_TEMPLATES, template)):
        name, kept = entries.written(kind.decode(raw(b'{"password":"secret"}')), None)
        packed = msgspec.msgpack.encode([name, kept])
        assert b"secret" not in packed
        assert entries.read_object(msgspec.msgpack.decode(packed)) == kept
