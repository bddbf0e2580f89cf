"""Base classes of plugins, statuses, profiles, and adapters for out-of-tree plugins.

| module | contents |
|---|---|
| `plugin` | base classes from PreEnqueue to Score |
| `optional_interfaces` | bases of plugins that need more: incremental, what-if, per pod, retries |
| `post_filter`, `binding` | base classes of PostFilter, and from Reserve to PostBind |
| `status`, `cycle_state` | answers of plugins, and their state of one attempt |
| `profile`, `registry` | plugins of one scheduler name, plugins by name |
| `client` | protocols `Client`, `Clock` and `MetricSource` |
| `extender` | protocol of extenders |
| `partial_plugins` | plugins that are enabled at one of two related points |
| `out_of_tree` | adapter for plugins that answer for one node |

It imports `state` and lower packages; `plugins`, `rules` and upper packages import it.
"""

from policysched.framework.binding import (
    AssumedPod,
    BindPlugin,
    DeviceWait,
    DeviceWaitOutcome,
    Handle,
    PermitPlugin,
    PodInPreBind,
    PostBindPlugin,
    PreBindPlugin,
    PreFlight,
    ReservePlugin,
    Wait,
    WaitingPod,
)
from policysched.framework.client import (
    BINDING_CYCLE,
    NO_STATUS,
    ApiError,
    Client,
    Clock,
    Event,
    MetricSink,
    MetricSource,
    PodStatusChange,
    PolicyEvent,
    Wanted,
    pod_condition,
)
from policysched.framework.optional_interfaces import (
    BlockMember,
    BlockRow,
    Incremental,
    PerPod,
    PluginBlock,
    RetryControl,
    WhatIfFilter,
)
from policysched.framework.plugin import (
    ANY_CHANGE,
    MAX_NODE_SCORE,
    PREFIX,
    SKIP,
    Codes,
    FilterPlugin,
    Hint,
    HintIndex,
    Mask,
    Narrow,
    Nothing,
    Plugin,
    PreEnqueuePlugin,
    PreparedFilter,
    PreparedScore,
    QueueSortPlugin,
    RowFilter,
    RowScore,
    ScorePlugin,
    Scores,
    SizedState,
    default_normalize,
    plugin_name,
)
from policysched.framework.post_filter import (
    FailedDecision,
    PostFilterPlugin,
    PostFilterResult,
    Protection,
    RowVerdicts,
    VictimGuard,
    WhatIf,
)
from policysched.framework.status import Code, Status, unresolvable, unschedulable
from policysched.model.kinds import CustomResource, Resource
from policysched.model.policy import MetricAnswer, MetricKey, Sample
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import Action, Change
from policysched.state.tables.columns import NO_ROWS, RowNumbers, Rows
from policysched.state.tables.journal import ABOUT_PODS, Aspect
from policysched.state.what_if import ChangedRow, ChangedRows

__all__ = [
    "ABOUT_PODS",
    "ANY_CHANGE",
    "BINDING_CYCLE",
    "MAX_NODE_SCORE",
    "NO_ROWS",
    "NO_STATUS",
    "PREFIX",
    "SKIP",
    "Action",
    "ApiError",
    "Aspect",
    "AssumedPod",
    "BindPlugin",
    "BlockMember",
    "BlockRow",
    "Change",
    "ChangedRow",
    "ChangedRows",
    "Client",
    "Clock",
    "Cluster",
    "Code",
    "Codes",
    "CustomResource",
    "DeviceWait",
    "DeviceWaitOutcome",
    "Event",
    "FailedDecision",
    "FilterPlugin",
    "Handle",
    "Hint",
    "HintIndex",
    "Incremental",
    "Mask",
    "MetricAnswer",
    "MetricKey",
    "MetricSink",
    "MetricSource",
    "Narrow",
    "Nothing",
    "PerPod",
    "PermitPlugin",
    "Plugin",
    "PluginBlock",
    "PodInPreBind",
    "PodStatusChange",
    "PolicyEvent",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFlight",
    "PreparedFilter",
    "PreparedScore",
    "Protection",
    "QueueSortPlugin",
    "ReservePlugin",
    "Resource",
    "RetryControl",
    "RowFilter",
    "RowNumbers",
    "RowScore",
    "RowVerdicts",
    "Rows",
    "Sample",
    "ScorePlugin",
    "Scores",
    "SizedState",
    "Status",
    "VictimGuard",
    "Wait",
    "WaitingPod",
    "Wanted",
    "WhatIf",
    "WhatIfFilter",
    "default_normalize",
    "plugin_name",
    "pod_condition",
    "unresolvable",
    "unschedulable",
]
