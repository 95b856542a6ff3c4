//! The README's session is typed as it stands and prints what it says, but for what no two runs
//! can share: identifiers and dates.

use std::path::Path;

use crate::support::TestEnv;

const LETTERS: &[u8] = b"23456789ABCDEFGHJKLMNPQRSTUWX";

/// The lines of each block that begins with this fence.
fn blocks<'a>(text: &'a str, fence: &str) -> Vec<Vec<&'a str>> {
    let mut lines = text.lines();
    let mut found = Vec::new();
    while lines.by_ref().any(|line| line == fence) {
        found.push(lines.by_ref().take_while(|line| *line != "```").collect());
    }
    assert!(!found.is_empty(), "no {fence}");
    found
}

#[track_caller]
fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect(name)
}

fn readme() -> String {
    read("README.md")
}

/// Each text between the characters that can stand around an identifier or a date.
fn normal(line: &str) -> String {
    let is_edge = |c: char| " \t<>{}\"'".contains(c);
    line.split_inclusive(is_edge)
        .map(|piece| {
            let word = piece.trim_end_matches(is_edge);
            format!("{}{}", normal_word(word), &piece[word.len()..])
        })
        .collect()
}

/// A date of a rep, an IBIp or a time, each by its shape; everything else as it stands.
fn normal_word(word: &str) -> String {
    if is_shaped(word, "0000-00-00T00:00:00") && word.ends_with('Z') {
        return "TIME".to_owned();
    }
    let mut parts: Vec<&str> = word.split('/').collect();
    for at in 1..parts.len() {
        let (before, this) = (parts[at - 1], parts[at]);
        if is_shaped(before, "0000") && before.len() == 4 && is_shaped(this, "00.00.00.00") {
            (parts[at - 1], parts[at]) = ("YEAR", "DATE");
        } else if is_of_letters(before) && is_of_letters(this) {
            (parts[at - 1], parts[at]) = ("PREFIX", "SUFFIX");
        }
    }
    parts.join("/")
}

/// Whether a text begins with this shape, `0` standing for a digit, and goes on as a date does.
fn is_shaped(text: &str, shape: &str) -> bool {
    text.len() >= shape.len()
        && text
            .bytes()
            .zip(shape.bytes())
            .all(|(byte, shape)| byte == shape || (shape == b'0' && byte.is_ascii_digit()))
        && text[shape.len()..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'Z')
}

fn is_of_letters(text: &str) -> bool {
    text.len() > 5 && text.bytes().all(|byte| LETTERS.contains(&byte))
}

#[test]
fn identifiers_and_dates_are_distinguished_from_the_rest() {
    for (line, expected) in [
        (
            "../example.org/demo/2026/11.21.12.45.18.8",
            "../example.org/demo/YEAR/DATE",
        ),
        (
            "ibi {rep a.b/c/2026/11.21.12.45 ibip 92C5TR5AE386GKPX/4GR658LWA}",
            "ibi {rep a.b/c/YEAR/DATE ibip PREFIX/SUFFIX}",
        ),
        (
            "<dc:date>2026-11-21T12:45:18.8Z</dc:date>",
            "<dc:date>TIME</dc:date>",
        ),
        (
            "http://urlib.net/92C5TR5AE386GKPX/4GR658LWA",
            "http://urlib.net/PREFIX/SUFFIX",
        ),
        ("Rainfall, 1995-2025", "Rainfall, 1995-2025"),
        (
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
            "http://www.openarchives.org/OAI/2.0/oai_dc/",
        ),
        ("mnt/demo 2026/11.21", "mnt/demo 2026/11.21"),
    ] {
        assert_eq!(normal(line), expected);
    }
}

/// The session of the README, from the quick start to the unmount, in all its blocks.
#[test]
fn the_session_of_the_readme_is_true() {
    let readme = readme();
    let report_text = blocks(&readme, "```console").concat();
    let mut script = String::new();
    for line in report_text
        .iter()
        .filter_map(|line| line.strip_prefix("$ "))
    {
        let quoted = line.replace('\'', "'\\''");
        script.push_str(&format!("printf '$ %s\\n' '{quoted}'\n{line}\n"));
    }
    let env = TestEnv::new();
    env.sh("mkdir -p mnt/demo && touch mnt/demo/.keep && ibifs quickstart");
    let printed = env.run(&script);
    let complaint = String::from_utf8_lossy(&printed.stderr);
    assert!(
        printed.status.success() && complaint.is_empty(),
        "{complaint}"
    );
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    let printed: Vec<String> = printed.lines().map(normal).collect();
    let report_text: Vec<String> = report_text.into_iter().map(normal).collect();
    assert_eq!(printed.join("\n"), report_text.join("\n"));
}

/// The commands of the quick start work.
#[test]
fn what_the_quick_start_says_can_be_tried() {
    let env = TestEnv::new();
    let said = env.sh("mkdir -p mnt/demo && touch mnt/demo/.keep && ibifs quickstart");
    let commands: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .collect();
    assert!(commands.len() > 5, "{said}");
    let printed = env.sh(&commands.join("\n"));
    for text in [
        "First edition",
        "Second edition",
        "Tradução",
        "<dc:creator>Souza, Ana</dc:creator>",
    ] {
        assert!(printed.contains(text), "{text} in {printed}");
    }
}

/// The README sets up with two commands.
#[test]
fn the_readme_has_two_commands() {
    let readme = readme();
    let commands = &blocks(&readme, "```sh")[0];
    assert_eq!(
        commands,
        &["cargo run --release -- quickstart", "tests/run"]
    );
}

/// The table in ARCHITECTURE.md has every folder of src/, and no other.
#[test]
fn the_architecture_has_every_folder() {
    let page = read("ARCHITECTURE.md");
    let library = include_str!("../../src/lib.rs");
    // A package is in the library by `use ibifs_os as os;`.
    let folders = library.lines().filter_map(|line| {
        let (_, name) = line.split_once("mod ").or(line.split_once(" as "))?;
        name.strip_suffix(';')
    });
    let (_, layout) = page.split_once("\n## Folders\n").expect("the folders");
    let (layout, _) = layout.split_once("\n## ").expect("what follows");
    let named: Vec<&str> = layout
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
        .map(|(name, _)| name)
        .collect();
    for folder in folders {
        assert!(named.contains(&folder), "folder {folder}");
    }
    for name in named {
        assert!(
            ["mod ", " as ", "pub use ::"]
                .iter()
                .any(|before| library.contains(&format!("{before}{name};"))),
            "no folder {name}"
        );
    }
}

/// The functions and files that ARCHITECTURE.md names are in the source.
#[test]
fn the_architecture_names_what_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = read("ARCHITECTURE.md");
    // `file.rs`, or `file.rs::name`, below src/ where it does not say otherwise.
    let mut count = 0;
    for name in page.split('`').skip(1).step_by(2) {
        let (file, item) = name.split_once(".rs::").unwrap_or((name, ""));
        let file = if item.is_empty() {
            file.to_owned()
        } else {
            format!("{file}.rs")
        };
        if !file.ends_with(".rs") || file.contains(' ') {
            continue;
        }
        count += 1;
        let path = [root.join("src").join(&file), root.join(&file)]
            .into_iter()
            .find(|path| path.is_file());
        let text = path.and_then(|path| std::fs::read_to_string(path).ok());
        let text = text.unwrap_or_else(|| panic!("no {file}"));
        let is_there = ["fn ", "struct ", "enum ", "const ", "trait ", "mod "]
            .iter()
            .any(|kind| text.contains(&format!("{kind}{item}")));
        assert!(item.is_empty() || is_there, "no {item} in {file}");
    }
    assert!(count > 20, "{count} names of the source");
}

/// ARCHITECTURE.md names libraries that Cargo.toml has, and none that it has among those that are not used.
#[test]
fn the_architecture_names_the_libraries() {
    let page = read("ARCHITECTURE.md");
    let (_, after) = page.split_once("\n## Libraries").expect("the libraries");
    let (used, not_used) = after.split_once("\nNot used").expect("two tables");
    let manifests = [
        "",
        "src/formats/",
        "src/http/",
        "src/os/",
        "src/resolver/",
        "src/sql/",
    ]
    .map(|it| read(&format!("{it}Cargo.toml")));
    let dependencies = manifests.iter().flat_map(|manifest| {
        let (_, after) = manifest
            .split_once("\n[dependencies]\n")
            .expect("dependencies");
        after.split("\n[").next().unwrap_or_default().lines()
    });
    let dependencies: Vec<&str> = dependencies
        .filter_map(|line| line.split([' ', '.', '=']).next())
        .collect();
    let is_used = |name: &str| dependencies.contains(&name);
    let names = |table: &str| -> Vec<String> {
        let rows = table
            .lines()
            .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"));
        let rows = rows.filter(|(names, _)| *names != "library");
        let names = rows.flat_map(|(names, _)| names.split(", ").map(str::to_owned));
        names.collect()
    };
    let (used, not_used) = (names(used), names(not_used));
    assert!(
        used.len() > 10 && not_used.len() > 5,
        "{used:?}, {not_used:?}"
    );
    for name in used {
        assert!(is_used(&name), "{name} is not in Cargo.toml");
    }
    for name in not_used {
        assert!(!is_used(&name), "{name} is in Cargo.toml");
    }
}

/// Each tuned constant of the worker pool and of its placement names rows of the benchmark that pay for it.
#[test]
fn the_constants_of_the_worker_pool_name_their_rows() {
    for source in ["worker_pool", "placement"] {
        constants_name_rows(&read(&format!("src/fuse/fs/scheduler/{source}.rs")));
    }
}

fn constants_name_rows(source: &str) {
    let results = read("tests/bench/RESULTS.md");
    let (_, tuned) = source
        .split_once("// The constants name the rows")
        .expect("the constants");
    let (tuned, _) = tuned.split_once("// These are not tuned").expect("the end");
    let (_, tuned) = tuned.split_once('\n').expect("more lines");
    let comments: Vec<&str> = tuned.split("const ").collect();
    let (_, comments) = comments.split_last().expect("constants");
    assert!(!comments.is_empty());
    for comment in comments {
        let (_, rows) = comment
            .split_once("Row")
            .unwrap_or_else(|| panic!("no row: {comment}"));
        let (rows, _) = rows.split_once([':', '.', ',']).expect("a sentence");
        let rows: Vec<&str> = rows.split('`').skip(1).step_by(2).collect();
        assert!(!rows.is_empty(), "no row: {comment}");
        for row in rows {
            let row = row.trim_end_matches('*');
            assert!(results.contains(&format!("\n| {row}")), "no row {row}");
        }
    }
}

/// The picture of the session is what the script draws, but for identifiers and dates.
#[test]
fn the_recorded_session_is_current() {
    let env = TestEnv::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/record-session");
    env.sh(&format!("{} session.svg", script.display()));
    let drawn = std::fs::read_to_string(env.root().join("session.svg")).expect("a picture");
    let kept = read("man/session.svg");
    let [drawn, kept] =
        [drawn, kept].map(|text| text.lines().map(normal).collect::<Vec<_>>().join("\n"));
    assert_eq!(
        drawn, kept,
        "make it again: tests/record-session man/session.svg"
    );
}

/// The commands of 'Your own Archive in ten minutes', as they stand: what they write goes to a layer over the system
/// that ends with them, and network, names and certificates are their own. Only systemd is a function, which runs the
/// command lines of the units.
#[test]
fn an_archive_is_set_up_in_ten_minutes() {
    let readme = readme();
    let (_, guide) = readme
        .split_once("\n## Your own Archive in ten minutes\n")
        .expect("a guide");
    let (guide, _) = guide.split_once("\n## ").expect("what follows");
    let env = TestEnv::new();
    let mut blocks_of_guide = blocks(guide, "```sh");
    // The deposit is by the user who may, and not by root.
    let deposit = blocks_of_guide[3].join("\n");
    assert!(deposit.contains(".mint/thesis"), "{deposit}");
    std::fs::write(env.root().join("deposit"), deposit).expect("written");
    blocks_of_guide[3] = vec![
        "chmod 755 .; install -m 666 /dev/null item",
        "runuser -u ana -- env PATH=$PATH bash -c 'set -euo pipefail; . ./deposit; echo $item > item'",
        "item=$(< item)",
    ];
    let commands = blocks_of_guide.concat().join("\n");
    let before = r#"
mount -t tmpfs tmpfs /run
echo '127.0.0.1 localhost archive.example.org resolver.example.org' > /etc/hosts
mkdir -p /usr/share/doc/ibifs/examples
cp $mnt/nginx.example /usr/share/doc/ibifs/examples/nginx.conf
cp $mnt/nginx-resolver.example /usr/share/doc/ibifs/examples/nginx-resolver.conf
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 3 \
    -subj '/CN=A test' -addext basicConstraints=critical,CA:TRUE 2> /dev/null
for host in archive resolver; do
    place=/etc/ssl/$host.example.org; mkdir -p $place
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout $place/privkey.pem -out request \
        -subj "/CN=$host.example.org" 2> /dev/null
    openssl x509 -req -in request -CA ca.pem -CAkey ca.key -days 3 -out $place/fullchain.pem \
        -extfile <(echo "subjectAltName=DNS:$host.example.org") 2> /dev/null
done
cat ca.pem >> /etc/ssl/certs/ca-certificates.crt
echo text > thesis.pdf; useradd ana
systemd-sysusers $mnt/ibifs.sysusers; rm -f /etc/nginx/sites-enabled/default
started() { until grep -q "$1" $2.log; do kill -0 $! || { cat $2.log; return 1; }; sleep 0.05; done; }
start() {
    local unit=$1 name=${1#*@} file
    case $unit in
        nginx) test -e /run/nginx.pid && nginx -s reload || nginx; return ;;
        *.timer) test -s $mnt/${unit%%@*}@.timer; return ;;
        *@*) file=$mnt/${unit%%@*}@.service ;;
        *) file=$mnt/$unit.service ;;
    esac
    local STORE=/var/lib/ibifs/$name MOUNT_POINT=/srv/ibifs/$name OPTIONS=rw SERVE_OPTIONS='' RESOLVER_OPTIONS=''
    local DB=/var/lib/ibifs-resolver/resolver.db SCRUB_OPTIONS='--rate 50M' BACKUP='' BACKUP_OPTIONS='' line
    # A line is a name and a value without quotation marks (systemd.exec(5)).
    if test -e /etc/ibifs/${name#ibifs-}.conf; then
        while read -r line; do declare "${line%%=*}=${line#*=}"; done < /etc/ibifs/${name#ibifs-}.conf
    fi
    line=$(sed -n 's,^ExecStart=/usr/bin/,,p' $file)
    case $unit in
        ibifs@*) ibifs mount -o $OPTIONS $STORE $MOUNT_POINT ;;
        ibifs-serve@*) eval "$line > serve.log 2>&1 &"; serving=$!; started '^serving' serve ;;
        ibifs-resolver)
            install -d -o ibifs /var/lib/ibifs-resolver
            eval "runuser -u ibifs -- env PATH=$PATH $line > resolver.log 2>&1 &"; started '^resolving' resolver ;;
        *) eval "$line" ;;
    esac
}
systemctl() {
    local verb=$1 unit; shift; test $1 != --now || shift
    for unit; do
        case $verb-$unit in
            restart-ibifs@*) ibifs umount /srv/ibifs/archive ;;
            restart-ibifs-serve@*) kill $serving; wait $serving || true ;;
        esac
        start $unit
    done
}
"#;
    let after = r#"
link=$(ibifs show "$item" | sed -n 's/^link *//p'); echo "$link" | sed 's,/[^/]*/[^/]*$,/IBIP,'
started included serve
curl -sSL "$link"; curl -sSL "https://archive.example.org/${item#/srv/ibifs/archive/}"
curl -sSL -H 'Accept: application/x-bibtex' "$link" | grep title
curl -sSI "$link" | tr -d '\r' | sed -n 's,^location: \(.*\)/col/.*,\1,p'
stat -c '%G %A' /srv/ibifs/archive
ibifs umount /srv/ibifs/archive; kill $(jobs -p); nginx -s stop
"#;
    std::fs::write(
        env.root().join("guide"),
        format!("set -euo pipefail\n{before}{commands}\n{after}"),
    )
    .expect("written");
    std::fs::write(
        env.root().join("enter"),
        "set -euo pipefail; ip link set lo up; mount --make-rprivate /; umount -l -a -t fuse.ibifs,fuse.ibifs-world || true; mkdir own; mount -t tmpfs tmpfs own; cd own
         mkdir made work root; mount -t overlay overlay -o lowerdir=/,upperdir=made,workdir=work root
         for place in dev sys; do mount --rbind /$place root/$place; done; mount -t proc proc root/proc
         exec chroot root bash -c \"cd '$OLDPWD' && exec bash guide\"",
    )
    .expect("written");
    let printed = env.sh(&format!(
        "mnt={} PATH=$PATH:/usr/sbin:/sbin unshare -m -n -p -f bash enter 2>&1",
        Path::new(env!("CARGO_MANIFEST_DIR")).join("mnt").display()
    ));
    for (line, times) in [
        ("state            Original", 2),
        ("https://resolver.example.org/IBIP", 1),
        // Found by its words in the tree and on the web, harvested, and cited by both links.
        ("  title = {{Rainfall}},", 2),
        ("  <dc:title>Rainfall</dc:title>", 1),
        ("text", 2),
        ("https://archive.example.org", 1),
        ("2 items, 0 findings", 1),
        ("depositors drwxrwxr-x", 1),
    ] {
        let found = printed.lines().filter(|it| it.trim() == line.trim());
        assert_eq!(found.count(), times, "{line} in {printed}");
    }
    assert!(
        printed.contains("?page\"><bdi>Rainfall</bdi></a>"),
        "{printed}"
    );
    let fstab = &blocks(guide, "```text")[0];
    let fields: Vec<&str> = fstab[0].split_whitespace().collect();
    assert_eq!(fields.len(), 6, "{fstab:?}");
    ibifs::outside::fuse::mount::Settings::parse(&[fields[3].to_owned()], |_| None)
        .expect("options of fstab");
}

/// README.pt-BR.md has the same parts, commands and messages.
#[test]
fn the_portuguese_readme_says_the_same() {
    let (english, portuguese) = (readme(), read("README.pt-BR.md"));
    for fence in ["```sh", "```console", "```text"] {
        assert_eq!(blocks(&portuguese, fence), blocks(&english, fence));
    }
    let starting =
        |text: &str, sign: &str| text.lines().filter(|line| line.starts_with(sign)).count();
    for sign in ["## ", "### ", "| ", "- ", "!["] {
        assert_eq!(
            starting(&portuguese, sign),
            starting(&english, sign),
            "{sign}"
        );
    }
    let messages = |text: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("- `"));
        lines
            .map(|line| line.split('`').next().unwrap_or_default().to_owned())
            .collect()
    };
    assert_eq!(messages(&portuguese), messages(&english));
}

/// Troubles are as the README describes them.
#[test]
fn troubles_are_as_the_readme_describes_them() {
    let readme = readme();
    let env = TestEnv::new();
    let report_text = |script: &str| {
        let output = env.run(script);
        assert!(!output.status.success(), "{script}");
        let report_text = String::from_utf8_lossy(&output.stderr).into_owned();
        let report_text = report_text.replace(&format!("{}/", env.root().display()), "");
        report_text
            .trim_start_matches("ibifs: ")
            .trim_end()
            .to_owned()
    };
    let in_readme = |message: &str| {
        assert!(readme.contains(&format!("- `{message}`")), "{message}");
    };
    in_readme(&report_text("mkdir STORE; ibifs mount STORE MNT"));
    env.sh("rmdir STORE; ibifs init STORE --host archive-a.example.org");
    in_readme(&report_text("ibifs mount STORE MNT"));
    env.sh("mkdir MNT; ibifs mount STORE MNT");
    in_readme(&report_text("ibifs mount STORE MNT"));
    let busy = report_text("mkdir other; ibifs mount STORE other");
    let pid = env.sh("daemon STORE");
    in_readme(&busy.replace(&pid, "PID"));
    let item = env.sh("mint MNT x");
    let refused = report_text(&format!("mv MNT/{item} MNT/{item}0"));
    assert!(refused.ends_with("Operation not permitted"), "{refused}");
    in_readme("mv: cannot move ...: Operation not permitted");
    env.sh(
        "mkdir -p MNT/sid.inpe.br/mtc-m18@80/2009/07.21.14.43 MNT/sid.inpe.br/mtc-m18@80/2009/07.21.14.44",
    );
    let refused =
        report_text("cd MNT/sid.inpe.br/mtc-m18@80/2009; ln -sfn 07.21.14.43 '07.21.14.44!'");
    assert!(refused.ends_with("Operation not permitted"), "{refused}");
    in_readme("ln: failed to create symbolic link ...: Operation not permitted");
    let event = report_text("bash --norc -i <<< $'cat MNT/x!/doc\\nexit 1'");
    assert!(event.contains("!/doc: event not found"), "{event}");
    in_readme("bash: !/doc: event not found");
    env.sh("daemon=$(daemon STORE); kill -9 $daemon; tail --pid=$daemon -f /dev/null");
    let dead = report_text("ls MNT");
    assert!(
        dead.contains("Transport endpoint is not connected"),
        "{dead}"
    );
    in_readme("Transport endpoint is not connected");
    env.sh("ibifs mount STORE MNT; ls MNT; ibifs umount MNT; ibifs mount -o ro STORE MNT");
    in_readme(&report_text("mkdir MNT/.mint/x").replace(['\u{2018}', '\u{2019}'], "'"));
    env.sh("ibifs umount MNT");
}
