//! A row of the table: a name, what is there before, and the steps that are tested.
//!
//! A row is text, so that the table reads as a table. Steps are divided by `;` or a line end:
//!
//! ```text
//! @alice  a:  open  f  O_RDWR|O_CREAT 0644  => EACCES
//! user    bound     call and its arguments   what the native filesystem answers
//! ```
//!
//! Without `=>` a step must succeed; `=> *` is decided by the comparison alone, because it depends
//! on what the backing filesystem or the kernel's settings offer. What stands before `--` is the
//! precondition; without one the last step alone is tested.

/// One row.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub before: Vec<Step>,
    pub tested: Vec<Step>,
}

/// Calls that read a file, a directory or a link.
const READING: [&str; 12] = [
    "cat",
    "copyrange",
    "count",
    "listfd",
    "map",
    "mapped",
    "names",
    "pread",
    "read",
    "readlink",
    "sendfile",
    "seeks",
];

impl Row {
    /// Whether something is read before the tested steps. Then the clock's tick decides whether the
    /// next reading renews the time of access, on a filesystem mounted with relatime.
    pub fn reads_before(&self) -> bool {
        let mut words = self.before.iter().map(|step| step.words[0].as_str());
        words.any(|word| READING.contains(&word))
    }
}

/// One call by one user.
#[derive(Debug)]
pub struct Step {
    pub text: String,
    pub user: User,
    pub bound: Option<String>,
    pub words: Vec<String>,
    pub expected: Expected,
}

/// The answer that the native filesystem must give.
#[derive(Debug, PartialEq)]
pub enum Expected {
    Success,
    Exactly(String),
    Whatever,
}

/// The caller: the superuser, or one of two ordinary users.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum User {
    Root,
    /// A member of the group `staff`, by a supplementary group.
    Alice,
    /// In no group but his own.
    Bob,
}

pub const ALICE: u32 = 60_001;
pub const BOB: u32 = 60_002;
pub const STAFF: u32 = 60_100;

impl User {
    fn named(name: &str) -> User {
        match name {
            "root" => User::Root,
            "alice" => User::Alice,
            "bob" => User::Bob,
            other => panic!("no user {other}"),
        }
    }
}

/// Reads a row.
pub fn row(name: impl Into<String>, script: impl AsRef<str>) -> Row {
    let name = name.into();
    let (mut before, mut tested) = (Vec::new(), Vec::new());
    let mut divided = false;
    for line in script.as_ref().split([';', '\n']).map(str::trim) {
        match line {
            "" => {}
            "--" => {
                before.append(&mut tested);
                divided = true;
            }
            line => tested.push(step(line)),
        }
    }
    if !divided {
        let last = tested.pop().expect("a row has a step");
        before = tested;
        tested = vec![last];
    }
    Row {
        name,
        before,
        tested,
    }
}

fn step(line: &str) -> Step {
    let (call, expected) = match line.split_once("=>") {
        None => (line, Expected::Success),
        Some((call, answer)) => match answer.trim() {
            "*" => (call, Expected::Whatever),
            answer => (call, Expected::Exactly(answer.to_owned())),
        },
    };
    let mut words: Vec<String> = call.split_whitespace().map(str::to_owned).collect();
    let mut user = User::Root;
    if let Some(name) = words[0].strip_prefix('@') {
        user = User::named(name);
        words.remove(0);
    }
    let bound = words[0].strip_suffix(':').map(str::to_owned);
    if bound.is_some() {
        words.remove(0);
    }
    Step {
        text: line.split_whitespace().collect::<Vec<_>>().join(" "),
        user,
        bound,
        words,
        expected,
    }
}
