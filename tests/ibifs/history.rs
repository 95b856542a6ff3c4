//! The history of items: what was done, by whom, for whom it is told, and proofs of it.

use crate::http::served::Served;
use crate::support::TestEnv;

/// The archive A keeps a history, and its store is closed to alice and bob.
const HISTORY: &str = r#"
    as() { local who=$1; shift; case $who in
        alice) setpriv --reuid 60001 --regid 60001 --clear-groups "$@";;
        bob) setpriv --reuid 60002 --regid 60002 --clear-groups "$@";;
        *) "$@";;
    esac; }
    # An item of a user, by its rep.
    minted() { as $1 mkdir -p A/.mint/$2/doc; as $1 getfattr --only-values -n user.ibi.rep A/.mint/$2; as $1 rm A/.mint/.$2; }
    # Kinds, agents and notes of what is told of an item.
    told() { "${@:2}" ibifs history A/$1 | sed 's/^[^ ]* *//; s/  */ /g'; }
    # Waits until the item was counted, as it is when it has been left alone; and until the events are in the log.
    is_counted() { sqlite3 A.store/relations.sqlite3 "SELECT count(*) FROM content JOIN item ON item.id = content.item WHERE item.rep = '$1'" | grep -x 1; }
    counted() { waits is_counted $1; }
    code() { local code=0; "$@" > /dev/null 2>&1 || code=$?; echo $code; }
    is_logged() { sqlite3 A.store/relations.sqlite3 'SELECT (SELECT count(*) FROM event) - size FROM event_log' | grep -x 0; }
    logged() { waits is_logged; }
    # Waits until the daemon has taken what other processes have left.
    taken() { waits eval '[ -z "$(ls A.store/log/told)" ]'; logged; }
"#;

fn prepared() -> TestEnv {
    let env = TestEnv::new().with_index_file().with_a();
    env.sh(
        "ibifs umount A; echo 'history yes' >> A.store/archive.ibi; ibifs mount A.store A
         chmod 755 .; chmod 1777 A; [ $(stat -c %a A.store) = 700 ]",
    );
    env
}

/// Each kind of event has the user who did it; other users see those of items that they see.
#[test]
fn what_is_done_is_told_with_who_did_it() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); two=$(minted alice two); echo $one > one; echo $two > two
            as alice cp one A/$one/doc/x; counted $one; counted $two; as alice cp two A/$one/doc/x
            # A change is told when the item has been left alone, or with the end of the mount.
            waits eval 'told $one | grep ^changed'
            as alice chmod 700 A/$two; as alice chmod 755 A/$two
            as alice ibifs relate A/$one --next-edition A/$two > out; as alice setfattr -n user.ibi.language -v pt A/$two
            as alice setfattr -n user.ibi.target -v x A/$one
            as alice ibifs seal A/$one > out; as alice ibifs unseal A/$one --reason 'a typo'
            as alice ibifs withdraw A/$one --reason wrong > out; as alice ibifs restore A/$one > out
            as alice ibifs remove A/$two > out; ibifs umount A
            for item in $one $two; do ibifs history --store A.store $item | sed "s/^[^ ]* *//; s/  */ /g; s;$two;TWO;; s;$one;ONE;; s/20[0-9T:-]*Z/AT/; s/ [0-9a-f]\{{64\}}/ DIGEST/"; echo; done
            ibifs history A.store --type withdrawn | wc -l; ibifs history A.store --type dea --since 2026-01-01 | wc -l
            ibifs history A.store --since 2999-01-01 | wc -l; ibifs history A.store | grep -c -E ' (un)?mounted '"#
        ),
        "minted 60001\nchanged 60001\nrelated 60001 (ibi.nextedition TWO)\ndescribed 60001\nsealed 60001 (AT DIGEST)\nunsealed 60001 (a typo)\n\
         withdrawn 60001 (AT wrong)\nrestored 60001\n\n\
         minted 60001\nrights 60001 (0755 60001:60001 -> 0700 60001:60001)\npublished 60001 (0700 60001:60001 -> 0755 60001:60001)\n\
         related 60001 (ibi.editionof ONE)\ndescribed 60001\nwithdrawn 60001 (AT)\nremoved 60001\n\n2\n2\n0\n2",
    );
}

/// The metadata text of an item may change when its files are sealed, by each of its names.
#[test]
fn a_change_of_the_metadata_text_is_none_of_files() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); as alice bash -c "echo x > A/$one/doc/x"; counted $one; as alice ibifs seal A/$one > out; staged=A/$(dirname $one)/.new
            describes() {{ counted $one; as alice bash -c "$1"; ibifs umount A; ibifs history --store A.store $one | tail -n +$2 | sed 's/^[^ ]* *//; s/  */ /g; s/ (.*//' | tr '\n' ,; ibifs mount A.store A; }}
            describes "echo 'title: x' > 'A/$one:'" 1; describes "echo 'creator: z' >> A/$one/.ibi.metadata" 4
            describes "echo 'title: n' > $staged; mv $staged 'A/$one:'" 5; describes "rm 'A/$one:'" 6"#
        ),
        "minted 60001,sealed 60001,described 60001,described 60001,described 60001,described 60001,",
    );
}

/// A removed item that comes back is restored by the user who brings it, by hand and from a package.
#[test]
fn who_restores_an_item_is_told() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); as alice ibifs remove --force A/$one > out; chmod 1777 A.store/col/$(dirname $one); as alice mkdir A/$one; told $one | grep restored
            ibifs init B.store --host archive-b.example.org > out; there=$(ibifs ls B.store | awk '{{print $2}}'); ibifs export --bagit --store B.store $there bag > out
            ibifs umount A; ibifs import A.store bag > out; ibifs remove --store A.store $there > out; ibifs import A.store bag > out
            ibifs history --store A.store $there | sed 's/^[^ ]* *//; s/  */ /g' | grep restored"#
        ),
        "restored 60001\nrestored root",
    );
}

/// What the filesystem refuses has changed no file.
#[test]
fn a_failed_request_is_no_change() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); as alice bash -c "mkdir A/$one/empty; echo x > A/$one/doc/x"; counted $one
            code as alice rmdir A/$one/doc; code as alice mv -T A/$one/empty A/$one/doc
            code as bob rm -f A/$one/doc/x; ibifs umount A; ibifs history --store A.store $one | wc -l"#
        ),
        "1\n1\n1\n1",
    );
}

/// Who may not enter an item does not hear of it, nor that another one is related to it; nonsense is refused first.
#[test]
fn other_users_hear_of_what_they_see() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            open=$(minted alice one); shut=$(minted alice two); counted $shut; as alice chmod 700 A/$shut
            as alice ibifs relate A/$open --next-edition A/$shut > out; logged
            for user in alice bob root; do as $user ibifs history A | grep -c -e $shut || true; done
            told $open as bob; told $open as alice | sed "s;$shut;SHUT;"; code as bob ibifs history --store A $shut
            cd A; as bob ibifs history $open | wc -l; cd ..
            as bob ibifs prove A/$open | tee proof | head -n 1; no grep -a $shut proof; sed -n 's/^extra //p' proof | base64 -d | tail -c +17 | jq -r .event
            as alice ibifs prove A/$open > proof; sed -n 's/^extra //p' proof | base64 -d | tail -c +17 | jq -r .event
            no as bob ibifs prove --store A $shut; no as bob cat A.store/log/checkpoint; stat -c %a A.store/log/key A.store/log/events
            code as bob ibifs history nonsense"#
        ),
        "4\n0\n4\nminted 60001\nminted 60001\nrelated 60001 (ibi.nextedition SHUT)\n3\n1\nc2sp.org/tlog-proof@v1\nminted\n\
         related\n600\n700\n2",
    );
}

/// Names of files in closed directories are in notes, and these are for the owner.
#[test]
fn notes_that_name_files_are_for_the_owner() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); as alice bash -c "mkdir A/$one/closed; echo x > A/$one/closed/secret; touch -d 2020-01-01 A/$one/closed/secret; chmod 700 A/$one/closed"
            counted $one; ibifs scrub A > out; echo y > A.store/col/$one/closed/secret; touch -d 2020-01-01 A.store/col/$one/closed/secret
            code ibifs scrub A; waits eval 'ibifs history A/$one | grep damaged'; taken
            for user in alice bob root; do as $user ibifs history A/$one > out; grep -c 'secret' out || true; grep -c ' damaged ' out; done
            as bob ibifs history A --json | grep -c -e secret -e manifest || true
            for user in alice bob; do as $user ibifs prove A/$one | sed -n 's/^extra //p' | base64 -d | tail -c +17 | jq -r .event; done"#
        ),
        "1\n1\n1\n0\n1\n1\n1\n0\ndamaged\nminted",
    );
}

/// Who may not enter the store exports the events of an item as they are told: the owner of the item all of them.
#[test]
fn users_export_the_events_that_they_are_told() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); as alice bash -c "echo x > A/$one/doc/x; touch -d 2020-01-01 A/$one/doc/x"; counted $one
            ibifs scrub A > out; as alice bash -c "echo y > A/$one/doc/x"; waits eval 'ibifs history A/$one | grep manifest'; taken
            for user in root alice bob; do
                mkdir $user; chmod 777 $user; as $user ibifs export --bagit A/$one $user/bags > out; as $user ibifs export --ocfl A/$one $user/objects > out
                find $user -name premis.xml | wc -l; premis=$(find $user/bags -name premis.xml)
                xmllint --xpath '//*[local-name()="eventIdentifierValue"]/text()' $premis > $user.ids; grep -c . $user.ids; grep -c manifest $premis || true
            done
            cmp root.ids alice.ids; cmp root.ids bob.ids"#
        ),
        "2\n3\n1\n2\n3\n1\n2\n3\n0",
    );
}

/// A proof holds without the store, and nothing else does.
#[test]
fn a_proof_is_checked_without_the_store() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); minted alice two > two; logged; ibifs prove A/$one > proof
            (echo "log $(cat A.store/log/key.pub)"; echo 'quorum none') > policy
            ibifs umount A; mv A.store gone; ibifs verify proof --policy policy | sed "s;$one;ONE;; s/of [0-9]* of/of N of/; s/2026[^\"]*Z/AT/" | head -n 1
            ibifs verify - --policy policy < proof --json | jq -r '.event.event, .event.agent, .witnesses == []'
            # Another event, another number, another log, another policy, no proof at all.
            text=$(sed -n 's/^extra //p' proof | base64 -d | tail -c +17); salt=$(sed -n 's/^extra //p' proof | base64 -d | head -c 16 | base64)
            extra=$( (echo $salt | base64 -d; printf %s "${{text/minted/removed}}") | base64 -w 0)
            sed "s;^extra .*;extra $extra;" proof > other; code ibifs verify other --policy policy
            sed 's/^index .*/index 0/' proof > other; code ibifs verify other --policy policy
            sed 's/archive-a/archive-x/' proof > other; code ibifs verify other --policy policy
            ibifs init B --host archive-a.example.org > out; echo 'history yes' >> B/archive.ibi; ibifs mint B > out
            code ibifs verify proof --store B; code ibifs verify policy --policy policy; code ibifs verify proof --policy proof; code ibifs verify proof"#
        ),
        "event 2 of N of the log archive-a.example.org/log\nminted\n60001\ntrue\n1\n1\n1\n1\n1\n2\n2",
    );
}

/// What a program copies in is one event an item, a second copy none; a lost index has the same history again.
#[test]
fn items_that_arrive_are_one_event_each() {
    let env = prepared();
    env.prints(
        &format!(
            r#"{HISTORY}
            for n in 1 2 3; do mkdir -p new/b.example.org/c/2001/01.01.01.0$n/doc; echo x > new/b.example.org/c/2001/01.01.01.0$n/doc/x
                printf 'ibi {{rep b.example.org/c/2001/01.01.01.0%d}}\n' $n > new/b.example.org/c/2001/01.01.01.0$n/.ibi; done
            cp -a new/. A/; rsync -a new/ A/; counted b.example.org/c/2001/01.01.01.03; rsync -a new/ A/
            ibifs history A --json | jq -r 'select(.item) | [.event, .agent, .note] | @tsv'
            mkdir -p more/b.example.org/c/2002; cp -a new/b.example.org/c/2001/01.01.01.01 more/b.example.org/c/2002/01.01.01.01
            sed -i s/2001/2002/ more/b.example.org/c/2002/01.01.01.01/.ibi; ibifs work A -- rsync -a more/ A/; ibifs history A/b.example.org/c/2002/01.01.01.01 | wc -l
            ibifs umount A; ibifs history A.store --json > before; rm A.store/relations.sqlite3*; ibifs reindex A.store > out
            ibifs history A.store --json > after; (diff before after || true) | grep '^[<>]' | jq -R -r '.[2:] | fromjson | .event'; ibifs fsck A.store | tail -n 1"#
        ),
        "arrived\troot\tCopy\narrived\troot\tCopy\narrived\troot\tCopy\n1\nreindexed\n5 items, 0 findings",
    );
}

/// A time stamping authority that is made with `openssl ts`; it lies in the way that its argument says.
const AUTHORITY: &str = r#"
import http.server, subprocess, sys
class Authority(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        how = self.path.strip('/')
        assert self.headers['Content-Type'] == 'application/timestamp-query'
        open('query', 'wb').write(body)
        if how == 'older': open('query', 'wb').write(open('first', 'rb').read())
        if how == 'right': open('first', 'wb').write(body)
        subprocess.run('openssl ts -reply -config tsa.conf -queryfile query -out reply', shell=True, check=True, capture_output=True)
        reply = {'none': b'', 'broken': b'', 'text': b'hello', 'refused': bytes.fromhex('30053003020102')}.get(how, open('reply', 'rb').read())
        self.send_response(500 if how == 'broken' else 200)
        self.send_header('Content-Length', str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)
    def log_message(self, *_): pass
server = http.server.HTTPServer(('127.0.0.1', 0), Authority)
print(server.server_port, flush=True)
server.serve_forever()
"#;

/// The log is stamped by an authority, which `openssl ts` confirms; what is no stamp of it is not kept.
#[test]
fn an_authority_stamps_the_log() {
    let env = TestEnv::new();
    std::fs::write(env.root().join("authority.py"), AUTHORITY).expect("it is written");
    env.prints(
        r#"openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out tsa.pem -days 2 -subj /CN=tsa -addext extendedKeyUsage=critical,timeStamping 2> out
           printf '%s\n' '[tsa]' default_tsa=t '[t]' serial=serial signer_cert=tsa.pem certs=tsa.pem signer_key=key.pem signer_digest=sha256 \
               default_policy=1.2.3.4 digests=sha256 accuracy=secs:1 ess_cert_id_alg=sha256 > tsa.conf; echo 01 > serial
           python3 authority.py > port 2> died & trap 'kill %1' EXIT; waits test -s port; at=http://127.0.0.1:$(< port)
           code() { local code=0; "$@" > out 2>&1 || code=$?; echo $code; }
           ibifs init S --host archive-a.example.org > out; echo 'history yes' >> S/archive.ibi; ibifs mint S > out; code ibifs cosign S
           for lie in none text refused; do code ibifs cosign S --tsa $at/$lie; sed "s;$at;AT;; s/:.*: /: /" out; done; code ibifs cosign S --tsa $at/broken
           grep -c 500 out; code ibifs cosign S --tsa nonsense; code ibifs cosign S --tsa file:///etc/passwd; ls S/log | grep -c stamps || true
           ibifs cosign S --tsa $at/right | sed "s;$at;AT;"; ls S/log/stamps | paste -sd' '
           openssl ts -query -in first -text | grep -E '^(Version|Hash Algorithm|Certificate required)'
           verify() { openssl ts -verify -CAfile tsa.pem -data S/log/stamps/$1 -in S/log/stamps/$1.tsr 2>&1 | grep Verification; }
           verify 2; cmp S/log/stamps/2 S/log/checkpoint
           # It is stamped already, and no authority is asked.
           rm query; ibifs cosign S --tsa $at/right --json | jq -c .stamp.error; ibifs cosign S --tsa $at/right; test ! -e query
           # Later an old stamp is played again.
           ibifs mint S > out; code ibifs cosign S --tsa $at/older; grep -o 'the time stamp is not.*' out; ibifs cosign S --tsa $at/right > out; verify 3; verify 2
           sed -i s/^2/7/ S/log/stamps/2; { verify 2 || true; } | head -n 1; ibifs fsck S; ibifs backup S B > out; verify 3; diff -r S/log/stamps B/log/stamps"#,
        "2\n1\nAT/none: the answer is none of a time stamping authority (RFC 3161)\n1\nAT/text: the answer is none of a time stamping authority (RFC 3161)\n\
         1\nAT/refused: the time stamping authority refuses, with status 2\n1\n1\n1\n1\n0\n\
         AT/right has stamped the log with 2 events\n2 2.tsr\nVersion: 1\nHash Algorithm: sha256\nCertificate required: yes\n\
         Verification: OK\nnull\nthe log with 2 events has a time stamp already\n1\nthe time stamp is not that of this request\nVerification: OK\nVerification: OK\nVerification: FAILED\n3 items, 0 findings\nVerification: OK",
    );
}

/// Commands that only read a store tell what they have done, and which other Archive had a part in it.
#[test]
fn what_commands_do_is_told() {
    let env = prepared();
    env.sh(
        "for s in B C D F; do ibifs init $s.store --host archive-$s.example.org > out; echo 'history yes' >> $s.store/archive.ibi; done
         mkdir D; ibifs mount D.store D",
    );
    let served = Served::within(&env, "", "serve A.store");
    served.prints(
        &env,
        &format!(
            r#"{HISTORY}
            one=$(minted root one); echo x > A/$one/doc/x; counted $one; mkdir bags unnamed; echo y > unnamed/y
            ibifs copy A/$one B.store > out
            # The service tells what the daemon has taken to the log.
            taken
            ibifs copy $U/$one C.store > out 2>&1; ibifs copy A/$one D > out; ibifs copy A/$one D > out
            ibifs export --bagit A/$one bags > out; ibifs export --ocfl A/$one ocfl > out; sleep 1.5; ibifs export --ocfl A/$one ocfl | tail -n 1
            ibifs backup A E > out; ibifs import F.store bags > out; ibifs import F.store bags --dry-run > out || true
            two=$(ibifs import --mint D unnamed | head -n 1); ibifs umount A; ibifs umount D; ls A.store/log/told D.store/log/told F.store/log/told
            shown() {{ sed "s/^[^ ]* *//; s/  */ /g; s;$PWD;HERE;; s;$one;ONE;; s;(${{one##*/}});(LAST);; s;$U;URL;; s;(.*/http%.*);(OBJECT);; s;[0-9]* bytes;N bytes;" | sed -f services; }}
            for s in A B C D; do echo "s;$(grep -o 'rep [^ }}]*' $s.store/archive.ibi | head -n 1 | cut -d ' ' -f 2);$s;"; done > services
            for s in A B C D F; do echo $s:; ibifs history --store $s.store $one | shown; done; ibifs history --store D.store $two | shown
            ibifs history A.store --type backed-up | shown; ibifs fsck A.store | tail -n 1"#
        ),
        "1 item: 0 written, 1 unchanged\nA.store/log/told:\n\nD.store/log/told:\n\nF.store/log/told:\n\
         A:\nminted root\ncopied-out root (B)\ncopied-out root (D)\nexported root (ONE)\nexported root (OBJECT)\n\
         B:\narrived root (Copy)\ncopied-in root (A)\nminted root, told by A\nC:\narrived ibifs (Copy)\ncopied-in root (A)\n\
         minted user, told by URL\ncopied-out user (B), told by URL\nD:\narrived root (Copy)\ncopied-in root (A)\nminted root, told by A\ncopied-out root (B), told by A\n\
         F:\narrived root (Copy)\nminted root, told by package\ncopied-out root (B), told by package\ncopied-out root (D), told by package\npacking ibifs, told by package\nimported root (LAST)\n\
         minted root\nimported root (unnamed)\nbacked-up root (HERE/E: 2 items: 11 files copied, N bytes; 0 unchanged, 0 removed)\n\
         2 items, 0 findings",
    );
}

/// A log gets another key, in the store and through its mount. What the old one has signed before stays good, what it signs
/// later is refused; the witness is asked with both signatures, and then knows the new key alone.
#[test]
fn a_log_gets_another_key() {
    let env = prepared();
    env.sh("ibifs init W --host witness.example.org > /dev/null; cat A.store/log/key.pub > logs");
    let witness = |env: &TestEnv| {
        Served::within(
            env,
            "bash -c 'exec \"$@\" 2>> log' bash",
            "serve W --witness-logs logs",
        )
    };
    let served = witness(&env);
    served.prints(
        &env,
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); logged; ibifs prove A/$one > before; cat A.store/log/key.pub > old.pub
            echo "witness {{$U $(cat W/witness/key.pub)}}" >> A.store/archive.ibi
            ibifs cosign A > out; cp -a A.store thief; cp A.store/log/witnessed witnessed
            # Only the owner of the store.
            code as alice ibifs cosign A --new-key; code as alice ibifs cosign --new-key A.store; cmp old.pub A.store/log/key.pub
            ibifs cosign A --new-key | sed "s/key arch[^ ]*/key NEW/; s/http[^ ]*/URL/"
            no cmp -s old.pub A.store/log/key.pub; stat -c %a A.store/log/key; ls A.store/log | grep -c next || true
            grep -cF "$(< old.pub)" A.store/log/old-keys; ibifs history A --json --type new-key | jq -r '.note, .agent' | sed "s;^$(< A.store/log/key.pub)$;NEW;"
            # Both signatures are in the checkpoint, and the witness has seen it.
            for key in old.pub A.store/log/key.pub; do
                (echo "log $(< $key)"; echo "witness W $(curl -s $U/witness-key)"; echo 'quorum W') > policy
                ibifs prove A/$one > proof; ibifs verify proof --policy policy | grep -c '^seen by W'; done
            ibifs verify before --store A.store | grep -c minted
            # It grows, signed with the new key alone.
            two=$(minted alice two); logged; ibifs prove A/$two > after; ibifs verify after --store A | grep -c minted
            (echo "log $(< old.pub)"; echo 'quorum none') > policy; code ibifs verify after --policy policy; code ibifs verify before --policy policy
            # The thief has the old key.
            three=$(ibifs mint thief | head -n 1); ibifs prove --store thief $three > forged; ibifs verify forged --policy policy | grep -c minted
            code ibifs verify forged --store A.store; {{ ibifs verify forged --store A.store 2>&1 || true; }} | grep -o 'signed with an old key'
            code ibifs cosign A; ibifs umount A; ibifs fsck A.store | tail -n 1
            cp -a A.store T; cp thief/log/checkpoint T/log/; {{ ibifs fsck T || true; }} | grep -o ^log-damaged; rm -r T
            {{ ibifs cosign --new-key --json A.store || true; }} > said; jq -r '.key' said | cmp - A.store/log/key.pub; grep -c ^archive-a.*+ A.store/log/old-keys
            ibifs verify before --store A.store | grep -c minted; ibifs verify after --store A.store | grep -c minted
            ibifs backup A.store B > out; diff -r -x told A.store/log B/log; ibifs reindex B > out 2>&1; ibifs history B --type new-key | wc -l; ibifs fsck B | tail -n 1"#
        ),
        "4\n4\nthe log has the key NEW now\nURL has cosigned the log with 4 events\n600\n0\n1\nNEW\nroot\n1\n1\n1\n1\n1\n0\n1\n1\n\
         signed with an old key\n1\n3 items, 0 findings\nlog-damaged\n2\n1\n1\n2\n3 items, 0 findings",
    );
    drop(served);
    // The witness knows the new keys alone: the thief gets nothing.
    env.sh("cat A.store/log/key.pub > logs");
    let served = witness(&env);
    served.prints(
        &env,
        &format!(
            r#"{HISTORY}
            for s in thief A.store; do sed -i "s;witness {{http[^ ]*;witness {{$U;" $s/archive.ibi; done
            code ibifs cosign thief; code ibifs cosign A.store"#
        ),
        "1\n0",
    );
}

/// An item brings its earlier events along, by each way on which it arrives, once, and as told by where it was.
#[test]
fn an_item_brings_its_events_along() {
    let env = prepared();
    env.sh(
        "for s in B C D E F; do ibifs init $s.store --host archive-$s.example.org > out; echo 'history yes' >> $s.store/archive.ibi; done
         mkdir C D; ibifs mount C.store C; ibifs mount D.store D; chmod 755 D
         head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > token; touch tokens; chmod 600 token tokens",
    );
    let served = Served::within(&env, "", "serve A.store");
    env.sh(&format!("echo \"$(< token) {}\" > tokens", served.url));
    let receiver = Served::within(&env, "", "serve E.store --transfer-token-file tokens");
    env.sh(&format!("echo http://{} > receiver", receiver.address()));
    served.prints(
        &env,
        &format!(
            r#"{HISTORY}
            one=$(minted alice one); hidden=$(minted alice hidden); as alice chmod 700 A/$hidden; as alice ibifs relate A/$one --next-edition A/$hidden > out; logged
            for s in A B C D E F; do echo "s;$(grep -o 'rep [^ }}]*' $s.store/archive.ibi | head -n 1 | cut -d ' ' -f 2);$s;g"; done > services
            told_at() {{ ibifs history --store $1 $one | grep 'told by' | sed "s/^[^ ]* *//; s/  */ /g; s;$hidden;HIDDEN;; s;$U;URL;" | sed -f services; }}
            echo B:; ibifs copy A/$one B.store > out; told_at B.store; ibifs copy A/$one B.store > out; told_at B.store | wc -l
            # Rights are told of items that are known.
            counted $one; taken; as alice chmod 775 A/$one; logged; ibifs copy A/$one B.store --verify > out; told_at B.store | wc -l
            # From one to the other, to a mount.
            echo C:; ibifs copy --store B.store $one C > out; told_at C.store
            taken
            echo D:; ibifs copy $U/$one D > out; told_at D.store
            echo E:; ibifs copy --store A.store --token-file token $one $(< receiver) > out; told_at E.store
            echo F:; mkdir bags; ibifs export --bagit --store B.store $one bags > out; ibifs import F.store bags > out; told_at F.store
            # They are none of the Archive's own, and come back to nobody.
            ibifs history B.store --type minted | wc -l; ibifs history B.store --type told --json | jq -c '[.event, .agent, (.by | length), .earlier.event]' | head -n 1
            ibifs transfer A/$one B.store > out; ibifs transfer --store B.store $one A > out
            told_at A.store > back; {{ grep -v 'told by B$' back || true; }}; test $(wc -l < back) -gt 2 && echo 1
            for s in C D; do ibifs umount $s; done; for s in B C D E F; do {{ ibifs fsck $s.store || true; }} | {{ grep log || true; }}; done"#
        ),
        "B:\nminted 60001, told by A\nrelated 60001 (ibi.nextedition HIDDEN), told by A\n2\n2\n\
         C:\narrived 60001 (Copy), told by B\ncopied-in root (A), told by B\nminted 60001, told by B, A\nrelated 60001 (ibi.nextedition HIDDEN), told by B, A\n\
         D:\nminted user, told by URL\ncopied-out user (B), told by URL\nrights user, told by URL\n\
         E:\nminted user, told by URL\ncopied-out user (B), told by URL\nrights user, told by URL\n\
         F:\narrived 60001 (Copy), told by package\ncopied-in root (A), told by package\nminted 60001, told by package, A\n\
         related 60001 (ibi.nextedition HIDDEN), told by package, A\ncopied-out root (C), told by package\npacking ibifs, told by package\n0\n[\"told\",\"root\",1,\"minted\"]\n1",
    );
}

/// A package may tell anything: it is bounded, stays in its line, and is told as the word of the package alone.
#[test]
fn a_package_that_lies_is_only_told_by() {
    let env = TestEnv::new();
    env.prints(
        r#"ibifs init A --host archive-a.example.org > out; one=$(ibifs mint A | head -n 1); mkdir bags; ibifs export --bagit --store A $one bags > out; bag=$(find bags -name bagit.txt -printf %h); rm $bag/tagmanifest*
           at=$bag/metadata/preservation/premis.xml; mkdir -p ${at%/*}
           event() { echo "<event><eventType>$1</eventType><eventDateTime>$2</eventDateTime><eventDetail>$3</eventDetail><linkingAgentIdentifier><linkingAgentIdentifierValue>$4</linkingAgentIdentifierValue></linkingAgentIdentifier></event>"; }
           taken() { rm -rf S; ibifs init S --host archive-b.example.org > out; echo 'history yes' >> S/archive.ibi; timeout 60 ibifs import S bags > out 2>&1; ibifs history --store S $one | grep 'told by' | sed 's/  */ /g'; }
           (echo '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b SYSTEM "file:///etc/passwd">]><premis>'; event creation 1900-01-01T00:00:00Z 'minted: x&#27;[31m&#10;2020-01-01T00:00:00Z removed root' root
            event nonsense never x y; event x 2020-01-01T00:00:00Z '&a;&b;&c;' 'me (tells)'; echo '</premis>') > $at; taken; cat -v out | tail -n 1
           ibifs history S --json | jq -c 'select(.event == "told") | [.agent, .by]'; ibifs history S --type removed | wc -l
           (echo '<premis>'; for i in {1..3000}; do event x 2020-01-01T00:00:00Z $i y; done; event x 2019-10-08T18:20:01+02:00 last y; echo '</premis>') > $at; taken > told; wc -l < told; tail -n 1 told
           head -c 40M /dev/zero | tr '\0' x > $at; { taken || true; } | wc -l; tail -n 1 out; ln -sf /etc/passwd $at; taken || tail -n 1 out | cut -c 1-60"#,
        "1900-01-01T00:00:00Z minted root (x\\u{1b}[31m\\n2020-01-01T00:00:00Z removed root), told by package\n2020-01-01T00:00:00Z x , told by package, me\n\
         1 package, 1 taken in\n[\"root\",[\"package\"]]\n[\"root\",[\"package\",\"me\"]]\n0\n500\n2019-10-08T16:20:01Z x y (last), told by package\n0\n\
         1 package, 1 taken in\n1 package, 1 taken in",
    );
}

/// An Archive with another name goes on with its log, and the proofs of before hold.
#[test]
fn a_renamed_archive_goes_on_with_its_log() {
    let env = TestEnv::new();
    env.prints(
        r#"ibifs init S --host archive-a.example.org > out; echo 'history yes' >> S/archive.ibi; one=$(ibifs mint S | head -n 1); ibifs prove --store S $one > before
           sed -i 's/archive-a/archive-z/' S/archive.ibi; ibifs reindex S > out 2>&1; two=$(ibifs mint S | head -n 1)
           ibifs verify before --store S | head -n 1; ibifs prove --store S $two > after; ibifs verify after --store S | head -n 1
           ibifs history S | sed 's/^[^ ]*  *//; s/  .*//' | paste -sd' '; ibifs fsck S | tail -n 1; ibifs reindex S; ibifs history S | wc -l"#,
        "event 1 of 2 of the log archive-a.example.org/log\nevent 4 of 5 of the log archive-a.example.org/log\n\
         policy minted policy reindexed minted\n3 items, 0 findings\n3 items indexed\n6",
    );
}

/// With the cosignature of a witness a proof holds for who trusts that one, and a store that was set back is found out.
#[test]
fn a_witness_sees_the_log_grow() {
    let env = prepared();
    env.sh("ibifs umount A; ibifs init W --host witness.example.org > /dev/null; cat A.store/log/key.pub > logs");
    let served = Served::within(
        &env,
        "bash -c 'exec \"$@\" 2>> log' bash",
        "serve W --witness-logs logs",
    );
    let archive = Served::within(&env, "", "serve A.store");
    env.sh(&format!("echo http://{} > archive.url", archive.address()));
    served.prints(
        &env,
        &format!(
            r#"{HISTORY}
            echo "witness {{$U $(cat W/witness/key.pub)}}" >> A.store/archive.ibi
            (echo "log $(cat A.store/log/key.pub)"; echo "witness W $(curl -s $U/witness-key)"; echo 'quorum W') > policy
            one=$(ibifs mint A.store | head -n 1); ibifs prove --store A.store $one > proof; code ibifs verify proof --policy policy
            ibifs cosign A.store | sed 's/http[^ ]*/URL/'; cp -a A.store older; curl -s $(< archive.url)/log/witnessed | cmp - A.store/log/witnessed
            ibifs prove --store A.store $one > proof; ibifs verify proof --policy policy | sed 's/[0-9T:-]*Z$/AT/' | tail -n 1
            # It grows, and the proof is by the checkpoint that the witness knows.
            two=$(ibifs mint A.store | head -n 1); ibifs prove --store A.store $two > proof; code ibifs verify proof --policy policy
            ibifs prove --store A.store $one > proof; code ibifs verify proof --policy policy
            ibifs cosign A.store | sed 's/http[^ ]*/URL/'; ibifs prove --store A.store $two > proof; code ibifs verify proof --policy policy
            # Set back, and set back and grown again.
            code ibifs cosign older; ibifs mint older > out; ibifs mint older > out; code ibifs cosign older; grep -c 'archive-a.example.org/log' log
            code ibifs cosign W"#
        ),
        "1\nURL has cosigned the log with 5 events\nseen by W at AT\n1\n0\nURL has cosigned the log with 6 events\n0\n1\n1\n2\n2",
    );
}
