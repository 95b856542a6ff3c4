"""What the trials run on: hosts that are namespaces of this machine, a PostgreSQL server, and links between them.

Each host has its own mounts, name, processes and network, and sees the one store. A network of its own leads from it
to the server, by way of a link (link.c) that has the delay and is cut. It does not know what the trials are.
"""
import contextlib, glob, json, os, pwd, shutil, signal, socket, struct, subprocess, time

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER, PORT, USER = "10.77.0.1", 5432, "ibifs"
LIMIT = 60  # seconds after which what should have begun has failed


class Failed(Exception):
    """A promise that is not kept."""


def check(is_kept, complaint):
    if not is_kept:
        raise Failed(complaint)


def run(*command, **options):
    """Runs what must succeed, and returns what it prints."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    check(done.returncode == 0, f"{' '.join(map(str, command))}: {done.returncode} {done.stderr.strip()}")
    return done.stdout.strip()


def wait_for(what, is_so, seconds=LIMIT):
    """Waits until something is so, and returns how long that took."""
    begun = time.monotonic()
    while not is_so():
        check(time.monotonic() - begun < seconds, f"not within {seconds} s: {what}")
        time.sleep(0.01)
    return time.monotonic() - begun


def child_of(process):
    """The one process that a process has started: what `unshare` and `nsenter` run."""
    found = []

    def is_there():
        check(process.poll() is None, f"{process.args} has ended")
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as children:
            found[:] = children.read().split()
        return found

    wait_for(f"a process of {process.args}", is_there)
    return int(found[0])


class Client:
    """A connection to PostgreSQL, no more than the trials need: simple queries, for who needs no password."""

    def __init__(self, address, database, user=USER, timeout=None):
        self.socket = socket.create_connection(address, timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.reader = self.socket.makefile("rb")
        said = f"user\0{user}\0database\0{database}\0\0".encode()
        self.socket.sendall(struct.pack("!II", len(said) + 8, 3 << 16) + said)
        self.answer()

    def answer(self):
        rows, error = [], None
        while True:
            head = self.reader.read(5)
            if len(head) < 5:
                raise ConnectionError(error or "closed")
            kind, length = head[:1], struct.unpack("!I", head[1:])[0]
            body = self.reader.read(length - 4)
            if kind == b"D":
                rows.append(body)
            elif kind == b"E":
                error = body.replace(b"\0", b" ").decode()
            elif kind == b"Z":
                if error:
                    raise ConnectionError(error)
                return [self.columns(row) for row in rows]

    @staticmethod
    def columns(row):
        found, at = [], 2
        for _ in range(struct.unpack("!H", row[:2])[0]):
            length = struct.unpack("!i", row[at:at + 4])[0]
            found.append(None if length < 0 else row[at + 4:at + 4 + length].decode())
            at += 4 + max(length, 0)
        return found

    def query(self, text):
        said = text.encode() + b"\0"
        self.socket.sendall(b"Q" + struct.pack("!I", len(said) + 4) + said)
        return self.answer()

    def close(self):
        self.reader.close()
        self.socket.close()


class Database:
    """A PostgreSQL server with fsync, as Debian sets it up, for everyone in the network of the hosts."""

    MORE_SETTINGS = "more.conf"  # in the directory of its data; what a trial changes

    def __init__(self, base):
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
        initdb = found[-1] if found else shutil.which("initdb")
        check(initdb, "initdb is neither below /usr/lib/postgresql nor in PATH; install postgresql")
        self.programs, self.base = os.path.dirname(os.path.realpath(initdb)), os.path.join(base, "postgres")
        self.data, self.port, self.process, self.made = os.path.join(self.base, "data"), PORT, None, 0
        names = [user.pw_name for user in pwd.getpwall()]
        self.user = pwd.getpwnam("postgres" if "postgres" in names else "nobody")
        os.mkdir(self.base)
        os.chown(self.base, self.user.pw_uid, self.user.pw_gid)
        # It refuses root.
        self.as_user = ["setpriv", "--reuid", str(self.user.pw_uid), "--regid", str(self.user.pw_gid), "--clear-groups"]
        run(*self.as_user, f"{self.programs}/initdb", "--locale=C", "--encoding=UTF8", "--auth=trust",
            "--username=postgres", "-D", self.data, cwd="/")
        with open(f"{self.data}/postgresql.conf", "a") as settings:
            settings.write(f"listen_addresses = '{SERVER}'\nmax_connections = 400\nfsync = on\ndynamic_shared_memory_type = mmap\n"
                           # Otherwise a standby whose server has died sleeps for up to five seconds before it is promoted.
                           "wal_retrieve_retry_interval = '100ms'\n"
                           f"unix_socket_directories = '{self.base}'\ninclude_if_exists = '{self.MORE_SETTINGS}'\n")
        with open(f"{self.data}/pg_hba.conf", "a") as rules:
            rules.write("host all all 10.77.0.0/24 trust\n")
        self.start()
        self.sql("postgres", f"CREATE ROLE {USER} LOGIN")

    def started(self, data, port):
        """The process of a server, which may not answer yet."""
        with open(f"{self.base}/log", "ab") as log:
            return subprocess.Popen([*self.as_user, f"{self.programs}/postgres", "-D", data, "-p", str(port)], cwd="/",
                                    stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start(self):
        self.process = self.started(self.data, self.port)
        wait_for("PostgreSQL answers", self.answers)

    def answers(self):
        check(self.process.poll() is None, f"PostgreSQL has ended, see {self.base}/log")
        with contextlib.suppress(OSError, ConnectionError):
            self.ask((SERVER, self.port))
            return True

    def ask(self, address):
        """Fails if it does not answer at an address."""
        Client(address, "postgres", "postgres", timeout=1).close()

    def stop(self, how):
        self.process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[how])
        self.process.wait()

    def restart(self, how):
        """Stops and starts it; returns when it stopped and when it answered again."""
        begun = time.monotonic()
        self.stop(how)
        self.start()
        return begun, time.monotonic()

    def sql(self, database, text):
        return run(f"{self.programs}/psql", "-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", *self.at(),
                   "-U", "postgres", "-d", database, "-c", text)

    def at(self):
        """Where its programs find it."""
        return "-h", self.base, "-p", str(self.port)

    def create(self, name=None):
        """Makes an empty database and returns its name."""
        self.made += name is None
        name = name or f"archive_{self.made}"
        self.sql("postgres", f"CREATE DATABASE {name} OWNER {USER} TEMPLATE template0")
        return name

    def dump(self, database):
        return run(f"{self.programs}/pg_dump", *self.at(), "-U", USER, database)

    def restore(self, database, dump):
        """Puts a dump in the place of what a database holds, at once. Connections to it are closed."""
        self.sql("postgres", f"DROP DATABASE {database} WITH (FORCE)")
        self.create(database)
        run(f"{self.programs}/psql", "-X", "-q", "-1", "-v", "ON_ERROR_STOP=1", "-o", "/dev/null", *self.at(),
            "-U", USER, "-d", database, input=dump)


class Host:
    """A host: a process that keeps its namespaces, and the link to the server. Its number is 1 or more."""

    def __init__(self, cluster, number):
        self.cluster, self.number, self.name = cluster, number, f"host{number}"
        self.directory = os.path.join(cluster.base, self.name)
        self.mount_point, self.daemon = os.path.join(self.directory, "mnt"), None
        os.makedirs(self.mount_point)
        self.keeper = subprocess.Popen(
            ["unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--kill-child", "--mount-proc",
             "--propagation", "private", "sh", "-c", "while :; do sleep 1000; done"])
        self.process = child_of(self.keeper)
        # Its child runs before its namespaces are those of the host, and /proc is mounted last.
        wait_for("a host's processes", lambda: self.sees("/proc/1/comm", "sh\n"))
        self.run("hostname", self.name)
        if os.path.exists("/etc/machine-id"):
            identity = os.path.join(self.directory, "machine-id")
            with open(identity, "w") as file:
                file.write(os.urandom(16).hex() + "\n")
            self.run("mount", "--bind", identity, "/etc/machine-id")
        inner, outer = f"inner{number}", f"outer{number}"
        run("ip", "link", "add", outer, "type", "veth", "peer", "name", inner)
        run("ip", "link", "set", inner, "netns", str(self.process))
        run("ip", "link", "set", outer, "master", "bridge", "up")
        for command in (f"addr add 10.77.0.{10 + number}/24 dev {inner}", f"link set {inner} up", "link set lo up"):
            self.run("ip", *command.split())
        # Of the host's network, but none of its processes: it is what lies between the host and the server.
        link = [cluster.link_program, "127.0.0.1", str(PORT), SERVER, str(PORT)]
        self.link = subprocess.Popen(["nsenter", "-t", str(self.process), "--net", *link], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)

    def sees(self, path, text):
        with contextlib.suppress(OSError):
            with open(f"/proc/{self.process}/root{path}") as file:
                return file.read() == text

    def order(self, text):
        """Has the link do something: `delay N`, `freeze`, `cut` or `mend`."""
        self.link.stdin.write(text + "\n")
        self.link.stdin.flush()
        check(self.link.stdout.readline() == "ok\n", f"the link of {self.name} has ended")

    def command(self, *command):
        return ["nsenter", "-t", str(self.process), "--mount", "--uts", "--net", "--pid", *map(str, command)]

    def run(self, *command, **options):
        return run(*self.command(*command), **options)

    def start(self, *command, **options):
        """Starts a program; its own process is the child of what is returned."""
        return subprocess.Popen(self.command(*command), **options)

    def work(self, *arguments, **options):
        """Starts a part of work.py, which ends when its input does."""
        return self.start("python3", "-B", f"{HERE}/work.py", *arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True, **options)

    def path(self, path):
        """A path that the host sees, as the harness reaches it."""
        return f"/proc/{self.process}/root{path}"

    def is_mounted(self):
        with contextlib.suppress(OSError):
            # Only the daemon answers this: the kernel may know the attributes of a tree whose daemon is gone.
            os.statvfs(self.path(self.mount_point))
            own, above = os.stat(self.path(self.mount_point)), os.stat(self.path(self.directory))
            return own.st_dev != above.st_dev

    def mount(self, archive):
        log = open(os.path.join(self.directory, "log"), "ab")
        options = ["-o", "shared"] if archive.is_shared and len(archive.hosts) > 1 else []
        self.daemon = self.start(self.cluster.ibifs, "mount", "-f", *options, archive.store, self.mount_point,
                                 stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        log.close()

        def is_there():
            check(self.daemon.poll() is None, f"ibifs mount on {self.name} has ended: {self.log()}")
            return self.is_mounted()

        return wait_for(f"a mount on {self.name}", is_there)

    def signal(self, number):
        """Sends the daemon a signal. nsenter(1) stops with its child, and goes on first."""
        daemon = child_of(self.daemon)
        if number == signal.SIGCONT:
            os.kill(self.daemon.pid, number)
        os.kill(daemon, number)

    def kill(self):
        """Kills the daemon, which does no more."""
        os.kill(child_of(self.daemon), signal.SIGKILL)
        self.daemon.wait()
        self.daemon = None

    def unmount(self):
        if self.daemon is None:
            # What a daemon that was killed has left.
            subprocess.run(self.command("umount", "-l", self.mount_point), stderr=subprocess.DEVNULL)
            return
        os.kill(child_of(self.daemon), signal.SIGTERM)
        try:
            self.daemon.wait(LIMIT)
        except subprocess.TimeoutExpired:
            raise Failed(f"the daemon of {self.name} does not end within {LIMIT} s of SIGTERM") from None
        self.daemon = None

    def memory(self):
        """The memory of the daemon in MiB: now, and at most so far."""
        with open(f"/proc/{child_of(self.daemon)}/status") as file:
            found = dict(line.split(":", 1) for line in file)
        return tuple(int(found[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))

    def forget_log(self):
        with contextlib.suppress(OSError):
            os.truncate(os.path.join(self.directory, "log"), 0)

    def log(self):
        with contextlib.suppress(OSError):
            with open(os.path.join(self.directory, "log"), errors="replace") as file:
                return "".join(file.readlines()[-15:]).strip()
        return ""


class Archive:
    """An Archive on some of the hosts, in a store and a database of its own."""

    def __init__(self, cluster, hosts, granularity="1/10000"):
        cluster.archives += 1
        store = os.path.join(cluster.tree, f"store{cluster.archives}")
        self.use(cluster, hosts, store, cluster.index == "postgres")
        index = ["--index", self.url()] if self.is_shared else []
        self.ibifs("init", self.store, "--host", "archive.example.org", "--granularity", granularity, *index)

    @classmethod
    def of(cls, cluster, store, is_shared):
        """One that has been made, on one host, with an empty database if it is shared."""
        archive = cls.__new__(cls)
        archive.use(cluster, 1, store, is_shared)
        return archive

    def use(self, cluster, hosts, store, is_shared):
        self.cluster, self.hosts, self.store, self.is_shared = cluster, cluster.hosts[:hosts], store, is_shared
        self.database = cluster.database.create() if is_shared else None

    def url(self):
        return f"postgres://{USER}@127.0.0.1:{PORT}/{self.database}"

    def ibifs(self, *arguments, host=0):
        return self.hosts[host].run(self.cluster.ibifs, *arguments)

    def mount(self):
        for host in self.hosts:
            host.mount(self)
        return self

    def unmount(self):
        for host in self.hosts:
            host.unmount()

    def status(self, host=0):
        return json.loads(self.ibifs("status", self.store, "--json", host=host))[0]

    def check_fsck(self):
        """All is well in the store: not even a notice."""
        done = subprocess.run(self.hosts[0].command(self.cluster.ibifs, "fsck", self.store, "--json"),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        check(done.stdout, f"fsck: {done.stderr}")
        findings = json.loads(done.stdout)["findings"]
        said = [f"{finding['code']} {finding['subject']}: {finding['sentence']}" for finding in findings[:10]]
        check(not findings, f"fsck has {len(findings)} findings: " + "; ".join(said))

    def tree(self, host=0):
        """The directory with the items, past every mount of ibifs, as the harness reaches it."""
        return self.hosts[host].path(os.path.join(self.store, "col"))

    def __enter__(self):
        return self.mount()

    def __exit__(self, kind, *_):
        """All daemons end, also those of a trial that has failed."""
        for host in self.hosts:
            host.order("mend")
            try:
                host.unmount()
            except Failed:
                host.kill()
                if kind is None:
                    raise


class Cluster:
    """The hosts, the server and the tree. All of it ends with the process namespace that it is made in."""

    def __init__(self, base, hosts, options):
        self.base, self.ibifs, self.index, self.archives = base, options.ibifs, options.index, 0
        self.tree, self.kind = os.path.join(base, "tree"), options.tree
        os.mkdir(self.tree)
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "bridge", "type", "bridge")
        run("ip", "addr", "add", f"{SERVER}/24", "dev", "bridge")
        run("ip", "link", "set", "bridge", "up")
        self.link_program = os.path.join(base, "link")
        run("cc", "-O2", "-o", self.link_program, f"{HERE}/link.c")
        self.database = Database(base)
        self.hosts = [Host(self, number + 1) for number in range(hosts)]
        getattr(self, f"tree_on_{self.kind}")()
        self.measured = self.calibrate(options.delay)

    def tree_on_ext4(self):
        """All hosts have the directory as it is, on whatever filesystem the temporary directory has."""

    def tree_on_bindfs(self):
        backing = os.path.join(self.base, "backing")
        os.mkdir(backing)
        for host in self.hosts:
            host.run("bindfs", "-o", "dev,suid", backing, self.tree)

    def tree_on_glusterfs(self):
        """One volume with three bricks, each of which has everything. Its own files are not those of the machine."""
        state = os.path.join(self.base, "glusterd")
        for name, place in (("lib", "/var/lib/glusterd"), ("log", "/var/log/glusterfs")):
            os.makedirs(os.path.join(state, name))
            os.makedirs(place, exist_ok=True)
            run("mount", "--bind", os.path.join(state, name), place)
        # The socket by which `gluster` would reach a daemon of the machine is hidden, from the hosts as well.
        for command in [], *(host.command() for host in self.hosts):
            run(*command, "mount", "-t", "tmpfs", "tmpfs", "/run")
        self.glusterd = subprocess.Popen(["glusterd", "--no-daemon", "--log-file", os.path.join(state, "log/glusterd.log")])

        def answers():
            check(self.glusterd.poll() is None, f"glusterd has ended, see {state}/log")
            asked = subprocess.run([*gluster, "info"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            return asked.returncode == 0

        gluster = ["gluster", "--mode=script", "volume"]
        wait_for("glusterd answers", answers)
        bricks = [f"{SERVER}:{self.base}/brick{number}" for number in range(3)]
        run(*gluster, "create", "tree", "replica", "3", *bricks, "force")
        run(*gluster, "start", "tree")
        for host in self.hosts:
            host.run("mount", "-t", "glusterfs", f"{SERVER}:/tree", self.tree)

    def round_trip(self, host):
        """Milliseconds that an empty statement takes from a host."""
        return float(host.work("ask", "127.0.0.1", PORT, 300).communicate(timeout=LIMIT)[0]) * 1000

    def calibrate(self, wanted):
        """Sets the delay of each link so that a round trip takes so many milliseconds longer than without it. Returns
        for each host how long it takes without and with the delay."""
        found = []
        for host in self.hosts:
            bare, one_way, tried = self.round_trip(host), wanted / 2, []
            # Other work of the machine disturbs some of the measurements: the one that fits best holds.
            for _ in range(10 if wanted else 1):
                host.order(f"delay {int(one_way * 1e6)}")
                measured = self.round_trip(host)
                excess = measured - bare - wanted
                tried.append((abs(excess), one_way, measured))
                if abs(excess) < 0.01 + wanted / 100:
                    break
                one_way = max(0, one_way - excess / 2)
            _, one_way, measured = min(tried)
            host.order(f"delay {int(one_way * 1e6)}")
            found.append((bare, measured))
        return found
