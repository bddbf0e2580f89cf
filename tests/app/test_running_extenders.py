"""The extenders of a running process: whether they may be asked to bind, after a change of the configuration too."""

from __future__ import annotations

import pytest

from policysched.app.configuration.reading import load_configuration
from policysched.app.running.extenders import RunningExtenders
from policysched.framework.extender import ExtenderError
from tests.app.test_dry_run_extenders import configuration
from tests.build import pod
from tests.extenders.fake_extender import fake_extender


async def test_no_extender_is_asked_to_bind_while_the_process_may_not_write() -> None:
    async with fake_extender() as fake:
        fake.answers["bind"] = lambda _: {}
        may = False
        first, other = (
            load_configuration(configuration(fake, bindVerb="bind", weight=weight)).completed for weight in (2, 3)
        )
        extenders = RunningExtenders(first, lambda: may)
        async with extenders.changed_to(other) as made:
            assert made is not extenders.present
            for one in (*made, *extenders.present):
                with pytest.raises(ExtenderError, match="the lease has expired"):
                    await one.bind(pod("web"), "n1")
            assert not fake.asked
            may = True
            await made[0].bind(pod("web"), "n1")
        await extenders.close()
    assert [verb for verb, _ in fake.asked] == ["bind"]
