"""Reading of files and untrusted texts: YAML and JSON with limits, and with source positions.

| module | contents |
|---|---|
| `files` | bytes and texts of files and of the standard input |
| `folders`, `loading` | the objects of files and folders |
| `documents` | the objects of a text, each with its source |
| `yaml_nodes`, `yaml_values` | YAML as Kubernetes reads it: with positions, or fast without |
| `json_values` | JSON with positions |
| `positions` | line and column of a field |
| `bounded_yaml`, `bounded_json` | YAML and JSON with limits |
| `durations` | durations in Go's format |
| `lenient_json`, `json_structure` | the readable parts of malformed JSON |

This package imports only `errors`. Every other package can import it.
"""
