from __future__ import annotations

import json
from pathlib import Path

import pytest

import policysched
from bench import openb

NODES = "sn,cpu_milli,memory_mib,gpu,model\nv-1,96000,393216,8,V100\nt-1,64000,262144,2,T4\nc-1,64000,262144,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS = [
    "p-0,4000,8192,1,1000,T4,LS,Running,0,1,0",
    "p-1,4000,8192,7,1000,V100|T4,LS,Running,0,1,0",
    "p-2,4000,8192,1,460,,BE,Running,0,1,0",
    "p-3,4000,8192,1,1000,A10|G2,LS,Running,0,1,0",
    "p-4,80000,8192,0,0,,BE,Running,0,1,0",
    "p-5,4000,8192,0,0,,BE,Running,0,1,0",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / openb.NODES_FILE).write_text(NODES, encoding="utf-8")
    (tmp_path / openb.PODS_FILE).write_text(HEAD + "\n".join(PODS) + "\n", encoding="utf-8")
    return tmp_path


def test_openb_prints_who_is_placed_and_why_others_wait(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert openb.main(["--data", str(data), "--pods", "5"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "3 nodes, 5 pods in order of arrival: 4 placed, 1 waiting"
    assert "V100 1 8 8 (100%) 1" in lines
    assert "T4 1 2 1 (50%) 1" in lines
    assert "2 placed pods name their models; 0 are wrong" in lines
    assert "1 waiting: Insufficient nvidia.com/gpu, policy gpu-models/allowed-model: GPU model not allowed" in lines


def test_openb_writes_a_cluster_that_commands_read(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = data / "openb.json"
    assert openb.main(["--data", str(data), "--pods", "5", "--write", str(written)]) == 0
    assert capsys.readouterr().out.endswith(f"9 objects in {written}\n")
    objects = json.loads(written.read_text("utf-8"))["items"]
    told = policysched.plan(objects, without_policies=["gpu-models"])
    assert (told.pods, told.left_out) == (5, ())
    assert policysched.why(objects, "p-3").state == "Unschedulable"


async def test_openb_finds_a_pod_on_a_wrong_model_and_one_without_a_reason(data: Path) -> None:
    nodes, pods = openb.read(str(data), 4)
    outcome = openb.Outcome(nodes, pods, 1.0)
    pods[0]["spec"]["nodeName"] = "v-1"
    pods[1]["spec"]["nodeName"] = "v-1"
    for pod in pods:
        pod["status"] = {}
    assert outcome.faults() == [
        "p-2 waits without a reason",
        "p-3 waits without a reason",
        "p-0 allows T4 and is on a node with V100",
    ]


def test_openb_reads_the_first_pods_only(data: Path) -> None:
    nodes, pods = openb.read(str(data), 2)
    assert [one["metadata"]["name"] for one in nodes] == ["v-1", "t-1", "c-1"]
    assert [one["metadata"]["name"] for one in pods] == ["p-0", "p-1"]
    assert nodes[2]["metadata"]["labels"] == {"kubernetes.io/hostname": "c-1"}
    assert pods[1]["metadata"]["annotations"] == {"gpu-spec": "V100|T4"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "error: where is the openb data? "), (["--data", "nowhere"], "error: nowhere has no nodes.csv")],
)
def test_openb_without_data_says_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(openb.VARIABLE, raising=False)
    assert openb.main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)


def test_openb_draws_alike_with_the_same_seed(tmp_path: Path) -> None:
    nodes = "".join(f"n-{number},64000,262144,2,T4\n" for number in range(40))
    (tmp_path / openb.NODES_FILE).write_text(f"sn,cpu_milli,memory_mib,gpu,model\n{nodes}", encoding="utf-8")
    pods = "".join(f"p-{number},100,100,0,0,,BE,Running,0,1,0\n" for number in range(12))
    (tmp_path / openb.PODS_FILE).write_text(HEAD + pods, encoding="utf-8")

    def placed(*seed: str) -> dict[str, str]:
        written = tmp_path / "openb.json"
        assert openb.main(["--data", str(tmp_path), "--write", str(written), *seed]) == 0
        items = json.loads(written.read_text("utf-8"))["items"]
        return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in items if one["kind"] == "Pod"}

    first = placed()
    assert placed("--seed", "1") == first
    assert placed("--seed", "2") != first
