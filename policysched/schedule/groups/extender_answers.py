"""`ExtenderAnswers`: stored answers of extenders about a pod group's members, for decisions that cannot call them.

A decision that needs an answer raises `UnansweredError`, after which the cluster is as before. The extenders are called
then, and the decision is repeated with the answers and with the same draws.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final, TypeVar

from policysched.model.objects import Pod
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.evaluation import Evaluation
from policysched.schedule.cycle.with_extenders import (
    Answers,
    Question,
    answers_to,
    failed,
    question_about,
    with_answers,
)
from policysched.state.placed.pods import pod_id

QUESTIONS: Final = 4
"""Maximum number of extender calls per member; after more calls, no decision is made."""
T = TypeVar("T")
Asked = tuple[str, tuple[str, ...], str]
"""Key of a stored answer: pod identity, names of the pod's feasible nodes, name of its nominated node."""


class UnansweredError(Exception):
    """Raised if a decision needs an answer of extenders that is not stored yet."""

    def __init__(self, question: Question) -> None:
        super().__init__(question.pod.key)
        self.question = question


class ExtenderAnswers:
    """The stored answers of extenders about the members of a pod group.

    Args:
        engine: The engine of the members' profile.
        rng: Random generator that chooses among equally good nodes and placements.
        members: The number of members.
    """

    def __init__(self, engine: Engine, rng: random.Random, members: int) -> None:
        self._engine, self._rng = engine, rng
        self._draws, self._most = rng.getstate(), QUESTIONS * members
        self._known: dict[Asked, Answers] = {}

    def applied(self, pod: Pod, evaluation: Evaluation) -> Evaluation | Decision:
        """Return a pod's evaluation with the extenders' stored answers; if an extender failed, the failed decision.

        Raises:
            UnansweredError: the answers are not known.
        """
        if not self._engine.profile.extending(pod):
            return evaluation
        question = question_about(self._engine, pod, evaluation)
        if not question.names:
            return evaluation
        answers = self._known.get(_asked(question))
        if answers is None:
            raise UnansweredError(question)
        return failed(evaluation, answers) if answers.failure else with_answers(evaluation, answers)

    async def run(self, decide: Callable[[], T], is_current: Callable[[], bool] = lambda: True) -> T | None:
        """Call a function that decides; while it lacks extenders' answers, call them and repeat; return its result.

        Args:
            decide: The function.
            is_current: Returns whether a result is still needed.

        Returns:
            None if no result is needed any more, or the questions do not end.
        """
        for _ in range(1 + self._most):
            try:
                return decide()
            except UnansweredError as missing:
                question = missing.question
            extenders = self._engine.profile.extending(question.pod)
            self._known[_asked(question)] = await answers_to(question, extenders)
            self._rng.setstate(self._draws)
            if not is_current():
                break
        return None


def _asked(question: Question) -> Asked:
    return pod_id(question.pod), question.names, question.nominated
