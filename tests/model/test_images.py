from __future__ import annotations

import pytest

from policysched.model.needs import container_count, normalized_image_name, pod_images
from tests.model.build import pod


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("root", "root:latest"),
        ("root:tag", "root:tag"),
        ("gcr.io:5000/root", "gcr.io:5000/root:latest"),
        ("gcr.io:5000/root:tag", "gcr.io:5000/root:tag"),
        ("root@sha256:1234", "root@sha256:1234"),
        ("a/b/c", "a/b/c:latest"),
        ("", ":latest"),
    ],
)
def test_image_name_gets_a_tag_where_it_has_none(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected


def test_images_are_listed_from_init_containers_to_volumes() -> None:
    one = pod(
        {
            "containers": [{"image": "c:1"}, {"image": "c:1"}],
            "initContainers": [{"image": "i"}],
            "volumes": [{"name": "x"}, {"name": "y", "image": {"reference": "v:1"}}],
        }
    )
    assert pod_images(one) == ("i:latest", "c:1", "c:1", "v:1")
    assert container_count(one) == 3
