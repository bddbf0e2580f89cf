"""`policysched test`: what policies do to pods, written down in files and checked with the scheduler's engine.

Comes in: files of tests (`file_format`, `reading`), with policies and clusters in short or in full (`objects`). Goes
out: what differs from what was expected (`running`, `differences`), what no test reaches (`coverage`) or notices
(`mutation`), for people and programs (`runs`, `junit`).
"""
