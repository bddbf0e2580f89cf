"""What a plugin sees: statuses, the plugin protocols and cluster events. It knows neither plugins nor the network."""

from policysched.framework.client import ApiError, Client, Clock, Event
from policysched.framework.metrics import MetricSink, MetricSource, Wanted
from policysched.framework.plugin import (
    MAX_NODE_SCORE,
    PREFIX,
    SKIP,
    Codes,
    FilterPlugin,
    FilterReaching,
    Hint,
    LeavingOut,
    Mask,
    Narrow,
    Nothing,
    Plugin,
    PostFilterPlugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Rows,
    ScorePlugin,
    ScoreReaching,
    Scores,
    default_normalize,
)
from policysched.framework.status import Code, Status, unresolvable, unschedulable
from policysched.model.metrics import MetricAnswer, MetricKey, Sample
from policysched.state.changes import Action, Change, Resource
from policysched.state.cluster import Cluster
from policysched.state.journal import Aspect

__all__ = [
    "MAX_NODE_SCORE",
    "PREFIX",
    "SKIP",
    "Action",
    "ApiError",
    "Aspect",
    "Change",
    "Client",
    "Clock",
    "Cluster",
    "Code",
    "Codes",
    "Event",
    "FilterPlugin",
    "FilterReaching",
    "Hint",
    "LeavingOut",
    "Mask",
    "MetricAnswer",
    "MetricKey",
    "MetricSink",
    "MetricSource",
    "Narrow",
    "Nothing",
    "Plugin",
    "PostFilterPlugin",
    "PreEnqueuePlugin",
    "QueueSortPlugin",
    "Resource",
    "Rows",
    "Sample",
    "ScorePlugin",
    "ScoreReaching",
    "Scores",
    "Status",
    "Wanted",
    "default_normalize",
    "unresolvable",
    "unschedulable",
]
