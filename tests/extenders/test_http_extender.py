"""Asking one HTTP extender: what is sent, what is made of answers, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from aiohttp import web

from policysched.errors import UsageError
from policysched.extenders import http_extender
from policysched.extenders.http_extender import HttpExtender, NeededObjects
from policysched.extenders.settings import ExtenderSettings
from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims, NodeVictims
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from tests.connecting import once_connected
from tests.extenders.fake_extender import FakeExtender, fake_extender
from tests.turns import turns_of_the_loop

NODES = ("n1", "n2", "n3")


class Texts:
    """Objects as JSON, made of their names, but for those that are gone."""

    def __init__(self, *gone: str) -> None:
        self.gone = set(gone)

    def pod(self, pod: Pod) -> bytes | None:
        if pod.metadata.name in self.gone:
            return None
        return msgspec.json.encode({"metadata": {"name": pod.metadata.name, "uid": pod.metadata.uid}, "spec": {"x": 1}})

    def node(self, name: str) -> bytes | None:
        return None if name in self.gone else msgspec.json.encode({"metadata": {"name": name}, "status": {"y": [2]}})


def pod(name: str = "web", **requests: str) -> Pod:
    containers = [{"name": "c", "resources": {"requests": requests}}]
    return decode_pod(
        {"metadata": {"name": name, "namespace": "ns", "uid": f"u-{name}"}, "spec": {"containers": containers}}
    )


@asynccontextmanager
async def asking(fake: FakeExtender, texts: Texts | None = None, **settings: Any) -> AsyncIterator[HttpExtender]:
    verbs = {"filter_verb": "filter", "prioritize_verb": "prioritize", "preempt_verb": "preempt", "bind_verb": "bind"}
    extender = HttpExtender(ExtenderSettings(fake.url, **(verbs | settings)), texts or Texts())
    try:
        yield extender
    finally:
        await extender.retire()


async def test_filter_sends_whole_nodes_and_reads_those_left() -> None:
    async with fake_extender() as fake, asking(fake) as extender:
        fake.answers["filter"] = lambda asked: {
            "Nodes": {"items": asked["Nodes"]["items"][:1]},
            "FailedNodes": {"n2": "too far"},
            "FailedAndUnresolvableNodes": {"n3": "never"},
        }
        answer = await extender.filter(pod(), NODES)
    assert answer == FilterAnswer(frozenset({"n1"}), {"n2": "too far"}, {"n3": "never"})
    [(verb, asked)] = fake.asked
    assert verb == "filter"
    assert asked["Pod"] == {"metadata": {"name": "web", "uid": "u-web"}, "spec": {"x": 1}}
    assert asked["Nodes"]["items"] == [{"metadata": {"name": name}, "status": {"y": [2]}} for name in NODES]
    assert asked["NodeNames"] is None
    assert fake.headers[0]["Content-Type"] == "application/json"


async def test_filter_sends_names_to_one_that_knows_the_nodes() -> None:
    async with fake_extender() as fake, asking(fake, node_cache_capable=True) as extender:
        fake.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"][1:]}
        answer = await extender.filter(pod(), NODES)
    assert answer.nodes == {"n2", "n3"}
    assert fake.asked[0][1] == {
        "Pod": {"metadata": {"name": "web", "uid": "u-web"}, "spec": {"x": 1}},
        "Nodes": None,
        "NodeNames": list(NODES),
    }


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ({"nodenames": ["n1"]}, {"n1"}),  # Go reads names of fields in any case
        ({"nodes": {"ITEMS": [{"Metadata": {"NAME": "n2"}}]}}, {"n2"}),
        ({"NodeNames": None, "Nodes": {"items": [{"metadata": {"name": "n3"}}]}}, {"n3"}),
        ({"NodeNames": []}, set()),
        ({}, set()),
        ({"Nodes": {"items": None}, "FailedNodes": None}, set()),
    ],
)
async def test_filter_answers_are_read_as_go_reads_them(answer: Any, left: set[str]) -> None:
    async with fake_extender() as fake, asking(fake, node_cache_capable=True) as extender:
        fake.answers["filter"] = lambda _: answer
        assert (await extender.filter(pod(), NODES)).nodes == left


async def test_scores_count_by_weight_and_ten_for_ten() -> None:
    async with fake_extender() as fake, asking(fake, weight=3) as extender:
        fake.answers["prioritize"] = lambda _: [
            {"Host": "n1", "Score": 10}, {"Host": "n2", "Score": -1}, {"Host": "n1", "Score": 1}, {"host": "n3"},
        ]  # fmt: skip
        assert await extender.prioritize(pod(), NODES) == {"n1": 330, "n2": -30, "n3": 0}
        fake.answers["prioritize"] = lambda _: None
        assert await extender.prioritize(pod(), NODES) == {}


async def test_a_pod_is_bound_by_name_and_uid() -> None:
    async with fake_extender() as fake, asking(fake) as extender:
        fake.answers["bind"] = lambda _: {}
        await extender.bind(pod(), "n1")
        assert fake.asked == [("bind", {"PodName": "web", "PodNamespace": "ns", "PodUID": "u-web", "Node": "n1"})]
        fake.answers["bind"] = lambda _: {"Error": "no room"}
        with pytest.raises(ExtenderError, match=r"^no room$"):
            await extender.bind(pod(), "n1")


async def test_no_extender_is_asked_to_bind_where_the_lease_runs_out_while_a_connection_is_made() -> None:
    connections: list[str] = []
    async with fake_extender() as fake:
        settings = ExtenderSettings(fake.url, filter_verb="filter", bind_verb="bind")
        extender = HttpExtender(settings, Texts(), may_bind=lambda: not connections)
        fake.answers |= {"filter": lambda _: {}, "bind": lambda _: {}}
        with once_connected(lambda: connections.append("one")):
            with pytest.raises(ExtenderError, match=r"^the lease has expired"):
                await extender.bind(pod(), "n1")
            assert (connections, fake.asked) == (["one"], [])
            await extender.filter(pod(), ())
            connections.clear()
            await extender.bind(pod(), "n1")
        await extender.retire()
    assert [verb for verb, _ in fake.asked] == ["filter", "bind"]


async def test_cycles_wait_for_no_binding_and_no_binding_times_out_before_it_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_extender, "BINDS_AT_ONCE", 110)
    released = asyncio.Event()

    async def held(_: Any) -> dict[str, Any]:
        await released.wait()
        return {}

    async with fake_extender() as fake, asking(fake, timeout=2.0) as extender:
        fake.answers |= {"bind": held, "filter": lambda _: {"NodeNames": []}}
        binds = [asyncio.create_task(extender.bind(pod(f"p{number}"), "n1")) for number in range(150)]
        async with asyncio.timeout(10):
            while len(fake.asked) < 110:
                await asyncio.sleep(0.01)
        await extender.filter(pod(), ())
        assert [verb for verb, _ in fake.asked] == ["bind"] * 110 + ["filter"]
        done, _ = await asyncio.wait(binds, timeout=2.5)
        assert len(done) >= 110
        released.set()
        ends = await asyncio.gather(*binds, return_exceptions=True)
        assert [type(one) for one in ends] == [ExtenderError] * 110 + [type(None)] * 40
        assert len(fake.asked) == 151


@pytest.mark.parametrize("by_name", [False, True])
async def test_candidates_of_preemption_are_sent_and_read(by_name: bool) -> None:
    candidates = {"n1": NodeVictims((pod("low"), pod("lower")), 1), "n2": NodeVictims((pod("other"),))}
    async with fake_extender() as fake, asking(fake, node_cache_capable=by_name) as extender:
        fake.answers["preempt"] = lambda _: {
            "NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u-low"}], "NumPDBViolations": 2}, "n2": None}
        }
        left = await extender.preempt(pod("high"), candidates)
    assert left == {"n1": NamedVictims(("u-low",), 2), "n2": NamedVictims(())}
    [(_, asked)] = fake.asked
    if by_name:
        assert asked["NodeNameToVictims"] is None
        assert asked["NodeNameToMetaVictims"] == {
            "n1": {"Pods": [{"UID": "u-low"}, {"UID": "u-lower"}], "NumPDBViolations": 1},
            "n2": {"Pods": [{"UID": "u-other"}], "NumPDBViolations": 0},
        }
    else:
        assert asked["NodeNameToMetaVictims"] is None
        assert [one["metadata"]["name"] for one in asked["NodeNameToVictims"]["n1"]["Pods"]] == ["low", "lower"]
        assert asked["NodeNameToVictims"]["n1"]["NumPDBViolations"] == 1


async def test_what_is_gone_meanwhile_is_left_out_of_questions() -> None:
    candidates = {"n1": NodeVictims((pod("low"), pod("gone")), 1), "n2": NodeVictims((pod("gone"),))}
    async with fake_extender() as fake, asking(fake, Texts("gone", "n3")) as extender:
        fake.answers["filter"] = lambda asked: {"Nodes": asked["Nodes"]}
        fake.answers["preempt"] = lambda _: {"NodeNameToMetaVictims": {}}
        assert (await extender.filter(pod(), NODES)).nodes == {"n1", "n2"}
        await extender.preempt(pod("high"), candidates)
        with pytest.raises(ExtenderError, match='pod "ns/gone" is deleted'):
            await extender.filter(pod("gone"), NODES)
    sent = fake.asked[1][1]["NodeNameToVictims"]
    assert {node: [one["metadata"]["name"] for one in of["Pods"]] for node, of in sent.items()} == {"n1": ["low"]}
    assert len(fake.asked) == 2


async def test_retired_extender_ends_what_is_under_way_and_then_its_connections() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def slow(asked: Any) -> Any:
        begun.set()
        await go.wait()
        return {"NodeNames": asked["NodeNames"]}

    async with fake_extender() as fake, asking(fake, node_cache_capable=True) as extender:
        fake.answers["filter"] = slow
        answer = asyncio.create_task(extender.filter(pod(), NODES))
        await begun.wait()
        await extender.retire()
        go.set()
        assert (await answer).nodes == set(NODES)
        assert extender._session is None
        assert (await extender.filter(pod(), NODES)).nodes == set(NODES), "an attempt may ask it once more"
        assert extender._session is None


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"bind_verb": "b"}, NeededObjects(pods=False, victims=False, nodes=False)),
        ({"filter_verb": "f"}, NeededObjects(pods=True, victims=False, nodes=True)),
        ({"prioritize_verb": "p", "node_cache_capable": True}, NeededObjects(pods=True, victims=False, nodes=False)),
        ({"preempt_verb": "p"}, NeededObjects(pods=True, victims=True, nodes=False)),
        ({"preempt_verb": "p", "node_cache_capable": True}, NeededObjects(pods=True, victims=False, nodes=False)),
    ],
)
def test_which_objects_an_extender_is_sent_follows_from_its_verbs(settings: Any, told: NeededObjects) -> None:
    assert HttpExtender(ExtenderSettings("http://x", **settings), Texts()).needed_objects == told


@pytest.mark.parametrize(
    ("managed", "requests", "interested"),
    [
        ((), {}, True),
        (("example.com/gpu",), {"cpu": "1"}, False),
        (("example.com/gpu",), {"cpu": "1", "example.com/gpu": "1"}, True),
        (("example.com/gpu",), {"example.com/gpu": "0"}, True),  # naming it is enough
    ],
)
def test_extender_is_interested_in_pods_that_name_its_resources(
    managed: tuple[str, ...], requests: Mapping[str, str], interested: bool
) -> None:
    extender = HttpExtender(ExtenderSettings("http://x", managed_resources=frozenset(managed)), Texts())
    assert extender.is_interested(pod(**requests)) is interested


def test_init_containers_and_limits_name_resources_too() -> None:
    extender = HttpExtender(ExtenderSettings("http://x", managed_resources=frozenset({"a/b"})), Texts())
    init = [{"name": "i", "resources": {"limits": {"a/b": "1"}}}]
    assert extender.is_interested(decode_pod({"metadata": {"name": "p"}, "spec": {"initContainers": init}}))


BROKEN = [
    (web.Response(status=500), "failed filter with extender at URL {url}/filter, code 500"),
    (web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}), "code 302"),
    (web.Response(text="<html>"), "the answer is not JSON"),
    (web.Response(text="[" * 100_000), "the answer is not JSON"),
    (web.Response(text="[]"), "the answer: expected an object, got a list"),
    (web.Response(text='{"Error": "out of order"}'), "^out of order$"),
    (web.Response(text='{"NodeNames": "n1"}'), "NodeNames: expected a list, got a string"),
    (web.Response(text='{"NodeNames": [1]}'), "NodeNames: expected a string, got a number"),
    (web.Response(text='{"NodeNames": ["n9", "n1"]}'), 'claims a filtered node "n9" which is not found'),
    (web.Response(text='{"NodeNames": ["n1"], "FailedNodes": {"n2": 1}}'), "FailedNodes: expected a string, got a num"),
]


@pytest.mark.parametrize(("answer", "says"), BROKEN, ids=[says for _, says in BROKEN])
async def test_nonsense_is_an_error_that_says_what_is_wrong(answer: web.Response, says: str) -> None:
    async with fake_extender() as fake, asking(fake, node_cache_capable=True) as extender:
        copied = web.Response(status=answer.status, body=answer.body, headers=answer.headers)
        fake.answers["filter"] = copied
        with pytest.raises(ExtenderError, match=says.format(url=fake.url)):
            await extender.filter(pod(), NODES)


@pytest.mark.parametrize("score", ["1.5", "true", '"1"', "1e400", str(2**63), "{}"])
async def test_a_score_that_is_no_whole_number_is_an_error(score: str) -> None:
    async with fake_extender() as fake, asking(fake) as extender:
        fake.answers["prioritize"] = web.Response(text=f'[{{"Host": "n1", "Score": {score}}}]')
        with pytest.raises(ExtenderError):
            await extender.prioritize(pod(), NODES)


async def test_a_slow_extender_is_given_up_in_time() -> None:
    async def slow(_: Any) -> Any:
        await asyncio.sleep(30)

    async with fake_extender() as fake, asking(fake, timeout=0.05) as extender:
        fake.answers["filter"] = slow
        with pytest.raises(ExtenderError, match=r"no response from .* in time"):
            await extender.filter(pod(), NODES)


async def test_the_environments_proxy_is_asked_in_the_extenders_place() -> None:
    async with fake_extender() as proxy:
        proxy.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        settings = ExtenderSettings("http://extender.example/scheduler", filter_verb="filter", node_cache_capable=True)
        extender = HttpExtender(settings, Texts(), {"HTTP_PROXY": proxy.url.removesuffix("/scheduler")})
        assert (await extender.filter(pod(), NODES)).nodes == set(NODES)
        await extender.retire()
    assert proxy.headers[0]["Host"] == "extender.example"
    with pytest.raises(UsageError, match=r'"http://extender\.example": HTTP_PROXY is not an http or'):
        HttpExtender(ExtenderSettings("http://me:secret@extender.example"), Texts(), {"HTTP_PROXY": "socks5://x"})


async def test_a_server_that_is_not_there_is_an_error() -> None:
    async with fake_extender() as fake:
        pass
    async with asking(fake) as extender:
        with pytest.raises(ExtenderError, match="connection refused"):
            await extender.filter(pod(), NODES)


async def test_an_answer_is_read_up_to_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.extenders.http_extender.ANSWER_ALLOWANCE", 1 << 20)
    async with fake_extender() as fake, asking(fake) as extender:
        fake.answers["filter"] = web.Response(body=b" " * (2 << 20))
        with pytest.raises(ExtenderError, match="has more than 1 MiB"):
            await extender.filter(pod(), NODES)


@pytest.mark.parametrize("url", ["", "ftp://x", "http://", "x:80", "http://[::1"])
def test_a_url_that_cannot_be_asked_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match=r"urlPrefix is not an? "):
        HttpExtender(ExtenderSettings(url), Texts())


async def test_name_and_password_of_a_url_are_sent_and_not_shown() -> None:
    async with fake_extender() as fake:
        fake.url = fake.url.replace("://", "://me:secret@")
        async with asking(fake) as extender:
            with pytest.raises(ExtenderError) as failed:
                await extender.filter(pod(), NODES)
    assert fake.headers[0]["Authorization"].startswith("Basic ")
    assert "secret" not in f"{extender.name} {failed.value}"
    with pytest.raises(UsageError) as refused:
        HttpExtender(ExtenderSettings("ftp://me:secret@host"), Texts())
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(("size", "least", "most"), [(1 << 20, 0, 60), (1, 200, 2000)])
async def test_a_large_question_is_sent_in_slices(
    monkeypatch: pytest.MonkeyPatch, size: int, least: int, most: int
) -> None:
    """Whole nodes may be 100 MB: written at once they held the loop for 0.2 s."""
    monkeypatch.setattr("policysched.extenders.http_extender.SEND_CHUNK", size)
    async with fake_extender() as fake, asking(fake) as extender:
        fake.answers["filter"] = lambda _: {"Nodes": {"items": []}}
        async with turns_of_the_loop() as turns:
            await extender.filter(pod(), NODES)
    [(_, asked)] = fake.asked
    assert [one["metadata"]["name"] for one in asked["Nodes"]["items"]] == list(NODES)
    assert "Transfer-Encoding" not in fake.headers[0]
    assert least < turns.count < most
