"""The images that a pod needs, under the names that nodes report.

Knows pods and names, not sizes: how large an image is and where it lies is a column of `policysched.state`.
References are compared as texts: only a missing tag is filled in, registries are not guessed, as kube-scheduler
does it.

Source: pkg/scheduler/framework/plugins/imagelocality/image_locality.go, v1.36.
"""

from __future__ import annotations

from policysched.model.objects import Pod


def normalized_image_name(name: str) -> str:
    """Add `:latest` to a reference that has neither tag nor digest."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def pod_images(pod: Pod) -> tuple[str, ...]:
    """List the images of init containers, containers and image volumes; one used twice is listed twice."""
    spec = pod.spec
    references = [one.image for one in (*spec.init_containers, *spec.containers)]
    references += [volume.image.reference for volume in spec.volumes if volume.image is not None]
    return tuple(normalized_image_name(reference) for reference in references)


def container_count(pod: Pod) -> int:
    """Count the containers by which a sum of image scores is scaled; image volumes do not count."""
    return len(pod.spec.init_containers) + len(pod.spec.containers)
