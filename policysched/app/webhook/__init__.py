"""The validating webhook: refuses SchedulingPolicies that do not compile as they are applied, in kubectl's terminal.

It is a process of its own beside the scheduler: it needs other rights, checks whatever anybody sends, and may be gone
at any time, because a policy that passes without it is checked by the scheduler all the same.
"""
