//! `ibifs mint --count`: several items by one command, in a mount and in a store.

use crate::support::TestEnv;

/// As many items as are asked for, each printed as one alone is, in the order of their dates.
#[test]
fn one_command_mints_several_items() {
    let env = TestEnv::new().with_a();
    env.sh("checks() { # PLACE
            ibifs mint $1 --count 70 > printed; grep -c '/20[0-9][0-9]/' printed; grep -cv '/20[0-9][0-9]/' printed
            grep '/20' printed > reps; LC_ALL=C sort -c reps; sort printed | uniq -d
            while read -r rep; do stat -c '%a %n' A.store/col/$rep A.store/col/$rep/doc; done < reps | cut -d' ' -f1 | sort | uniq -c | tr -s ' '
            ibifs mint $1 --count 1 | wc -l
            ibifs mint $1 --count 3 --json | jq -r 'length, (map(.state) | unique[]), (map(.rep, .ibip) | unique | length)'
        }; declare -f checks > checks");
    let expected = "70\n70\n 140 755\n2\n3\nOriginal\n6";
    env.prints(". ./checks; checks A", expected);
    env.prints("while read -r rep; do test -d A/$rep/doc; cat A/$rep/.ibi | grep -c '^ibi '; done < reps | sort | uniq -c | tr -s ' '", " 70 1");
    env.prints("ls -a A/.mint | grep -v '^\\.*$' || echo none", "none");
    env.prints("ls A/example.org/archive-a/20* | wc -l", "75");
    env.sh("ibifs umount A");
    env.prints(
        ". ./checks; checks A.store; ibifs fsck A.store",
        &format!("{expected}\n149 items, 0 findings"),
    );
}

/// Mode and owner are those of an item that is minted alone.
#[test]
fn items_have_the_mode_of_one_minted_alone() {
    let env = TestEnv::new().with_a();
    env.prints(
        "chmod 1777 A; umask 027; ibifs mint A > one; ibifs mint A --count 5 > five
        if [ $(id -u) = 0 ]; then setpriv --reuid 65534 --regid 65534 --clear-groups ibifs mint A --count 5 > other
            for rep in $(grep /20 other); do stat -c '%a %u %g' A/$rep A/$rep/doc A/$rep/.ibi; done | sort -u
        else printf '644 65534 65534\\n750 65534 65534\\n'; fi
        for rep in $(grep /20 one five); do echo ${rep#*:}; done | while read -r rep; do stat -c %a A/$rep A/$rep/doc; done | sort | uniq -c | tr -s ' '",
        "644 65534 65534\n750 65534 65534\n 12 750",
    );
}

/// Bad numbers and what concerns a single item are refused before anything is minted.
#[test]
fn what_is_not_for_several_items_is_refused() {
    let env = TestEnv::new().with_a();
    for bad in ["0", "10001", "x", "1.5", "''", "99999999999999999999"] {
        env.complains(
            &format!("ibifs mint A --count {bad}"),
            "not a number from 1 to 10000; run the command again for more",
        );
    }
    env.sh("mint A one > one; mkdir dir");
    for other in [
        "--edition-of A/$(< one)",
        "--edition-of A/$(< one) --with-metadata",
        "--translation-of A/$(< one) --lang pt",
        "--metadata-of A/$(< one)",
        "--from dir",
        "--from dir --keep",
    ] {
        env.complains(
            &format!("ibifs mint A --count 2 {other}"),
            "cannot be used with",
        );
    }
    env.prints("test -d dir; ibifs ls A.store | wc -l", "2");
    env.sh("ibifs umount A; ibifs mount A.store A -o ro");
    env.complains("ibifs mint A --count 2", "read-only");
}

/// The daemon mints further items for the program that has just minted one, and for no other.
#[test]
fn the_request_of_a_program_that_has_not_minted_is_refused() {
    let env = TestEnv::new().with_a();
    env.sh("mint A one > one; cat > ask <<'END'
import fcntl, os, struct, sys
def ask(path, count=2, number=0xe00069b1):
    directory = os.open(path, os.O_RDONLY)
    try:
        answer = bytearray(struct.pack('I', count) + bytes(8188))
        fcntl.ioctl(directory, number, answer)
        return answer.count(10)
    except OSError as error:
        return os.strerror(error.errno)
print(ask('A/' + sys.argv[1]), ask('A'), ask('A/.mint'), ask('A/' + sys.argv[1] + '/doc'), sep='\\n')
os.mkdir('A/.mint/two')
own = 'A/.mint/' + os.readlink('A/.mint/.two')
print(ask(own), ask('A/.mint/two', 4), ask(own, 0), ask(own, 4_000_000_000), sep='\\n')
print(ask('A/' + sys.argv[1]))
os.unlink('A/.mint/.two')
print(ask(own, 1))
if os.fork() == 0:
    print(ask(own), flush=True)
    os._exit(0)
os.wait()
END");
    let no_tty = "Inappropriate ioctl for device";
    env.prints(
        "python3 ask $(< one)",
        &format!(
            "Operation not permitted\n{no_tty}\n{no_tty}\n{no_tty}\n2\n4\nInvalid argument\n32\nOperation not permitted\n1\nOperation not permitted"
        ),
    );
    env.prints(
        "ibifs ls A.store | wc -l; ibifs fsck A.store",
        "42\n42 items, 0 findings",
    );
}

/// Commands, programs and hosts that mint at once get names that are all different.
#[test]
fn names_minted_together_by_several_processes_are_all_different() {
    let env = TestEnv::new().with_a();
    env.sh("for p in 1 2 3 4; do
            ibifs mint A --count 60 > printed-$p &
            (for i in $(seq 30); do mkdir A/.mint/label-$p-$i; readlink A/.mint/.label-$p-$i; done > labels-$p) &
        done
        wait
        grep -h /20 printed-* > reps; cat labels-* | sed 's,^../,,' >> reps");
    env.prints("wc -l < reps; sort -u reps | wc -l", "360\n360");
    env.prints(
        "cat printed-* | sort | uniq -d; ibifs umount A; ibifs fsck A.store",
        "361 items, 0 findings",
    );
    env.sh("for p in 1 2 3 4; do ibifs mint A.store --count 40 > printed-$p 2> said-$p & done; wait; cat printed-* > printed; cat said-* | no grep .");
    env.prints(
        "wc -l < printed; sort -u printed | wc -l; ibifs fsck A.store",
        "320\n320\n521 items, 0 findings",
    );
}

/// The daemon is killed while several commands mint: what was printed is there, nothing is given out twice, and a command
/// says how many there are.
#[test]
fn a_killed_daemon_loses_none_of_what_was_printed() {
    let env = TestEnv::new().with_a();
    env.sh("for round in 1 2 3; do
            for p in 1 2 3; do ibifs mint A --count 10000 > printed-$round-$p 2> said-$round-$p & done
            waits eval '[ $(cat printed-$round-* | wc -l) -gt 200 ]'; kill -9 $(daemon A.store); wait
            ibifs umount A; ibifs mount A.store A
        done
        cat printed-* | grep /20 > reps");
    let printed: usize = env.sh("wc -l < reps").parse().expect("a number");
    assert!(printed > 300, "{printed} minted");
    env.prints("sort -u reps | wc -l", &printed.to_string());
    env.prints(
        "for said in said-*; do made=$(grep -c /20 ${said/said/printed}); grep -c \"^ibifs: $made of 10000 items were minted: \" $said; done | sort | uniq -c | tr -s ' '",
        " 9 1",
    );
    env.sh("while read -r rep; do grep -q \"^ibi {rep $rep \" A/$rep/.ibi; done < reps; ibifs umount A");
    let checked = env.sh("ibifs fsck A.store");
    assert!(checked.ends_with(", 0 findings"), "{checked}");
}

/// A command that is killed has printed what it minted, in a store as well.
#[test]
fn a_killed_command_has_printed_what_it_minted() {
    let env = TestEnv::new();
    env.sh("ibifs init s --host a.example.org > /dev/null
        for round in 1 2 3; do ibifs mint s --count 10000 > printed-$round & waits eval '[ $(wc -l < printed-$round) -gt 100 ]'; kill -9 $!; wait || true; done
        cat printed-* | grep /20 > reps; while read -r rep; do grep -q \"^ibi {rep $rep \" s/col/$rep/.ibi; done < reps
        ibifs mint s --count 40 | grep /20 >> reps; test $(wc -l < reps) = $(sort -u reps | wc -l)");
    let checked = env.sh("mkdir m; ibifs mount s m; ibifs umount m; ibifs fsck s");
    assert!(checked.ends_with(", 0 findings"), "{checked}");
}

/// An error ends the command, which says how much it has made.
#[test]
fn an_error_in_between_leaves_what_was_minted() {
    let env = TestEnv::new();
    env.sh("ibifs init s --host a.example.org > /dev/null");
    env.complains(
        "ibifs mint s --count 10000 > printed & waits eval '[ $(wc -l < printed) -gt 100 ]'; mv s/staging away; wait $!",
        " of 10000 items were minted: ",
    );
    env.sh("mv away s/staging; ibifs mint s > /dev/null; for rep in $(grep /20 printed); do test -d s/col/$rep; done");
    env.prints("ibifs fsck s | sed 's/.*, //'; test $(ibifs ls s | wc -l) = $(($(grep -c /20 printed) + 2))", "0 findings");
}

/// Dates and records of hosts that share a store are one transaction for each batch.
#[test]
fn hosts_mint_several_at_once() {
    let env = TestEnv::new().with_postgres();
    env.sh(r#"ibifs init s --host a.example.org --index "$(database)" > /dev/null; mkdir m n
        ibifs mount s m -o shared; ibifs mount s n -o shared
        for p in 1 2 3; do for host in m n; do
            ibifs mint $host --count 50 > printed-$host-$p &
            (for i in $(seq 20); do mkdir $host/.mint/label-$host-$p-$i; readlink $host/.mint/.label-$host-$p-$i; done > labels-$host-$p) &
        done; done
        ibifs mint s --count 40 > printed-s; wait
        grep -h /20 printed-* > reps; cat labels-* | sed 's,^../,,' >> reps"#);
    env.prints(
        "wc -l < reps; sort -u reps | wc -l; cat printed-* | sort | uniq -d",
        "460\n460",
    );
    env.prints("sleep 1.1; for host in m n; do while read -r rep; do cat $host/$rep/.ibi; done < reps | grep -c '^ibi {'; done", "460\n460");
    env.prints(
        "ibifs umount m; ibifs umount n; ibifs fsck s",
        "461 items, 0 findings",
    );
    env.prints(
        "ibifs mint s --count 40 | wc -l; ibifs fsck s",
        "80\n501 items, 0 findings",
    );
}

/// Programs that mint at the same time on one host wait for one transaction together, and a command needs few.
#[test]
fn what_waits_on_a_host_is_one_transaction() {
    let env = TestEnv::new().with_postgres();
    env.sh(r#"database > url; ibifs init s --host a.example.org --index "$(< url)" --granularity 1/10000 > /dev/null; mkdir m
        ibifs mount s m -o shared; mint m one > /dev/null
        cat > ask <<'END'
import fcntl, os, struct, sys, time
os.mkdir('m/.mint/' + sys.argv[1])
own = os.open('m/.mint/' + sys.argv[1], os.O_RDONLY)
open('ready-' + sys.argv[1], 'w')
while not os.path.exists('go'):
    time.sleep(0.01)
answer = bytearray(struct.pack('I', 1) + bytes(8188))
fcntl.ioctl(own, 0xe00069b1, answer)
assert answer.count(10) == 1
END
        writes() { psql -qAt "$(< url)" -c 'SELECT writes FROM epoch'; }; declare -f writes > writes"#);
    let transactions = |script: &str| -> i64 { env.sh(script).parse().expect("a number") };
    let of_command = transactions(
        ". ./writes; before=$(writes); ibifs mint m --count 200 > /dev/null; echo $(($(writes) - before))",
    );
    assert!(of_command < 30, "{of_command} transactions of 200 mints");
    // The first one waits for another host, and the others for its transaction. Each looks for its item first, by the
    // connection that the transaction has: how many are beside it is by chance.
    let of_programs = || {
        transactions(
            r#". ./writes; rm -f ready-* go
        for p in 1 2 3 4 5 6 7 8; do python3 ask $p-$RANDOM & asks+=($!); done
        waits eval '[ $(ls ready-* | wc -l) = 8 ]'; sleep 2; before=$(writes)
        psql -qAt "$(< url)" > /dev/null << 'END'
BEGIN; SELECT FROM epoch FOR UPDATE;
\! touch go
SELECT pg_sleep(0.7); COMMIT;
END
        for ask in ${asks[*]}; do wait $ask; done; echo $(($(writes) - before))"#,
        )
    };
    let of_programs = [of_programs(), of_programs(), of_programs()];
    assert!(
        of_programs.iter().any(|count| (1..8).contains(count)),
        "{of_programs:?} transactions of 8 mints each"
    );
    env.prints("ibifs umount m; ibifs fsck s", "250 items, 0 findings");
}
