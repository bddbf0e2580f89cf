"""POST /dry-run: the record of the command, from the live state; bad bodies, too many requests, and who answers."""

from __future__ import annotations

import asyncio
import io
import json
import random
import threading
from collections.abc import Callable
from typing import Any

import aiohttp
import pytest
import yaml

import policysched
from policysched.app.configuration.profiles import default_profile
from policysched.app.configuration.reading import load_configuration
from policysched.app.running.extenders import RunningExtenders, with_extenders
from policysched.app.running.port_dry_runs import LiveDryRuns
from policysched.app.serving.answers import refusal
from policysched.app.serving.dry_run.endpoint import MOST_REQUESTS, DryRunEndpoint
from policysched.app.serving.dry_run.interface import DryRunPod, LiveDecision
from policysched.app.serving.dry_run.pod_requests import LARGEST_BODY, DryRunRequest, Options, read_pods
from policysched.app.serving.dry_run.record_answers import encoded, shortened
from policysched.app.serving.refused import RefusedError
from policysched.model.decode import decode_pod
from policysched.model.defaults import priority_classes
from policysched.model.kinds import PODS, POLICIES, fill, kind_of
from policysched.model.release import DEFAULT, RELEASES, Release
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.app.serving.ports import Port, open_port
from tests.app.test_dry_run_extenders import configuration
from tests.extenders.fake_extender import fake_extender
from tests.oracle.generate import singles
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

ME = "default-scheduler"
SEED = 20261123


class Live:
    """A scheduler that was told of objects, and dry-runs over it."""

    def __init__(self, *names: str, extenders: RunningExtenders | None = None) -> None:
        self.clock = StandingClock()
        extenders = extenders or RunningExtenders(None)
        own = {name: default_profile(name) for name in names or (ME,)}
        profiles = with_extenders(own, extenders.present)
        self.scheduler = Scheduler(profiles, FakeClient(), self.clock, random.Random(0))
        self.reloader = Reloader(self.scheduler, FakeClient(), self.clock, "here")
        self.problem, self.leads = "", True
        deciding = LiveDryRuns(self.scheduler, self.reloader, extenders, lambda: self.problem, lambda: self.leads)
        self.decide = deciding.decide

    async def told(self, *objects: Object) -> Live:
        classes = priority_classes(objects)
        policies = []
        for raw in objects:
            kind = kind_of(raw)
            if kind is POLICIES:
                policies.append(kind.decode(raw))
            elif kind is not None:
                filled = fill(raw, classes)
                if kind is PODS:
                    filled["metadata"].setdefault("uid", filled["metadata"]["name"])
                self.scheduler.take(kind.decode(filled))
        await self.reloader.start(policies)
        return self

    async def record(self, of: Object, **options: Any) -> dict[str, Any]:
        [asked] = read_pods(json.dumps(of).encode(), Options(**options), DEFAULT).pods
        return (await self.decide(asked)).record


def comparable(record: dict[str, Any]) -> dict[str, Any]:
    """Give a record in which lists whose order is any stand in one order."""
    for status in record.get("rejected", {}).values():
        status["reasons"] = sorted(status["reasons"])
    return record


POLICIES_TO_TRY = (
    policy("prefers", scores=[{"name": "s", "cases": ['node.labels["zone"] == "a" → 70', "else → 20"]}]),
    policy("keeps-off", **requiring('node.name != "node-1"')),
    policy("silent", appliesTo='pod.name == "another"', **requiring("node.ready")),
    policy("broken", **requiring("nod.ready")),
)


@pytest.mark.parametrize("index", range(60))
async def test_record_equals_that_of_the_command(index: int) -> None:
    [case] = singles(SEED, [index])
    objects = [*case["objects"], *(POLICIES_TO_TRY if index % 2 else ())]
    of = case["pod"] | {"metadata": case["pod"]["metadata"] | {"uid": "admitted"}}
    names = {one["metadata"].get("namespace") or "default" for one in [*objects, of] if one["kind"] == "Pod"}
    known = {one["metadata"]["name"] for one in objects if one["kind"] == "Namespace"}
    spaces = [{"kind": "Namespace", "metadata": {"name": name}} for name in sorted(names - known)]
    me = of["spec"].get("schedulerName") or ME
    live = await Live(me).told(*objects, *spaces)
    expected = policysched.dry_run(
        [*objects, *spaces], of | {"spec": of["spec"] | {"schedulerName": me}}, now=live.clock.now(), seed=7
    ).to_dict()
    found = await live.record(of, seed=7, profile=me)
    assert comparable(json.loads(encoded(found))) == comparable(json.loads(json.dumps(expected)))


async def test_profile_is_the_named_one_or_the_only_one() -> None:
    live = await Live("a", "b").told(node())
    assert (await live.record(pod(schedulerName="b")))["schedulerName"] == "b"
    assert (await live.record(pod(schedulerName="b"), profile="a"))["schedulerName"] == "a"
    for of, said in ((pod(), "the pod has no schedulerName"), (pod(schedulerName="c"), 'no profile is named "c"')):
        with pytest.raises(RefusedError, match=said) as refused:
            await live.record(of)
        assert refused.value.code == 422
    only = await Live("a").told(node())
    assert (await only.record(pod()))["schedulerName"] == "a"


async def test_extenders_are_told_of_the_asked_pod_and_forget_it() -> None:
    async with fake_extender() as fake:
        extenders = RunningExtenders(load_configuration(configuration(fake, nodeCacheCapable=True)).completed)
        fake.answers["filter"] = lambda _: {"NodeNames": ["n1"], "FailedNodes": {"n2": "too far"}}
        fake.answers["prioritize"] = lambda _: []
        live = await Live(extenders=extenders).told(node("n1"), node("n2"))
        made = await live.record(pod("asked", cpu="1"))
        assert (made["selected"], made["rejected"]["n2"]["reasons"]) == ("n1", ["too far"])
        assert fake.asked[0][1]["Pod"]["metadata"]["name"] == "asked"
        assert extenders.pod(decode_pod(pod("asked"))) is None
        await extenders.close()


async def test_nothing_is_said_before_all_is_listed() -> None:
    live = await Live().told(node())
    live.problem = "2 of 9 kinds of objects are not listed yet"
    with pytest.raises(RefusedError, match="2 of 9 kinds") as refused:
        await live.record(pod())
    assert (refused.value.code, refused.value.headers) == (503, {"Retry-After": "5"})


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the body is empty; send a Pod as JSON or YAML"),
        (b"\xff\xfe", "body: not UTF-8 text"),
        (b"{", "body:2:1: not valid YAML"),
        (b"- a", "body:1:1: expected an object, got a list"),
        (b"kind: Service\nmetadata: {name: s}\n", "body:1:7: expected a Pod, got a Service"),
        (b"kind: Pod\nmetadata: {}\nspec: {}\n", "body:2:11: Pod has no name"),
        (b"kind: Pod\nmetadata: {name: p}\nspec:\n  containers: 5\n", "body:4:15: "),
        (b"kind: Pod\nmetadata: {name: p}\nspec: {priorityClassName: high}\n", 'no PriorityClass with name "high"'),
        (b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"a":' + b"[" * 5000, "nested deeper than 200 levels"),
        (b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"a":' + b'{"a":' * 985 + b"1" + b"}" * 987, "nested "),
        (
            b"kind: List\nitems: [" + b"{kind: Pod, metadata: {name: p}}," * 17 + b"]",
            "17 pods, more than the limit of 16 per request",
        ),
    ],
)  # fmt: skip
async def test_malformed_body_is_refused_with_its_place(body: bytes, said: str) -> None:
    async with served(Live()) as port:
        code, text, _ = await post(port, body)
        assert (code, said in json.loads(text)["message"]) == (400, True), text


@pytest.mark.parametrize("query", ["what=1", "limit=x", "limit=-1", "seed=1&seed=2", "limit=9999999999"])
async def test_unknown_option_is_refused(query: str) -> None:
    async with served(Live()) as port:
        code, _, _ = await post(port, json.dumps(pod()).encode(), query)
        assert code == 400


async def test_large_body_is_refused() -> None:
    async with served(Live()) as port:
        assert (await post(port, io.BytesIO(b" " * (LARGEST_BODY + 1))))[0] == 413


async def test_pod_and_lists_are_answered_as_json_or_yaml() -> None:
    live = await Live().told(node("n1"), node("n2", spec={"unschedulable": True}))
    async with served(live) as port:
        code, text, headers = await post(port, json.dumps(pod()).encode())
        record = json.loads(text)
        assert (code, record["selected"], headers["Policysched-Role"]) == (200, "n1", "leader")
        assert json.loads((await post(port, yaml.safe_dump(pod()).encode()))[1]) == record
        both = {"kind": "List", "apiVersion": "v1", "items": [pod("a"), pod("b", cpu=9)]}
        items = json.loads((await post(port, json.dumps(both).encode()))[1])["items"]
        assert [(one["pod"], one["result"]) for one in items] == [
            ("default/a", "Scheduled"), ("default/b", "Unschedulable"),
        ]  # fmt: skip
        live.leads = False
        assert (await post(port, json.dumps(pod()).encode()))[2]["Policysched-Role"] == "standby"
        nodes = json.loads((await post(port, json.dumps(pod()).encode(), "node=n1"))[1])
        assert ("rejected" in nodes and nodes["rejected"] == {}, nodes["leftOut"]) == (True, {"rejected": 1})


async def test_running_pod_is_taken_for_a_new_one_and_a_warning_says_so() -> None:
    running = pod(nodeName="n1") | {"status": {"phase": "Running"}}
    async with served(await Live().told(node("n1"))) as port:
        code, text, headers = await post(port, json.dumps(running).encode())
        assert (code, json.loads(text)["selected"]) == (200, "n1")
        said = "pod is already on node n1; the decision is for a new pod with the same spec"
        assert headers["Warning"] == f'299 - "{said}"'


async def test_spread_constraints_that_no_api_server_takes_are_refused() -> None:
    def spread(*actions: str) -> bytes:
        constraints = [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": action} for action in actions]
        return json.dumps(pod(topologySpreadConstraints=constraints)).encode()

    async with served(await Live().told(node("n1"))) as port:
        assert (await post(port, spread("DoNotSchedule", "ScheduleAnyway")))[0] == 200
        code, text, _ = await post(port, spread("DoNotSchedule", "ScheduleAnyway", "DoNotSchedule"))
        said = "two constraints have topologyKey zone and whenUnsatisfiable DoNotSchedule"
        assert (code, f"spec.topologySpreadConstraints[2]: {said}" in json.loads(text)["message"]) == (400, True)


async def test_pod_on_a_node_is_refused_by_its_name() -> None:
    live = await Live().told(node("n1"), pod("web", nodeName="n1"))
    async with served(live) as port:
        code, text, _ = await post(port, json.dumps(pod("web")).encode())
        assert (code, json.loads(text)["reason"]) == (422, "Invalid")
        assert 'pod "default/web" is already on node "n1"' in json.loads(text)["message"]


async def test_one_pod_is_decided_at_a_time_and_few_requests_wait() -> None:
    release, at_once, most = asyncio.Event(), 0, 0

    async def slow(_: DryRunPod) -> LiveDecision:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await release.wait()
        at_once -= 1
        return LiveDecision({"result": "Scheduled"}, leads=True)

    async with open_port(handler(slow)) as port:
        body = json.dumps(pod()).encode()
        asked = [asyncio.create_task(post(port, body)) for _ in range(MOST_REQUESTS + 3)]
        refused, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        while len(refused) < 3:
            refused, _ = await asyncio.wait(asked, timeout=0.05)
        release.set()
        answers = await asyncio.gather(*asked)
        assert sorted(code for code, _, _ in answers) == [200] * MOST_REQUESTS + [429] * 3
        assert {headers["Retry-After"] for code, _, headers in answers if code == 429} == {"1"}
        assert most == 1
        assert (await post(port, body))[0] == 200


@pytest.mark.parametrize(("minor", "requests"), [("1.36", {"cpu": "2"}), ("1.37", {"cpu": "2", "memory": "5"})])
def test_pod_has_the_defaults_of_the_release(minor: str, requests: dict[str, str]) -> None:
    given = pod()
    given["spec"]["resources"] = {"requests": {"cpu": "2"}}
    given["spec"]["containers"][0]["resources"] = {"requests": {"memory": "5"}}
    [asked] = read_pods(json.dumps(given).encode(), Options(), RELEASES[minor]).pods
    assert json.loads(asked.text)["spec"]["resources"]["requests"] == requests


async def test_body_that_takes_long_to_read_holds_up_no_other_request(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, release = threading.Event(), threading.Event()

    def slow(body: bytes, options: Options, followed: Release) -> DryRunRequest:
        begun.set()
        assert release.wait(60)
        return read_pods(body, options, followed)

    monkeypatch.setattr("policysched.app.serving.dry_run.endpoint.read_pods", slow)
    live = await Live().told(node("n1"))
    async with served(live) as port:
        asked = asyncio.create_task(post(port, json.dumps(pod()).encode()))
        assert await asyncio.to_thread(begun.wait, 60)
        assert (await post(port, b"", "what=1"))[0] == 400
        release.set()
        assert (await asked)[0] == 200


async def test_request_that_takes_too_long_ends_what_the_scheduler_does_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("policysched.app.serving.dry_run.endpoint.DECIDED_WITHIN", 0.05)
    ended = asyncio.Event()

    async def for_ever(_: DryRunPod) -> LiveDecision:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()
        raise AssertionError

    async with open_port(handler(for_ever)) as port:
        code, _, headers = await post(port, json.dumps(pod()).encode())
        assert (code, headers["Retry-After"]) == (503, "1")
        await asyncio.wait_for(ended.wait(), 30)


def test_shortened_record_keeps_the_best_nodes_and_counts_the_others() -> None:
    by_node = {"a": 1, "c": 2}
    record = {
        "best": ["c", "d"],
        "rejected": {"x": 1, "b": 2},
        "scores": {"a": {"P": 1}, "c": {"P": 9}, "d": {"P": 9}},
        "total": {"a": 1, "c": 9, "d": 9},
        "rules": {"p": {"mode": "Enforce", "filters": {"f": {"x": "false", "b": "false"}}, "scores": {"s": by_node}}},
    }
    assert shortened(record, (), None) is record
    assert shortened(record, (), 1) == {
        "best": ["c"],
        "rejected": {"b": 2},
        "scores": {"c": {"P": 9}},
        "total": {"c": 9},
        "rules": {"p": {"mode": "Enforce", "filters": {"f": {"b": "false"}}, "scores": {"s": {"c": 2}}}},
        "leftOut": {"rejected": 1, "scores": 2, "total": 2, "best": 1},
    }
    assert json.loads(encoded(record)) == record
    tiers = {"a": {"10": 2, "9": 1}, "c": {"10": 1, "9": 9}, "d": {"10": 1, "9": 9}}
    short = shortened(record | {"tiers": tiers}, (), 1)
    assert (short["total"], short["tiers"]) == ({"a": 1}, {"a": {"10": 2, "9": 1}})


Decided = Callable[[DryRunPod], Any]


def handler(decide: Decided) -> Any:
    """Answer as the endpoint does, in this loop."""
    runs: list[DryRunEndpoint] = []

    async def answer(request: Any) -> Any:
        if not runs:
            runs.append(DryRunEndpoint(decide, lambda: DEFAULT, asyncio.get_running_loop()))
        try:
            return await runs[0].answer(request)
        except RefusedError as error:
            return refusal(error)

    return answer


def served(live: Live) -> Any:
    return open_port(handler(live.decide))


async def post(port: Port, body: bytes | io.BytesIO, query: str = "") -> tuple[int, str, Any]:
    url = f"https://127.0.0.1:{port.port}/dry-run?{query}"
    async with aiohttp.ClientSession() as session, session.post(url, data=body, ssl=False) as answer:
        return answer.status, await answer.text(), answer.headers
