"""Checks of the documents, and the site that is built from docs/.

`python -m tools.documents` checks all documents and builds the site into build/site; `make docs` calls it. Every
problem is one line: file, line, what is wrong.
"""
