"""`policysched completion`: prints the shell script that completes commands, flags and values."""

from __future__ import annotations

import enum
from typing import Annotated, Final

import typer

from policysched.cli.output import say_lines

_BASH: Final = """\
_policysched_completion() {
    local IFS=$'\\n' word index=0 current=$COMP_CWORD words=()
    for word in "${COMP_WORDS[@]}"; do
        if [[ $word != "=" ]]; then words+=("$word")
        elif (( index == COMP_CWORD )); then words+=("")
        elif (( index < COMP_CWORD )); then (( current-- )); fi
        (( index++ ))
    done
    COMPREPLY=( $( env COMP_WORDS="${words[*]}" COMP_CWORD=$current _POLICYSCHED_COMPLETE=complete_bash "$1" ) )
}
complete -o default -F _policysched_completion policysched
"""
_ZSH: Final = """\
#compdef policysched
_policysched_completion() {
    eval $(env _TYPER_COMPLETE_ARGS="${words[1,$CURRENT]}" _POLICYSCHED_COMPLETE=complete_zsh policysched)
}
compdef _policysched_completion policysched
"""
_ASK: Final = (
    "env _POLICYSCHED_COMPLETE=complete_fish _TYPER_COMPLETE_FISH_ACTION={} "
    "_TYPER_COMPLETE_ARGS=(commandline -cp) policysched"
)
_FISH: Final = (
    f'complete --command policysched --no-files --arguments "({_ASK.format("get-args")})" '
    f'--condition "{_ASK.format("is-args")}"\n'
)


class Shell(enum.StrEnum):
    """A shell with a completion script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(shell: Annotated[Shell, typer.Argument(help="Shell.")]) -> None:
    """Print the completion script of a shell.

    To enable completion in the current shell, run `source <(policysched completion bash)`.

    Exit codes: 0 success; 2 unknown shell.
    """
    say_lines(_SCRIPTS[shell], commands=True)
