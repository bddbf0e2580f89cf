"""Reviews: questions that the API server answers and does not store.

Whoever talks to the sandbox may do everything, because it listens on loopback for one user; it says so here
instead of keeping roles' rules that nothing would enforce.
"""

from __future__ import annotations

from policysched.sandbox.objects import Json
from policysched.sandbox.objects.resources import ApiResource

USER = {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]}
_ANY = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
_STATUS: dict[str, Json] = {
    "SelfSubjectAccessReview": {"allowed": True, "reason": "the sandbox allows everything"},
    "SubjectAccessReview": {"allowed": True, "reason": "the sandbox allows everything"},
    "SelfSubjectRulesReview": {
        "resourceRules": _ANY,
        "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
        "incomplete": False,
    },
    "TokenReview": {"authenticated": True, "user": USER},
    "SelfSubjectReview": {"userInfo": USER},
}


def answer(resource: ApiResource, review: Json) -> Json:
    """Answer a review."""
    return review | {
        "kind": resource.kind,
        "apiVersion": resource.api_version,
        "metadata": review.get("metadata") or {},
        "status": _STATUS[resource.kind],
    }
