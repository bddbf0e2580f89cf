from __future__ import annotations

from pathlib import Path

import pytest

from tests.controlplane import releases
from tests.controlplane.modules import go_mod_for
from tests.controlplane.releases import DEFAULT, RELEASES, Release, chosen

OWN = """module example.io/tests

go 1.26.0

godebug default=go1.26

tool (
\tk8s.io/kubernetes/cmd/kubectl
)

require (
\tgithub.com/onsi/ginkgo/v2 v2.28.1
\tk8s.io/api v0.36.5
)

require (
\tcel.dev/expr v0.25.1 // indirect
\tk8s.io/kubernetes v1.36.5 // indirect
)

replace (
\tk8s.io/api => k8s.io/api v0.36.5
)
"""
KUBERNETES = """module k8s.io/kubernetes

go 1.27.0

godebug default=go1.27

require (
\tgithub.com/onsi/ginkgo/v2 v2.30.0
\tgolang.org/x/net v0.62.0
\tk8s.io/api v0.0.0
\tk8s.io/kubelet v0.0.0
)

require (
\tcel.dev/expr v0.26.0 // indirect
)

replace (
\tk8s.io/api => ./staging/src/k8s.io/api
)
"""


def test_default_release_is_chosen_unless_the_environment_names_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(releases.VARIABLE, raising=False)
    assert chosen() is RELEASES[DEFAULT]
    monkeypatch.setenv(releases.VARIABLE, "1.37")
    assert chosen().version.startswith("v1.37.")


def test_unknown_minor_is_refused_with_the_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.VARIABLE, "1.34")
    with pytest.raises(releases.ReleaseError, match=r"POLICYSCHED_KUBE=1\.34: known minors are 1\.36, 1\.37"):
        chosen()


def test_release_has_the_tags_of_the_releases_before_it() -> None:
    assert RELEASES["1.36"].tags == ()
    assert RELEASES["1.37"].tags == ("k137",)
    assert Release("v1.39.0-alpha.1", (1, 27)).tags == tuple(f"k{one.number}" for one in list(RELEASES.values())[1:])


def test_module_has_a_go_mod_for_each_release_or_one_for_all(tmp_path: Path) -> None:
    (tmp_path / "go137.mod").write_text("module example.io/tests\n")
    assert RELEASES["1.37"].mod_file(tmp_path) == tmp_path / "go137.mod"
    assert RELEASES["1.36"].mod_file(tmp_path) == tmp_path / "go.mod"
    with pytest.raises(releases.ReleaseError, match=r"cannot be built for v1\.38\S+: it has no go138\.mod"):
        RELEASES["1.38"].mod_file(tmp_path)


def test_go_mod_gets_the_version_and_the_dependencies_of_kubernetes() -> None:
    assert go_mod_for(Release("v1.38.0-beta.0", (1, 27)), OWN, KUBERNETES) == (
        "module example.io/tests\n\ngo 1.27.0\n\ngodebug default=go1.27\n\n"
        "tool (\n\tk8s.io/kubernetes/cmd/kubectl\n)\n\n"
        "require (\n\tgithub.com/onsi/ginkgo/v2 v2.30.0\n\tk8s.io/api v0.38.0-beta.0\n)\n\n"
        "require (\n\tgolang.org/x/net v0.62.0 // indirect\n\tcel.dev/expr v0.26.0 // indirect\n"
        "\tk8s.io/kubernetes v1.38.0-beta.0 // indirect\n)\n\n"
        "replace (\n\tk8s.io/api => k8s.io/api v0.38.0-beta.0\n\tk8s.io/kubelet => k8s.io/kubelet v0.38.0-beta.0\n)\n"
    )


def test_go_mod_pins_what_the_proxy_lacks() -> None:
    release = Release("v1.38.0-beta.0", (1, 27), is_preview=True, pins=(("golang.org/x/net", "v0.61.0"),))
    text = go_mod_for(release, OWN, KUBERNETES)
    assert "\tgolang.org/x/net v0.61.0 // indirect\n" in text
    assert "\tgolang.org/x/net => golang.org/x/net v0.61.0\n" in text


def test_go_mod_without_a_line_that_is_needed_is_refused() -> None:
    with pytest.raises(ValueError, match="no line 'go'"):
        go_mod_for(Release("v1.38.0", (1, 27)), OWN, KUBERNETES.replace("go 1.27.0\n", ""))
