"""What Kubernetes objects are and mean, one at a time: structs, quantities, selectors, taints, requests.

Knows neither arrays nor the network: every function here takes one object and gives one answer, and the
columns of `policysched.state` are built from those answers. `objects` has the structs, `decode` reads them from bytes,
`defaults` fills in what the API server would have, `selection` compiles what they select.
"""
