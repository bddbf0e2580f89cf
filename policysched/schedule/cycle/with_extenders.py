"""A scheduling cycle with HTTP extenders; no other scheduling cycle waits for network calls.

Filter extenders are called one after another for the feasible nodes, then Prioritize extenders all at once for the
remaining nodes. The cluster may change during the calls. If it changed, the plugins are evaluated again afterwards, and
the answers of the extenders are applied to the present nodes. A node that became feasible during the calls is rejected,
because no extender has evaluated it.

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, evaluateNominatedNode, findNodesThatPassExtenders,
prioritizeNodes), v1.36.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policysched.framework import Code, RowNumbers, Rows, RowScore, Scores, Status
from policysched.framework.extender import EXTENDER, Extender, ExtenderError
from policysched.model.objects import Pod
from policysched.model.quantity import wrap
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.results.plugin_results import EXTENDERS, FilterResults, GivenCodes, ScoreResults

log = logging.getLogger(__name__)
NOT_ASKED = Status(Code.UNSCHEDULABLE, ("node(s) became feasible while extenders evaluated others",), EXTENDER)
SILENT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (), EXTENDER)
"""The status of a node that an extender neither accepts nor rejects with a message."""


@dataclass(slots=True)
class Answers:
    """The answers of extenders about a pod, by node name."""

    found: Evaluation
    """The pod's evaluation, whose feasible nodes were sent to the extenders."""
    passed: set[str] = field(default_factory=set)
    """The nodes that all extenders accept; a node in neither `passed` nor `rejected` was not evaluated."""
    rejected: dict[str, Status] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """The scores by extender name and node name; scores of extenders with the same name are added up."""
    failure: str = ""
    """The message of a failed extender that is not ignorable, which fails the cycle; empty if no extender failed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A pod with the nodes that are sent to the extenders; valid even after changes of the cluster."""

    pod: Pod
    found: Evaluation
    names: tuple[str, ...]
    """The names of the feasible nodes."""
    nominated: str = ""
    """The name of the nominated node if the pod may fit on it, which is sent first; empty if not."""


async def ask(engine: Engine, pod: Pod, extenders: Sequence[Extender], placement: RowNumbers | None = None) -> Answers:
    """Call the extenders for the pod's nominated node; if the pod does not fit on that node, for all feasible nodes.

    Args:
        engine: The engine of the pod's profile.
        pod: The pod.
        extenders: The extenders that are interested in the pod, in their order.
        placement: The rows of the placement of the pod's group; None for all nodes.

    Returns:
        The answers; empty if the cycle ends before the extenders.
    """
    question = question_about(engine, pod, engine.find(pod, rows=placement))
    return await answers_to(question, extenders) if question.names else Answers(question.found)


def question_about(engine: Engine, pod: Pod, evaluation: Evaluation) -> Question:
    """Return the pod and nodes to send to extenders; without nodes if the cycle ends before extenders are called."""
    nodes = engine.cluster.nodes
    if nodes.count == 0 or evaluation.rejection is not None or evaluation.filter_failure is not None:
        return Question(pod, evaluation, ())
    names = tuple(nodes.names[row] for row in evaluation.feasible().nonzero()[0].tolist())
    nominated = evaluation.nominated_row
    return Question(pod, evaluation, names, "" if nominated is None else nodes.names[nominated])


async def answers_to(question: Question, extenders: Sequence[Extender]) -> Answers:
    """Call one after another the extenders that are interested in a pod, and return their answers."""
    pod, evaluation = question.pod, question.found
    if question.nominated:
        answers = Answers(evaluation)
        try:
            await _filter(pod, [question.nominated], extenders, answers)
        except ExtenderError as error:
            log.warning(
                'extenders failed for the nominated node of pod "%s"; calling them for all feasible nodes: %s',
                pod.key,
                error,
            )
        if answers.passed:
            return answers
    answers = Answers(evaluation)
    try:
        await _filter(pod, question.names, extenders, answers)
    except ExtenderError as error:
        return Answers(evaluation, failure=str(error))
    if len(answers.passed) > 1 and evaluation.score_failure is None:
        await _prioritize(pod, [name for name in question.names if name in answers.passed], extenders, answers)
    return answers


def choose(
    engine: Engine, pod: Pod, answers: Answers, *, moved: bool = False, placement: RowNumbers | None = None
) -> Decision:
    """Return the decision for the best node that all filters and extenders accept.

    Args:
        engine: The engine.
        pod: The pod.
        answers: The answers of the extenders.
        moved: Whether the cluster or the profile changed since the calls.
        placement: The rows of the placement of the pod's group; None for all nodes.
    """
    if engine.times is not None:
        engine.times.resume()
    evaluation = engine.find(pod, rows=placement) if moved else answers.found
    if answers.failure:
        return failed(evaluation, answers)
    return engine.choose(with_answers(evaluation, answers))


def failed(evaluation: Evaluation, answers: Answers) -> Decision:
    """Return the failed decision for a pod for which a call of an extender failed."""
    return Decision(evaluation, failure=Status(Code.ERROR, (answers.failure,), EXTENDER))


async def _filter(pod: Pod, names: Sequence[str], extenders: Sequence[Extender], answers: Answers) -> None:
    """Call Filter of each extender for the nodes that all earlier extenders accept."""
    left = list(names)
    for extender in extenders:
        if not left:
            break
        if not extender.filters:
            continue
        try:
            answer = await extender.filter(pod, left)
        except ExtenderError as error:
            if not extender.ignorable:
                raise
            log.warning(
                'extender "%s" failed to filter nodes for pod "%s" and is ignored: %s', extender.name, pod.key, error
            )
            continue
        for name in left:
            if name not in answer.nodes:
                answers.rejected[name] = _status(name, answer.failed, answer.unresolvable)
        left = [name for name in left if name in answer.nodes]
    answers.passed.update(left)


def _status(name: str, failed: Mapping[str, str], unresolvable: Mapping[str, str]) -> Status:
    if name in unresolvable:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (unresolvable[name],), EXTENDER)
    return Status(Code.UNSCHEDULABLE, (failed[name],), EXTENDER) if name in failed else SILENT


async def _prioritize(pod: Pod, names: Sequence[str], extenders: Sequence[Extender], answers: Answers) -> None:
    """Call Prioritize of all extenders concurrently and store their scores; a failed extender adds no scores."""
    asked = [one for one in extenders if one.prioritizes]
    found = await asyncio.gather(*(one.prioritize(pod, names) for one in asked), return_exceptions=True)
    for extender, scores in zip(asked, found, strict=True):
        if isinstance(scores, ExtenderError):
            log.info(
                'extender "%s" failed to score nodes for pod "%s" and is ignored: %s', extender.name, pod.key, scores
            )
        elif isinstance(scores, BaseException):
            raise scores
        else:
            added = answers.scores.setdefault(extender.name, {})
            for node, score in scores.items():
                added[node] = added.get(node, 0) + score


def with_answers(evaluation: Evaluation, answers: Answers) -> Evaluation:
    """Return an evaluation with the answers of extenders: one filter for all, and a score plugin for each extender."""
    called = answers.passed or answers.rejected
    if not called or evaluation.rejection is not None or evaluation.filter_failure is not None:
        return evaluation
    nodes, strings = evaluation.cluster.nodes, evaluation.cluster.strings
    size, capacity = nodes.size, nodes.columns.capacity
    names = nodes.name.data[:size].tolist()
    statuses = list(dict.fromkeys((NOT_ASKED, *answers.rejected.values())))
    places = {status: code for code, status in enumerate(statuses, 1)}
    codes = {strings.find(name): places[status] for name, status in answers.rejected.items()}
    codes |= {strings.find(name): 0 for name in answers.passed}
    by_row = np.array([codes.get(name, 1) for name in names], np.int32)
    rejections = FilterResults(GivenCodes(EXTENDER, statuses), by_row, EXTENDERS)
    rejections.recompute(capacity, size)
    scores: list[ScoreResults] = []
    for extender, given in answers.scores.items():
        added = {strings.find(name): wrap(score) for name, score in given.items()}
        values = np.array([added.get(name, 0) for name in names], np.int64)
        scores.append(ScoreResults(ExtenderScore(extender), 1, values))
        scores[-1].recompute(capacity, size)
    return evaluation.extended([rejections], scores)


class ExtenderScore(RowScore[Scores]):
    """One extender's scores in the form of a score plugin with weight 1."""

    normalizes = True
    """True, so that scores outside 0 to 100 are allowed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, state: Scores, rows: Rows) -> Scores:
        """Return the extender's scores of nodes, given by row."""
        return state[rows]

    def stays_in_range(self, state: Scores) -> bool:  # noqa: ARG002 - no state is checked
        """Return True, because scores of extenders need not be within 0 to 100."""
        return True
