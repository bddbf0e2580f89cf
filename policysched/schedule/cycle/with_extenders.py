"""A scheduling cycle with HTTP extenders: Filter and Prioritize calls; the only cycle that awaits.

Extenders are asked about the nodes that every filter lets pass, one after another, and those that score about what is
left, all at once. Meanwhile the cluster goes on: where it has changed, filters are asked again, and the answers are
laid over the nodes as they are then. So what is decided holds for the cluster of that moment, and nobody has to hold
changes back. A node that came into question meanwhile is left out, because nobody has asked about it.

Source: pkg/scheduler/schedule_one.go (findNodesThatFitPod, evaluateNominatedNode, findNodesThatPassExtenders,
prioritizeNodes), v1.36.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from policysched.framework import Aspect, Cluster, Code, Codes, Hint, Mask, Rows, Scores, Status
from policysched.framework.extender import EXTENDER, Extender, ExtenderError
from policysched.model.objects import Pod
from policysched.model.quantity import wrap
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import BEHIND_ALL, Evaluation
from policysched.schedule.cycle.per_pod_results import laid_over
from policysched.schedule.cycle.results.plugin_results import FilterResults, ScoreResults

log = logging.getLogger(__name__)
NOT_ASKED = Status(Code.UNSCHEDULABLE, ("node(s) became feasible while extenders evaluated others",), EXTENDER)
SILENT = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, (), EXTENDER)
"""The status of a node that an extender left out without a word."""


@dataclass(slots=True)
class Answers:
    """What extenders said of nodes, by name."""

    found: Evaluation
    """The nodes that they were asked about, as they were then."""
    passed: set[str] = field(default_factory=set)
    """The nodes that are left; nothing is known of those that are in neither."""
    rejected: dict[str, Status] = field(default_factory=dict)
    scores: dict[str, dict[str, int]] = field(default_factory=dict)
    """What is added to total scores, by the name of the extender, which several may have, and node."""
    failure: str = ""
    """What ends the cycle, of an extender that must not be ignored."""


async def ask(engine: Engine, pod: Pod, extenders: Sequence[Extender]) -> Answers:
    """Ask extenders about the nodes that every filter lets pass: the nominated one where it fits, else all.

    Args:
        engine: The engine of the pod's profile.
        pod: The pod.
        extenders: Those that are interested in the pod, in their order.

    Returns:
        Their answers; without any question where the cycle ends before them.
    """
    evaluation, nodes = engine.find(pod), engine.cluster.nodes
    if nodes.count == 0 or evaluation.rejection is not None or evaluation.filter_failure is not None:
        return Answers(evaluation)
    names = [nodes.names[row] for row in evaluation.feasible().nonzero()[0].tolist()]
    scores = evaluation.score_failure is None
    if (nominated := engine.nominated_row(pod, evaluation)) is not None:
        answers = Answers(evaluation)
        try:
            await _filter(pod, [nodes.names[nominated]], extenders, answers)
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
        await _filter(pod, names, extenders, answers)
    except ExtenderError as error:
        return Answers(evaluation, failure=str(error))
    if len(answers.passed) > 1 and scores:
        await _prioritize(pod, [name for name in names if name in answers.passed], extenders, answers)
    return answers


def choose(engine: Engine, pod: Pod, answers: Answers, *, moved: bool = False) -> Decision:
    """Choose among the nodes that filters let pass and extenders did not reject.

    Args:
        engine: The engine.
        pod: The pod.
        answers: What extenders said.
        moved: Whether anything has changed since they were asked.
    """
    if engine.times is not None:
        engine.times.resume()
    evaluation = engine.find(pod) if moved else answers.found
    if answers.failure:
        failure = Status(Code.ERROR, (answers.failure,), EXTENDER)
        return Decision(engine.cluster, pod, evaluation, failure=failure)
    return engine.choose(pod, _with_answers(evaluation, answers))


async def _filter(pod: Pod, names: Sequence[str], extenders: Sequence[Extender], answers: Answers) -> None:
    """Ask one extender after another about the nodes that those before it left."""
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
    """Ask all extenders that score; one that fails scores nothing."""
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


def _with_answers(evaluation: Evaluation, answers: Answers) -> Evaluation:
    """Lay what extenders said over what the plugins say."""
    asked = answers.passed or answers.rejected
    if not asked or evaluation.rejection is not None:
        return evaluation
    names, strings = evaluation.cluster.nodes.name.data, evaluation.cluster.strings
    statuses = list(dict.fromkeys((NOT_ASKED, *answers.rejected.values())))
    places = {status: code for code, status in enumerate(statuses, 1)}
    codes = {strings.find(name): places[status] for name, status in answers.rejected.items()}
    codes |= {strings.find(name): 0 for name in answers.passed}
    size = evaluation.cluster.nodes.size
    by_row = np.array([codes.get(code, 1) for code in names[:size].tolist()], np.int32)
    filters = [FilterResults(ExtenderFilter(statuses), by_row, BEHIND_ALL)]
    scores: list[ScoreResults] = []
    for extender, given in answers.scores.items():
        added = {strings.find(name): wrap(score) for name, score in given.items()}
        values = np.array([added.get(code, 0) for code in names[:size].tolist()], np.int64)
        scores.append(ScoreResults(ExtenderScore(extender), 1, values))
    return laid_over(evaluation, filters, scores)


class ExtenderFilter:
    """What extenders keep a pod off, as a filter; its state is its codes by row."""

    name = EXTENDER
    filter_reads = Aspect.NONE

    def __init__(self, statuses: Sequence[Status]) -> None:
        self._statuses = statuses

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Codes:
        """Never called: its state is made of answers."""
        raise AssertionError((pod, cluster))

    def filter(self, state: Codes, rows: Rows) -> Codes:
        """Reject the nodes that extenders rejected."""
        return state[rows]

    def reason(self, state: Codes, code: int) -> Status:  # noqa: ARG002 - all states have the same statuses
        """Return what an extender said."""
        return self._statuses[code - 1]

    def events(self) -> Sequence[Hint]:
        """Hints are the profile's: any change may help."""
        return ()

    def generation(self, cluster: Cluster) -> int:  # noqa: ARG002 - it lives for one decision
        """Never stale."""
        return 0


class ExtenderScore:
    """What one extender adds to total scores, as a score plugin of weight 1; its state is its scores by row."""

    score_reads = Aspect.NONE
    normalizes = True
    """It does not, but the scores of those that do may be of any size."""

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Scores:
        """Never called: its state is made of answers."""
        raise AssertionError((pod, cluster))

    def score(self, state: Scores, rows: Rows) -> Scores:
        """Return the scores."""
        return state[rows]

    def normalize(self, state: Scores, scores: Scores, feasible: Mask) -> Scores:  # noqa: ARG002 - nothing to do
        """Return the scores as they are."""
        return scores

    def stays_in_range(self, state: Scores) -> bool:  # noqa: ARG002 - no state is checked
        """Say yes: an extender's scores may leave 0 to 100."""
        return True

    def generation(self, cluster: Cluster) -> int:  # noqa: ARG002 - it lives for one decision
        """Never stale."""
        return 0
