//! Completion in bash, zsh and fish: what is typed on a real terminal, and what the command is given.

use crate::support::TestEnv;

/// Types at an interactive shell, on a terminal, and says what `ibifs` was given for each line: its
/// arguments, in angle brackets. The shell's own `ibifs` notes them; completion asks the real one.
const TYPIST: &str = r#"
import os, pty, select, sys, time
shell, lines = sys.argv[1], sys.argv[2:]
start = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], """
        PS1='ready> '; bind 'set enable-bracketed-paste off'; source <(ibifs completions bash)
        ibifs() { printf '<%s>' "$@" > got.new; mv got.new got; }"""),
    "zsh": (["zsh", "-f", "-i"], """
        PS1='ready> '; setopt banghist; autoload -Uz compinit; compinit -u -D
        source <(ibifs completions zsh)
        ibifs() { printf '<%s>' "$@" > got.new; mv got.new got }"""),
    "fish": (["fish", "--no-config", "-i"], """
        function fish_prompt; printf 'ready> '; end; ibifs completions fish | source
        function ibifs; printf '<%s>' $argv > got.new; mv got.new got; end"""),
}[shell]
pid, terminal = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", COLUMNS="200")
    os.execvp(start[0][0], start[0])
seen = b""
def wait(done):
    global seen
    end = time.monotonic() + 30
    while not done():
        if time.monotonic() > end:
            sys.exit(f"{shell}: nothing came\n{seen.decode(errors='replace')}")
        if select.select([terminal], [], [], 0.02)[0]:
            seen += os.read(terminal, 65536)
            # Whoever asks where the cursor is, or what the terminal can do, is answered.
            if seen.endswith(b"\x1b[6n"):
                os.write(terminal, b"\x1b[1;1R")
def run(line, until):
    os.write(terminal, line.encode() + b"\r")
    wait(lambda: os.path.exists(until))
    os.remove(until)
for line in start[1].strip().splitlines():
    run(line.strip() + "; echo > done", "done")
for line in lines:
    os.write(terminal, ("ibifs " + line).encode() + b"\r")
    wait(lambda: os.path.exists("got"))
    print(open("got").read())
    os.remove("got")
os.write(terminal, b"exit\r")
"#;

/// An Archive with an item, its next edition and the translation of that; and a copy of an item whose
/// name has an `@`.
fn environment() -> TestEnv {
    let env = TestEnv::new().with_a();
    std::fs::write(env.root().join("typist.py"), TYPIST).expect("a script");
    env.sh(
        "ibifs init B.store --host archive-b.example.net --granularity 1
         mkdir -p A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46/doc 'A.store/it is'
         echo text > 'A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46/doc/a (b) !+.txt'
         copy=A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46
         next=$(ibifs mint A --edition-of $copy | head -n 1)
         ibifs mint A --translation-of A/$next --lang pt > names; head -n 1 names > translation
         ibifs mint A --metadata-of A/$next > names
         ibifs upn A LCETB2 example.net/none sid.inpe.br/mtc-m18@80",
    );
    env
}

const COPY: &str = "A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46";

macro_rules! copy {
    () => {
        "sid.inpe.br/mtc-m18@80/2009/02.16.17.46"
    };
}

/// The typed lines, `^` for the tabulator key, and the arguments that the command gets.
const LINES: [(&str, &[&str]); 29] = [
    ("stat^", &["status"]),
    (
        "resolver unreg^--d^ x",
        &["resolver", "unregister", "--db", "x"],
    ),
    ("ls A --state o^", &["ls", "A", "--state", "original"]),
    ("cite A --style ab^", &["cite", "A", "--style", "abnt"]),
    // As far as there is one way to go, by path and by identifier.
    ("show A/sid^", &["show", COPY]),
    (
        "show --store A sid^",
        &[
            "show",
            "--store",
            "A",
            "sid.inpe.br/mtc-m18@80/2009/02.16.17.46",
        ],
    ),
    ("show --store=A.st^", &["show", "--store=A.store/"]),
    // Characters that the shells would take for a command of theirs are quoted.
    (
        "show A/sid^!+^",
        &["show", "A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46!+(pt)"],
    ),
    (
        "show A/sid^!^:^",
        &["show", "A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46!:"],
    ),
    (
        "show 'A/sid^!+^",
        &["show", "A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46!+(pt)"],
    ),
    (
        "show A/sid^/d^^",
        &[
            "show",
            "A/sid.inpe.br/mtc-m18@80/2009/02.16.17.46/doc/a (b) !+.txt",
        ],
    ),
    ("fsck A.store/it^", &["fsck", "A.store/it is/"]),
    (
        "serve --registration-key-file typ^",
        &["serve", "--registration-key-file", "typist.py"],
    ),
    (
        "mount A.store A -o ro,list=i^",
        &["mount", "A.store", "A", "-o", "ro,list=items"],
    ),
    // An option that is there is not offered again, with another value either.
    (
        "mount A.store A -o list=all,l^o^d^",
        &["mount", "A.store", "A", "-o", "list=all,log=debug"],
    ),
    (
        "mount A.store A -o pa^y^",
        &["mount", "A.store", "A", "-o", "passthrough=yes"],
    ),
    (
        "mount A.store A -o ro,world-cache-^1G,world-ca-^ty^",
        &[
            "mount",
            "A.store",
            "A",
            "-o",
            "ro,world-cache-size=1G,world-ca-file=typist.py",
        ],
    ),
    (
        "mount A.store A -o world-arch^https://a.org",
        &["mount", "A.store", "A", "-o", "world-archive=https://a.org"],
    ),
    (
        "mount A.store A -o allow_other=no,noex^",
        &["mount", "A.store", "A", "-o", "allow_other=no,noexec"],
    ),
    // Completion continues a link as the identifier in it, and leaves what was typed.
    (
        "show --store A http://urlib.net/rep/sid.in^",
        &[
            "show",
            "--store",
            "A",
            concat!("http://urlib.net/rep/", copy!()),
        ],
    ),
    (
        "show --store A HTTPS://a.b:8080/sid^!+^",
        &[
            "show",
            "--store",
            "A",
            concat!("HTTPS://a.b:8080/", copy!(), "!+(pt)"),
        ],
    ),
    (
        "show --store A urlib.net/ibi/sid.in^",
        &["show", "--store", "A", concat!("urlib.net/ibi/", copy!())],
    ),
    (
        "show --store A ibi:sid^!^:^",
        &["show", "--store", "A", concat!("ibi:", copy!(), "!:")],
    ),
    (
        "show --store A ./ibi:s^",
        &["show", "--store", "A", concat!("./ibi:", copy!())],
    ),
    (
        "show --store A upn:LCETB2-:sid.inpe.br/m^",
        &["show", "--store", "A", concat!("upn:LCETB2-:", copy!())],
    ),
    (
        "show --store A http://urlib.net/upn:lcetb2:20^",
        &[
            "show",
            "--store",
            "A",
            "http://urlib.net/upn:lcetb2:2009/02.16.17.46",
        ],
    ),
    (
        "show --store A sid.inpe.br:mtc^",
        &[
            "show",
            "--store",
            "A",
            "sid.inpe.br:mtc-m18@80:2009:02.16.17.46",
        ],
    ),
    (
        "show --store A http://a.b/m/mirrorget.cgi\\\\?choice=x\\\\&metadatarepository=sid^",
        &[
            "show",
            "--store",
            "A",
            concat!(
                "http://a.b/m/mirrorget.cgi?choice=x&metadatarepository=",
                copy!()
            ),
        ],
    ),
    (
        "show --store A http://a.b/col/no^",
        &["show", "--store", "A", "http://a.b/col/no"],
    ),
];

#[track_caller]
fn completes(shell: &str) {
    let env = environment();
    let typed: Vec<String> = LINES
        .iter()
        .map(|(line, _)| format!("$'{}'", line.replace('\'', "\\'").replace('^', "\\t")))
        .collect();
    let printed = env.sh(&format!("python3 typist.py {shell} {}", typed.join(" ")));
    let mut given = printed.lines();
    for (line, expected) in LINES {
        let expected: String = expected.iter().map(|word| format!("<{word}>")).collect();
        assert_eq!(given.next(), Some(expected.as_str()), "{shell}: {line}");
    }
}

#[test]
fn bash_completes_what_it_then_takes_literally() {
    completes("bash");
}

#[test]
fn zsh_completes_what_it_then_takes_literally() {
    completes("zsh");
}

#[test]
fn fish_completes_what_it_then_takes_literally() {
    completes("fish");
}
