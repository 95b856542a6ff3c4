//! Items and originals that go to an Archive by HTTP alone.

use super::served::Served;
use crate::support::{Needs, TestEnv};

/// Two served stores, of which `A` holds the item `one`; the URL of `A` stands behind the token.
fn pair() -> (TestEnv, Served, Served) {
    pair_on(TestEnv::new())
}

fn pair_on(env: TestEnv) -> (TestEnv, Served, Served) {
    env.sh(
        "ibifs init A --host archive-a.example.org > /dev/null
         ibifs init B --host archive-b.example.net > /dev/null
         ibifs mint A | head -n 1 > one; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > token; touch tokens; chmod 600 token tokens
         cd A/col/$(< one)/doc; echo text > file; ln file link; mkdir -m 700 deep; echo x > 'deep/a b'
         ln -s ../../elsewhere climbing; truncate -s 3M sparse; echo end >> sparse; chmod 640 file
         setfattr -n user.note -v kept file; touch -d '2001-02-03 04:05:06.789' file",
    );
    let a = Served::start(&env, "A");
    env.sh(&format!("echo \"$(< token) {}\" > tokens", a.url));
    let b = Served::start(&env, "B --transfer-token-file tokens");
    (env, a, b)
}

const STATES: &str =
    "for s in A B; do ibifs show --store $s $(< one) | sed -n 's/^state *//p'; done";

/// The copy is the item, a second one sends nothing; the original goes over and the services say so; by way
/// of a mount as well.
#[test]
fn an_original_goes_over_by_http() {
    for mount in ["", "mkdir M; ibifs mount B M"] {
        let (env, a, b) = pair_on(TestEnv::with(Needs::Holes));
        env.sh(mount);
        let url = &b.url;
        let copied = env.sh(&format!(
            "ibifs copy --store A --token-file token $(< one) {url}/"
        ));
        assert!(copied.starts_with("copied: "), "{copied}");
        env.prints(
            "rsync -aHXni --delete A/col/$(< one)/ B/col/$(< one)/ | grep -v ' .ibi$' || true
             test $(stat -c %b B/col/$(< one)/doc/sparse) -lt 200 && echo sparse",
            "sparse",
        );
        let again = env.sh(&format!(
            "ibifs copy --store A --token-file token $(< one) {url}"
        ));
        assert!(again.starts_with("unchanged: "), "{again}");
        env.sh("echo more >> A/col/$(< one)/doc/file");
        let sent = env.sh(&format!(
            "ibifs transfer --store A --token-file token $(< one) {url} --json"
        ));
        assert!(
            sent.contains("\"handed-over\"") && sent.contains("\"bytes\":10,"),
            "{sent}"
        );
        env.prints(STATES, "Copy\nOriginal");
        let said = "curl -s \"$1/$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' $2/archive.ibi)?servicesubject=urlRequest&parsedibiurl.ibi=$(< one)\" | tr -d '\\r' | grep '^state '";
        env.prints(&format!("set -- {} A; {said}", a.url), "state Copy");
        env.prints(&format!("set -- {url} B; {said}"), "state Original");
        // The other one is queried like by any client.
        env.sh(&format!("ibifs fsck A --with {url}/$(sed -n 's/^ibi.archiveservice {{rep \\([^ ]*\\).*/\\1/p' B/archive.ibi)"));
        env.sh("! test -d M || ibifs umount M; ibifs fsck A; ibifs fsck B");
        env.prints("find A/handover B/handover -type f ! -name lock", "");
        drop((a, b));
    }
}

/// The other one is queried, like by any client, for what it claims.
#[test]
fn two_originals_are_named_over_http() {
    let (env, _a, b) = pair();
    env.sh(&format!(
        "cp -a A before; ibifs transfer --store A --token-file token $(< one) {}",
        b.url
    ));
    let service = "$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' B/archive.ibi)";
    env.exits(&format!("ibifs fsck before --with {}/{service}", b.url), 1);
    env.prints(
        &format!(
            "{{ ibifs fsck before --with {}/{service} || true; }} | head -n 1 | cut -d : -f 1",
            b.url
        ),
        "two-originals",
    );
    env.complains(
        &format!("ibifs fsck before --with {}", b.url),
        "not the URL of an Archive's service",
    );
}

/// A client without a token changes nothing, nor does one that has a token and says what is not so: the Archive that
/// gives is queried. No path leads out of the item.
#[test]
fn what_is_not_so_is_refused() {
    let (env, a, b) = pair();
    let url = &b.url;
    let steps = "post() { curl -s -X POST -o answer -w '%{http_code}\\n' -H \"Authorization: Bearer ${T-$(< token)}\" \"$@\"; }
         item=rep=$(< one)
         from=from.rep=$(sed -n 's/^ibi.archiveservice {rep \\([^ ]*\\).*/\\1/p' A/archive.ibi)";
    let prints = |script: &str, expected: &str| {
        env.prints(&format!("U={url}/transfer\n{steps}\n{script}"), expected);
    };
    prints(
        "T=x post $U?step=hello; T=$(< token)x post $U?step=hello; curl -s -o answer -w '%{http_code}' -X POST $U?step=hello",
        "401\n401\n401",
    );
    env.prints(
        &format!(
            "curl -s -X POST -w '%{{http_code}}' -o answer {}/transfer?step=hello",
            a.url
        ),
        "404",
    );
    prints(
        "post $U?step=hello; post $U?step=nothing\\&$item; post $U?step=tell; post $U?step=take\\&$item",
        "200\n400\n400\n400",
    );
    prints(
        "post $U?step=tell\\&$item; cat answer; curl -s -o answer -w '%{http_code}\\n' $U",
        "200\n404",
    );
    env.sh(&format!(
        "ibifs copy --store A --token-file token $(< one) {url}"
    ));
    // A claims it still: whatever the holder of the token says, B does not take it.
    prints(
        "post $U?step=expect\\&$item\\&$from; w=$(tr -d '\\r' < answer | sed 's/word //'); post $U?step=take\\&$item\\&$from\\&word=$w; grep -o 'it claims the original itself' answer
         post $U?step=take\\&$item\\&from.rep=example.com/x/2020/01.01.01.01\\&word=$w; grep -o 'does not say that it has given it up' answer",
        "200\n409\nit claims the original itself\n409\ndoes not say that it has given it up",
    );
    env.prints(STATES, "Original\nCopy");
    env.sh("for path in ../x /x a/../../x .. .ibi; do printf 'directory 755 1.0 \\nfile 644 1.0 %s %064d 1\\n' $path 0; echo; done > bad");
    prints(
        "while read -r first && read -r second && read -r _; do
             printf '%s \\n%s\\n' \"$first\" \"$second\" | post --data-binary @- $U?step=plan\\&$item
         done < bad",
        "400\n400\n400\n400\n400",
    );
    // A file that differs from its announcement is not stored.
    prints(
        "printf x | post --data-binary @- $U?step=file\\&$item\\&length=1\\&digest=$(printf y | sha256sum | cut -c -64); grep -o 'another digest' answer
         printf xx | post --data-binary @- $U?step=file\\&$item\\&length=1\\&digest=$(printf x | sha256sum | cut -c -64); grep -o 'longer than announced' answer
         post --data-binary @token $U?step=file\\&$item\\&length=99999999999999999\\&digest=$(printf x | sha256sum | cut -c -64); grep -o 'there is not enough space' answer
         find B/handover/incoming -type f",
        "409\nanother digest\n409\nlonger than announced\n409\nthere is not enough space",
    );
    for (script, expected) in [
        (
            "ibifs copy --store A $(< one) http://127.0.0.1:1/",
            "--token-file",
        ),
        (
            "ibifs copy --store A --token-file token $(< one) http://127.0.0.1:1/",
            "the Archive at http://127.0.0.1:1",
        ),
        (
            "ibifs copy --store A --token-file token $(< one) https://127.0.0.1:1/",
            "the Archive at https://127.0.0.1:1: ",
        ),
        (
            "ibifs copy --store A --token-file token $(< one) https://u@127.0.0.1/",
            "is not the URL of a service",
        ),
        (
            "echo short > t; chmod 600 t; ibifs serve B --transfer-token-file t",
            "32 or more",
        ),
    ] {
        env.complains(script, expected);
    }
    env.sh("mkfifo A/col/$(< one)/doc/pipe");
    let printed = env.run(&format!(
        "ibifs transfer --store A --token-file token $(< one) {url}"
    ));
    let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
    assert!(
        printed.contains(": not-copied: ") && printed.contains("'doc/pipe' is a FIFO"),
        "{printed}"
    );
    env.prints(STATES, "Original\nCopy");
    drop((a, b));
}

/// A file that was begun to be sent and was not continued for a week is removed. A file that is being sent is not, even
/// by the service of another host, nor are files that arrived since.
#[test]
fn what_nobody_continues_to_send_is_removed() {
    let (env, a, b) = pair();
    let send = |more: &str, item: &str| {
        format!(
            "file() {{ curl -s -X POST -H \"Authorization: Bearer $(< token)\" {more} \
             \"{}/transfer?step=file&digest=$(echo text | sha256sum | cut -c 1-64)&length=5&rep={item}\"; }}",
            b.url
        )
    };
    let left = "find B/handover/incoming -mindepth 2 | wc -l; ls B/handover/incoming | wc -l";
    for item in [
        "a.example/b/2001/01.01.00.00",
        "a.example/b/2001/01.01.00.01",
    ] {
        env.sh(&format!(
            "{}; echo text | file | grep -q ^digest",
            send("--data-binary @-", item)
        ));
    }
    env.prints(left, "2\n2");
    env.sh(
        "cd B/handover/incoming; old=$(ls | head -n 1); touch -d '8 days ago' $old/* $old
         for it in *; do test $it = $old || touch -d '6 days ago' $it/* $it; done",
    );
    // A third is being sent as slowly as can be, and its sender was silent for longer.
    env.sh(&format!(
        "{}; mkfifo pipe go; {{ exec > said 2> why; file; }} & exec 3> pipe; printf te >&3
         waits eval 'ls B/handover/incoming/*/*.*'
         {{ exec > why 2>&1; read -r _ < go; printf 'xt\\n' >&3; }} &
         exec 3>&-
         cd B/handover/incoming; for it in *; do
             test -n \"$(find $it -name '*.*')\" || continue; touch -d '8 days ago' $it/* $it; done",
        send("-T pipe", "a.example/b/2001/01.01.00.02")
    ));
    env.prints(
        "ibifs fsck B --json | jq -r '.findings[].code'",
        "arrival-left",
    );
    let other = Served::start(&env, "B --transfer-token-file tokens");
    env.sh("waits eval 'test $(ls B/handover/incoming | wc -l) = 2'");
    env.prints("echo > go; waits test -s said; grep -c ^digest said", "1");
    env.prints(left, "2\n2");
    env.prints("ibifs fsck B --json | jq -r '.findings[].code'", "");
    drop((a, b, other));
}

/// Files that are not sent over HTTP are reported for each item, in numbers, and the rest arrives. A file whose access
/// control list is not sent does not let its group do more than the list did.
#[test]
fn what_is_not_sent_is_reported() {
    let (env, a, b) = pair();
    env.sh("cd A/col/$(< one)/doc; mkdir empty; chown 12:34 deep; chmod 2755 empty; cp /bin/true tool; chmod 4755 tool
         echo x > list; chmod 640 list; setfacl -m u:1234:rw list; stat -c %a list | grep -q 660
         setfattr -n trusted.note -v x file; touch -h -d 2002-02-02 climbing; touch -d 2003-03-03 list empty deep .");
    let copy = format!("ibifs copy --store A --token-file token $(< one) {}", b.url);
    env.sh(&format!("{copy} 2> said"));
    env.prints(
        "sed \"s|$(< one)|one|\" said",
        "ibifs: one: not sent over HTTP: owner or group of 1 entry; 1 access control list; \
         set-user-ID or set-group-ID bits of 2 entries; extended attributes other than 'user.' of 1 entry\n\
         ibifs: owners and groups are not sent over HTTP: there everything belongs to the user of the other Archive",
    );
    env.sh("list() { (cd $1/col/$(< one)/doc; find . ! -name list -printf '%p %y %T@ %n %l\\n' | sort; cat list; getfattr -n user.note file); }
         list A > a; list B > b; diff a b");
    env.prints(
        "cd B/col/$(< one)/doc; stat -c '%n %a %u %g' list tool empty deep; getfattr -d -m - list",
        "list 640 0 0\ntool 755 0 0\nempty 755 0 0\ndeep 700 0 0",
    );
    // Items that are there already are not announced again; JSON has the numbers.
    env.prints(
        &format!("{copy} 2>&1 | cut -d : -f 1 | head -n 1"),
        "unchanged",
    );
    env.prints(
        &format!("ibifs transfer --store A --token-file token --json $(< one) {} 2> /dev/null | head -n 1 | jq -c .not_sent", b.url),
        "{\"owners\":1,\"access_lists\":1,\"set_ids\":2,\"attributes\":1}",
    );
    // Between stores of one machine all of it goes, and nothing is said.
    env.sh("ibifs init C --host archive-c.example.com > /dev/null; ibifs copy --store A $(< one) C 2> said; ! test -s said");
    env.prints(
        "cd C/col/$(< one)/doc; stat -c '%n %a %u %g' list tool empty deep",
        "list 660 0 0\ntool 4755 0 0\nempty 2755 0 0\ndeep 700 12 34",
    );
    // A copy over HTTP prints a general notice: the server does not say what the copy lacks.
    env.sh("chmod -R a+rX A; ibifs init D --host archive-d.example.com > /dev/null");
    env.prints(
        &format!(
            "ibifs copy --from {} $(< one) D 2>&1 > /dev/null | cut -d , -f 1",
            a.url
        ),
        "ibifs: of what is fetched over HTTP",
    );
    drop((a, b));
}
