//! Sealed items: no way of writing reaches their files, not even that of root.

use crate::http::served::Served;
use crate::support::TestEnv;

/// alice, who owns the item, and root; a program that tries one way of writing after the other and prints each that was not
/// refused with EPERM.
const TRY: &str = r#"
    as() { local who=$1; shift; case $who in
        alice) setpriv --reuid 60001 --regid 60001 --clear-groups "$@";;
        *) "$@";;
    esac; }
    cat > try.py << 'PY'
import ctypes, errno, fcntl, os, struct, sys
item, outside = sys.argv[1], sys.argv[2]
f, g, d = item + '/doc/a', item + '/doc/b', item + '/doc'
libc = ctypes.CDLL(None, use_errno=True)
r = os.open(f, os.O_RDONLY); rd = os.open(d, os.O_RDONLY)
def flags(fd):
    fcntl.ioctl(fd, 0x40086602, struct.pack('i', 0x80))
def exchange():
    if libc.renameat2(-100, f.encode(), -100, g.encode(), 2): raise OSError(ctypes.get_errno(), 'x')
def made(fd): os.close(fd)
ways = {
    'open w': lambda: made(os.open(f, os.O_WRONLY)), 'open rw': lambda: made(os.open(f, os.O_RDWR)),
    'append': lambda: made(os.open(f, os.O_WRONLY | os.O_APPEND)), 'open trunc': lambda: made(os.open(f, os.O_RDONLY | os.O_TRUNC)),
    'creat': lambda: made(os.open(d + '/new', os.O_WRONLY | os.O_CREAT)), 'creat top': lambda: made(os.open(item + '/new', os.O_WRONLY | os.O_CREAT)),
    'truncate': lambda: os.truncate(f, 1), 'rename': lambda: os.rename(f, d + '/c'), 'over': lambda: os.rename(f, g), 'exchange': exchange,
    'rename dir': lambda: os.rename(d, item + '/dod'), 'over sidecar': lambda: os.rename(f, item + '/.ibi.metadata'),
    'link in': lambda: os.link(f, d + '/l'), 'link out': lambda: os.link(f, outside + '/l'), 'link beside': lambda: os.link(f, item + '/.ibi.x'), 'foreign in': lambda: os.link(outside + '/o', d + '/l'),
    'unlink': lambda: os.unlink(f), 'rmdir': lambda: os.rmdir(item + '/empty'), 'mkdir': lambda: os.mkdir(d + '/m'), 'symlink': lambda: os.symlink('a', d + '/s'), 'mkfifo': lambda: os.mkfifo(d + '/p'),
    'chmod': lambda: os.chmod(f, 0o600), 'chmod dir': lambda: os.chmod(d, 0o700), 'fchmod': lambda: os.fchmod(r, 0o600), 'chown': lambda: os.chown(f, -1, os.getgid()),
    'utime': lambda: os.utime(f, (1, 1)), 'futime': lambda: os.utime(r, (1, 1)), 'setxattr': lambda: os.setxattr(f, 'user.x', b'y'), 'fsetxattr': lambda: os.setxattr(r, 'user.x', b'y'),
    'setxattr dir': lambda: os.setxattr(d, 'user.x', b'y'), 'removexattr': lambda: os.removexattr(f, 'user.known'), 'chattr': lambda: flags(r), 'chattr dir': lambda: flags(rd),
    'rmtree': lambda: os.unlink(g), 'rename out': lambda: os.rename(f, outside + '/x'), 'rename in': lambda: os.rename(outside + '/o', d + '/o'),
}
for name, way in ways.items():
    try: way(); print(name, 'done')
    except OSError as e:
        if e.errno != errno.EPERM: print(name, errno.errorcode[e.errno])
PY
"#;

fn prepare(env: &TestEnv) {
    env.sh(&format!(
        r#"{TRY} chmod 755 .; chmod 1777 A; for name in one two; do as alice ibifs mint A > minted; sed -n 1p minted > $name; sed -n 2p minted > $name.opaque; done; as alice mkdir A/$(< one)/empty
        for name in a b; do echo text > A/$(< one)/doc/$name; done; ln -s a A/$(< one)/doc/link; echo other > A/$(< two)/o
        setfattr -n user.known -v x A/$(< one)/doc/a; chown -hR 60001 A/$(< one)/doc A/$(< two)/o"#
    ));
}

/// What a manifest of the item has, by other tools.
const DIGEST: &str = r#"digest() { (cd $1; { find . -type f ! -path './.ibi*' -printf '%P\0' | xargs -0 sha256sum; echo "$(printf a | sha256sum | cut -c -64) @doc/link"; } | sort -k 2.2 | sha256sum | cut -c -64); }"#;

/// Each way of writing is refused for its owner and for root, in both trees; what lies beside the files stays writable.
#[test]
fn no_way_of_writing_reaches_a_sealed_item() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    env.prints(
        &format!(
            r#"{TRY} {DIGEST}
            one=$(< one); as alice ibifs seal A/$one | cut -d ' ' -f 2 > sealed; [ $(< sealed) = $(digest A/$one) ]
            for who in alice root; do as $who /usr/bin/python3 try.py A/$one A/$(< two); as $who /usr/bin/python3 try.py A/$(< one.opaque) A/$(< two.opaque); done
            for who in alice root; do no as $who rm -r A/$one; no as $who rm -r A/$(< one.opaque)/doc; no as $who rmdir A/$one; done
            [ $(< sealed) = $(digest A/$one) ]
            echo 'title: T' | as alice tee "A/$one:" > /dev/null; cat A/$one/.ibi.metadata; echo 'title: U' | as alice tee A/$one/.ibi.metadata > /dev/null; cat "A/$one:"
            as alice ibifs relate A/$one --next-edition $(< two) 2> /dev/null; readlink A/$one! | grep -c $(< two)
            as alice rm A/$one! ; as alice setfattr -n user.ibi.language -v en A/$one; getfattr --only-values -n user.ibi.language A/$one; echo
            as alice ibifs show A/$one --json | jq -r .sealed.digest | diff - sealed; as alice ibifs show A/$(< two) --json | jq .sealed
            # Its own sidecar does not end it.
            cp A/$one/.ibi kept; grep -v ^sealed kept > without; no as alice cp without A/$one/.ibi; diff kept A/$one/.ibi; cp without A/$one/.ibi.n; no mv A/$one/.ibi.n A/$one/.ibi; diff kept A/$one/.ibi
            ibifs scrub A.store | grep -c broken-seal || true; ibifs umount A; ibifs mount A.store A; as alice /usr/bin/python3 try.py A/$one A/$(< two); ibifs fsck A.store | tail -n 1"#
        ),
        "title: T\ntitle: U\n1\nen\nnull\n0\n3 items, 0 findings",
    );
}

/// An item is sealed for its owner, when nothing writes in it and no file has a name elsewhere, also without a mount.
#[test]
fn an_item_is_sealed_when_nothing_writes_in_it() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    env.prints(
        &format!(
            r#"{TRY} one=$(< one); no_seal() {{ code=0; as alice ibifs seal A/$one 2> said || code=$?; echo $code; grep -c "$1" said; }}
            exec 9>> A/$one/doc/a; no_seal "'doc/a': it is open for writing"; echo more >&9; exec 9>&-
            mkfifo over; python3 -c 'import mmap, os, sys, time; f = os.open(sys.argv[1], os.O_RDWR); m = mmap.mmap(f, 4); os.close(f); print(flush=True); open("over").read(); m[0] = 84' A/$one/doc/b > mapped & until [ -s mapped ]; do sleep .1; done
            no_seal "'doc/b': it is open for writing"; : > over; wait $!; cut -c 1 A/$one/doc/b
            ln A/$one/doc/a A/$(< two)/l; no_seal 'hard link'; rm A/$(< two)/l
            code=0; setpriv --reuid 60002 --regid 60002 --clear-groups ibifs seal A/$one 2> said || code=$?; echo $code; grep -c 'only its owner' said
            as alice ibifs seal A/$one > /dev/null; no_seal 'is sealed since'; no ibifs work A/$one -- true; no ibifs work A -- true; ibifs work A/$(< two) -- true
            no as alice ibifs unseal A/$one; no setpriv --reuid 60002 --regid 60002 --clear-groups ibifs unseal A/$one --reason mine
            as alice ibifs unseal A/$one --reason 'cut off' --json | jq .sealed; as alice sh -c "echo again >> A/$one/doc/a"; ibifs work A -- true
            ibifs umount A; ibifs seal $one --store A.store > /dev/null; no ibifs seal $one --store A.store; ibifs scrub A.store | grep -c broken-seal || true
            echo damage >> A.store/col/$one/doc/a; ibifs scrub A.store | grep -c '^broken-seal' || true; ibifs unseal $one --store A.store --reason damage; grep -c sealed A.store/col/$one/.ibi || true; ibifs fsck A.store | tail -n 1"#
        ),
        "4\n1\n4\n1\nT\n4\n1\n4\n1\n4\n1\nnull\n0\n1\n0\n3 items, 0 findings",
    );
}

/// A copy comes with its seal, which holds once it is complete.
#[test]
fn a_copy_is_sealed() {
    let env = TestEnv::new().with_a().with_b();
    prepare(&env);
    env.prints(
        &format!(
            r#"{TRY} one=$(< one); as alice ibifs seal A/$one > /dev/null; mkdir -p B/$(dirname $one); cp -a A/$one B/$(dirname $one)/; rsync -a A/$one/ B/$one/; diff -r A/$one B/$one; ibifs show B/$one --json | jq -c '.sealed | keys'
            ibifs umount B; ibifs scrub B.store | grep -c broken-seal || true; ibifs mount B.store B; /usr/bin/python3 try.py B/$one B; no ibifs seal B/$one; rsync -a A/$one/ B/$one/; diff -r A/$one B/$one"#
        ),
        "[\"date\",\"digest\"]\n0\nforeign in ENOENT\nrename out EXDEV\nrename in ENOENT",
    );
}

/// A seal that is announced holds from its instant on, whether or not a daemon runs then; until then its owner takes it back.
#[test]
fn an_announced_seal_holds_from_its_instant_on() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    env.prints(
        &format!(
            r#"{TRY} {DIGEST}
            one=$(< one); two=$(< two); sealed() {{ ibifs show A/$1 --json | jq -r ".sealed.$2"; }}
            refused() {{ code=0; "$@" 2> said || code=$?; echo $code; }}
            refused setpriv --reuid 60002 --regid 60002 --clear-groups ibifs seal A/$one --after 1h; refused as alice ibifs seal A/$one --after 0d
            as alice ibifs seal A/$one --after 1h > at; [ $(sealed $one date) = $(< at) ]; sealed $one digest; ibifs show A/$one | grep -c "^sealed-from  *$(< at)"
            as alice sh -c "echo more >> A/$one/doc/a"; refused as alice ibifs seal A/$one --after 2h; grep -c "from $(< at) on already" said
            # Its sidecar does not take it back; the command does.
            grep -v ^sealed A/$one/.ibi > without; as alice cp without A/$one/.ibi 2> /dev/null || true; [ $(sealed $one date) = $(< at) ]
            as alice ibifs unseal A/$one --reason 'not yet'; ibifs show A/$one --json | jq .sealed; ibifs work A/$one -- true
            as alice ibifs seal A/$one --after 1h > /dev/null; as alice ibifs seal A/$one --after 10s --json | jq -c '.sealed.digest'; exec 9>> A/$one/doc/b; as alice sh -c "echo more >> A/$one/doc/a"
            exec 9>&-; until [[ $(date -u +%FT%TZ) > $(sealed $one date) ]]; do sleep .1; done
            for who in alice root; do as $who /usr/bin/python3 try.py A/$one A/$two; done; no as alice rm -r A/$one/doc; refused ibifs work A/$one -- true
            at=$(sealed $one date); as alice ibifs seal A/$one | cut -d ' ' -f 2 > sealed || true; until [ $(sealed $one digest) = $(digest A/$one) ]; do sleep .2; done; [ $(sealed $one date) = $at ]
            # No daemon at that instant.
            as alice ibifs seal A/$two --after 2s > at; ibifs umount A; sleep 3; ibifs mount A.store A; no as alice sh -c "echo late >> A/$two/o"; no sh -c "echo late >> A/$two/o"
            until [ $(sealed $two digest) = $(cd A/$two; find . -type f ! -path './.ibi*' -printf '%P\0' | sort -z | xargs -0 sha256sum | sha256sum | cut -c -64) ]; do sleep .2; done; [ $(sealed $two date) = $(< at) ]
            refused as alice ibifs seal A/$two; ibifs umount A; ibifs scrub A.store | grep -c broken-seal || true; ibifs fsck A.store | tail -n 1"#
        ),
        "4\n2\nnull\n1\n4\n1\nnull\nnull\n4\n4\n0\n3 items, 0 findings",
    );
}

/// `seal` in `archive.ibi` seals what is published so long after that; a draft has no seal.
#[test]
fn what_is_published_is_sealed_after_a_period() {
    let env = TestEnv::new().with_a();
    env.prints(
        &format!(
            r#"{TRY} chmod 755 .; chmod 1777 A; old=$(ibifs mint A | head -n 1); ibifs umount A; echo 'seal never' >> A.store/archive.ibi; no ibifs mount A.store A; sed -i 's/^seal never/seal 30d/' A.store/archive.ibi; ibifs mount A.store A
            days() {{ local at=$(ibifs show $1 --json | jq -r '.sealed.date // empty'); [ -n "$at" ] && echo $(( ($(date -d $at +%s) - $(date +%s) + 3600) / 86400 )) || echo none; }}
            for name in public draft plain long list; do as alice ibifs mint A $([ $name = public ] || echo --draft) | head -n 1 > $name; echo $name $(days A/$(< $name)); done; days A/$old
            as alice ibifs publish A/$(< draft) --untitled --json | jq -c .sealed; days A/$(< draft); as alice chmod 755 A/$(< plain); days A/$(< plain); as alice setfacl -m o::rx A/$(< list); days A/$(< list)
            as alice ibifs publish A/$(< long) --untitled --seal-after 90d --json | jq .sealed.digest; days A/$(< long)
            as alice ibifs unseal A/$(< plain) --reason 'a work in progress'; as alice chmod g+w A/$(< plain); days A/$(< plain); as alice mkdir A/.mint/x; label=$(as alice readlink A/.mint/.x); days A/${{label#../}}; as alice ibifs mint A --count 2 > several; days A/$(head -n 1 several)
            # What a publication that was stopped has announced stays.
            again=$(as alice ibifs mint A --draft | head -n 1); as alice ibifs seal A/$again --after 60d > /dev/null; as alice ibifs publish A/$again --untitled --seal-after 90d --json | jq .sealed.digest; days A/$again; ibifs show A/$again --json | jq .draft
            as alice sh -c "echo text > A/$(< public)/doc/a"; ibifs umount A; ibifs mint A.store | head -n 1 > below; ibifs mount A.store A; days A/$(< below); ibifs fsck A | tail -n 1"#
        ),
        "public 30\ndraft none\nplain none\nlong none\nlist none\nnone\nnull\n30\n30\n30\nnull\n90\nnone\n30\n30\nnull\n60\nfalse\n30\n12 items, 0 findings",
    );
}

/// A sealed item whose files are not those that were sealed is neither copied, by path or by URL, nor exported.
#[test]
fn what_is_not_as_it_was_sealed_is_not_copied() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{TRY} one=$(< one); ibifs init B.store --host b.example.org > /dev/null; ibifs init C.store --host c.example.org > /dev/null; sealed=$(as alice ibifs seal A/$one | cut -d ' ' -f 2)
            refused() {{ code=0; "$@" > said 2>&1 || code=$?; echo $code $(grep -c "$word.*their digest is [0-9a-f]*, and that of the seal is $sealed" said); }}
            ibifs copy A/$one B.store > /dev/null; ibifs copy $U/$one C.store > /dev/null 2>&1; for there in B C; do ibifs scrub $there.store | grep -c broken-seal || true; ibifs show --store $there.store $one --json | jq -r .sealed.digest | grep -c $sealed; done
            for how in --bagit '--bagit --zip' --ocfl; do ibifs export A/$one "bags$how" $how > /dev/null; done
            bag=$(find bags--bagit -name bagit.txt -printf %h); ibifs import --verify $bag > /dev/null; sed -i s/text/texT/ $bag/data/doc/a
            for list in manifest tagmanifest; do for sum in 256 512; do file=$list-sha$sum.txt; [ ! -e $bag/$file ] || (cd $bag; cut -d ' ' -f 3- $file | xargs -d '\n' sha${{sum}}sum > new; mv new $file); done; done
            word=not; refused ibifs import --verify $bag; refused ibifs import C.store $bag; no ibifs import --dry-run C.store $bag > /dev/null; cp -a $bag other; rm -r bags*; ibifs umount A; echo other >> A.store/col/$one/doc/a; ibifs init D.store --host d.example.org > /dev/null
            word=broken-seal; refused ibifs copy --store A.store $one B.store; refused ibifs copy --store A.store $one D.store; refused ibifs copy $U/$one D.store; [ ! -e D.store/col/$one/doc ]; ibifs init E.store --host e.example.org > /dev/null; word=not; refused ibifs import E.store other
            word=not; for how in --bagit '--bagit --zip' --ocfl; do refused ibifs export --store A.store $one "bags$how" $how; ls "bags$how" | grep -v -e 0=ocfl -e ocfl_layout -e extensions || true; done
            [ $(cat B.store/col/$one/doc/a) = text ]; ibifs unseal --store A.store $one --reason damage; ibifs export --bagit --store A.store $one bags > /dev/null; ibifs copy --store A.store $one D.store > /dev/null; tail -n 1 D.store/col/$one/doc/a"#
        ),
        "0\n1\n0\n1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\nother",
    );
}

/// Nothing that copies, transfers or imports items writes files of a sealed one; its sidecar is completed.
#[test]
fn nothing_is_brought_into_a_sealed_item() {
    let env = TestEnv::new().with_a().with_b();
    prepare(&env);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        &format!(
            r#"{TRY} one=$(< one); as alice ibifs seal A/$one > /dev/null; ibifs copy A/$one B > /dev/null; cp -a B.store before; diff -r A/$one B.store/col/$one
            ibifs umount B; ibifs mount B.store B; ibifs copy A/$one B | tail -n 1; ibifs relate A/$one --next-edition $(< two) > /dev/null 2>&1; ibifs copy A/$one B | tail -n 1; ibifs show --store B.store $one --json | jq -c '.relations.nextedition.rep == $two' --arg two $(< two)
            refused() {{ code=0; "$@" > said 2>&1 || code=$?; echo $code $(grep -c "$one.*$word" said); diff -r before/col/$one/doc B.store/col/$one/doc; [ $seal = $(ibifs show --store B.store $one --json | jq -r .sealed.digest) ]; }}
            seal=$(ibifs show --store B.store $one --json | jq -r .sealed.digest); as alice ibifs unseal A/$one --reason more; as alice sh -c "echo more > A/$one/doc/a; touch A/$one/doc/new"; word='is sealed since'
            for again in true "as alice ibifs seal A/$one"; do
                $again > /dev/null; refused ibifs copy A/$one B; refused ibifs transfer A/$one B
                ibifs umount B; refused ibifs copy A/$one B.store; refused ibifs transfer A/$one B.store; refused ibifs copy $U/$one B.store; ibifs mount B.store B; done
            word='already'; ibifs export --bagit A/$one bags > /dev/null; refused ibifs import B bags; ibifs umount B; refused ibifs import B.store bags
            # A table changes what the sidecar says beside the seal.
            printf 'rep,language\n%s,pt\n' $one > table.csv; ibifs import B.store table.csv | tail -n 1; grep -c '^language pt' B.store/col/$one/.ibi; grep -c $seal B.store/col/$one/.ibi
            # The original goes to another Archive with its seal.
            ibifs unseal --store B.store $one --reason stale; ibifs transfer A/$one B.store > /dev/null; ibifs show --store B.store $one --json | jq -c '[.state, .sealed.digest != null]'; ibifs scrub B.store | grep -c broken-seal || true; ibifs fsck B.store | tail -n 1"#
        ),
        "0 items, 0 files, 0 bytes; 1 unchanged, 0 skipped\n1 item, 1 file, 0 bytes; 0 unchanged, 0 skipped\ntrue\n\
         1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n4 1\n4 1\n1 row: 1 item changed, 0 unchanged\n1\n1\n\
         [\"Original\",true]\n0\n2 items, 0 findings",
    );
}

/// A file that a program has open at the announced instant delays the digest, which has all that was written until the file was
/// closed.
#[test]
fn a_file_that_is_open_at_the_instant_delays_the_digest() {
    let env = TestEnv::new().with_a();
    prepare(&env);
    env.prints(
        &format!(
            r#"{TRY} {DIGEST}
            one=$(< one); exec 9>> A/$one/doc/a; at=$(as alice ibifs seal A/$one --after 2s); until [[ $(date -u +%FT%TZ) > $at ]]; do sleep .1; done
            until as alice ibifs seal A/$one 2> said && exit 1 || grep "'doc/a': it is open for writing" said > /dev/null; do sleep .5; done; ibifs show A/$one --json | jq .sealed.digest
            no as alice sh -c "echo late >> A/$one/doc/a"; no touch A/$one/doc/b; echo open >&9 || true; exec 9>&-
            until as alice ibifs seal A/$one > sealed 2> said; do grep 'being sealed' said > /dev/null; sleep .5; done; [ "$(< sealed)" = "$at $(digest A/$one)" ]"#
        ),
        "null",
    );
}
