"""The test command: run test files of policies with the scheduler's engine.

| module | task |
|---|---|
| `file_format`, `reading`, `objects` | test files and their objects |
| `running`, `differences` | run a test and compare the result |
| `coverage`, `instrumented` | find rules that no test evaluates |
| `mutation`, `mutants` | find changes of rules that no test notices |
| `suite`, `junit` | results of all files, JUnit output |
| `claims` | devices of placed pods between steps |
| `watching` | run again when a file changes |
"""
