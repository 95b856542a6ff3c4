//! Names that are not UTF-8, as in the Latin-1 collections of the 1990s: an item goes through everything that
//! carries items, and comes back byte for byte.

use crate::http::served::Served;
use crate::support::TestEnv;

/// The store A with an item of such names, whose rep is in `one`; `same DIRECTORY` compares another one with it.
const ITEM: &str = r#"
make() {
    ibifs init A --host archive-a.example.org > /dev/null; ibifs mint A | head -n 1 > one
    cd A/col/$(< one)/doc; echo final > $'Relat\xf3rio Final.pdf'; mkdir $'S\xe3o Jos\xe9'
    echo mapa > $'S\xe3o Jos\xe9/regi\xe3o%F3\n\\.tif'; ln -s $'S\xe3o Jos\xe9' $'liga\xe7\xe3o'
    ln $'Relat\xf3rio Final.pdf' $'c\xf3pia'; : > $'\xff\xfe'; echo utf8 > relatório; cd ~
    printf 'rep,target\n%s,Relat%%f3rio Final.pdf\n' $(< one) > table.csv; ibifs import A table.csv
}
names() { (cd "$1"; find doc -printf '%p %y %l\n' | LC_ALL=C sort | od -An -c); }
same() {
    test "$(names A/col/$(< one))" = "$(names "$1")"; diff -r --no-dereference A/col/$(< one)/doc "$1"/doc
    cmp "$1"/doc/$'S\xe3o Jos\xe9/regi\xe3o%F3\n\\.tif' <(echo mapa)
}
"#;

fn environment() -> TestEnv {
    let env = TestEnv::new();
    sh(&env, "make");
    env
}

#[track_caller]
fn sh(env: &TestEnv, script: &str) -> String {
    env.sh(&format!("{ITEM}{script}"))
}

/// Between Archives: cp, rsync and tar in mounts, `ibifs copy` locally and over HTTP, and the transfer of the
/// original.
#[test]
fn an_item_goes_to_other_archives() {
    let env = environment();
    sh(
        &env,
        "mkdir MA MB; ibifs mount A MA; r=$(< one)
         for n in B C D E F; do ibifs init $n --host archive-${n,}.example.net > /dev/null; done
         ibifs mount B MB; mkdir -p MB/${r%/*}; cp -a MA/$r MB/$r; same MB/$r; same B/col/$r; same MA/$(ibip MA/$r)
         rm -r MB/$r; rsync -aH MA/$r MB/${r%/*}/; same MB/$r; rm -r MB/$r
         tar -C MA -cf - $r | tar -C MB -xf -; same MB/$r; grep -qx 'target Relat%F3rio%20Final.pdf' MB/$r/.ibi
         ibifs copy MA/$r C; same C/col/$r; ibifs copy --json MA/$r C | grep -q unchanged
         ibifs umount MB; ibifs umount MA; ibifs transfer --store A $r E; same E/col/$r; test $(ibifs show --store E $r | sed -n 's/^state *//p') = Original
         for n in A B C E; do ibifs fsck $n --json > /dev/null; ibifs reindex $n 2> told; ibifs fsck $n; done",
    );
    let token = "head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > token; touch tokens; chmod 600 token tokens";
    sh(&env, token);
    let first = Served::start(&env, "E");
    sh(&env, &format!("echo \"$(< token) {}\" > tokens", first.url));
    for (command, store) in [("copy", "D"), ("transfer", "F")] {
        let other = Served::start(&env, &format!("{store} --transfer-token-file tokens"));
        sh(
            &env,
            &format!(
                "ibifs {command} --store E --token-file token $(< one) {}; same {store}/col/$(< one); ibifs fsck {store}",
                other.url
            ),
        );
    }
}

/// Through packages and backups, and back.
#[test]
fn an_item_goes_through_packages_and_backups() {
    let env = environment();
    for kind in ["bagit", "ocfl"] {
        sh(
            &env,
            &format!(
                "ibifs export --{kind} --store A $(< one) {kind}; ibifs init {kind}-store --host archive-b.example.net > /dev/null
                 test -z \"$(find {kind} | LC_ALL=C.UTF-8 grep -avx '.*' || true)\"
                 ibifs import {kind}-store {kind}; same {kind}-store/col/$(< one); ibifs fsck {kind}-store
                 ibifs export --{kind} --store {kind}-store $(< one) again; ibifs init third --host archive-c.example.net > /dev/null
                 ibifs import third again; same third/col/$(< one); rm -r third again"
            ),
        );
    }
    sh(
        &env,
        "ibifs backup A back; same back/col/$(< one); ibifs backup A back; same back/col/$(< one)
         mkdir -m 700 old; cp -a A/col old/; rm old/col/$(< one)/.ibi
         ibifs init --adopt old --host archive-a.example.org --json > adopted; jq -e .store adopted > /dev/null
         same old/col/$(< one); ibifs fsck old",
    );
}

/// The commands, the lists and the pages print it in UTF-8, which can be decoded to the bytes.
#[test]
fn what_is_said_of_it_can_be_decoded() {
    let env = environment();
    let encoded = "Relat%F3rio%20Final.pdf";
    env.prints(
        "ibifs show --store A $(< one) | sed -n 's/^target *//p'",
        encoded,
    );
    env.prints(
        "ibifs show --store A $(< one) --json | jq -r .target",
        encoded,
    );
    env.sh("ibifs ls A --json | jq -e '.[0].rep' > /dev/null; ibifs scrub A --json | jq -e .recorded > /dev/null
            echo more >> A/col/$(< one)/doc/$'c\\xf3pia'");
    env.prints(
        "ibifs scrub A | grep ^changed | sed 's/: has been.*//; s|.*/doc/||' | sort",
        "Relat%F3rio Final.pdf\nc%F3pia",
    );
    env.sh("mkdir M; ibifs mount A M");
    // The list gives control characters and `%` in hexadecimal, and all other bytes as they are.
    env.prints(
        "cat \"M/$(< one)?GetFileList\" | LC_ALL=C sort | LC_ALL=C sed -n 's/%0A/<&>/; s/%25/<&>/; /regi/p' | od -An -c | tr -d ' \n'",
        "doc/S343oJos351/regi343o<%25>F3<%0A>\\.tif\\n",
    );
    let served = Served::start(&env, "A");
    env.sh(&format!(
        "U={}; test \"$(curl -sfL $U/$(< one))\" = \"$(cat A/col/$(< one)/doc/$'c\\xf3pia')\"
         curl -sf \"$U/$(< one)/doc/S%E3o%20Jos%E9/regi%E3o%25F3%0A%5C.tif\" | contains -x mapa
         curl -sf -H 'Accept: text/html' \"$U/$(< one)?ibiurl.verblist=GetFileList\" > page; iconv -f UTF-8 page > /dev/null
         for link in $(grep -o 'href=\"[^\"]*%E3o%25F3[^\"]*\"' page | cut -d'\"' -f2); do curl -sf \"$U$link\" | contains -x mapa; echo found; done | contains -x found
         grep -q 'Relat%F3rio%20Final.pdf' page",
        served.url
    ));
}
