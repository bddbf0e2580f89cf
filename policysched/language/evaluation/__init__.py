"""Values of programs: over columns of nodes with numpy, and for one node in plain Python.

In come programs and a frame, out come arrays or plain values. The scalar interpreter is the reference that the array
kernels are tested against; it imports no numpy.
"""
