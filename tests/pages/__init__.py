"""The listings of the project's pages: run, compared with what is shown, and written anew.

`make pages` (`python -m tests.pages [PAGE…]`) runs the commands of every page and writes what they print into it;
`test_pages` fails where a page shows something else. `python -m tests.pages --measure PAGE…` runs the benchmarks whose
output a page shows, which no test does.

Every fenced block says what it is, in the words behind its kind:

    console                 commands (`$ …`) and what they print; run, in the order of the page
    sh run, python run      commands or a program that the reader types; run, and must succeed
    KIND file=NAME          a file that the commands of the page find; so does one whose first line is `# NAME`
    yaml                    a policy, or a part of its spec; it compiles without a warning
    console measured=WHEN   commands that take long or need data that is not here; `--measure` runs them
    sh usage                how a command is called; its flags exist
    text drawing            a picture of characters

A page's commands run in a folder of their own that holds its files and leads to the repository's folders. The output
is compared after what cannot be the same twice is left out, see `normal`.
"""
