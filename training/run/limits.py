"""The limit of open files, which is too low for a network peer on many machines."""

WANTED_FILES = 4096  # the network daemon trims its connections above 512; files, pipes on top


def raise_open_files() -> tuple[int, int] | None:
    """Raise this process' limit of open files to `WANTED_FILES` where the system allows it.

    Processes started later inherit it. Gives the limit before and now, None on a system
    without such limits.
    """
    try:
        import resource
    except ImportError:
        return None
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= WANTED_FILES:
        return _shown(soft), _shown(soft)
    wanted = WANTED_FILES if hard == unlimited else min(WANTED_FILES, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):  # macOS refuses more than kern.maxfilesperproc
        return soft, soft
    return soft, wanted


def _shown(limit: int) -> int:
    """A limit as a number to compare: where there is none, one that is larger than any need."""
    return limit if limit >= 0 else 2**31
