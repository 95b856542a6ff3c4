//! Commands of ordinary users at a mount of root's, whose store they may not enter: the daemon answers them with what they may
//! see, in the same form as a command that opens the store.

use crate::http::served::Served;
use crate::support::TestEnv;

/// Two users who do not trust each other, with an item each that the other may not enter. `as USER COMMAND...`
fn two_users() -> TestEnv {
    let env = TestEnv::new().with_a();
    env.sh(&format!(
        r#"{AS}
        chmod 755 .; chmod 1777 A
        as 60001 ibifs mint A | head -n 1 > first
        as 60001 ibifs mint A --edition-of A/$(< first) | head -n 1 > second
        as 60001 ibifs mint A | head -n 1 > hidden; as 60002 ibifs mint A | head -n 1 > theirs
        as 60001 sh -c "printf 'title: Tides\ncreator: Lima, Ana\ndate: 2009\n' > 'A/$(< first):'; echo text > A/$(< first)/doc/file"
        as 60001 sh -c "printf 'title: Tides, hidden\n' > 'A/$(< hidden):'"
        as 60001 chmod 700 A/$(< hidden); as 60002 chmod 700 A/$(< theirs)"#
    ));
    env
}

const AS: &str = r#"
as() { local user=$1; shift; setpriv --reuid=$user --regid=$user --clear-groups env HOME=/nonexistent "$@"; }
"#;

/// By a path, an identifier with --store, and from inside of the mount; root, who may open the store, is told the same.
#[test]
fn the_answers_are_those_of_the_store() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            first=$(< first) ibip=$(getfattr --only-values -n user.ibi.ibip A/$(< first))
            same() {{
                ibifs "$1" "${{@:2}}" --json > expected
                as 60001 ibifs "$1" "${{@:2}}" --json > asked; cmp expected asked
            }}
            same show A/$first; same show --store A $ibip; same show --store A "$first!"; same show --store A "http://a.example.org/$ibip"
            same cite --store A $first; same cite A/$first --style abnt; same find --store A lima
            listed() {{ jq --arg rep $first '.[] | select(.rep == $rep)'; }}; as 60001 ibifs ls A --titles --json | listed | cmp - <(ibifs ls A --titles --json | listed)
            as 60001 ibifs show A/$first --json > expected; (cd A/$first/doc; as 60001 ibifs show $ibip --json) > asked; cmp expected asked
            (cd A; as 60001 ibifs cite $first | sed "s;$ibip;IBIP;"; as 60001 ibifs find tides | wc -l)
            # Nothing that another one may not enter is listed.
            for user in 60001 60002; do as $user ibifs ls A --json | jq -r '.[].rep' | grep -cx -f hidden || true; done
            as 60002 ibifs ls A --titles | grep -c hidden || true"#
        ),
        "Lima, A. (2009). Tides. http://archive-a.example.org/IBIP\n1\n1\n0\n0",
    );
}

/// The damaged and lost files of an item are named to a user who may list the directories that they are in, and what counts of the
/// copies is in the list.
#[test]
fn damage_and_copies_are_told() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            first=$(< first); item=A.store/col/$first; hidden=A.store/col/$(< hidden)
            as 60001 sh -c "mkdir A/$first/closed; echo more > A/$first/closed/file; chmod 711 A/$first/closed; echo more > A/$(< hidden)/doc/file"
            as 60002 sh -c "echo more > A/$(< theirs)/doc/file"
            find A.store/col -name file -exec touch -d '1 hour ago' {{}} +; ibifs scrub A > said
            for file in $item/doc/file $item/closed/file $hidden/doc/file; do
                cp -a $file good; printf X | dd of=$file conv=notrunc status=none; touch -r good $file
            done
            ! ibifs scrub A > said
            # What else is lost: in a directory that is there, in one that is not, and in one that may not be listed.
            marks=A.store/fixity/damaged/col/$first; line=$(sed -n '$s/ [0-9a-f]* / - /p' $marks)
            for path in doc/lost away/lost closed/lost; do echo "${{line%  *}}  $path" >> $marks; done
            shown() {{ "$@" --json | jq -c '[.damaged[] | .path, .lost]'; }}
            shown ibifs show A/$first; for user in 60001 60002; do shown as $user ibifs show A/$first; done
            as 60002 ibifs show A/$first | sed -n 's/^damaged *\(.*\); .*/\1/p'
            shown as 60001 ibifs show A/$(< hidden); as 60002 ibifs show --store A $(< hidden) --json > seen 2>&1 || grep -c damaged seen || true
            counts() {{ "$@" ibifs ls A --copies | grep -vF "$(< hidden) " | awk '{{ print $4 }}' | sort | tr -d '\n'; }}; counts env; counts as 60002"#
        ),
        "[\"away/lost\",true,\"closed/file\",false,\"closed/lost\",true,\"doc/file\",false,\"doc/lost\",true]\n\
         [\"away/lost\",true,\"closed/file\",false,\"closed/lost\",true,\"doc/file\",false,\"doc/lost\",true]\n\
         [\"away/lost\",true,\"doc/file\",false,\"doc/lost\",true]\n\
         away/lost, lost\ndoc/file, damaged\ndoc/lost, lost\n[\"doc/file\",false]\n0\n-001-001",
    );
}

/// What concerns items that a user may not enter is not told, by whatever name they are asked for.
#[test]
fn what_is_hidden_stays_so() {
    let env = two_users();
    let ask = |script: &str| format!("{AS}\n first=$(< first) hidden=$(< hidden)\n {script}");
    for name in ["A/$hidden", "--store A $hidden", "--store A $hidden!"] {
        env.exits(&ask(&format!("as 60002 ibifs show {name}")), 3);
        env.exits(&ask(&format!("as 60002 ibifs cite {name}")), 3);
    }
    env.exits(&ask("as 60002 ibifs export --bagit A/$hidden out"), 3);
    env.prints(
        &ask(
            r#"# A relation to it is not shown, nor what it declares itself.
            as 60001 ibifs relate A/$(< second) --next-edition A/$hidden 2> said
            as 60002 ibifs show --store A $(< second) --json > seen; grep -cF "\"$hidden\"" seen || true
            as 60001 ibifs show --store A $(< second) --json | grep -cF "\"$hidden\""
            as 60002 ibifs watch --once A > seen; grep -cF "\"$hidden\"" seen || true; grep -cF "\"$first\"" seen
            as 60002 ibifs watch --once A --from "$(tail -n 1 seen | jq -r .position)"
            as 60002 ibifs find --store A hidden 2>&1 | tail -n 1 || true"#,
        ),
        "0\n2\n0\n2\nibifs: no item has all of these words",
    );
}

/// A text that no store has an item of is named so, before a store is looked for.
#[test]
fn a_nonsense_target_is_called_nonsense() {
    let env = two_users();
    for command in [
        "show nonsense",
        "cite nonsense",
        "show --store A nonsense",
        "relate A/$(< first) --next-edition nonsense",
        "mint A --edition-of nonsense",
        "export --bagit nonsense out",
        "copy nonsense A",
        "publish --store A nonsense",
    ] {
        let script = format!("{AS} as 60001 ibifs {command}");
        env.complains(&script, "'nonsense' is neither a path nor an identifier");
        env.exits(&script, 2);
    }
    for command in ["show", "cite", "seal", "remove", "unrelate --metadata"] {
        let script = format!("{AS} as 60001 ibifs {command} /etc");
        env.complains(&script, "'/etc' is in no store and no mount; name an item");
        env.exits(&script, 2);
    }
}

/// Relations are declared through the mount; it is said which one was replaced.
#[test]
fn users_relate_their_items_by_any_name() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            named() {{ sed "s;$third\b;THIRD;g; s;$(< second)\b;SECOND;g; s;$(< first)\b;FIRST;g; s;ibip [^}}]*;ibip I;"; }}
            third=$(as 60001 ibifs mint A | head -n 1)
            as 60001 ibifs relate $(< first) --next-edition $third --store A 2>&1 | named
            as 60001 ibifs relate A/$(< first) --next-edition A/$(< second) --json | jq -r '.previous.rep, .previous.ibip' > previous
            ibifs show --store A $third --json | jq -r '.rep, .ibip' | cmp - previous
            as 60001 ibifs unrelate --store A $(< first) --next-edition 2>&1 | named
            as 60001 ibifs mint A --edition-of $(< first) > fourth; ibifs show A/$(head -n 1 fourth) --json | jq -r .relations.editionof.rep | named
            as 60001 ibifs mint A --edition-of $(< second) --with-metadata 2>&1 | tail -n 1 | named || true
            printf 'title: Second\n' | as 60001 tee A/$(< second): > said
            fifth=$(as 60001 ibifs mint A --edition-of A/$(< second) --with-metadata | head -n 1); cat A/$fifth/.ibi.metadata
            mkdir -p own/d; echo text > own/d/file; chown -R 60001 own
            sixth=$(as 60001 ibifs mint A --translation-of $(< first) --lang pt --from own/d | head -n 1); find A/$sixth -name file -printf '%P\n'
            as 60002 ibifs relate --store A $(< first) --next-edition $third 2>&1 | named || true"#
        ),
        "ibifs: FIRST: nextedition THIRD, in place of SECOND\n\
         ibifs: FIRST: nextedition removed, which was SECOND\nFIRST\n\
         ibifs: SECOND has no metadata here that another could get; leave --with-metadata out\ntitle: Second\nfile\n\
         ibifs: ibi.nextedition of {rep FIRST ibip I}: Permission denied (os error 13)",
    );
}

/// Packages and copies are written by the command; what is in them was read through the mount.
#[test]
fn users_export_and_copy_what_they_may_read() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            mkdir out own other; chown 60001 out own; chown 60002 other
            as 60001 ibifs export --bagit A/$(< first) out/bags | sed "s;$(< first)\b;FIRST;g"
            ibifs export --bagit A/$(< first) bags > said
            (cd bags && find . -name 'manifest*' | xargs cat) > expected; (cd out/bags && find . -name 'manifest*' | xargs cat) | cmp - expected
            as 60001 ibifs export --ocfl --all --store A out/objects | tail -n 1
            as 60002 ibifs export --ocfl --all --store A other/objects 2>&1 | tail -n 1
            as 60001 ibifs init own/B --host b.example.net > said
            as 60001 ibifs copy A/$(< first) own/B | tail -n 1; as 60001 ibifs copy --store A $(< first) own/B | tail -n 1
            as 60001 ibifs copy --store A --state original own/B | tail -n 1
            as 60001 ibifs show --store own/B $(< first) | grep ^state; cat own/B/col/$(< first)/doc/file"#
        ),
        "new: FIRST: FIRST\n1 item: 1 written, 0 unchanged\n3 items: 3 written, 0 unchanged\n3 items: 3 written, 0 unchanged\n\
         1 item, 3 files, 48 bytes; 0 unchanged, 0 skipped\n0 items, 0 files, 0 bytes; 1 unchanged, 0 skipped\n\
         2 items, 3 files, 21 bytes; 1 unchanged, 0 skipped\nstate            Copy\ntext",
    );
}

/// Copies are written through the mount, with the rights of the user: from another mount, from a store, and over HTTP.
#[test]
fn users_copy_into_a_mount() {
    let env = two_users().with_b();
    env.sh("ibifs umount B; chmod 700 B.store; ibifs mount -o allow_other B.store B; chmod 1777 B; mkdir B/example.org; chmod 1777 B/example.org; mkdir c1 c2; chown 60001 c1; chown 60002 c2");
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{AS}
            first=$(< first) second=$(< second) hidden=$(< hidden)
            named() {{ sed -E "s;$first([^.0-9]|$);FIRST\1;g; s;$second([^.0-9]|$);SECOND\1;g; s;$hidden([^.0-9]|$);HIDDEN\1;g; s;'[^ ]*/B/;'B/;g; s,at 2[^ ]*Z,at TIME,"; }}
            as 60001 ibifs copy A/$first B | named; as 60001 ibifs copy A/$first B --json | jq -c 'del(.rep, .ibip)'
            as 60001 ibifs show --store B $first --json | jq -r '.state, .title'; cat B/$first/doc/file; stat -c %u B/$first/doc
            # The copy is that user's: another one changes neither it nor what lies beside it.
            echo more >> A/$first/doc/file; as 60002 ibifs copy A/$first B 2>&1 | named || true
            as 60002 ibifs copy A/$first A/$hidden B 2>&1 | named || true; as 60002 ibifs copy A/$second B 2>&1 | named || true
            as 60001 ibifs copy --store A --state original B | tail -n 1; cat B/$first/doc/file
            # Over HTTP, where files arrive in the user's own cache.
            remove() {{ rm -r B/$first; }}; remove
            fetch() {{ local user=$1; shift; as $user XDG_CACHE_HOME=$PWD/c$((user - 60000)) ibifs copy --allow-private "$@" B 2> said; }}
            fetch 60001 $U/$first | named || true; fetch 60001 --bring-back $U/$first | named; cat B/$first/doc/file; find c1 -type f ! -name lock | wc -l
            fetch 60001 $U/$first | tail -n 1; fetch 60002 --from $U $first | named; as 60001 ibifs copy $U/$first B 2>&1 | named | grep -o 'cannot make.*' || true
            # What changes the records of a store is for its owner.
            for command in "transfer A/$second B" "transfer A/$second A.store" "claim --from B A/$second" "claim --from A B/$first" "audit A --key"; do
                as 60001 ibifs $command 2>&1 | sed 's/.*: only/only/; s/;.*//' || true; done
            as 60001 ibifs copy nonsense B 2>&1 | cut -c-52 || true
            ibifs umount B; ibifs fsck B.store | tail -n 1"#
        ),
        "copied: FIRST\n1 item, 3 files, 48 bytes; 0 unchanged, 0 skipped\n{\"outcome\":\"unchanged\"}\n\
         {\"items\":0,\"files\":0,\"bytes\":0,\"unchanged\":1,\"skipped\":0}\nCopy\nTides\ntext\n60001\n\
         skipped: FIRST: not-taken: the destination does not accept it: cannot mark '.ibifs-copy-uncompared': Permission denied (os error 13)\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\nibifs: no item 'HIDDEN' is held here\n\
         skipped: SECOND: not-taken: the destination does not accept it: cannot make 'B/SECOND': Permission denied (os error 13)\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n3 items, 4 files, 31 bytes; 0 unchanged, 0 skipped\ntext\nmore\n\
         skipped: FIRST: removed-there: it was removed at the destination at TIME; use --bring-back to copy it anyway\n\
         0 items, 0 files, 0 bytes; 0 unchanged, 1 skipped\n\
         copied: FIRST\n1 item, 3 files, 10 bytes; 0 unchanged, 0 skipped\ntext\nmore\n0\n\
         0 items, 0 files, 0 bytes; 1 unchanged, 0 skipped\nunchanged: FIRST\n0 items, 0 files, 0 bytes; 1 unchanged, 0 skipped\n\
         cannot make the store '/nonexistent/.cache/ibifs/copy': Permission denied (os error 13)\n\
         only the owner of the store that is mounted there transfers and claims originals\nibifs: 'A.store' may not be read: permission denied\n\
         only the owner of the store that is mounted there transfers and claims originals\n\
         only the owner of the store that is mounted there transfers and claims originals\n\
         only the owner of the store that is mounted there audits it\nibifs: 'nonsense' is neither a path nor an identifie\n4 items, 0 findings",
    );
}

/// Identifiers are completed, and names of name spaces read, with what the daemon says.
#[test]
fn names_are_completed_at_a_mount() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            ibifs upn A ABC123 example.org/archive-a > said
            first=$(< first) ibip=$(getfattr --only-values -n user.ibi.ibip A/$(< first)) year=$(date -u +%Y)
            for user in 0 60001; do
                complete() {{ as $user ibifs complete fish -- "$@"; }}
                for typed in example.org/archive-a/$year/ upn:abc123:$year/; do
                    complete show --store A $typed > offered; grep -c "^$typed[0-9.]*$" offered
                    grep -cx -e "$typed$(basename $(< hidden))" offered || true; grep -cx -e "$typed$(basename $(< theirs))" offered || true; done
                complete show --store A ex | head -n 1 | cut -d/ -f1; complete show --store A ${{ibip%/*}}/ | grep -cx $ibip
                complete show --store A $first | grep -c "^$first!$"
                as $user ibifs show --store A upn:abc123:${{first#*/*/}} | head -n 1 | cmp - <(ibifs show A/$first | head -n 1)
                as $user ibifs id explain --store A upn:abc123:${{first#*/*/}} | tail -n 1
                as $user ibifs upn A; as $user ibifs upn A --json | jq -c .
                (cd A; as $user ibifs id explain upn:abc123:${{first#*/*/}} | tail -n 1)
            done"#
        ),
        "5\n1\n1\n5\n1\n1\nexample.org\n1\n1\nname space   ABC123\nABC123 example.org/archive-a\n\
         [{\"name\":\"ABC123\",\"prefixes\":[\"example.org/archive-a\"]}]\nname space   ABC123\n\
         4\n1\n0\n4\n1\n0\nexample.org\n1\n1\nname space   ABC123\nABC123 example.org/archive-a\n\
         [{\"name\":\"ABC123\",\"prefixes\":[\"example.org/archive-a\"]}]\nname space   ABC123",
    );
}

/// From inside of a mount no command needs the store.
#[test]
fn the_store_is_that_of_the_working_directory() {
    let env = two_users().with_b();
    env.prints(
        &format!(
            r#"{AS}
            ibifs ls 2>&1 | cut -d' ' -f2- || true
            (cd A/$(< first)/doc; as 60001 ibifs ls --json) | cmp - <(as 60001 ibifs ls A --json)
            (cd A; as 60001 ibifs watch --once) | cmp - <(as 60001 ibifs watch --once A)
            new=$(cd A; as 60001 ibifs mint | head -n 1); ibifs show A/$new | grep ^state"#
        ),
        "several stores are mounted; name one of them
state            Original",
    );
}

/// The state of a mount, without the numbers of items that the user may not see.
#[test]
fn a_user_sees_the_state_of_a_mount() {
    let env = two_users();
    env.prints(
        &format!(
            r#"{AS}
            gone=$(as 60001 ibifs mint A | head -n 1); secret=$(as 60001 ibifs mint A | head -n 1); chmod 700 A/$secret
            rm -r A/$gone A/$secret
            as 60002 ibifs status A --json > state; ibifs status A --json > full
            for field in store mount_point index used_by archiveservice data; do
                jq -c ".[].$field" full | cmp - <(jq -c ".[].$field" state)
            done
            jq -c '.[] | [.items, .content, .minted, .services, .trouble]' state
            jq -r '.[].removed_originals[].rep' full | wc -l; jq -r '.[].removed_originals[].rep' state | sed "s;$gone;GONE;""#
        ),
        "[null,null,null,null,null]\n2\nGONE",
    );
}

/// Opens connections to the daemon of a mount: `ask.py MOUNT COUNT QUESTION` sends a question by each of them, with the key
/// of the mount in place of KEY, and prints the first line of each answer, or `-` if none comes within
/// three seconds after the one before.
const ASK: &str = r#"
import os, select, socket, sys
mount, count, question = sys.argv[1], int(sys.argv[2]), sys.argv[3]
_, name, key = (sys.argv[4] if len(sys.argv) > 4 else os.getxattr(mount, 'user.ibi.socket').decode()).split(' ')
open_ones = []
for _ in range(count):
    s = socket.socket(socket.AF_UNIX)
    s.connect('\0' + name)
    open_ones.append(s)
    try:
        s.sendall(os.fsencode(question.replace('KEY', key)))
    except OSError:
        pass
# The first answer takes its time on a busy machine.
waiting, patience = list(open_ones), 60
while waiting and (ready := select.select(waiting, [], [], patience)[0]):
    waiting, patience = [s for s in waiting if s not in ready], 3
for s in open_ones:
    s.setblocking(False)
    try:
        print(s.recv(1 << 16).split(b'\n')[0].decode(errors='replace') or 'closed')
    except BlockingIOError:
        print('-')
    except ConnectionResetError:
        print('closed')
sys.stdout.flush()
if os.environ.get('STAY'):
    sys.stdin.read()
"#;

/// A user who sends nothing, or does not read, uses up that user's own connections alone.
#[test]
fn a_silent_user_keeps_no_other_waiting() {
    let env = two_users();
    std::fs::write(env.root().join("ask.py"), ASK).expect("a program");
    env.prints(
        &format!(
            r#"{AS}
            mkfifo wait; STAY=yes as 60002 python3 ask.py A 12 '' < wait > said & D=$!
            exec 3> wait; waits eval 'test $(wc -l < said) = 12'
            sort said | uniq -c | sed 's/^ *//'
            time=$SECONDS; as 60001 ibifs show --store A $(< first) | grep ^title; ibifs show A/$(< first) | grep ^title
            # The daemon waits a minute for the silent one.
            as 60001 ls A > said; test $((SECONDS - time)) -le 30
            exec 3>&-; wait $D; as 60002 ibifs show --store A $(< first) | grep ^title"#
        ),
        "8 -\n4 busy\ntitle            Tides\ntitle            Tides\ntitle            Tides",
    );
}

/// Questions that are none, and those of users whom the mount does not let in.
#[test]
fn who_may_not_ask_is_refused() {
    let env = two_users();
    std::fs::write(env.root().join("ask.py"), ASK).expect("a program");
    env.prints(
        &format!(
            r#"{AS}
            ask() {{ as 60002 python3 ask.py A 1 "$@"; }}
            ask $'ibifs-1 guessed list\n'; ask $'ibifs-2 KEY list\n'; ask $'ibifs-1 KEY none\n'; ask $'\xff\n'
            ask "ibifs-1 KEY about name=$(head -c 70000 /dev/zero | tr '\0' a)"
            ask $'ibifs-1 KEY work level=../A\n'
            ibifs umount A; ibifs mount -o allow_other=no A.store A; address=$(getfattr --only-values -n user.ibi.socket A)
            as 60002 python3 ask.py A 1 $'ibifs-1 KEY list\n' "$address"
            as 60002 ibifs ls A 2>&1 | sed 's/:.*//' || true; ibifs ls A | wc -l"#
        ),
        "failed why=permission%20denied\nfailed why=the%20question%20is%20that%20of%20another%20version%20of%20ibifs\n\
         failed why=the%20question%20is%20that%20of%20another%20version%20of%20ibifs\nclosed\nfailed why=the%20question%20is%20that%20of%20another%20version%20of%20ibifs\n\
         failed why=cannot%20open%20'../A':%20Not%20a%20directory%20(os%20error%2020)\nfailed why=permission%20denied\nibifs\n5",
    );
}
