"""Interfaces between the scheduler, its plugins and the outside. It knows neither plugins nor the network.

`plugin` has the protocols of plugins up to a decision (PreEnqueue to Score), `post_filter` that of those that run when
no node was feasible, `binding` those from Reserve to PostBind, `status` their answers, `profile` the plugins of one
scheduler name in order. `client` has the protocols of the outside: `Client`, `Clock`, `MetricSource`. `partial_plugins`
is for configurations that enable Filter without PreFilter, `registry` has plugins by name. Out-of-tree plugins have the
methods of `plugin_methods` and reach the scheduler with a `plugin_handle`; they see nodes as `node_info` has them, and
keep what belongs to an attempt in its `cycle_state`. The cluster's changes and the policies' names are passed on from
`state`, for plugins to import from here.
"""

from policysched.framework.binding import (
    AssumedPod,
    BindPlugin,
    Handle,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Wait,
    WaitingPod,
)
from policysched.framework.client import (
    ApiError,
    Client,
    Clock,
    Event,
    MetricSink,
    MetricSource,
    PodStatusChange,
    Wanted,
    pod_condition,
)
from policysched.framework.plugin import (
    ANY_CHANGE,
    MAX_NODE_SCORE,
    PREFIX,
    SKIP,
    Codes,
    Everywhere,
    FilterAffecting,
    FilterAlone,
    FilterOfChangedRow,
    FilterOfChangedRows,
    FilterPlugin,
    Hint,
    HintIndex,
    InRange,
    LeavingOut,
    Mask,
    Narrow,
    Nothing,
    Plugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    RejectionListener,
    ScoreAffecting,
    ScoreAlone,
    ScorePlugin,
    Scores,
    default_normalize,
    per_pod,
    plugin_name,
)
from policysched.framework.post_filter import FailedDecision, PostFilterPlugin, PostFilterResult, RowVerdicts, WhatIf
from policysched.framework.status import Code, Status, unresolvable, unschedulable
from policysched.model.kinds import Resource
from policysched.model.policy import MetricAnswer, MetricKey, Sample
from policysched.state.changes import Action, Change
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import NO_ROWS, RowNumbers, Rows
from policysched.state.tables.journal import ABOUT_PODS, Aspect
from policysched.state.what_if import ChangedRow, ChangedRows

__all__ = [
    "ABOUT_PODS",
    "ANY_CHANGE",
    "MAX_NODE_SCORE",
    "NO_ROWS",
    "PREFIX",
    "SKIP",
    "Action",
    "ApiError",
    "Aspect",
    "AssumedPod",
    "BindPlugin",
    "Change",
    "ChangedRow",
    "ChangedRows",
    "Client",
    "Clock",
    "Cluster",
    "Code",
    "Codes",
    "Event",
    "Everywhere",
    "FailedDecision",
    "FilterAffecting",
    "FilterAlone",
    "FilterOfChangedRow",
    "FilterOfChangedRows",
    "FilterPlugin",
    "Handle",
    "Hint",
    "HintIndex",
    "InRange",
    "LeavingOut",
    "Mask",
    "MetricAnswer",
    "MetricKey",
    "MetricSink",
    "MetricSource",
    "Narrow",
    "Nothing",
    "PermitPlugin",
    "Plugin",
    "PodStatusChange",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "QueueSortPlugin",
    "RejectionListener",
    "ReservePlugin",
    "Resource",
    "RowNumbers",
    "RowVerdicts",
    "Rows",
    "Sample",
    "ScoreAffecting",
    "ScoreAlone",
    "ScorePlugin",
    "Scores",
    "Status",
    "Wait",
    "WaitingPod",
    "Wanted",
    "WhatIf",
    "default_normalize",
    "per_pod",
    "plugin_name",
    "pod_condition",
    "unresolvable",
    "unschedulable",
]
