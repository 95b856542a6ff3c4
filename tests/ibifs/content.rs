//! The content of items in numbers: what the index says of an item is always what is in it, or nothing.

use crate::support::TestEnv;

/// `known REP`: what the index says of an item. `truth REP`: what there is in the store. `right REP`: it says so before long.
/// `exact REP`: it says that, or nothing, as soon as the daemon has noted the change, and never anything else in between.
const FUNCTIONS: &str = r#"
known() { in_database A.store/relations.sqlite3 "SELECT files || '|' || bytes || '|' || coalesce(substr(newest, 1, 19), '') FROM content JOIN item ON item.id = content.item WHERE rep = '$1'"; }
truth() { (cd A.store/col/$1; export TZ=UTC
    printf '%s|%s|%s\n' $(find . -type f ! -name .ibi | wc -l) $(find . -type f ! -name .ibi -printf '%s\n' | awk '{ sum += $1 } END { print sum + 0 }') \
        $(find . -mindepth 1 \( -type f -o -type d \) ! -name .ibi -printf '%TY-%Tm-%TdT%TH:%TM:%TS\n' | cut -c 1-19 | sort | tail -n 1)); }
is_right() { local known; known=$(known $1); [ -n "$known" ] && [ "$known" = "$(truth $1)" ]; }
right() { waits is_right $1; }
# The daemon has a thread that removes the row, and one that was removed is not written again for two seconds.
exact() { local end=$((SECONDS + 60)) known truth now stale=
    while known=$(known $1); [ -n "$known" ]; do
        truth=$(truth $1); now=${EPOCHREALTIME/./}
        if [ "$known" = "$truth" ]; then
            [ -z "$stale" ] || ((now - stale > 1500000)) || { echo "$1 was counted without being unknown" >&2; exit 1; }
            return 0
        fi
        stale=$now; ((SECONDS < end)) || { echo "$1 is $truth, not $known" >&2; exit 1; }
        sleep 0.05
    done; }
is_unknown() { [ -z "$(known $1)" ]; }
unknown() { waits is_unknown $1; sleep ${2-0.5}; is_unknown $1 || { echo "$1 is known as $(known $1)" >&2; exit 1; }; }
"#;

fn script(text: &str) -> String {
    format!("{FUNCTIONS}\n{text}")
}

/// Through both trees, with each request that changes content.
#[test]
fn each_change_is_counted() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; mint A second > second; one=$(< first); two=$(< second)
        for tree in A/$one A/$(ibip A/$one); do
            rm -rf $tree/doc $tree/x; mkdir $tree/doc; echo hello > $tree/doc/text; right $one
            # Each is checked right after it, when a row that was not removed would be wrong.
            for change in "echo more >> $tree/doc/text" "truncate -s 3 $tree/doc/text" "touch -d 2001-02-03 $tree/doc/text $tree/doc" \
                "mkdir -p $tree/x/y/z" "cp $tree/doc/text $tree/x/y/z/copy" "ln $tree/doc/text $tree/x/second" "ln -s ../doc/text $tree/x/link" \
                "mv $tree/doc/text $tree/x/renamed" "chmod 600 $tree/x/y/z/copy" "setfacl -m u:12345:r $tree/x/renamed" \
                "rm $tree/x/second" "chmod 644 $tree/x/y/z/copy" "rm -r $tree/x/y"; do
                eval "$change"; exact $one
            done
            right $one
        done
        # From one item to another, as a file and as a directory, in which the kernel knows a file.
        echo file > A/$one/doc/moved; mkdir -p A/$one/deep/er; echo inside > A/$one/deep/er/file; mv A/$two/doc A/$two/d
        right $one; right $two; cat A/$one/deep/er/file
        mv A/$one/doc/moved A/$two/d/; mv A/$one/deep A/$two/; exact $one; exact $two; right $one; right $two
        exec 5>> A/$two/deep/er/file; echo appended >&5; unknown $two; exec 5>&-; right $two
        echo again >> A/$two/deep/er/file; exact $two; right $two
        # A name in each of two items: the file can change without one of them.
        ln A/$two/deep/er/file A/$one/doc/shared; unknown $one 4; unknown $two 0
        rm A/$one/doc/shared; right $one; echo last >> A/$two/deep/er/file; exact $two; right $two
        ibifs status A --json | jq -e '.[0].content.items >= 2' > /dev/null
        rm -r A/$two; [ -z "$(known $two)" ]; ibifs umount A; ibifs fsck A.store"#,
    ));
}

/// A file that had a name in another item as well is counted where its last name is, whichever name was met last.
#[test]
fn a_file_that_had_names_in_two_items_is_counted() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; mint A second > second; one=$(< first); two=$(< second)
        file=A/$two/doc/file; other=A/$one/doc/other; echo x > $file
        again() { for turn in 1 2; do echo $turn >> $file; exact $two; right $two; done; right $one; }
        ln $file $other; rm $other; again
        ln $file $other; ibifs umount A; ibifs mount A.store A; cat $file $other > /dev/null; rm $other; again
        ln $file $file.2; mv $file.2 $other; rm $other; again
        ln $file $other; exec 5>> $file; rm $other; echo open >&5; unknown $two 4; exec 5>&-; again
        ibifs umount A; ibifs fsck A.store"#,
    ));
}

/// A file that is open or mapped for writing can change at any time: its item is not counted.
#[test]
fn an_open_file_is_not_counted() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; one=$(< first); echo hello > A/$one/doc/text; right $one
        python3 -c '
import mmap, os, sys, time
with open(sys.argv[1], "r+b") as file:
    mapping = mmap.mmap(file.fileno(), 0)
# The descriptor is closed, the mapping is not.
open("mapped", "w").close()
while not os.path.exists("write"): time.sleep(0.02)
mapping[0:5] = b"HELLO"; mapping.flush()
open("written", "w").close()
while not os.path.exists("end"): time.sleep(0.02)
' A/$one/doc/text & program=$!
        waits [ -e mapped ]; unknown $one 4; touch write; waits [ -e written ]; unknown $one 4
        touch end; wait $program; right $one; grep -qx HELLO A.store/col/$one/doc/text
        exec 5>> A/$one/doc/text; unknown $one 4; echo more >&5; unknown $one 3; exec 5>&-; right $one
        ibifs umount A; ibifs mount A.store A; right $one; ibifs umount A; ibifs fsck A.store"#,
    ));
}

/// After a crash no row is wrong, whenever it comes; what was not counted is counted by the next mount.
#[test]
fn a_crash_leaves_no_wrong_number() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; mint A second > second; one=$(< first); two=$(< second)
        killed() { local pid; pid=$(daemon A.store); kill -9 $pid; while kill -0 $pid 2> /dev/null; do sleep 0.01; done; umount -l A; }
        for pause in 0 0.01 0.05 0.3 2.1 2.3 4; do
            right $one; echo $pause >> A/$one/doc/text; sleep $pause; killed
            ibifs mount A.store A; known=$(known $one); [ -z "$known" ] || is_right $one
        done
        right $one; right $two
        # In the middle of a copy.
        mkdir source; for number in $(seq 50); do echo $number > source/$number; done
        cp -a source A/$one/ & sleep 0.05; killed; wait || true
        ibifs mount A.store A; known=$(known $one); chmod -R a+rX A/$one; right $one; right $two
        ibifs umount A; ibifs reindex A.store; [ -z "$(known $one)" ]; ibifs mount A.store A; right $one; right $two
        ibifs umount A; exact $one; ibifs fsck A.store"#,
    ));
}

/// Programs that work beside the mount, and a collection that arrives.
#[test]
fn what_arrives_is_counted() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; one=$(< first); level=$(dirname $one); right $one
        ibifs work A/$one -- sh -c "mkdir A/$one/deep; sleep 3; echo worked > A/$one/deep/file"; exact $one; right $one
        ibifs work A/$level -- sh -c "sleep 3; echo worked >> A/$one/deep/file"; exact $one; right $one
        year=source/example.org/old/2001; for number in 10 11 12 13; do mkdir -p $year/01.02.03.$number/doc; echo $number > $year/01.02.03.$number/doc/text; done
        ibifs work A -- cp -a source/example.org A/; exact $one
        for number in 10 11 12 13; do right example.org/old/2001/01.02.03.$number; done
        mkdir other; cp -a source/example.org other/; mv other/example.org/old other/example.org/new
        cp -a other/example.org/new A/example.org/; right example.org/new/2001/01.02.03.10; right example.org/new/2001/01.02.03.13
        ibifs umount A; ibifs fsck A.store"#,
    ));
}

/// Hosts that share a store count what they change, and what a dead one has left.
#[test]
fn several_hosts_agree() {
    let env = TestEnv::new().with_postgres();
    env.sh(&script(
        r#"ibifs init A.store --host a.example.org --index "$(database)" > /dev/null; mkdir m n
        in_database() { psql -qAt -v ON_ERROR_STOP=1 "$(sed -n 's/^index //p' A.store/archive.ibi)" -c "$2"; }
        pids() { psql -qAt "$(sed -n 's/^index //p' A.store/archive.ibi)" -c 'SELECT pid FROM host'; }
        ibifs mount A.store m -o shared; dead=$(pids); ibifs mount A.store n -o shared
        mint m first > first; mint m second > second; one=$(< first); two=$(< second); echo hello > m/$one/doc/text; right $one; right $two
        echo more >> n/$one/doc/text; exact $one; right $one
        for round in 1 2 3 4 5; do echo m >> m/$one/doc/text; echo n >> n/$one/doc/other; sleep 0.$round; done; exact $one; right $one
        # One changes it while the other counts.
        (for round in $(seq 20); do echo m >> m/$one/doc/text; sleep 0.2; done) & sleep 2.1; echo n >> n/$one/doc/other; exact $one; wait; right $one
        kill -9 $dead; while kill -0 $dead 2> /dev/null; do sleep 0.01; done; umount -l m; right $one
        echo last >> n/$two/doc/text; exact $two; right $two; ibifs umount n; exact $one; exact $two; ibifs fsck A.store"#,
    ));
}

/// `timestamp` and pages have what the index has of a large item.
#[test]
fn what_is_published_is_what_is_known() {
    let env = TestEnv::new().with_a();
    env.sh(&script(
        r#"mint A first > first; one=$(< first); echo hello > A/$one/doc/text; touch A/$one/doc/{1..200}; right $one
        ibifs serve A.store --listen 127.0.0.1:0 > line & server=$!; trap 'ends $server' EXIT; until [ -s line ]; do sleep 0.05; done; url=$(grep -o 'http://[^ ]*' line)
        service=$(ibifs status A --json | jq -r '.[0].archiveservice.rep')
        stamp() { curl -s "$url$service?servicesubject=urlRequest&parsedibiurl.ibi=$one" | tr -d '\r' | sed -n 's/^timestamp //p'; }
        is() { [ "$(stamp)" = "$1" ]; }
        touch -d 2030-01-01T00:00:00Z A/$one/doc/text; waits is 2030-01-01T00:00:00Z; right $one; is 2030-01-01T00:00:00Z
        touch -d 2031-01-01T00:00:00Z A/$one/doc/text; waits is 2031-01-01T00:00:00Z; right $one; is 2031-01-01T00:00:00Z
        curl -s "${url}sitemap-0.xml" | contains 2031-01-01
        # Nothing is looked for in a large item that is known: the tree says otherwise.
        touch -d 2032-01-01T00:00:00Z A.store/col/$one/doc/text; is 2031-01-01T00:00:00Z
        ends $server; wait; ibifs umount A"#,
    ));
}
