from __future__ import annotations

import copy
from pathlib import Path

import pytest

from bench import openb, openb_devices

NODES = "sn,cpu_milli,memory_mib,gpu,model\nv-1,96000,393216,2,V100\nt-1,64000,262144,1,T4\nc-1,64000,262144,0,\n"
HEAD = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
PODS = [
    "p-0,4000,8192,1,460,T4,LS,Running,0,1,0",
    "p-1,4000,8192,1,320,T4,BE,Running,0,1,0",
    "p-2,4000,8192,2,1000,V100|T4,LS,Running,0,1,0",
    "p-3,4000,8192,1,230,T4,BE,Running,0,1,0",
    "p-4,4000,8192,0,0,,BE,Running,0,1,0",
    "p-5,4000,8192,1,1000,,BE,Running,0,1,0",
]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / openb.NODES_FILE).write_text(NODES, encoding="utf-8")
    (tmp_path / openb.PODS_FILE).write_text(HEAD + "\n".join(PODS) + "\n", encoding="utf-8")
    return tmp_path


def test_pods_share_gpus_by_what_they_ask_for(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert openb_devices.main(["--data", str(data)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == "3 nodes, 6 pods in order of arrival: 4 placed, 2 waiting"
    assert "3 GPUs in use, 1 of them shared, 2.8 GPUs' worth taken" in lines
    assert "T4 1 78%" in lines
    assert "V100 2 100%" in lines
    assert lines[-1] == "5 claims, 0 are wrong"


async def test_what_is_wrong_is_found(data: Path) -> None:
    nodes, pods = openb.read(str(data), 3)
    outcome = await openb_devices.place(nodes, pods, openb_devices.shares(str(data), 3))
    assert outcome.faults() == []
    first, second, third = copy.deepcopy(outcome.claims)
    [got] = first["status"]["allocation"]["devices"]["results"]
    got["consumedCapacity"]["milli"] = "900"
    del third["status"]["allocation"]["devices"]["results"][0]
    by_name = {one["metadata"]["name"]: one for one in copy.deepcopy(outcome.pods)}
    by_name["p-1"]["metadata"]["annotations"][openb.ALLOWED] = "V100"
    wrong = openb_devices.DeviceOutcome(outcome.nodes, [*by_name.values()], (first, second, third), 1.0)
    assert wrong.faults() == [
        "t-1/gpu-0 has 1220 milli taken",
        "p-0 has 900 milli of a GPU",
        "p-1 allows V100 and is on a node with T4",
        "p-2 has 1 GPUs in place of 2",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [([], "error: where is the openb data? "), (["--data", "nowhere"], "error: nowhere has no nodes.csv")],
)
def test_without_data_it_says_what_to_do(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(openb.VARIABLE, raising=False)
    assert openb_devices.main(arguments) == 2
    assert capsys.readouterr().err.startswith(message)
