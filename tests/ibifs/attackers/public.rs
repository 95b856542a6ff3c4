//! One rule of what is public: an item below a level, or in a directory, that a reader may not pass is not
//! there, by whichever name and at whichever entry point it is asked for.

use crate::http::served::Served;
use crate::support::{Needs, TestEnv};

/// Three items of A: `open`, which all may read; `shut`, whose directory is for its owner alone; `below`,
/// which lies below a level that is. The first is related to both. `as UID command...` runs it as that user.
const SCENE: &str = r#"
as() { local u=$1; shift; setpriv --reuid=$u --regid=$u --clear-groups -- "$@"; }
open=$(cat open 2> /dev/null || true); shut=$(cat shut 2> /dev/null || true); below=hidden.org/w/2020/01.02.03.04
openp=$(cat open.p 2> /dev/null || true); shutp=$(cat shut.p 2> /dev/null || true); belowp=8JMKD3MGP8W/34PGRBR; other=${shut/\/20/\/19}; otherp=${shutp%/*}/3${shutp##*/?}
"#;

const MAKE: &str = r#"
for name in open shut; do ibifs mint A > both; sed -n 1p both > $name; sed -n 2p both > $name.p; echo text > A/$(< $name)/doc/f; sleep .01; done
mkdir -p A/hidden.org/w/2020/01.02.03.04/doc; echo text > A/hidden.org/w/2020/01.02.03.04/doc/f
echo 'ibi {rep hidden.org/w/2020/01.02.03.04 ibip 8JMKD3MGP8W/34PGRBR}' > A/hidden.org/w/2020/01.02.03.04/.ibi
setfattr -n user.ibi.language -v en A/$(< open)
setfattr -n user.ibi.nextedition -v $(< shut) A/$(< open)
setfattr -n user.ibi.translation.pt -v hidden.org/w/2020/01.02.03.04 A/$(< open)
"#;

/// `said ID` is all that the service answers at any place of an item, by a name of it, with the name and what
/// is new in each answer left out.
const SAID: &str = r#"
S=$(sed -n 's/^ibi.archiveservice {rep \([^ ]*\).*/\1/p' A.store/archive.ibi)
ask() { curl -s -i --path-as-is "$@" | tr -d '\r' | grep -vi '^date: \|^urlkey\|responseDate' || true; }
said() { for q in '' '/' /f /doc/f /nothing '!' ':' '+(pt)' ':(oai_dc)' '!:' '+(pt)!' '?ibiurl.verblist=GetFileList' '?ibiurl.requireditemstatus=Original'; do
             ask "$U/$1$q"; ask -H 'Accept: application/json' "$U/$1$q"; ask -H 'Accept: text/html' "$U/$1$q"; done
         for q in '' '&parsedibiurl.verblist=' '&parsedibiurl.verblist=GetLastEdition' '&parsedibiurl.verblist=GetFileList' '&parsedibiurl.filepath=f'; do ask "$U/$S?servicesubject=urlRequest&parsedibiurl.ibi=$1$q"; done
         ask "$U/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$1"
         ask "$U/oai?verb=ListMetadataFormats&identifier=oai:archive-a.example.org:$1"
         for q in '' / /doc /doc/ /doc/f /doc/nothing /.ibi; do ask "$U/col/$1$q"; done; }
same() { said $1 | sed "s|$1|NAME|g" > one; said $2 | sed "s|$2|NAME|g" > other; cmp one other && test $(wc -l < one) -gt 100 && echo same; }
"#;

/// A test environment with these items, served.
fn fixture() -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh(MAKE);
    let served = Served::start(&env, "A.store");
    (env, served)
}

#[track_caller]
fn prints(env: &TestEnv, served: &Served, script: &str, expected: &str) {
    let script = format!("{SCENE}{SAID}{script}");
    served.prints(env, &script, expected);
}

/// Over HTTP nothing is said of what is not public that is not said of what there is not: no byte differs.
#[test]
fn what_is_not_public_is_as_what_there_is_not() {
    let (env, served) = fixture();
    prints(
        &env,
        &served,
        "test \"$(curl -s $U/col/$below/doc/f)\" = text; test \"$(curl -s $U/$shutp/f)\" = text
         chmod 700 A/hidden.org A/$shut
         same $below hidden.org/w/2020/01.02.03.05; same $belowp 8JMKD3MGP8W/34PGRBQ
         same $shut $other; same $shutp $otherp
         curl -s -o /dev/null -w '%{http_code}\\n' $U/$S
         curl -s \"$U/$S?servicesubject=urlRequest&parsedibiurl.ibi=$S\" | grep -c '^state Original'",
        "same\nsame\nsame\nsame\n200\n1",
    );
    // The root of the mount is a level, too.
    prints(
        &env,
        &served,
        "chmod 755 A/hidden.org A/$shut; curl -s $U/$belowp/f; chmod 711 A/$shut
         curl -s $U/col/$shut/doc/f; curl -s -o /dev/null -w '%{http_code}\\n' $U/$shut
         chmod 700 A; curl -s -o /dev/null -w '%{http_code}\\n' $U/col/$open/doc/f
         same $below hidden.org/w/2020/01.02.03.05; chmod 755 A",
        "text\ntext\n404\n404\nsame",
    );
}

/// Nor is it named as what a public item is related to; as soon as it is public it is, and no longer than
/// that. The name of another item, as that of the service, may begin with its name.
#[test]
fn what_is_not_public_is_not_named_elsewhere() {
    let (env, served) = fixture();
    let printed = "printed() { { for q in '' '!' '+(pt)' ':(oai_dc)' '?ibiurl.verblist=GetFileList'; do ask \"$U/$open$q\"; ask -H 'Accept: application/json' \"$U/$open$q\"; done
             for q in '' '&parsedibiurl.verblist=GetLastEdition' '&parsedibiurl.verblist=GetTranslation(pt)'; do ask \"$U/$S?servicesubject=urlRequest&parsedibiurl.ibi=$open$q\"; done
             ask \"$U/oai?verb=GetRecord&metadataPrefix=oai_dc&identifier=oai:archive-a.example.org:$open\"; ask $U/; ask -H 'Accept: application/json' $U/; } > printed
             for name in $below $belowp $shut $shutp; do grep -cE \"$name([^0-9A-Z.]|$)\" printed > count || true; test $(< count) = 0 && echo -n '- ' || echo -n '+ '; done; echo; }
\n";
    prints(
        &env,
        &served,
        &format!(
            "{printed} printed; chmod 700 A/hidden.org A/$shut; sleep 2.1; printed; printed; curl -s -o /dev/null -w '%{{http_code}}\\n' \"$U/$open+(pt)\"
             curl -s -o /dev/null -w '%{{redirect_url}}\\n' \"$U/$open!\" | sed \"s|.*$open||\"
             chmod 755 A/hidden.org; sleep 2.1; printed; printed; chmod 700 A/hidden.org; printed"
        ),
        "+ + + + \n- - - - \n- - - - \n404\n/doc/f\n+ + - - \n+ + - - \n- - - - ",
    );
}

/// The remains of an item that was not public are not published; those of a public one are.
#[test]
fn what_was_not_public_leaves_nothing_published() {
    let (env, served) = fixture();
    prints(
        &env,
        &served,
        "chmod 700 A/$shut A/hidden.org; rm -r A/$shut A/$open A/$below; same $shutp $otherp; same $shut $other
         for id in $open $openp; do curl -s -o /dev/null -w '%{http_code}\\n' $U/$id; done; curl -s \"$U/$S?servicesubject=urlRequest&parsedibiurl.ibi=$open\" | tr -d '\\r' | grep ^state
         same $below hidden.org/w/2020/01.02.03.05; chmod 755 A/hidden.org; curl -s -o /dev/null -w '%{http_code}\\n' $U/$below
         curl -s \"$U/oai?verb=ListIdentifiers&metadataPrefix=oai_dc\" > list; grep -c \"$open<\" list; grep -c \"$shut<\" list || true
         cp -a A.store/deleted d; ibifs umount A; lose_index A.store; ibifs reindex A.store > /dev/null; same $shutp $otherp",
        "same\nsame\n410\n410\nstate Deleted\nsame\n404\n1\n0\nsame",
    );
}

/// In the mount a level protects an item by its IBIp, and in `.mint`, as by its rep: from each user, whatever
/// was let in before, and as soon as it is shut.
#[test]
fn a_level_protects_by_every_name() {
    let env = TestEnv::with(Needs::AccessLists).with_a();
    env.sh(MAKE);
    let script = |script: &str| {
        format!(
            "{SCENE}may() {{ as $1 cat \"$2\" > /dev/null 2>&1 && echo yes || echo no; }}\n{script}"
        )
    };
    env.prints(
        &script(
            "may 1001 A/$belowp/doc/f; (cd A/$belowp; sleep 100 > /dev/null & echo $! > ../../sitter 2> /dev/null || echo $! > $OLDPWD/sitter)
             chmod 700 A/hidden.org; may 1001 A/$belowp/doc/f; cat A/$belowp/doc/f; may 1001 A/$belowp/doc/f; cat A/$belowp/doc/f; may 1001 A/$below/doc/f
             may 1001 \"A/$belowp?GetFileList\"; cat \"A/$belowp?GetFileList\"; may 1001 \"A/$belowp:(oai_dc)\"; may 1001 \"A/$belowp?GetMetadata(oai_dc)\"
             cd A/$belowp; as 1001 cat ../../$belowp/doc/f 2> /dev/null || echo no; cat doc/f; cat ../../$belowp/doc/f; cd ../../..
             as 1001 ls $PWD/A/${belowp%/*} | grep -c ${belowp#*/} || true; as 1001 ls -l A/${belowp%/*} > /dev/null 2>&1 || true
             as 1001 getfattr -n user.ibi.rep A/$belowp > /dev/null 2>&1 && echo yes || echo no; as 1001 rmdir A/$belowp 2>&1 | grep -o 'Permission denied' || true
             chmod 755 A/hidden.org; may 1001 A/$belowp/doc/f; cat A/$belowp/doc/f
             chown 1001:1001 A/hidden.org; chmod 700 A/hidden.org; may 1001 A/$belowp/doc/f; may 1002 A/$belowp/doc/f; may 1001 A/$belowp/doc/f; kill $(cat sitter A/sitter 2> /dev/null)",
        )
        .replace("../../sitter 2> /dev/null || echo $! > $OLDPWD/sitter", "$OLDPWD/sitter"),
        "yes\nno\ntext\nno\ntext\nno\nno\ndoc/f\nno\nno\nno\ntext\ntext\n1\nno\nPermission denied\nyes\ntext\nyes\nno\nyes",
    );
    // By a group, by an access list, and by the root's own modes.
    env.prints(
        &script(
            "chown 0:1003 A/hidden.org; chmod 750 A/hidden.org; may 1002 A/$belowp/doc/f; setpriv --reuid=1002 --regid=1002 --groups=1003 -- cat A/$belowp/doc/f; may 1002 A/$belowp/doc/f
             chmod 705 A/hidden.org; may 1002 A/$belowp/doc/f; setpriv --reuid=1002 --regid=1002 --groups=1003 -- cat A/$belowp/doc/f 2> /dev/null || echo no
             chmod 755 A/hidden.org; may 1002 A/$belowp/doc/f; setfacl -m u:1002:--- A/hidden.org; may 1002 A/$belowp/doc/f; may 1001 A/$belowp/doc/f; may 1002 A/$belowp/doc/f
             setfacl -b A/hidden.org; may 1002 A/$belowp/doc/f",
        ),
        "no\ntext\nno\nyes\nno\nyes\nno\nyes\nno\nyes",
    );
    env.prints(
        &script(
            "mkdir A/.mint/x; echo text > A/.mint/x/f; y=${open%%/*}; chmod 755 A/.mint/x; as 0 cat A/.mint/x/f; chmod 700 A/$y
             may 1001 A/.mint/x/f; cat A/.mint/x/f; may 1001 A/.mint/x/f; may 1001 A/$openp/doc/f; cat A/$openp/doc/f; may 1001 A/$openp/doc/f; chmod 755 A/$y; may 1001 A/$openp/doc/f",
        ),
        "text\nno\ntext\nno\nno\ntext\nno\nyes",
    );
}
