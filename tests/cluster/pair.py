"""Two PostgreSQL servers, of which the second follows the first and takes its place when that one dies.

What a manager of replication (patroni, repmgr) does at a site is done here by hand: replication is synchronous while
there are two, the second is promoted, and one address leads to the server that writes.
"""
import contextlib, os, shutil, signal, subprocess, time

from harness import PORT, SERVER, check, run, wait_for

PORTS = PORT + 1, PORT + 2


class Pair:
    """The server of a cluster and a second one, until the end of the block. Then there is one again, as before."""

    def __init__(self, cluster):
        self.database, self.link_program = cluster.database, cluster.link_program
        self.entrance = self.second = None

    def __enter__(self):
        self.move(PORTS[0])
        self.enter()
        try:
            self.follow()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.second:
            self.second.send_signal(signal.SIGQUIT)
            self.second.wait()
        self.leave()
        self.replicate("")
        self.move(PORT)

    def move(self, port):
        self.database.stop("fast")
        self.database.port = port
        self.database.start()

    def enter(self):
        """Has the address of the server lead to the one that writes."""
        command = [self.link_program, SERVER, str(PORT), SERVER, str(self.database.port)]
        self.entrance = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        wait_for("the way to the server", self.is_open)

    def is_open(self):
        check(self.entrance.poll() is None, "the way to the server has ended")
        with contextlib.suppress(OSError, ConnectionError):
            self.database.ask((SERVER, PORT))
            return True

    def leave(self):
        self.entrance.kill()
        self.entrance.wait()

    def replicate(self, names):
        """Commits wait for the servers of these names."""
        with open(f"{self.database.data}/{self.database.MORE_SETTINGS}", "w") as settings:
            settings.write(f"synchronous_standby_names = '{names}'\n")
        self.database.sql("postgres", "SELECT pg_reload_conf()")

    def follow(self):
        """Copies the server that writes, and has the copy follow it."""
        port = next(port for port in PORTS if port != self.database.port)
        data = os.path.join(self.database.base, f"data{port}")
        if self.second:
            self.second.wait()
        shutil.rmtree(data, ignore_errors=True)
        run(*self.database.as_user, f"{self.database.programs}/pg_basebackup", *self.database.at(),
            "-U", "postgres", "-D", data, "-R", "-X", "stream", "-c", "fast", cwd="/")
        self.second, self.second_at = self.database.started(data, port), (data, port)
        self.replicate("*")
        state = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_for("the second server follows", lambda: self.database.sql("postgres", state) == "1")

    def fail_over(self):
        """The server that writes dies, and the other one takes its place. Returns when it died and when that is done."""
        begun, dead = time.monotonic(), self.database.process
        self.database.stop("immediate")
        self.leave()
        self.database.process, (self.database.data, self.database.port) = self.second, self.second_at
        self.second = dead
        run(*self.database.as_user, f"{self.database.programs}/pg_ctl", "promote", "-s", "-w", "-D", self.database.data,
            cwd="/")
        # It is alone now.
        self.replicate("")
        self.enter()
        return begun, time.monotonic()
