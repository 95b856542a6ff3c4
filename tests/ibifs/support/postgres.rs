//! A private PostgreSQL server in a temporary directory. It ends with the process of the tests, also if that is killed,
//! and leaves nothing behind. It does not know what the databases are for.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use super::free_port;

/// The owner of the databases: a role that may make databases, and nothing more.
const USER: &str = "ibifs";
/// The role that made the server. Only the server's own socket, in a directory of its user, lets this role in.
const ADMINISTRATOR: &str = "postgres";

/// The settings of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setup {
    /// Whether what is committed reaches the disk. Without it a crash of the server still loses nothing, only one of
    /// the machine does.
    pub fsync: bool,
    /// Whether connections over TCP are encrypted, all of them, and need the password.
    pub tls: bool,
}

/// The ways in which a server ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It closes all connections and writes a checkpoint.
    Fast,
    /// It ends at once; the next start recovers from the log, as after a crash.
    Immediate,
}

/// A server. Dropped, it ends.
#[derive(Debug)]
pub struct Postgres {
    directory: PathBuf,
    port: u16,
    setup: Setup,
    password: String,
    keeper: Mutex<Keeper>,
}

/// The shell that makes, starts and stops the server, and ends it and removes its directory once its own input ends,
/// which it does with the process of the tests.
#[derive(Debug)]
struct Keeper {
    shell: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// It ignores the signals that a terminal sends to all. What it starts gets SIGQUIT if the shell itself is killed. A
/// server that is just starting ignores signals, so that they are sent again. What initdb has begun it ends: a server
/// whose files vanish leaves shared memory behind.
const KEEPER: &str = r#"
trap '' HUP INT TERM PIPE
directory=$1 initdb=$2 postgres=$3; shift 3
mkdir -m 700 "$directory" || exit
exec 2>> "$directory/log"
server=
end() {
    [ -z "$server" ] || while kill "-$1" "$server" 2> /dev/null; do sleep 0.02; done
    server=
}
while read -r order; do
    case $order in
        make) "$@" "$initdb" --locale=C --encoding=UTF8 --no-sync --auth=trust --username=postgres -D "$directory/data" >&2 ;;
        start) "$@" "$postgres" -D "$directory/data" >&2 < /dev/null & server=$! ;;
        INT | QUIT) end "$order" ;;
    esac
    echo "$server"
done
end QUIT
rm -rf "$directory"
"#;

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Postgres {
    /// A server without fsync that lets everyone on loopback in.
    #[track_caller]
    pub fn start() -> Postgres {
        Postgres::with(Setup::default())
    }

    /// The same, reached over TLS only and with a password: [`Postgres::authority`] has signed its certificate, for
    /// `localhost` and `127.0.0.1`.
    #[track_caller]
    pub fn start_with_tls() -> Postgres {
        Postgres::with(Setup {
            tls: true,
            ..Setup::default()
        })
    }

    /// The one server of this process, for tests that stop nothing.
    pub fn shared() -> &'static Postgres {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(Postgres::start)
    }

    /// A server that is set up so.
    #[track_caller]
    pub fn with(setup: Setup) -> Postgres {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ibifs-postgres-{}-{number}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let port = free_port();
        let postgres = Postgres {
            keeper: Mutex::new(Keeper::new(&directory)),
            password: random_word(),
            directory,
            port,
            setup,
        };
        // An answer means that the directory is there.
        postgres.order("");
        postgres.make();
        postgres.start_again();
        let role = format!(
            "CREATE ROLE {USER} LOGIN CREATEDB PASSWORD '{}'",
            postgres.password
        );
        postgres.sql("postgres", &role);
        postgres
    }

    /// Makes the server's files, all of its user.
    #[track_caller]
    fn make(&self) {
        let data = self.directory.join("data");
        give(&self.directory);
        self.order("make");
        assert!(data.join("PG_VERSION").exists(), "{}", self.log());
        if self.setup.tls {
            self.certify();
        }
        let (line, method) = if self.setup.tls {
            ("hostssl", "scram-sha-256")
        } else {
            ("host", "trust")
        };
        // The socket is in a directory that only the server's user and root may enter.
        let rules = format!("local all all trust\n{line} all {USER} 127.0.0.1/32 {method}\n");
        std::fs::write(data.join("pg_hba.conf"), rules).expect("rules");
        let is_on = |is_on| if is_on { "on" } else { "off" };
        let below = self.directory.display();
        let settings = [
            format!("port = {}", self.port),
            "listen_addresses = '127.0.0.1'".to_owned(),
            format!("unix_socket_directories = '{below}'"),
            "max_connections = 200".to_owned(),
            // In files of its directory: segments of POSIX outlast a server that is killed.
            "dynamic_shared_memory_type = mmap".to_owned(),
            format!("fsync = {}", is_on(self.setup.fsync)),
            format!("ssl = {}", is_on(self.setup.tls)),
            format!("ssl_cert_file = '{below}/server.pem'"),
            format!("ssl_key_file = '{below}/server.key'"),
            "log_line_prefix = '%m %p %d '\n".to_owned(),
        ];
        let file = data.join("postgresql.conf");
        let file = std::fs::File::options().append(true).open(file);
        file.and_then(|mut file| file.write_all(settings.join("\n").as_bytes()))
            .expect("settings");
    }

    /// An authority, and a certificate that it has signed.
    #[track_caller]
    fn certify(&self) {
        let script = r#"
        cd "$1"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "/CN=Authority of a test" \
            -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout server.key -out server.csr
        echo "subjectAltName=DNS:localhost,IP:127.0.0.1" > server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile server.ext -out server.pem
        chmod 600 server.key"#;
        let mut shell = Command::new("bash");
        shell.args(["-euc", script, "bash"]).arg(&self.directory);
        output(&mut shell);
        give(&self.directory.join("server.key"));
        give(&self.directory.join("server.pem"));
    }

    /// The URL of a database, for who owns it.
    pub fn url(&self, database: &str) -> String {
        let port = self.port;
        if self.setup.tls {
            let password = &self.password;
            format!("postgres://{USER}:{password}@127.0.0.1:{port}/{database}?sslmode=require")
        } else {
            format!("postgres://{USER}@127.0.0.1:{port}/{database}")
        }
    }

    /// The port on 127.0.0.1, for a proxy before it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the authority, in PEM form, of a server with TLS.
    pub fn authority(&self) -> PathBuf {
        self.directory.join("ca.pem")
    }

    /// Returns the log of the server.
    pub fn log(&self) -> String {
        let log = std::fs::read(self.directory.join("log")).unwrap_or_default();
        String::from_utf8_lossy(&log).into_owned()
    }

    /// Makes an empty database of its own for a test, and returns its name.
    #[track_caller]
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.create(&name);
        name
    }

    #[track_caller]
    fn create(&self, database: &str) {
        // A copy of template0, to which no client is connected.
        let create = format!("CREATE DATABASE {database} OWNER {USER} TEMPLATE template0");
        self.sql("postgres", &create);
    }

    /// Runs statements as the administrator, who may all, and returns the rows, a line each, columns divided by `|`.
    #[track_caller]
    pub fn sql(&self, database: &str, text: &str) -> String {
        let mut psql = self.client("psql", ADMINISTRATOR);
        psql.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align"])
            .args(["--set", "ON_ERROR_STOP=1", "--dbname", database]);
        let printed = fed(&mut psql, text.as_bytes());
        let printed = String::from_utf8_lossy(&printed).into_owned();
        printed.strip_suffix('\n').unwrap_or(&printed).to_owned()
    }

    /// Everything that a database holds, as SQL.
    #[track_caller]
    pub fn dump(&self, database: &str) -> Vec<u8> {
        let mut dump = self.client("pg_dump", USER);
        output(dump.args(["--dbname", database])).stdout
    }

    /// Puts a dump in the place of what a database holds. Connections to it are closed.
    #[track_caller]
    pub fn restore(&self, database: &str, dump: &[u8]) {
        let drop = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
        self.sql("postgres", &drop);
        self.create(database);
        let mut psql = self.client("psql", USER);
        psql.args(["--no-psqlrc", "--quiet", "--output", "/dev/null"])
            .args(["--set", "ON_ERROR_STOP=1", "--dbname", database]);
        fed(&mut psql, dump);
    }

    /// A program that connects by the socket, as this role.
    fn client(&self, name: &str, role: &str) -> Command {
        let mut command = Command::new(program(name));
        command
            .arg("--host")
            .arg(&self.directory)
            .args(["--port", &self.port.to_string(), "--username", role])
            .env("LC_ALL", "C.UTF-8")
            .env_remove("PGOPTIONS");
        command
    }

    /// Ends the server; its data stay.
    #[track_caller]
    pub fn stop(&self, how: Stop) {
        let signal = match how {
            Stop::Fast => "INT",
            Stop::Immediate => "QUIT",
        };
        self.order(signal);
    }

    /// Starts it after [`Postgres::stop`], at the same port, and returns when it answers.
    #[track_caller]
    pub fn start_again(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let process = self.order("start");
            let is_ready = loop {
                let written = std::fs::read_to_string(self.directory.join("data/postmaster.pid"));
                // The file of a server that crashed has another process in its first line.
                let lines: Vec<_> = written.iter().flat_map(|text| text.lines()).collect();
                let is_own = lines.first().is_some_and(|first| *first == process);
                if is_own && lines.get(7).is_some_and(|state| state.trim() == "ready") {
                    break true;
                }
                let state = std::fs::read_to_string(format!("/proc/{process}/stat"));
                if state.map_or(true, |state| state.contains(") Z ")) {
                    break false;
                }
                assert!(Instant::now() < deadline, "{}", self.log());
                std::thread::sleep(Duration::from_millis(5));
            };
            if is_ready {
                return;
            }
            // Another test may have the port for a moment.
            assert!(Instant::now() < deadline, "{}", self.log());
            self.order("INT");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    /// Has the keeper do something, and returns the number of the server's process, empty if there is none.
    #[track_caller]
    fn order(&self, order: &str) -> String {
        let mut keeper = self.keeper.lock().unwrap_or_else(PoisonError::into_inner);
        let orders = keeper.orders.as_mut().expect("a keeper");
        writeln!(orders, "{order}").expect("a keeper");
        let mut answer = String::new();
        keeper.answers.read_line(&mut answer).expect("an answer");
        answer.trim().to_owned()
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("log of the server:\n{}", self.log());
        }
        let keeper = self.keeper.get_mut();
        let keeper = keeper.unwrap_or_else(PoisonError::into_inner);
        drop(keeper.orders.take());
        let _ = keeper.shell.wait();
    }
}

impl Keeper {
    fn new(directory: &Path) -> Keeper {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", KEEPER, "ibifs-postgres"])
            .arg(directory)
            .args([program("initdb"), program("postgres")])
            .args(["setpriv", "--pdeathsig", "QUIT"]);
        // PostgreSQL does not run for root.
        if let Some((user, group)) = server_user() {
            shell.args(["--reuid", &user.to_string()]);
            shell.args(["--regid", &group.to_string(), "--clear-groups"]);
        }
        shell
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A signal that a terminal sends to a group must not end it before the tests.
            .process_group(0);
        let mut shell = shell.spawn().expect("a shell");
        Keeper {
            orders: shell.stdin.take(),
            answers: BufReader::new(shell.stdout.take().expect("a pipe")),
            shell,
        }
    }
}

/// The user and the group for the server, if they are not those of the tests: `postgres`, or `nobody` where there is
/// none.
fn server_user() -> Option<(u32, u32)> {
    // SAFETY: takes no pointer.
    if unsafe { libc::geteuid() } != 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").expect("users");
    let numbers = |name: &str| {
        let line = users
            .lines()
            .find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(
        numbers("postgres")
            .or_else(|| numbers("nobody"))
            .expect("a user"),
    )
}

/// Makes a file the server's.
#[track_caller]
fn give(path: &Path) {
    if let Some((user, group)) = server_user() {
        std::os::unix::fs::chown(path, Some(user), Some(group)).expect("another owner");
    }
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
    std::fs::set_permissions(path, mode).expect("another mode");
}

/// A program of PostgreSQL: the latest that Debian has installed, beside what is in PATH, or what is in PATH.
pub fn program(name: &str) -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter();
    let latest = versions
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let version: u32 = entry.file_name().to_str()?.parse().ok()?;
            let program = entry.path().join("bin").join(name);
            program.exists().then_some((version, program))
        })
        .max();
    latest.map_or_else(|| PathBuf::from(name), |(_, program)| program)
}

/// Letters and digits that cannot be guessed.
fn random_word() -> String {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .expect("random bytes");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Runs what must succeed.
#[track_caller]
fn output(command: &mut Command) -> Output {
    let output = command.output().expect("the program is there");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output
}

/// The same with an input; returns what it prints.
#[track_caller]
fn fed(command: &mut Command, input: &[u8]) -> Vec<u8> {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = piped
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program is there");
    let mut into = child.stdin.take().expect("a pipe");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that fails reads no further: its complaint says why.
            let _ = into.write_all(input);
        });
        child.wait_with_output().expect("an output")
    });
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {complaint}");
    output.stdout
}

#[test]
fn databases_are_made_dumped_and_put_back() {
    let postgres = Postgres::shared();
    let (one, other) = (postgres.create_database(), postgres.create_database());
    assert_ne!(one, other);
    postgres.sql(
        &one,
        &format!("SET ROLE {USER}; CREATE TABLE t (n int, s text)"),
    );
    postgres.sql(&one, "INSERT INTO t VALUES (1, 'first'), (2, 'second')");
    let dump = postgres.dump(&one);
    postgres.sql(
        &one,
        "DELETE FROM t WHERE n = 1; INSERT INTO t VALUES (3, 'third')",
    );
    assert_eq!(
        postgres.sql(&one, "SELECT * FROM t ORDER BY n"),
        "2|second\n3|third"
    );
    postgres.restore(&one, &dump);
    assert_eq!(
        postgres.sql(&one, "SELECT * FROM t ORDER BY n"),
        "1|first\n2|second"
    );
    postgres.restore(&other, &dump);
    assert_eq!(postgres.sql(&other, "SELECT count(*) FROM t"), "2");
    assert_eq!(
        postgres.sql(&one, "SHOW server_encoding; SHOW lc_collate"),
        "UTF8\nC"
    );
}

#[test]
fn a_server_that_stops_keeps_what_was_committed() {
    let postgres = Postgres::with(Setup {
        fsync: true,
        ..Setup::default()
    });
    let database = postgres.create_database();
    assert_eq!(postgres.sql(&database, "SHOW fsync"), "on");
    postgres.sql(&database, "CREATE TABLE t (n int)");
    for (number, how) in [(1, Stop::Fast), (2, Stop::Immediate)] {
        postgres.sql(&database, &format!("INSERT INTO t VALUES ({number})"));
        postgres.stop(how);
        let refused = std::net::TcpStream::connect(("127.0.0.1", postgres.port()));
        assert!(refused.is_err(), "{how:?}");
        postgres.start_again();
        let count = postgres.sql(&database, "SELECT count(*) FROM t");
        assert_eq!(count, number.to_string(), "{how:?}");
    }
    assert!(
        postgres.log().contains("was interrupted"),
        "a crash was recovered from"
    );
}

#[test]
fn the_role_makes_databases_and_no_more() {
    let postgres = Postgres::shared();
    let database = postgres.create_database();
    let mut psql = Command::new(program("psql"));
    psql.args(["-Atc", "CREATE TABLE t (n int); SELECT rolsuper, rolcreatedb FROM pg_roles WHERE rolname = current_user"]);
    let printed = output(psql.arg(postgres.url(&database))).stdout;
    assert_eq!(String::from_utf8_lossy(&printed), "CREATE TABLE\nf|t\n");
}

#[test]
fn a_server_with_tls_takes_no_connection_without() {
    let postgres = Postgres::start_with_tls();
    let database = postgres.create_database();
    let url = postgres.url(&database);
    let ask = |url: &str| {
        let mut psql = Command::new(program("psql"));
        psql.env("PGSSLROOTCERT", postgres.authority());
        psql.args([
            "-Atc",
            "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
        ]);
        psql.arg(url).output().expect("psql runs")
    };
    // `verify-full` fails unless the certificate is the authority's and names the host.
    let asked = ask(&url.replace("sslmode=require", "sslmode=verify-full"));
    assert_eq!(String::from_utf8_lossy(&asked.stdout), "t\n", "{asked:?}");
    let plain = ask(&url.replace("sslmode=require", "sslmode=disable"));
    assert!(!plain.status.success(), "{plain:?}");
    let other = ask(&url.replace(&postgres.password, "another"));
    assert!(
        String::from_utf8_lossy(&other.stderr).contains("password authentication failed"),
        "{other:?}"
    );
}

#[test]
fn nothing_is_left_of_a_server() {
    let postgres = Postgres::start();
    let directory = postgres.directory.clone();
    let process = postgres.order("");
    assert!(directory.join("data").exists());
    assert!(Path::new("/proc").join(&process).exists());
    drop(postgres);
    assert!(!directory.exists());
    assert!(!Path::new("/proc").join(&process).exists());
}
