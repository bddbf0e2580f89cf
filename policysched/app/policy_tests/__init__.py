"""`policysched test`: what policies do to pods, written down in files and checked with the scheduler's engine.

Comes in: files of tests (`file_format`, `reading`), with policies and clusters in short or in full (`objects`). Goes
out: what differs from what was expected (`running`, `differences`), what no test reaches (`coverage`, with
`instrumented` programs) or notices (`mutation`, with `mutants`), of all files together (`suite`) and for programs
(`junit`). `claims` gives placed pods their devices from step to step, `watching` runs all again when a file changes.
"""
