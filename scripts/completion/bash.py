"""Completions for bash. They need nothing but bash itself."""

import shlex

from . import values

ACTIONS = {values.FILES: 'files', values.FOLDERS: 'folders', values.GROUPS: 'groups', None: 'nothing'}

TEXT = r'''# bash completion of @NAME@. Made by the build from the options of @NAME@.

# Prints the options of a command, and those of all commands.
_@NAME@_options() {
    case $1 in
@OPTIONS@
    esac
    printf '%s\n' @COMMON@
}

# Prints what the value of an option, or argument number $2 of a command, can be: a kind, and words.
_@NAME@_value() {
    case "$1 $2" in
@VALUES@
    esac
}

# _@NAME@_reply WORD KIND CHOICES: fills COMPREPLY with what WORD can become.
_@NAME@_reply() {
    local word=$1 kind=$2 before=''
    set -- $3
    case $kind in
    words) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$word") ;;
    list)
        [[ $word != *,* ]] || before=${word%,*},
        mapfile -t COMPREPLY < <(compgen -P "$before" -W "$*" -- "${word##*,}")
        compopt -o nospace 2>/dev/null ;;
    files)
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        compopt -o filenames 2>/dev/null ;;
    folders)
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
        compopt -o filenames 2>/dev/null ;;
    groups) mapfile -t COMPREPLY < <(compgen -g -- "$word") ;;
    esac
}

_@NAME@() {
    local i word='' command='' option='' arguments=0 current=${COMP_WORDS[COMP_CWORD]} kind='' choices=''
    local IFS=$' \t\n'
    COMPREPLY=()
    # The words before the cursor; bash makes three words of --option=value.
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if [[ $word = = && -n $option ]]; then
            continue
        elif [[ -n $option ]]; then
            option=''
        elif [[ $word = -* ]]; then
            [[ -z $(_@NAME@_value "$command" "$word") ]] || option=$word
        elif [[ -z $command && @HAS_COMMANDS@ = yes ]]; then
            command=$word
        else
            arguments=$((arguments + 1))
        fi
    done
    [[ $current != = || -z $option ]] || current=''
    if [[ -n $option ]]; then
        read -r kind choices < <(_@NAME@_value "$command" "$option")
    elif [[ $current = -* ]]; then
        kind=words choices=$(_@NAME@_options "$command")
    elif [[ -z $command && @HAS_COMMANDS@ = yes ]]; then
        kind=words choices='@COMMANDS@'
    else
        read -r kind choices < <(_@NAME@_value "$command" "$arguments")
    fi
    _@NAME@_reply "$current" "$kind" "$choices"
}

complete -F _@NAME@ @NAME@
'''


def _described(value):
    """The text that _NAME_value prints."""
    return shlex.quote(' '.join([ACTIONS.get(value.kind, value.kind), *value.words]))


def _values(command, common):
    """Lines of `case`: for each option with a value, and for each argument by its number."""
    rows = {}
    for word in [*command.options, *(common.options if common is not command else ())]:
        if word.placeholder:
            rows.setdefault(_described(word.value), []).append(word.name)
    for number, word in enumerate(command.arguments):
        rows.setdefault(_described(word.value), []).append('[0-9]*' if word.repeated else str(number))
    for text, names in rows.items():
        patterns = [f'{shlex.quote(command.name + " ")}{name}' if name == '[0-9]*' else
                    shlex.quote(f'{command.name} {name}') for name in names]
        yield f'    {" | ".join(patterns)}) echo {text} ;;'


def write(program):
    """The text of the completion of a model.Program."""
    options = [f'    {command.name}) printf \'%s\\n\' {" ".join(word.name for word in command.options)} ;;'
               for command in program.commands if command.options]
    lines = [line for command in (program.common, *program.commands) for line in _values(command, program.common)]
    text = TEXT
    for name, replacement in {
            'NAME': program.name, 'OPTIONS': '\n'.join(options), 'VALUES': '\n'.join(lines),
            'COMMON': ' '.join(word.name for word in program.common.options),
            'COMMANDS': ' '.join(command.name for command in program.commands),
            'HAS_COMMANDS': 'yes' if program.commands else 'no'}.items():
        text = text.replace(f'@{name}@', replacement)
    return text
