"""What processes on a host do for the trials: work.py WHAT ARGUMENTS.

Each part writes what it saw and checks nothing: that is for the trials. Times are of CLOCK_MONOTONIC in nanoseconds,
which all hosts of this machine share, so that they can be compared between hosts.
"""
import errno, json, mmap, os, random, statistics, subprocess, sys, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import Client

now = time.monotonic_ns


def until_input_ends(parts, work, seconds=None):
    """Runs work(part, is_over) in so many processes until the input of this one ends, or so many seconds."""
    flag = mmap.mmap(-1, 1)
    deadline = now() + int(seconds * 1e9) if seconds else None
    children = []
    for part in range(parts):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work(part, lambda: flag[0] or deadline and now() > deadline)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    if not seconds:
        sys.stdin.read()
        flag[0] = 1
    failed = [child for child in children if os.waitpid(child, 0)[1]]
    if failed:
        sys.exit(f"{len(failed)} of {parts} processes failed")


def name_of(error):
    return errno.errorcode.get(error.errno, str(error.errno))


def mint(mount, prefix, processes, seconds, log, names="later"):
    """Mints in .mint. Each line of LOG-PART: begun, ended, seconds since 1970, label, and the item's name, `-` if it
    could not be learnt, or `!ERROR` if it was not minted. With `now` a name is learnt after each mint, in the time that
    is measured; else after all of them."""
    mint_directory = os.path.join(mount, ".mint")

    def named(label):
        try:
            return os.readlink(f"{mint_directory}/.{label}").removeprefix("../")
        except OSError:
            return "-"

    def work(part, is_over):
        lines, number = [], 0
        while not is_over():
            label = f"{prefix}-{part}-{number}"
            number += 1
            begun = now()
            try:
                os.mkdir(f"{mint_directory}/{label}")
            except OSError as error:
                lines.append([begun, now(), time.time_ns(), label, "!" + name_of(error)])
                # Not to take the processors from what is being repaired.
                time.sleep(0.005)
                continue
            ended, wall = now(), time.time_ns()
            lines.append([begun, ended, wall, label, named(label) if names == "now" else None])
        with open(f"{log}-{part}", "w") as file:
            for line in lines:
                line[4] = line[4] or named(line[3])
                print(*line, file=file)

    until_input_ends(int(processes), work, float(seconds))


def mint_together(mount, ibifs, count, processes, seconds, log):
    """Mints by a command that mints so many items, again and again. The lines of LOG-PART are those of `mint`."""
    def work(part, is_over):
        lines = []
        while not is_over():
            begun = now()
            done = subprocess.run([ibifs, "mint", mount, "--count", count], stdout=subprocess.PIPE, text=True)
            ended, wall = now(), time.time_ns()
            if done.returncode:
                lines.append([begun, ended, wall, "-", f"!{done.returncode}"])
            # Of each item the rep, which has four parts, and the IBIp.
            lines += [[begun, ended, wall, "-", name] for name in done.stdout.split() if name.count("/") > 2]
        with open(f"{log}-{part}", "w") as file:
            for line in lines:
                print(*line, file=file)

    until_input_ends(int(processes), work, float(seconds))


def exist(mount, names):
    """Prints the names that do not lead to a directory with a sidecar."""
    with open(names) as file:
        for name in file.read().split("\n"):
            if name and not os.path.isfile(f"{mount}/{name}/.ibi"):
                print(name)


def ask(address, port, times):
    """Prints how many seconds an empty statement takes, the fastest tenth: without what else the machine does."""
    client = Client((address, int(port)), "postgres")
    took = []
    for _ in range(int(times)):
        begun = now()
        client.query(";")
        took.append(now() - begun)
    print(sorted(took)[len(took) // 10] / 1e9)


def insert(address, port, database, name, processes, log):
    """What minting does in the database, without ibifs: the stand-in by which the harness itself is tried. Each line
    of LOG-PART: begun, ended, number, or `!` where it failed."""
    def work(part, is_over):
        client = None
        with open(f"{log}-{part}", "w") as file:
            while not is_over():
                begun = now()
                try:
                    client = client or Client((address, int(port)), database, timeout=2)
                    number = client.query("WITH granted AS (UPDATE ledger SET last = last + 1 RETURNING last) "
                                          f"INSERT INTO item SELECT last, '{name}' FROM granted RETURNING number")[0][0]
                except (OSError, ConnectionError):
                    client, number = None, "!"
                    time.sleep(0.005)
                print(begun, now(), number, file=file, flush=True)

    until_input_ends(int(processes), work)


def content(seed, path, number):
    """What the file holds after this change: its length differs from that before."""
    source = random.Random(f"{seed} {path} {number}")
    return f"{number} ".encode() + source.randbytes(source.choice((0, 1, 100, 4096, 5000, 70_000)))


def write(mount, path, seed):
    """Changes a file as it is told: for each number of the input, writes its content, closes, and says so."""
    file_name = os.path.join(mount, path)
    for line in iter(sys.stdin.readline, ""):
        number = int(line)
        # Writing over what is there, or making it longer: neither is a new name.
        with open(file_name, "r+b" if number % 3 else "wb") as file:
            file.write(content(seed, path, number))
            file.truncate()
        print(number, flush=True)


def read(mount, path, seed):
    """Opens the file as it is told, and says whether it has the content of this number, its size, and what it has."""
    file_name = os.path.join(mount, path)
    for line in iter(sys.stdin.readline, ""):
        expected = content(seed, path, int(line))
        with open(file_name, "rb") as file:
            size, found = os.fstat(file.fileno()).st_size, file.read()
        is_new = found == expected and size == len(expected)
        print("new" if is_new else f"size {size}, {len(found)} bytes, {found[:12]!r} instead of {len(expected)}", flush=True)


def appear(directory):
    """For each name of the input, waits until it is seen in a directory, and prints when that was. It is looked for
    before it is made, so that the kernel knows that it was not there."""
    for line in iter(sys.stdin.readline, ""):
        name = os.path.join(directory, line.strip())
        is_known = os.path.lexists(name)
        print("known" if is_known else "looking", flush=True)
        limit = now() + int(10e9)
        while not os.path.lexists(name) and now() < limit:
            time.sleep(0.001)
        print(now() if os.path.lexists(name) else "never", flush=True)


def relate(mount, items, seed, part):
    """Declares and removes relations among the same items, in an order of its own, until the input ends. Prints what
    came of it."""
    items, random_source = json.loads(items), random.Random(f"{seed} {part}")
    came, is_over = {}, threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), is_over.set()), daemon=True).start()

    def link(item, sign, target):
        # As `ln -sfn` does it.
        staged = f"{mount}/{os.path.dirname(item)}/Cu" + "".join(random_source.choices("abcdefgh0123", k=6))
        os.symlink(f"{mount}/{target}", staged)
        try:
            os.rename(staged, f"{mount}/{item}{sign}")
        except OSError:
            os.unlink(staged)
            raise

    while not is_over.is_set():
        item, target = random_source.sample(items, 2)
        language = random_source.choice(("pt", "es", "fr"))
        kind, act = random_source.choice((
            ("next edition by ln", lambda: link(item, "!", target)),
            ("next edition by setfattr", lambda: os.setxattr(f"{mount}/{item}", "user.ibi.nextedition", target.encode())),
            ("translation by ln", lambda: link(item, f"+({language})", target)),
            ("translation by mkdir", lambda: os.mkdir(f"{mount}/{item}+({language})")),
            ("next edition removed", lambda: os.removexattr(f"{mount}/{item}", "user.ibi.nextedition")),
        ))
        try:
            act()
            result = "done"
        except OSError as error:
            result = name_of(error)
        results = came.setdefault(kind, {})
        results[result] = results.get(result, 0) + 1
    print(json.dumps(came))


def measure(seconds, act):
    """How often something is done in a second, and how many seconds it takes at the longest."""
    done, longest, deadline = 0, 0, now() + int(seconds * 1e9)
    begun = now()
    while (at := now()) < deadline:
        act(done)
        done, longest = done + 1, max(longest, now() - at)
    return done / ((now() - begun) / 1e9), longest / 1e9


def reading(mount, items, seconds):
    """Reads files of items under their reps. Prints a JSON list: reads a second, and the longest in seconds."""
    items = json.loads(items)

    def act(number):
        with open(f"{mount}/{items[number % len(items)]['rep']}/doc/report", "rb") as file:
            if not file.read():
                raise OSError("an empty file")

    print(json.dumps(measure(float(seconds), act)))


def away(mount, items, prefix):
    """Does everything that a user may do, each in a thread, again and again until the input ends. Prints for each what
    came of it, how often, and the longest in seconds; what has not ended counts as lasting still."""
    items, is_over, results = json.loads(items), threading.Event(), {}

    def text(number):
        return f"{mount}/{items[number % len(items)]['rep']}"

    def write_text(number):
        with open(f"{text(number)}/doc/written-{prefix}", "w") as file:
            file.write(str(number))

    def read_text(number):
        with open(f"{text(number)}/doc/report") as file:
            file.read()

    acts = {
        "stat of a rep": lambda number: os.stat(text(number)),
        "read below a rep": read_text,
        "write below a rep": write_text,
        "list an item": lambda number: os.listdir(f"{text(number)}/doc"),
        "list a year": lambda number: os.listdir(os.path.dirname(text(number))),
        "stat of an IBIp": lambda number: os.stat(f"{mount}/{items[number % len(items)]['ibip']}"),
        "last edition": lambda number: os.readlink(f"{text(number)}!"),
        "metadata in XML": lambda number: os.stat(f"{text(number)}:(oai_dc)"),
        "a name that nobody has": lambda number: os.stat(f"{text(number)}.59.999"),
        "mint": lambda number: os.mkdir(f"{mount}/.mint/{prefix}-{number}"),
        "declare": lambda number: os.setxattr(text(number), "user.ibi.language", b"en"),
    }

    def repeat(what, act):
        result = results[what] = {"came": {}, "longest": 0, "since": None}
        number = 0
        while not is_over.is_set():
            result["since"] = now()
            try:
                act(number)
                came = "done"
            except OSError as error:
                came = name_of(error)
            took, result["since"] = (now() - result["since"]) / 1e9, None
            result["longest"] = max(result["longest"], took)
            result["came"][came] = result["came"].get(came, 0) + 1
            number += 1
            time.sleep(0.02)

    threads = [threading.Thread(target=repeat, args=act, daemon=True) for act in acts.items()]
    for thread in threads:
        thread.start()
    sys.stdin.read()
    ended = now()
    is_over.set()
    for thread in threads:
        thread.join(max(0.1, 5 - (now() - ended) / 1e9))
    for result in results.values():
        since = result.pop("since")
        if since is not None:
            result["longest"] = max(result["longest"], (now() - since) / 1e9)
            result["came"]["has not ended"] = 1
    print(json.dumps(results), flush=True)
    os._exit(0)


def lookup(mount, paths):
    """Prints the median microseconds of an lstat of each of many paths, none of which is asked twice."""
    took = []
    with open(paths) as file:
        for path in file.read().split("\n"):
            if path:
                begun = now()
                os.lstat(f"{mount}/{path}")
                took.append(now() - begun)
    print(statistics.median(took) / 1e3)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
