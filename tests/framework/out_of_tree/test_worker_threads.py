"""Threads in which plugins wait: answers come back, only so many run at once, nothing they raise goes further."""

from __future__ import annotations

import asyncio
import threading

import pytest

from policysched.framework.out_of_tree.worker_threads import WorkerThreads, plain


async def test_answers_and_exceptions_come_back() -> None:
    threads = WorkerThreads()
    assert await threads.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run(lambda: 1 // 0)


async def test_a_thread_serves_one_after_another() -> None:
    threads = WorkerThreads()
    idents = {await threads.run(threading.get_ident) for _ in range(5)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents


async def test_no_more_run_at_once_than_there_may_be_threads() -> None:
    threads, lock, running, most = WorkerThreads("X", 2), threading.Lock(), [0], [0]
    go = threading.Event()

    def work() -> None:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        go.wait(30)
        with lock:
            running[0] -= 1

    tasks = [asyncio.create_task(threads.run(work)) for _ in range(5)]
    while most[0] < 2:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.02)
    go.set()
    await asyncio.gather(*tasks)
    assert most == [2]


def named(plugin: str) -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == f"plugin {plugin}"]


async def test_threads_end_once_nobody_holds_them() -> None:
    threads = WorkerThreads("ending")
    await asyncio.gather(*(threads.run(lambda: None) for _ in range(8)))
    alive = named("ending")
    assert alive
    del threads
    for one in alive:
        await asyncio.to_thread(one.join, 30)
    assert not named("ending")


async def test_a_thread_that_hangs_ends_once_it_hangs_no_more() -> None:
    threads, go = WorkerThreads("hanging"), threading.Event()
    task = asyncio.create_task(threads.run(lambda: go.wait(30)))
    await threads.run(lambda: None)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    alive = named("hanging")
    del threads, task
    go.set()
    await asyncio.sleep(0)
    for one in alive:
        await asyncio.to_thread(one.join, 30)
    assert not named("hanging")


async def test_that_all_threads_are_busy_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    threads, go = WorkerThreads("X", 2), threading.Event()
    for _ in range(2):
        tasks = [asyncio.create_task(threads.run(lambda: go.wait(30))) for _ in range(6)]
        await asyncio.sleep(0)
        said = [one.getMessage() for one in caplog.records]
        assert said == ['all 2 threads of plugin "X" are busy; pods wait for a free thread']
        caplog.clear()
        go.set()
        await asyncio.gather(*tasks)
        go.clear()


async def test_who_waits_may_give_up() -> None:
    threads, go = WorkerThreads("X", 1), threading.Event()
    task = asyncio.create_task(threads.run(lambda: go.wait(30)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    assert await threads.run(lambda: "next") == "next"


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), asyncio.CancelledError(), StopIteration()])
async def test_what_would_end_more_than_the_plugin_becomes_an_error(error: BaseException) -> None:
    def work() -> None:
        raise error

    with pytest.raises(RuntimeError, match="the plugin raised") as caught:
        await WorkerThreads().run(work)
    assert caught.value.__cause__ is error


def test_plain_errors_stay_what_they_are() -> None:
    error = ValueError("a bug")
    assert plain(error) is error
