"""What the values of options and arguments can be."""

import re
from dataclasses import dataclass, field

FILES, FOLDERS, GROUPS, WORDS, LIST, ALGORITHMS, COMMANDS = 'files', 'folders', 'groups', 'words', 'list', \
    'algorithms', 'commands'


@dataclass(frozen=True)
class Value:
    """kind: FILES, FOLDERS, GROUPS (of users), WORDS, or LIST (words separated by commas); None: nothing is known."""
    kind: str = None
    words: tuple = field(default=())


def words(*choices):
    return Value(WORDS, choices)


# By the placeholder of a value, or by the command and the option or argument.
PLACEHOLDERS = {
    'FILE': Value(FILES), 'PATH': Value(FILES), 'FOLDER': Value(FOLDERS), 'DIR': Value(FOLDERS), 'GROUP': Value(GROUPS),
    'MODE': words('stepped', 'streaming'), 'LEVEL': words('error', 'warning', 'info', 'debug'),
    'FORMAT': words('torusd', 'msccl', 'goal'), 'N|best': words('best'),
    'SOURCE...': Value(FILES), 'FILE...': Value(FILES), 'TARGET': Value(FILES),
    'LIBRARY': words('mpich', 'openmpi'), 'CLUSTER': Value(FILES),
}
OPTIONS = {
    ('exchange', '--on-failure'): words('fail', 'shrink', 'wait'),
    ('copy', '--on-failure'): words('fail', 'shrink', 'wait'),
    ('gather', '--on-failure'): words('fail', 'shrink', 'wait'),
    ('scatter', '--on-failure'): words('fail', 'shrink', 'wait'),
    ('allgather', '--on-failure'): words('fail', 'wait'),
    ('broadcast', '--on-failure'): words('fail', 'wait'),
    ('bench', '--schedules'): Value(FILES),
    ('perf', 'OPERATION'): words('alltoall', 'alltoallv', 'allgather', 'gather', 'scatter', 'broadcast', 'barrier',
                                 'allreduce', 'reduce', 'reduce-scatter'),
    ('perf', '--type'): words('int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64', 'float32',
                              'float64'),
    ('perf', '--op'): words('sum', 'product', 'min', 'max', 'and', 'or', 'xor'),
    ('predict', '--operation'): words('exchange', 'allgather'),
    ('simulate', '--square'): words('iterated', 'products', 'shift'),
    ('simulate', '--switching'): words('store', 'cut-through', 'wormhole'),
    ('simulate', '--ports'): words('one', 'all'),
    ('simulate', '--queue'): words('fifo', 'longest', 'step'),
    ('simulate', '--switch'): words('channel', 'input', 'output'),
    ('key', 'ACTION'): words('generate', 'id'),
    ('torusd', '--output-mode'): Value(),  # MODE: permissions
}
# Options that take the name of an algorithm: the operations of the algorithms, and other words.
EXCHANGE, ALLGATHER = ('exchange',), ('allgather',)
ALGORITHM_OPTIONS = {
    ('exchange', '--algorithm'): (EXCHANGE, ('auto',)),
    ('allgather', '--algorithm'): (ALLGATHER, ('auto',)),
    ('broadcast', '--algorithm'): (ALLGATHER, ('auto',)),
    ('bench', '--algorithms'): (EXCHANGE, ('auto', 'all')),
    ('plan', '--algorithm'): (EXCHANGE + ALLGATHER, ()),
    ('sweep', '--algorithms'): (EXCHANGE + ALLGATHER, ()),
    ('predict', '--algorithm'): (EXCHANGE + ALLGATHER, ('all',)),
    ('simulate', '--algorithm'): (EXCHANGE + ALLGATHER, ()),
}


def value_of(command, option, placeholder, tables):
    """The Value of an option of a command, or of a positional argument."""
    if (command, option) in ALGORITHM_OPTIONS:
        operations, more = ALGORITHM_OPTIONS[command, option]
        names = [row['name'] for row in tables['algorithms'] if row['operation'] in operations]
        return Value(LIST if option == '--algorithms' else WORDS, (*more, *names))
    if (command, option) == ('help', 'COMMAND'):
        return words(*(row['name'] for row in tables['commands']))
    placeholder = placeholder or option
    if re.fullmatch(r'[a-z]+(\|[a-z]+)+', placeholder):
        return words(*placeholder.split('|'))
    return OPTIONS.get((command, option)) or PLACEHOLDERS.get(placeholder) or Value()
