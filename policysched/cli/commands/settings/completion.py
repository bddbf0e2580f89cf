"""`policysched completion`: prints the shell script that completes commands, flags and values."""

from __future__ import annotations

from typing import Final

from policysched.cli.flags.settings import CompletionFlags, Shell
from policysched.cli.output import print_lines

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


_SCRIPTS: Final = {Shell.BASH: _BASH, Shell.ZSH: _ZSH, Shell.FISH: _FISH}


def completion(flags: CompletionFlags) -> None:
    """Print a completion script."""
    print_lines(_SCRIPTS[flags.shell], commands=True)
