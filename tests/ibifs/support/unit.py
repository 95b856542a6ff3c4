"""Runs a command with what a unit of systemd leaves a service of root's powers: no new privileges, the
bounding set and the system call filter, applied by setpriv and libseccomp. systemd is not asked to run
anything.

usage: unit.py UNIT COMMAND..."""

import ctypes
import os
import subprocess
import sys

SCMP_ACT_ALLOW = 0x7FFF0000
SCMP_ACT_ERRNO_EPERM = 0x00050000 | 1


def lists(unit, name):
    with open(unit) as file:
        lines = [line.strip() for line in file if line.startswith(name + "=")]
    return [line.split("=", 1)[1] for line in lines]


def calls_of(word):
    if not word.startswith("@"):
        return {word}
    told = subprocess.run(["systemd-analyze", "syscall-filter", word], capture_output=True, text=True, check=True)
    words = [line.strip() for line in told.stdout.splitlines()[1:]]
    return set().union(*(calls_of(word) for word in words if word and not word.startswith("#")))


def allowed(unit):
    calls = calls_of("@default")
    for line in lists(unit, "SystemCallFilter"):
        words = set().union(*(calls_of(word) for word in line.lstrip("~").split()))
        calls = calls - words if line.startswith("~") else calls | words
    return calls


def restrict(unit):
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add.argtypes = [ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint]
    library.seccomp_load.argtypes = [ctypes.c_void_p]
    filter = library.seccomp_init(SCMP_ACT_ERRNO_EPERM)
    for call in allowed(unit):
        number = library.seccomp_syscall_resolve_name(call.encode())
        # Those of other architectures are below zero.
        if number >= 0 and library.seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0) != 0:
            sys.exit(f"unit.py: {call} cannot be allowed")
    if library.seccomp_load(filter) != 0:
        sys.exit("unit.py: the filter cannot be loaded")


if __name__ == "__main__":
    unit, command = sys.argv[1], sys.argv[2:]
    if os.environ.get("IBIFS_UNIT_RESTRICTED") != unit:
        capabilities = ["-all"]
        for line in lists(unit, "CapabilityBoundingSet"):
            capabilities += [f"+{word.removeprefix('CAP_').lower()}" for word in line.split()]
        assert lists(unit, "NoNewPrivileges") == ["yes"], unit
        environment = dict(os.environ, IBIFS_UNIT_RESTRICTED=unit)
        sets = ",".join(capabilities)
        os.execvpe(
            "setpriv",
            ["setpriv", "--no-new-privs", f"--bounding-set={sets}", "--inh-caps=-all", sys.executable, *sys.argv],
            environment,
        )
    del os.environ["IBIFS_UNIT_RESTRICTED"]
    restrict(unit)
    os.execvp(command[0], command)
