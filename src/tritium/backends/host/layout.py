"""The memory that native host code and Python share: byte offsets of 8-byte fields.

Fields that threads write while others read them stand on cache lines of their own. A field that is
waited on, or is 0 or 1, uses the low 4 bytes.
"""

from __future__ import annotations

WORD = 8
LINE = 64
REPORT = "tritium_report"
"""The function that compiled code calls to print and to check; part of its object file then."""


class Record:
    """One version of a compiled kernel, as a launch needs it.

    ``COST`` is the time one program takes in clock ticks, a double; 0 while it isn't known.
    ``STEADY`` is 1 where that doesn't depend on what a launch is given, ``WAITS`` where programs
    wait for memory to change: the scratch memory starts with a ``Waiter`` then.
    """

    ENTRY, SCRATCH, COST, STEADY, WAITS = 0, 8, 16, 24, 32
    SIZE = LINE


class Pool:
    """The pool. ``SEQUENCE`` counts the grids that were opened: workers wait for its change.

    ``OPEN`` has a bit for each slot whose grid may have programs left. ``TRAIN`` is 1 while grids
    follow each other closely, ``LAST`` when the last one ended. The times from ``TINY`` to
    ``PATIENCE``, and ``PLACING``, are doubles, in ticks: see ``runtime.pool``. ``STUCK`` raises the
    error of programs that can't go on. ``CPUS`` is the set of CPUs that workers were last allowed,
    at the time ``PLACED``; nothing where they have those of the thread that started them.
    """

    SEQUENCE, OPEN = 0, 8
    SLEEPERS, STOP = 64, 72
    WORKERS, GROWING, CLOSED, TRAIN, LAST = 128, 136, 144, 152, 160
    TINY, SHORT, WORTH_SHARING, WORTH_WAKING, SPIN, LONG, PATIENCE, STUCK = range(192, 256, 8)
    MUTEX, CONDITION = 256, 384
    CPUS, CPUS_SIZE = 512, 128
    PLACED, PLACING = 640, 648
    SLOTS = 704


class Slot:
    """A grid in flight. ``TICKET`` is its generation << 32 | the next unit that nobody has claimed.

    A unit is ``UNIT`` programs; ``DONE`` counts the units that have run, ``WAITING`` is 1 where the
    caller sleeps until they all have. ``SHARE`` divides what is left into claims of ``LEAST`` or
    more. ``CONTROL`` is the caller's floating-point control register. ``BUSY`` is 1
    while a caller owns the slot; ``ARENA`` is the scratch memory of that caller, and its size.
    ``WAKING`` is 1 where sleeping workers are to be woken.

    Where programs wait for each other, ``WAITS`` is 1; ``BLOCKED`` counts those that have waited
    for long, ``CHANGES`` how often that has changed, and ``ABORT`` is 1 once all are to end.
    """

    TICKET = 0
    DONE, WAITING, BLOCKED, CHANGES, ABORT = 64, 72, 80, 88, 96
    ENTRY, ARGUMENTS, PROGRAMS, UNIT, UNITS, HELPERS, SCRATCH, CONTROL = range(128, 192, 8)
    LEAST, SHARE, WAKING, BUSY, ARENA, WAITS = 192, 200, 208, 216, 224, 240
    SIZE = 256
    COUNT = 16


class Worker:
    """A thread of the pool; ``ARENA`` is its scratch memory, and its size."""

    POOL, INDEX, THREAD, ARENA = 0, 8, 16, 24
    SIZE = LINE
    MOST = 4095
    FIRST = Pool.SLOTS + Slot.COUNT * Slot.SIZE


class Launch:
    """One launch on its caller's stack: what runs, and what is noted while it does.

    ``SLOT`` is null where none was free. ``TIME`` (a double, in ticks) and ``RAN`` (programs) are
    the caller's own share, ``COST`` the time per program that is reckoned with. ``CHECKED`` is when
    signals were last looked at, ``STATE`` the thread's state while it doesn't hold the GIL.
    ``WAITS`` is the record's; ``STUCK`` is 1 where programs wait for some that can't be started.
    """

    ENTRY, ARGUMENTS, PROGRAMS, UNIT, UNITS, SCRATCH, THREADS, SLOT = range(0, 64, 8)
    TIME, RAN, COST, CHECKED, STATE, INTERRUPTED, HOLDER = range(64, 120, 8)
    WAITS, STUCK = 128, 136
    SIZE = 192


class Waiter:
    """What a program that waits has at hand: the function it calls, and what that looks at.

    ``LAUNCH`` is the caller's, null on a worker. ``LOOKS`` counts the calls of one loop,
    ``BLOCKED`` is 1 once there were many. ``SINCE`` is when the grid was last seen to go on,
    ``SEEN`` how far.
    """

    HOOK, POOL, SLOT, LAUNCH, LOOKS, BLOCKED, SINCE, SEEN = range(0, 64, 8)
    SIZE = LINE
    MOST = 1024
    """So many threads run one grid at once, at most."""


POOL_SIZE = Worker.FIRST + Worker.MOST * Worker.SIZE


class Process:
    """What launches from Python have in common: addresses of CPython's objects, and the settings.

    ``TENSOR`` and ``PARAMETER`` are torch's types, ``EXCHANGE`` its function that fills a DLTensor,
    ``ARRAY`` NumPy's type; 0 where they are not to be read. ``IMPLEMENTATION`` to ``STORAGE_SIZE``
    are offsets by which the storage of a tensor is found, ``KEYS`` that of flags among which is
    ``NEGATED``; ``ELEMENT_SIZE`` is the offset of an element's size in NumPy's dtype.

    ``ACTIVE`` is 1 while launches may take the short way. What is looked at: ``REVISION`` (an
    address) holds ``REVISED``, the context variable ``SCOPES`` has the value ``SCOPE``,
    ``MODULE``'s dictionary has ``ENVIRON`` under ``ENVIRON_NAME``, its dictionary ``VARIABLES`` has
    the values of the pairs ``WATCHED``, ``WATCHES`` of them (as it has where the version of the
    dictionary, at the offset ``VERSION`` unless that is 0, is still ``VERSION_SEEN``), the lists
    ``ENTER`` and ``EXIT`` are empty. Else ``SETTLE`` is called. ``SERIAL`` numbers what the
    settings mean for compilation.

    ``DTYPES`` is the dictionary of the types of elements by NumPy's dtypes, ``CODES`` that by
    DLPack's, which are ints; ``CPU`` is the name of the device, ``ANYWHERE`` that where there are
    no arrays, ``ARGUMENT`` the type of what is made of arrays.

    For GPUs: ``WORK_STREAM`` is torch's function that gives a device's current stream,
    ``LAUNCH_KERNEL`` the driver's, ``RECENT`` (an address) what was launched last; 0 where there is
    none.
    """

    INT, FLOAT, STR, TUPLE, NONE, TRUE, FALSE, ARRAY, TENSOR, PARAMETER, EXCHANGE = range(0, 88, 8)
    IMPLEMENTATION, STORAGE, STORAGE_DATA, STORAGE_SIZE, ELEMENT_SIZE = range(88, 128, 8)
    ACTIVE, REVISION, REVISED, SCOPES, SCOPE, MODULE, ENVIRON_NAME, ENVIRON = range(128, 192, 8)
    VARIABLES, WATCHES, WATCHED, ENTER, EXIT, SETTLE, SERIAL, THREADS = range(192, 256, 8)
    POOL, METHOD, DTYPE, NOTHING = range(256, 288, 8)
    SETTLED, PERIOD, KEYS, NEGATED = range(288, 320, 8)
    DTYPES, CODES, CPU, ANYWHERE, ARGUMENT, VERSION, VERSION_SEEN = range(320, 376, 8)
    WORK_STREAM, LAUNCH_KERNEL, RECENT = range(376, 400, 8)
    SIZE = 400


class Kernel:
    """A kernel that was launched: what its launches look at first.

    ``HOOKS`` is the list of functions to be called before a launch. ``TABLE`` holds ``ENTRIES``
    pairs: the object that keeps an ``Entry`` alive, and its address. ``SLOW(grid, args, keywords)``
    launches in any case, ``RESOLVED`` does where ``grid`` is what a function has returned.
    """

    PROCESS, HOOKS, ENTRIES, TABLE, SLOW, RESOLVED, LAST_GRID, LAST_LAUNCH = range(0, 64, 8)
    SIZE = LINE
    MOST = 64


class Entry:
    """The launches of a kernel with arguments of certain kinds, given in a certain way.

    ``POSITIONAL`` arguments and the ``KEYWORDS`` whose names are at ``NAMES``, each described by an
    ``Argument`` at ``ARGUMENTS``. ``TEMPLATE`` are the ``SLOTS`` words that the compiled code is
    given, with those of defaults. ``DISJOINT`` and ``OVERLAPPING`` are ``Record``s, the second 0
    where that isn't compiled. ``PAIRS`` are ``PAIR_COUNT`` pairs of arguments that may overlap in
    memory. ``GUARDS`` are ``GUARD_COUNT`` things that the compilation has read. ``PARAMETERS`` are
    what the function of a grid is given. ``OBJECT`` is the one whose memory all this is. ``PLACE``
    is where the code runs, as in ``Fact``: on a GPU the versions are ``OnDevice``s.
    """

    SERIAL, POSITIONAL, KEYWORDS, NAMES, ARGUMENTS, SLOTS, TEMPLATE, COMPILED = range(0, 64, 8)
    DISJOINT, OVERLAPPING, PAIR_COUNT, PAIRS, GUARD_COUNT, GUARDS = range(64, 112, 8)
    PARAMETER_COUNT, PARAMETERS, OBJECT, PLACE = 112, 120, 128, 136
    SIZE = 144
    MOST_ARGUMENTS = 64
    MOST_SLOTS = 96


class Argument:
    """What an argument must be, and where its value goes: ``SLOT`` is a byte offset, or -1.

    By ``MODE``: ``SAME``: the object ``TAG``. ``INTEGER``: the int ``TAG``, of the kind ``LOW``.
    ``NUMBER``: a float of the bits ``TAG``. ``TEXT``: a str equal to ``TAG``. ``NATURAL``: an int
    of the kind ``LOW``. ``FIXED``: an integer from ``LOW`` to ``HIGH``. ``TRUTH``: a bool.
    ``REAL``: a float, stored as 32 bits. ``SINGLE`` and ``DOUBLE``: any number, stored as 32 or 64
    bits. ``TENSOR``: of the DLPack dtype ``TAG``, and of the dtype ``LOW`` unless that is 0.
    ``ARRAY``: of the dtype ``TAG``, with the flags ``LOW``. Addresses have no bit of ``HIGH``.
    """

    MODE, SLOT, TAG, LOW, HIGH, RULES = range(0, 48, 8)
    SIZE = 48
    (
        SAME,
        INTEGER,
        NUMBER,
        TEXT,
        NATURAL,
        FIXED,
        TRUTH,
        REAL,
        SINGLE,
        DOUBLE,
        TENSOR,
        ARRAY,
    ) = range(12)
    BY_16, MULTIPLE, NOT_ONE, UNSIGNED = 1, 2, 4, 8
    """Rules: whether it is a multiple of 16 matters; it must be; 1 won't do; uint64 will."""


class Fact:
    """What an argument is: ``VALUE`` is a number's bits or an array's address.

    ``TAG`` is the DLPack dtype of a tensor and, from the bit ``PLACE`` on, the place of its memory:
    0 on the CPU, one more than the number of the device on a GPU. Of an array it is the dtype
    object. The bytes of the storage that an array is a view of are those from ``FIRST`` to ``END``;
    both are 0 where they aren't known.
    """

    KIND, VALUE, TAG, OBJECT, FIRST, END = range(0, 48, 8)
    SIZE = 48
    PLACE = 32
    OTHER, INT32, INT64, UINT64, BOOL, FLOAT, NONE, TENSOR, ARRAY = range(9)


class Call:
    """One launch from Python on the stack; ``FACTS`` is room for a ``Fact`` of each argument.

    ``FALLBACK(FALLBACK_GRID, args, keywords)`` launches by Python where the driver refuses.
    """

    KERNEL, PROCESS, GRID, ARGUMENTS, POSITIONAL, NAMES, KEYWORDS, COUNT = range(0, 64, 8)
    ENTRY, RECORD, PROGRAMS, FALLBACK, FALLBACK_GRID = range(64, 104, 8)
    EXTENTS, FACTS = 104, 128
    SIZE = FACTS + Entry.MOST_ARGUMENTS * Fact.SIZE


class Guard:
    """Something that a compilation has read: ``OWNER``'s ``NAME`` was ``VALUE`` (null: nothing)."""

    KIND, OWNER, NAME, VALUE = range(0, 32, 8)
    SIZE = 32
    ITEM, CELL, ATTRIBUTE = range(3)


class Parameter:
    """A parameter by ``NAME``: the argument of a number, or ``VALUE`` where that is -1."""

    NAME, ARGUMENT, VALUE = range(0, 24, 8)
    SIZE = 24


class Array:
    """NumPy's array, as its C interface has it."""

    DATA, DIMENSIONS, SHAPE, STRIDES, BASE, DTYPE, FLAGS = 16, 24, 32, 40, 48, 56, 64
    WRITEABLE = 0x400


class DLTensor:
    """DLPack's description of an array."""

    DATA, DEVICE, DIMENSIONS, DTYPE, SHAPE, STRIDES, BYTE_OFFSET = 0, 8, 16, 20, 24, 32, 40
    SIZE = 48
    CPU, CUDA = 1, 2
    EXCHANGE, WORK_STREAM = 40, 48
    """Where the functions that fill one, and that give the current stream of a device, stand in the
    table of functions."""


class OnDevice:
    """One version of a kernel's code on a GPU: the driver's function, and what a block takes.

    ``THREADS`` of a block, bytes of ``SHARED`` memory, the kernel's ``NUMBER`` in ``Recent``.
    """

    FUNCTION, THREADS, SHARED, NUMBER = range(0, 32, 8)
    SIZE = LINE


class Recent:
    """The last launches on GPUs: how many there were, and the numbers of the last ``MOST`` ones.

    The number of launch ``n`` stands at ``n % MOST``.
    """

    COUNT, NUMBERS = 0, 8
    MOST = 16
    SIZE = 8 + 16 * 8


TYPE = 8
"""Where an object's type stands."""
