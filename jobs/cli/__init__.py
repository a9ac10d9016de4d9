"""The command line: one module per verb, each with a click command named `command`.

Exit codes: 0 done, 1 done with failures above the limit or with findings, 2 usage, configuration or
fingerprint, 3 drained and resumable, 130 cancelled. stdout is data, stderr is log. A verb's module
imports what it needs when it runs, so that verbs without a model load neither torch nor ray.
"""
