//! A reader of the Internet at the resolver's registrations of 2009: nothing of an Archive is taken over,
//! switched off or not, nothing is filled up or held up, and nothing is learnt of who is registered.

use std::time::Instant;

use crate::http::served::{Served, registry};
use crate::http::stub::{Reply, Stub};
use crate::support::TestEnv;

/// `ask FROM pair...` asks from that address of this machine, and prints the status and the element in the
/// answer; `to PATH` prints the status and where a reader is sent. `evil` registers an actor and names it
/// in `evil`.
pub const TOOLS: &str = r#"
ask() { local from=$1 pairs=(); shift; for pair; do pairs+=(--data-urlencode "$pair"); done
    curl -s --interface $from -o answer -w '%{http_code} ' "${pairs[@]}" "$U/"; xmllint --xpath 'local-name(/answer/*[1])' answer; }
message() { xmllint --xpath 'string(//errorMessage)' answer; }
N=$(date +%s%N)
to() { curl -s -o body -w '%{http_code} %{redirect_url}\n' "$U/$1" | sed 's/?[0-9]*$//'; }
actor() { ask 127.0.0.1 verb=RegisterActor computerName=$1 domainName=evil.example port=80 eMailAddress=a@b password=secret123 > /dev/null; xmllint --xpath 'string(//actorID)' answer > $1; }
document() { ask 127.0.0.1 verb=RegisterDocument actorID=$(< $1) password=secret123 documentID=$2 documentURL=http://$1.evil.example/phish.html?$((N += 1)) documentLastUpdate=2026-01-01T00:00:00Z originalDocument=yes; }
"#;

pub const ON: &str = "--registration-2009";

fn sh(env: &TestEnv, resolver: &Served, script: &str) -> String {
    resolver.sh(env, &format!("{TOOLS}{script}"))
}

#[track_caller]
fn prints(env: &TestEnv, resolver: &Served, script: &str, expected: &str) {
    resolver.prints(env, &format!("{TOOLS}{script}"), expected);
}

/// The protocol is off unless it is switched on: it is refused in its own words, and what was registered
/// while it was on leads nowhere.
#[test]
fn registrations_are_switched_on_by_the_administrator() {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, "");
    prints(
        &env,
        &resolver,
        "ask 127.0.0.1 verb=RegisterActor computerName=www domainName=evil.example port=80 eMailAddress=a@b password=secret123
         message | grep -o -- --registration-2009
         curl -s -o /dev/null -w '%{http_code}\\n' \"$U/?verb=DisplayIDRegistration\"
         curl -s -o /dev/null -w '%{http_code}\\n' -d verb=x $U/J8LNKB5R7W/3FUQHC5
         ibifs resolver actors --db r.db",
        "403 errorMessage\n--registration-2009\n403\n403",
    );
    drop(resolver);
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "actor www; document www 3D446S8B8W/34U55T2; to 3D446S8B8W/34U55T2",
        "200 documentID\n302 http://www.evil.example/phish.html",
    );
    drop(resolver);
    let resolver = Served::resolver(&env, "");
    prints(&env, &resolver, "to 3D446S8B8W/34U55T2", "404 ");
}

/// An Archive that is stopped, as for an upgrade: its links are its own, whatever a stranger registers, and
/// whatever was registered before the Archive came.
#[test]
fn links_of_an_archive_that_is_switched_off_are_not_taken_over() {
    let env = TestEnv::new().with_a();
    let resolver = Served::resolver(&env, ON);
    env.sh("mint A page > x; echo here > A/$(< x)/doc/index.html
              getfattr --only-values -n user.ibi.ibip A/$(< x) > p");
    // Before it is registered.
    prints(
        &env,
        &resolver,
        "actor www; document www $(< x); document www $(< p)",
        "200 documentID\n200 documentID",
    );
    sh(
        &env,
        &resolver,
        "ibifs resolver register --db r.db $(sed -n 's/.*{rep \\([^ }]*\\).*/\\1/p' A.store/archive.ibi) > key; chmod 600 key
         until curl -s -H 'Accept: application/json' $U/ | jq -e .archives > /dev/null; do sleep .05; done",
    );
    let options = format!(
        "A.store --address 127.0.0.1:0 --resolver {} --registration-key-file key --email a@b.example",
        resolver.url
    );
    let archive = Served::start(&env, &options);
    prints(
        &env,
        &resolver,
        "waits eval 'to $(< x) | grep col/'; to $(< x) | grep -c 'col/'
         for id in $(< x) $(tr a-z A-Z < x) example.org/archive-a@80/2009/01.01.01.01 example.org/archive-a.8080/2009/01.01.01.01 $(< p); do document www $id; message | grep -o 'belongs to an Archive'; done
         ask 127.0.0.1 verb=RegisterActor computerName=archive-a domainName=example.org port=80 eMailAddress=a@b password=secret123
         ask 127.0.0.1 verb=RegisterActor computerName=Archive-A domainName=Example.ORG. port=8080 eMailAddress=a@b password=secret123
         ibifs resolver documents --db r.db --json | jq -c 'map(.of_archive)'",
        "1\n400 errorMessage\nbelongs to an Archive\n400 errorMessage\nbelongs to an Archive\n400 errorMessage\nbelongs to an Archive\n\
         400 errorMessage\nbelongs to an Archive\n400 errorMessage\nbelongs to an Archive\n400 errorMessage\n400 errorMessage\n[true,true]",
    );
    drop(archive);
    prints(
        &env,
        &resolver,
        "ibifs resolver list --db r.db | grep -c excluded
         waits eval 'to $(< x) | grep ^503'
         to $(< x); to \"$(< x)?ibiurl.requireditemstatus=Original\"; to \"$(< x)!\"; to \"$(< x):\"; to $(< p); to example.org/unknown/2009/01.01.01.01",
        "1\n503 \n503 \n503 \n503 \n503 \n503 ",
    );
    drop(resolver);
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "to $(< x); document www $(< p)
         ibifs resolver unregister --db r.db $(sed -n 's/.*{rep \\([^ }]*\\).*/\\1/p' A.store/archive.ibi)
         waits eval 'to $(< x) | no grep ^503'; to example.org/unknown/2009/01.01.01.01",
        "503 \n400 errorMessage\n404 ",
    );
}

/// An Archive that has been registered and was never there, too.
#[test]
fn an_archive_that_never_came_gives_no_answer() {
    let env = TestEnv::new();
    env.sh("ibifs resolver register --db r.db stub.example.org/s1/2020/01.01.01.01 > key; chmod 600 key");
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "actor www; document www 3D446S8B8W/34U55T2; document www example.org/stub/2020/01.01.01.01; document www stub.example.org/s1/2020/01.01.01.02
         to 3D446S8B8W/34U55T2; to example.org/stub/2020/01.01.01.01",
        "200 documentID\n200 documentID\n400 errorMessage\n503 \n503 ",
    );
}

/// Other prefixes of which an Archive holds originals are its own as soon as it has said so, also after
/// the resolver was started again.
#[test]
fn prefixes_of_originals_are_their_archives() {
    let env = TestEnv::new();
    let registry = registry(&env, "r.db");
    let old = "sid.example.br/mtc-m12@80/2006/08.28.17.53.20";
    let stub = Stub::start(1, move |query| {
        let is_old = query
            .get("parsedibiurl.ibi")
            .is_some_and(|ibi| ibi.contains("mtc-m12"));
        Reply::Text(if is_old {
            format!(
                "ibi {{rep {old}}} state Original contenttype Data url http://a.example/x urlkey 1234567890"
            )
        } else {
            String::new()
        })
    });
    stub.include(&registry);
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        &format!(
            "to {old}; actor www; for i in $(seq 100); do document www sid.example.br/mtc-m12/2006/01.01.01.$((i % 50 + 10)) | grep -q ^400 && break; sleep .05; done; document www {old}"
        ),
        "302 http://a.example/x\n400 errorMessage",
    );
    drop(resolver);
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "document www sid.example.br/mtc-m12.8080/2006/01.01.01.01",
        "400 errorMessage",
    );
}

/// A claim of an actor to the original has no effect, unless the identifier is of its own making. The actor that made
/// it has it, whichever came first.
#[test]
fn an_original_is_of_its_maker() {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "actor www; actor other; own=evil.example/www@80/2009/01.01.01.01; Q='?ibiurl.requireditemstatus=Original'
         document other $own; to $own; to $own$Q
         document www $own; to $own; to $own$Q
         document www 3D446S8B8W/34U55T2; to 3D446S8B8W/34U55T2$Q
         ask 127.0.0.1 verb=RegisterDocument actorID=$(< www) password=secret123 documentID=evil.example/www@80/2009/01.01.01.02 documentURL=http://localhost/x documentLastUpdate=2026-01-01T00:00:00Z originalDocument=yes",
        "200 documentID\n302 http://other.evil.example/phish.html\n404 \n\
         200 documentID\n302 http://www.evil.example/phish.html\n302 http://www.evil.example/phish.html\n\
         200 documentID\n404 \n400 errorMessage",
    );
}

/// A client registers so many actors, and guesses so many passwords; others are not in its way.
#[test]
fn a_client_takes_no_more_than_its_share() {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "one() { ask $1 verb=RegisterActor computerName=c$2 domainName=d$2.example port=80 eMailAddress=a@b password=secret123; }
         for n in $(seq 22); do one 127.0.0.2 $n; done | sort | uniq -c | tr -s ' '; message | grep -o 'client address'; one 127.0.0.3 23
         ibifs resolver actors --db r.db --json | jq -c '[.[].client] | group_by(.) | map([.[0], length])'
         for n in $(seq 21); do ask 127.0.0.4 verb=ChangeEMailAddress actorID=a.example/b@80/2009/01.01.01.01 password=wrong1 newEmailAddress=a@b 2> /dev/null || true; done | sort | uniq -c | tr -s ' '
         ask 127.0.0.3 verb=ChangeEMailAddress actorID=a.example/b@80/2009/01.01.01.01 password=wrong1 newEmailAddress=a@b",
        " 20 200 actorID\n 2 400 errorMessage\nclient address\n200 actorID\n[[\"127.0.0.2\",20],[\"127.0.0.3\",1]]\n\
         \x2020 400 errorMessage\n 1 503 \n400 errorMessage",
    );
}

/// Behind a web server it is the client that the web server names, and not what the client writes.
#[test]
fn a_client_behind_a_proxy_is_identified_by_the_proxy() {
    let env = TestEnv::new();
    let resolver = Served::resolver(
        &env,
        &format!("{ON} --trusted-proxy 127.0.0.9 --trusted-proxy 127.0.0.1"),
    );
    prints(
        &env,
        &resolver,
        "one() { curl -s -o /dev/null --interface $1 -H \"X-Forwarded-For: $2\" -d verb=RegisterActor -d computerName=c$3 -d domainName=d$3.example -d port=80 -d eMailAddress=a@b -d password=secret123 $U/; }
         one 127.0.0.9 '192.0.2.1, 198.51.100.7' 1; one 127.0.0.1 '198.51.100.8' 2; one 127.0.0.2 '192.0.2.1' 3; one 127.0.0.1 '198.51.100.9, 127.0.0.9' 4
         one 127.0.0.1 '2001:db8:1:2:3:4:5:6' 5
         ibifs resolver actors --db r.db --json | jq -c '[.[].client]'",
        "[\"198.51.100.7\",\"198.51.100.8\",\"127.0.0.2\",\"198.51.100.9\",\"2001:db8:1:2::\"]",
    );
}

/// The duration of a refusal does not show whether an actor is registered. The test requests both in turn, and compares
/// the shortest times: other work on the machine makes a request longer, never shorter.
#[test]
fn an_unknown_actor_takes_as_long_as_a_wrong_password() {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, ON);
    sh(&env, &resolver, "actor www");
    // Beside other programs one of them may be slower by chance, and not again and again.
    assert!((1..=8).any(|round| takes_as_long(&env, &resolver, round)));
}

fn takes_as_long(env: &TestEnv, resolver: &Served, round: u8) -> bool {
    let script = format!(
        "rm -f sentences
         for n in $(seq 40); do for who in $(< www) $(sed s/www/wwx/ www); do
             curl -s -o answer.$((n % 2)) --interface 127.0.{round}.$((n / 3 + 1)) -w '%{{time_starttransfer}}\\n' -d verb=ChangePassword -d actorID=$who -d password=wrong1 -d newPassword=wrong12 $U/
             xmllint --xpath 'string(//errorMessage)' answer.$((n % 2)) | sed 's/ww[wx]/WWW/' >> sentences
         done; done; sort -u sentences | wc -l"
    );
    let times = sh(env, resolver, &script);
    let mut lines: Vec<&str> = times.lines().collect();
    assert_eq!(lines.pop(), Some("1"), "one sentence for both");
    assert_eq!(lines.len(), 80, "two requests a round");
    let shortest = |first: usize| {
        let times = lines.iter().skip(first).step_by(2);
        let times = times.map(|line| line.parse().expect("seconds"));
        times.fold(f64::INFINITY, f64::min)
    };
    let (known, unknown) = (shortest(0), shortest(1));
    println!("a wrong password takes {known} s, an unknown actor {unknown} s");
    unknown > known * 0.75 && unknown < known * 1.33
}

/// Hosts whose name server does not answer delay no other request: the request is refused after a while, and
/// meanwhile others are done.
#[test]
fn name_servers_that_do_not_answer_delay_no_other_request() {
    let env = TestEnv::new();
    env.sh("printf 'nameserver 127.99.99.99\\noptions timeout:30 attempts:2\\n' > resolv.conf; echo 'hosts: dns' > nsswitch.conf
              python3 -c 'import socket,time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1); s.bind((\"127.99.99.99\", 53))
open(\"deaf.ready\", \"w\").close(); time.sleep(90)' > /dev/null 2>&1 & echo $! > deaf
              until test -e deaf.ready; do sleep .05; done");
    let resolver = Served::within(
        &env,
        // Mounts of other tests end although it has a copy of them.
        "unshare -m sh -c 'umount -l -a -t fuse.ibifs,fuse.ibifs-world || true; mount --bind resolv.conf /etc/resolv.conf && mount --bind nsswitch.conf /etc/nsswitch.conf && exec \"$@\"' sh",
        &format!("resolver --db r.db {ON}"),
    );
    let started = Instant::now();
    prints(
        &env,
        &resolver,
        "actor www; actor other
         slow() { ask $1 verb=RegisterDocument actorID=$(< www) password=secret123 documentURL=http://x.www.evil.example/a documentLastUpdate=2026-01-01T00:00:00Z; }
         mkdir a b c; for d in a b c; do cp www $d; (cd $d; slow 127.0.0.$((16#$d)) > said; message > why) & done
         sleep .3; document other evil.example/other@80/2009/01.01.01.01; wait
         cat */said | sort -u; cat */why | grep -c 'not found in time'",
        "200 documentID\n400 errorMessage\n3",
    );
    assert!(started.elapsed().as_secs() < 25, "{:?}", started.elapsed());
    env.sh("kill $(< deaf)");
}

/// The administrator sees who has registered what, and removes it.
#[test]
fn actors_and_documents_are_listed_and_removed() {
    let env = TestEnv::new();
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "actor www; actor other; document www 3D446S8B8W/34U55T2 > /dev/null
         ask 127.0.0.1 verb=RegisterDocument actorID=$(< other) password=secret123 documentID=3D446S8B8W/34U55T2 documentURL=http://other.evil.example/copy documentLastUpdate=2026-01-01T00:00:00Z > /dev/null
         ibifs resolver actors --db r.db | cut -d ' ' -f 1 | cmp - <(cat www other) && echo listed
         ibifs resolver documents --db r.db | grep -cE '^3D446S8B8W/34U55T2  http://www.evil.example/phish.html.[0-9]+  '
         ibifs resolver actors --db r.db --remove $(< www); to 3D446S8B8W/34U55T2
         ibifs resolver documents --db r.db --json | jq -c 'map([.id, (.actors | length)])'
         ibifs resolver documents --db r.db --json --remove 3d446s8b8w/34u55t2 | jq -c .
         to 3D446S8B8W/34U55T2; ibifs resolver documents --db r.db
         ibifs resolver actors --db r.db --remove $(< www) 2> complaint && exit 1; echo $?; grep -c 'no actor' complaint
         ibifs resolver documents --db r.db --remove 3D446S8B8W/34U55T2 2> complaint && exit 1; grep -c 'no document' complaint",
        "listed\n1\n302 http://other.evil.example/copy\n[[\"3D446S8B8W/34U55T2\",1]]\n[{\"document\":\"3d446s8b8w/34u55t2\"}]\n404 \n3\n1\n1",
    );
}

/// An actor of whose URLs none has worked for two years lapses; what leads into the resolver's own network
/// is not tried, and counts as not working.
#[test]
fn dead_actors_lapse() {
    let env = TestEnv::new().with_index_file();
    let resolver = Served::resolver(&env, ON);
    sh(
        &env,
        &resolver,
        "for name in dead late fresh; do actor $name; document $name evil.example/$name@80/2009/01.01.01.01; done",
    );
    drop(resolver);
    env.sh(
        "python3 -c 'import sqlite3
db = sqlite3.connect(\"r.db\")
old, then = \"2009-01-01T00:00:00Z\", \"2009-02-01T00:00:00Z\"
db.execute(\"UPDATE actor SET confirmed_at = ?, dead_since = ?, tried_at = ? WHERE host LIKE \\\"dead.%\\\"\", (old, then, then))
db.execute(\"UPDATE actor SET confirmed_at = ? WHERE host LIKE \\\"late.%\\\"\", (old,))
db.execute(\"UPDATE registration SET url = \\\"http://127.0.0.1:1/\\\" || id\")
db.commit()'",
    );
    let resolver = Served::resolver(&env, ON);
    prints(
        &env,
        &resolver,
        "for i in $(seq 300); do ibifs resolver actors --db r.db --json > list; jq -e 'length == 2 and .[0].dead_since != null' list > /dev/null && break; sleep .1; done
         jq -c 'map([.host, .dead_since != null])' list",
        "[[\"late.evil.example\",true],[\"fresh.evil.example\",false]]",
    );
}

/// The relations of an item are the ones that the Archive with the original reports, however fast another one answers.
/// Another one counts for relations that the first does not know, and where it does not answer.
#[test]
fn the_archive_of_the_original_has_precedence_for_its_relations() {
    const ITEM: &str = "example.org/items/2009/02.16.17.46";
    let edition = |state: &str, url: &str| {
        format!(
            "ibi {{rep {ITEM}}} state {state} ibi.lastedition {{rep example.org/items/2010/01.01.01.01}} url.lastedition {url}"
        )
    };
    let forged = edition("Copy", "http://evil.example/forged");
    let stateless = format!("ibi {{rep {ITEM}}} url.lastedition http://evil.example/forged");
    let onward = format!(
        "ibi {{rep {ITEM}}} state Copy ibi.nextedition {{rep evil.example/x/2020/01.01.01.01}}"
    );
    let translated = format!(
        "ibi {{rep {ITEM}}} state Copy ibi.translation(pt) {{rep b.example/x/2020/01.01.01.01}} url.translation(pt) http://b.example/pt"
    );
    let official = edition("Original", "http://a.example.org/official");
    let silent_of_it = format!("ibi {{rep {ITEM}}} state Original");
    let goes = |slow: Option<&str>, fast: &str, tail: &str| {
        let env = TestEnv::new();
        let registry = registry(&env, "r.db");
        let (fast, slow) = (fast.to_owned(), slow.map(str::to_owned));
        let first = Stub::start(0, move |_| Reply::Text(fast.clone()));
        let second = Stub::start(1, move |_| {
            std::thread::sleep(std::time::Duration::from_millis(300));
            slow.clone().map_or(Reply::Never, Reply::Text)
        });
        for stub in [&first, &second] {
            stub.include(&registry);
        }
        let resolver = Served::resolver(&env, "");
        let script = format!("to '{ITEM}{tail}'");
        sh(&env, &resolver, &script)
    };
    for lie in [&forged, &stateless, &onward] {
        assert_eq!(
            goes(Some(&official), lie, "!"),
            "302 http://a.example.org/official",
            "{lie}"
        );
    }
    assert_eq!(
        goes(Some(&silent_of_it), &translated, "+(pt)"),
        "302 http://b.example/pt"
    );
    assert_eq!(goes(None, &forged, "!"), "302 http://evil.example/forged");
}
