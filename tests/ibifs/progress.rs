//! The progress of a long command: a line on a terminal, and nothing anywhere else.

use crate::support::TestEnv;

/// Runs a command with its standard error on a terminal, and prints there what it received.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, subprocess, sys, termios
ours, its = pty.openpty()
fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
command = subprocess.Popen(sys.argv[1:], stderr=its)
os.close(its)
messages = b""
try:
    while piece := os.read(ours, 65536):
        messages += piece
except OSError:
    pass
sys.stderr.buffer.write(messages.replace(b"\r", b"\n"))
sys.exit(command.wait())
"#;

/// A store with forty items to be taken over, and commands that are slow: each file that is opened
/// takes its time.
fn slow() -> TestEnv {
    let env = TestEnv::new();
    std::fs::write(env.root().join("terminal.py"), TERMINAL).expect("a script");
    env.sh("for n in {10..49}; do
           mkdir -p store/col/a.example.org/b/2001/01.01.01.$n/doc
           head -c 100000 /dev/zero > store/col/a.example.org/b/2001/01.01.01.$n/doc/file
         done; chmod 700 store");
    env
}

/// The commands, and by how many microseconds each opening of a file is delayed.
const COMMANDS: [(&str, u32); 5] = [
    ("init --adopt store --host c.example.org", 8000),
    ("reindex store", 10000),
    ("fsck store", 10000),
    ("scrub store", 800),
    ("backup store dest", 800),
];

fn slowly(command: &str, delay: u32) -> String {
    format!(
        "strace -f -qq -o /dev/null -e trace=openat,openat2 \
         -e inject=openat,openat2:delay_enter={delay} ibifs {command}"
    )
}

/// Init --adopt, reindex, fsck, scrub and backup say on a terminal how much is done of how much, at
/// what rate, and how long the rest takes; the line is gone in the end, and standard output has the
/// same as ever.
#[test]
fn a_terminal_shows_the_progress() {
    let env = slow();
    let lasts = [
        ("items", "mount it with"),
        ("items", "41 items indexed"),
        ("items", "41 items, 0 findings"),
        ("items", "41 items, 40 files, 4000000 bytes"),
        ("directories", "41 items: "),
    ];
    for ((command, delay), (what, last)) in COMMANDS.into_iter().zip(lasts) {
        let messages = env.sh(&format!(
            "TERM=xterm python3 terminal.py {} 2> messages > said; cat messages",
            slowly(command, delay)
        ));
        let lines: Vec<&str> = messages.lines().collect();
        let shown = |line: &&&str| {
            line.contains(&format!(" {what}  "))
                && line.contains(" a second")
                && line.trim_end().ends_with("s left")
                && (line.contains("/40 ") || line.contains("/41 ") || line.contains("/81 "))
        };
        assert!(
            lines.iter().filter(shown).count() >= 2,
            "{command}: {messages}"
        );
        assert_eq!(lines.last().map(|line| line.trim()), Some("\u{1b}[2K"));
        let said = env.sh("tail -n 1 said");
        assert!(said.starts_with(last), "{command}: {said}");
    }
    // The bytes are shown where they are what takes the time.
    env.sh(
        "TERM=xterm python3 terminal.py ibifs scrub --rate 3M store 2> messages
         grep -q ' MB, [1-3] MB/s  .*s left' messages",
    );
}

/// Findings are printed on whole lines of their own if both outputs are one terminal.
#[test]
fn what_is_found_stands_on_lines_of_its_own() {
    let env = slow();
    env.sh("ibifs init --adopt store --host c.example.org; ibifs scrub store");
    env.sh(
        "for n in {10..49}; do touch store/col/a.example.org/b/2001/01.01.01.$n/doc/new; done
         TERM=xterm script -qec 'ibifs scrub --rate 3M store' messages > /dev/null
         tr '\\r' '\\n' < messages | sed 's/\\x1b\\[[0-9]*[A-Z]//g' > lines
         test $(grep -c '^new: col/a.example.org/b/2001/.*/doc/new: .*[a-z)]$' lines) = 40
         grep -q '/41 items .*s left' lines; grep -q '^41 items, 80 files' lines",
    );
}

/// Nothing is written without a terminal, or on one that can do nothing.
#[test]
fn no_progress_is_printed_without_a_terminal() {
    let env = slow();
    for (command, delay) in COMMANDS {
        env.prints(&format!("{} 2>&1 > /dev/null", slowly(command, delay)), "");
    }
    for term in ["TERM=dumb", "-u TERM"] {
        env.prints(
            &format!("env {term} python3 terminal.py ibifs scrub --rate 3M store 2>&1 > /dev/null"),
            "",
        );
    }
}
