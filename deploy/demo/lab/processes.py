"""Which processes belong to a run, and how to end every one of them.

Kernels, single-user servers and services are sessions of their own, so neither a process group nor a terminal holds
them together. Instead every process of a run inherits a mark in its environment.
"""

import psutil

MARK = "LAB_RUN"


def of_run(mark):
    """All living processes that carry the mark."""
    return [process for process in psutil.process_iter() if _mark_of(process) == mark and is_alive(process)]


def is_alive(process):
    """Whether it runs: one that ended but was not yet reaped by its parent does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def family(process):
    """The process and all below it."""
    return [process, *process.children(recursive=True)]


def describe(process):
    """One line about it for people."""
    try:
        with process.oneshot():
            megabytes = process.memory_info().rss / 2**20
            program = " ".join(word.rpartition("/")[2] for word in process.cmdline())
            return f"{process.pid:>7} {process.ppid():>7} {megabytes:>5.0f} MB  {program[:90]}"
    except psutil.NoSuchProcess:
        return f"{process.pid:>7} just ended"


def end_all(mark, patience=5.0):
    """Ends all processes with the mark, kindly first; returns those that are still there."""
    for end in (psutil.Process.terminate, psutil.Process.kill):
        left = of_run(mark)
        for process in left:
            try:
                end(process)
            except psutil.NoSuchProcess:
                pass
        if left:
            psutil.wait_procs(left, timeout=patience)
    return of_run(mark)


def _mark_of(process):
    try:
        return process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None
