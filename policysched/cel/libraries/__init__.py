"""Functions of CEL and of Kubernetes' libraries, by the names of their overloads.

An overload is called with arguments of its types and returns a value; an error is a value too.
"""
