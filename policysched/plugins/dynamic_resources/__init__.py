"""DynamicResources: pods get the devices that their resource claims ask for.

`plugin` has the extension points. A pod's claims are found by `pod_claims`, those that stand for extended resources are
made in `extended_resources`; `claim_rows` says on which nodes they can be had, `reservation` writes what a pod takes.
"""
