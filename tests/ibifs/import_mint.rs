//! `ibifs import --mint`: bags without an identifier, OCFL objects, zip and tar files and directories become new items;
//! what is hostile or damaged becomes none, and leaves nothing.

use crate::support::TestEnv;

/// Makes sources with the tools and libraries of others.
const SOURCES: &str = r#"
import hashlib, io, os, struct, tarfile, zipfile
DC = """<?xml version="1.0"?><record xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Tides</dc:title><dc:creator>Souza, Maria</dc:creator></record>"""
def put(path, text):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    open(path, "wb").write(text if isinstance(text, bytes) else text.encode())
def bag(top, algorithms, files={"a.txt": "text", "sub/b \xe9.txt": "more"}, extra={}):
    put(top + "/bagit.txt", "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n")
    put(top + "/bag-info.txt", "Source-Organization: INPE\nExternal-Description: Tides of a bay\n")
    for name, text in files.items(): put(top + "/data/" + name, text)
    for name, text in extra.items(): put(top + "/" + name, text)
    for algorithm in algorithms:
        lines = ["%s  data/%s\n" % (hashlib.new(algorithm, text.encode()).hexdigest(), name) for name, text in files.items()]
        put(top + "/manifest-%s.txt" % algorithm, "".join(lines))
for algorithm in ["md5", "sha1", "sha256", "sha512"]: bag("bag-" + algorithm, [algorithm])
bag("bag", ["sha512", "md5"], files={"a.txt": "text", "sub/b \xe9.txt": "other"}, extra={"metadata/dc.xml": DC})
bag("wrong", ["sha512", "md5"]); put("wrong/manifest-md5.txt", open("wrong/manifest-md5.txt").read().replace("a", "b", 1))
bag("missing", ["sha256"]); os.remove("missing/data/a.txt")
bag("stray", ["sha256"]); put("stray/data/stray", "x")
bag("fetched", ["sha256"], extra={"fetch.txt": "http://x.example/c 4 data/c.txt\n"})
bag("none", [])
bag("named", ["sha256"]); put("named/bag-info.txt", "External-Identifier: 8JMKD3MGP8W/34PGRBS\n")
put("plain/a.txt", "text"); put("plain/sub/b.txt", "more"); os.symlink("a.txt", "plain/link")
put("whole/doc/a.txt", "text"); put("whole/.ibi.metadata", "title: Whole\n"); put("sidecar/.ibi", "ibi {rep a.b/c/2001/01.01.01.01}\n")

def zipped(path, entries, **more):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name, text in entries: out.writestr(name, text)
zipped("plain.zip", [("a.txt", "text"), ("sub/", ""), ("sub/b.txt", "more" * 1000)])
with zipfile.ZipFile("bag.zip", "w") as out:
    for at, _, names in os.walk("bag"):
        for name in names: out.write(os.path.join(at, name))
zipped("up.zip", [("../out", "x")]); zipped("absolute.zip", [("/tmp/out", "x")]); zipped("deep.zip", [("a/../../out", "x")])
zipped("file-and-directory.zip", [("a", "x"), ("a/b", "y")])
link = zipfile.ZipInfo("link"); link.external_attr = 0o120777 << 16
zipped("link.zip", [(link, "/etc/passwd")])
zipped("bomb.zip", [("zeros", bytes(1 << 20)), ("more", bytes(1234567))])
# The second file alone would be allowed. Its length is as the archive says, which nothing unpacks.
bomb = open("bomb.zip", "rb").read().replace(struct.pack("<I", 1234567), struct.pack("<I", 1 << 30)); put("bomb.zip", bomb)
with zipfile.ZipFile("stored.zip", "w") as out: out.writestr("a", "content")
open("broken.zip", "wb").write(open("stored.zip", "rb").read().replace(b"content", b"c0ntent", 1))
open("cut.zip", "wb").write(open("plain.zip", "rb").read()[:-40]); put("text", "no archive")

def tarred(path, entries, mode="w"):
    with tarfile.open(path, mode) as out:
        for info, text in entries:
            if isinstance(info, str): info = tarfile.TarInfo(info); info.size = len(text); info.mtime = 1234567890
            out.addfile(info, io.BytesIO(text.encode()))
def special(name, kind, target=""):
    info = tarfile.TarInfo(name); info.type = kind; info.linkname = target
    return info
tarred("plain.tar", [("./a.txt", "text"), ("sub/" + "long" * 40 + "/b.txt", "more")]); tarred("plain.tar.gz", [("a.txt", "text")], "w:gz")
tarred("up.tar", [("../out", "x")]); tarred("link.tar", [(special("l", tarfile.SYMTYPE, "/etc"), ""), ("l/x", "y")])
tarred("hard.tar", [("a", "x"), (special("b", tarfile.LNKTYPE, "a"), "")]); tarred("device.tar", [(special("d", tarfile.CHRTYPE), "")])
"#;

fn sources() -> TestEnv {
    let env = TestEnv::new().with_a();
    std::fs::write(env.root().join("sources.py"), SOURCES).expect("written");
    env.sh("mkdir in; cd in; python3 ../sources.py");
    env
}

/// `minted SOURCE [PLACE]`: imports it and goes to the new item in the mount.
const MINTED: &str = r#"
minted() { names=$(ibifs import --mint "${2:-A}" "in/$1"); item=A/$(head -n 1 <<< "$names"); test "$(wc -l <<< "$names")" = 2; }
tree() { (cd "$item"; find . -mindepth 1 ! -name .ibi ! -path './package*' | sort | tr '\n' ' '); }
"#;

#[test]
fn each_source_becomes_an_item() {
    let env = sources();
    env.prints(
        &format!(
            r#"{MINTED}
            for source in bag-md5 bag-sha1 bag-sha256 bag-sha512; do minted $source; tree; done; echo; cat "$item/.ibi.metadata"
            minted bag; tree; cat "$item/.ibi.metadata"
            minted bag.zip; diff -r in/bag/data "$item/doc"; grep title "$item/.ibi.metadata"
            minted plain; diff -r --no-dereference in/plain "$item/doc"; tree; echo
            minted whole; tree; cat "$item/.ibi.metadata"
            minted plain.zip; tree; tail -c 4 "$item/doc/sub/b.txt"; echo
            minted plain.tar; tree; stat -c %Y "$item/doc/a.txt"; minted plain.tar.gz; tree; echo
            ibifs import --mint A in/plain.zip --json | jq -r .state
            ls -A in | grep -c ibifs-import || true; ibifs umount A; ibifs import --mint A.store in/plain | wc -l; ibifs fsck A.store | grep -v no-title | tail -n 1
            "#
        ),
        "./.ibi.metadata ./doc ./doc/a.txt ./doc/sub ./doc/sub/b é.txt ./.ibi.metadata ./doc ./doc/a.txt ./doc/sub ./doc/sub/b é.txt \
         ./.ibi.metadata ./doc ./doc/a.txt ./doc/sub ./doc/sub/b é.txt ./.ibi.metadata ./doc ./doc/a.txt ./doc/sub ./doc/sub/b é.txt \n\
         description: Tides of a bay\npublisher: INPE\n\
         ./.ibi.metadata ./doc ./doc/a.txt ./doc/sub ./doc/sub/b é.txt title: Tides\ncreator: Souza, Maria\ndescription: Tides of a bay\npublisher: INPE\n\
         title: Tides\n./doc ./doc/a.txt ./doc/link ./doc/sub ./doc/sub/b.txt \n\
         ./.ibi.metadata ./doc ./doc/a.txt title: Whole\n\
         ./doc ./doc/a.txt ./doc/sub ./doc/sub/b.txt more\n\
         ./doc ./doc/a.txt ./doc/sub ./doc/sub/longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong ./doc/sub/longlonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglonglong/b.txt 1234567890\n\
         ./doc ./doc/a.txt \nOriginal\n0\n2\n13 items, 4 findings",
    );
}

/// An item as DSpace exports it, and a directory with MODS, are described by their records.
#[test]
fn records_beside_the_files_describe_the_item() {
    let env = TestEnv::new().with_a();
    env.prints(
        &format!(
            r#"{MINTED}
            mkdir -p in/item_000 in/odd in/bag/metadata in/bag/data
            cat > in/item_000/dublin_core.xml <<'END'
<?xml version="1.0" encoding="utf-8" standalone="no"?>
<dublin_core schema="dc">
  <dcvalue element="contributor" qualifier="author">Silva, Ana</dcvalue>
  <dcvalue element="title" qualifier="none">Rain</dcvalue>
  <dcvalue element="date" qualifier="issued">2010-03</dcvalue>
</dublin_core>
END
            printf 'rain.csv	bundle:ORIGINAL
' > in/item_000/contents; echo 123/4 > in/item_000/handle; echo 1 > in/item_000/rain.csv
            minted item_000; tree; cmp in/item_000/dublin_core.xml "$item/.ibi.metadata"; ibifs cite "$item" | cut -c1-18
            # What cannot be read, and what has no title, is a file as others.
            cp in/item_000/dublin_core.xml in/odd/dc-1.xml; sed -i s/Rain/'\&x;'/ in/odd/dc-1.xml; echo '<dublin_core/>' > in/odd/dc-2.xml
            minted odd; tree; test ! -e "$item/.ibi.metadata"; echo
            # Of a bag, with what its tags say.
            printf 'BagIt-Version: 1.0
Tag-File-Character-Encoding: UTF-8
' > in/bag/bagit.txt; echo 'Source-Organization: INPE' > in/bag/bag-info.txt
            echo x > in/bag/data/x; (cd in/bag; sha256sum data/x > manifest-sha256.txt)
            echo '<mods xmlns="http://www.loc.gov/mods/v3"><titleInfo><title>Tides</title></titleInfo></mods>' > in/bag/metadata/mods.xml
            minted bag; cat "$item/.ibi.metadata"
            "#
        ),
        "./.ibi.metadata ./doc ./doc/contents ./doc/dublin_core.xml ./doc/handle ./doc/rain.csv Silva, A. (2010, M\n\
         ./doc ./doc/dc-1.xml ./doc/dc-2.xml \n\
         title: Tides\npublisher: INPE\ntype: Text",
    );
}

/// Nothing is minted, left or written outside for a source that is damaged or hostile, and the reason is said.
#[test]
fn what_is_not_safe_becomes_no_item() {
    let env = sources();
    let count = env.sh("ibifs ls A | wc -l");
    for (source, why) in [
        ("wrong", "is not what the package says"),
        ("missing", "is not there; get the package again"),
        ("stray", "is not in the package's list of files"),
        ("fetched", "the file data/c.txt of the bag is elsewhere"),
        ("none", "no manifest is there"),
        ("named", "import it without --mint"),
        ("sidecar", "it is the sidecar of an item"),
        ("up.zip", "its path does not stay"),
        ("absolute.zip", "its path does not stay"),
        ("deep.zip", "its path does not stay"),
        ("file-and-directory.zip", "a/b"),
        ("link.zip", "it is a link"),
        ("bomb.zip", "more than a thousand times"),
        ("broken.zip", "Invalid checksum"),
        ("cut.zip", "zip"),
        ("text", "neither a directory nor a zip or tar file"),
        ("up.tar", "its path does not stay"),
        ("link.tar", "it is a link"),
        ("hard.tar", "it is a link"),
        ("device.tar", "neither a file nor a directory"),
        ("missing-source", "No such file"),
    ] {
        env.complains(&format!("ibifs import --mint A in/{source}"), why);
    }
    env.prints("ibifs ls A | wc -l", &count);
    env.prints(
        "ls -A in | grep -c ibifs-import || true; { ls -d /tmp/out ../out out 2> /dev/null || true; } | wc -l",
        "0\n0",
    );
}

/// A user mints through the mount as with `ibifs mint`; a source in an item is not prepared there.
#[test]
fn users_import_through_the_mount() {
    let env = sources();
    env.sh("chmod 755 . in; chmod 1777 A A/.mint; chmod -R a+rX in; chmod 755 A.store");
    env.prints(
        &format!(
            r#"{MINTED}
            names=$(setpriv --reuid=60001 --regid=60001 --clear-groups env TMPDIR=/tmp ibifs import --mint A in/plain.zip)
            item=A/$(head -n 1 <<< "$names"); stat -c %u "$item" "$item/doc/a.txt" "$item/doc/sub"; tree; echo
            cp in/plain.zip "$item/doc/"; ibifs import --mint A "$item/doc/plain.zip" | wc -l; tree
            "#
        ),
        "60001\n60001\n60001\n./doc ./doc/a.txt ./doc/sub ./doc/sub/b.txt \n2\n./doc ./doc/a.txt ./doc/plain.zip ./doc/sub ./doc/sub/b.txt ",
    );
}

/// Items are chosen by a condition; a bag has what other programs look for, and is valid for them.
#[test]
fn many_items_are_exported() {
    let env = TestEnv::new().with_a();
    env.prints(
        r#"
        for name in one two; do mint A $name > $name; echo text > "A/$(< $name)/doc/f é"; done
        printf 'title: Tides\n' > "A/$(< one):"; old=sid.inpe.br/banon/2001/05.06.07.08; mkdir -p A/$old/doc; mint A gone > gone; rm -r A/$(< gone)
        ibifs export --bagit --all --store A all | tail -n 1; ibifs export --bagit --prefix SID.inpe.br/ --store A old | tail -n 1
        ibifs export --ocfl --year 2001 --store A root | tail -n 1; ibifs export --bagit --year 1999 --prefix x --all --store A none | tail -n 1
        cd "all/$(< one)"; for n in sha256 sha512; do ${n}sum --quiet -c manifest-$n.txt tagmanifest-$n.txt; done
        grep -o 'title>.*<' metadata/dc.xml
        file="//*[local-name()='object'][.//*[.='data/doc/f é']]"; premis() { xmllint --nonet --xpath "$1" metadata/preservation/premis.xml; }
        test "$(premis "string($file//*[local-name()='messageDigest'])")" = "$(sha512sum < "data/doc/f é" | cut -d ' ' -f 1)"
        premis "string($file//*[local-name()='size'])"; premis "count(//*[local-name()='object'])"; cd - > /dev/null
        ibifs init B.store --host b.example.org > /dev/null; ibifs import B.store all | tail -n 1
        ibifs export --bagit --zip A/$(< one) zips | tail -n 1; unzip -tqq "zips/$(< one).zip"; unzip -q "zips/$(< one).zip" -d unzipped
        diff -r "all/$(< one)" "unzipped/$(tr / _ < one)"; { ibifs export --bagit --zip A/$(< one) zips || true; } | grep -c 'not exported'
        ibifs export --bagit A/$(< one) --all --store A x 2>&1 | head -n 1 || true; ibifs export --bagit x 2>&1 | head -n 1 || true
        "#,
        "3 items: 3 written, 0 unchanged\n1 item: 1 written, 0 unchanged\n1 item: 1 written, 0 unchanged\n\
         0 items: 0 written, 0 unchanged\ntitle>Tides<\n5\n4\n3 packages, 3 taken in\n1 item: 1 written, 0 unchanged\n1\n\
         ibifs: items are named, or chosen by --all, --prefix and --year, but not both\nibifs: name the items and the destination",
    );
}

/// A bag in a zip or tar file is imported as the bag: one file, all that lie in a directory, and the zip file that a
/// served Archive makes. What holds no package is not taken, and nothing is left beside it.
#[test]
fn packed_bags_are_imported() {
    let env = TestEnv::new().with_a();
    env.prints(
        r#"
        for name in one two; do mint A $name > $name; echo text > "A/$(< $name)/doc/f é"; done
        ibifs export --bagit --zip --all --store A zips | tail -n 1
        ibifs export --bagit A/$(< one) bags > /dev/null; tar -czf one.tgz -C bags/$(dirname $(< one)) $(basename $(< one))
        for name in B C D; do ibifs init $name.store --host b.example.org > /dev/null; done; mkdir B; ibifs mount B.store B
        ibifs import B zips | tail -n 1; { ibifs import B zips || true; } | tail -n 1; diff -r A/$(< one) B/$(< one)
        ibifs import C.store zips/$(< one).zip | sed "s;$(< one);ONE;g"; diff -r A/$(< one) C.store/col/$(< one)
        ibifs import D.store one.tgz --dry-run | tail -n 1; ibifs import D.store one.tgz | tail -n 1
        diff -r A/$(< one) D.store/col/$(< one)
        echo text > a.txt; tar -cf plain.tar a.txt; mkdir other; python3 -m zipfile -c other/loose.zip a.txt
        { ibifs import D.store plain.tar 2>&1 || true; } | head -n 1; { ibifs import D.store other 2>&1 || true; } | head -n 1
        cp zips/$(< two).zip cut.zip; truncate -s -3000 cut.zip; { ibifs import D.store cut.zip 2>&1 || true; } | grep -c 'not taken'
        find . -name '.ibifs-import*' | wc -l"#,
        "2 items: 2 written, 0 unchanged\n2 packages, 2 taken in\n2 packages, 0 taken in\n\
         taken: zips/ONE.zip: ONE\n1 package, 1 taken in\n1 package, 1 would be taken in\n1 package, 1 taken in\n\
         not taken: plain.tar: 'plain.tar' holds neither a bag (bagit.txt) nor an OCFL object or storage root; name one, or make one item of all of it with 'ibifs import --mint'\n\
         ibifs: 'other' holds neither a bag (bagit.txt) nor an OCFL object or storage root; name one, or make one item of all of it with 'ibifs import --mint'\n1\n0",
    );
}

/// Each package of a directory becomes an item, also those of a storage root; one that is broken does not end it. What an
/// item was made of makes none again, and what was beside the content is kept.
#[test]
fn each_package_of_a_directory_becomes_an_item_once() {
    let env = sources();
    env.prints(
        r#"
        cat > in/more.py <<'END'
exec(open("sources.py").read().split("\nfor algorithm in")[0])
for n in range(3): bag("many/b%d" % n, ["sha256"], files={"a.txt": "text %d" % n}, extra={"bag-info.txt": "External-Identifier: id %d\nContact-Name: Ana\n" % n})
bag("many/broken", ["sha256"]); put("many/broken/data/a.txt", "TEXT"); put("many/.DS_Store", "x")
END
        cp sources.py in; (cd in; python3 more.py; cd many; python3 -m zipfile -c b1.zip b1; rm -r b1)
        shown() { sed 's|: example.org/.*|: REP|; s|item example[^ ]*|item REP|'; }
        { ibifs import --mint A in/many 2>&1 || echo $?; } | shown; ibifs ls A > before
        { ibifs import --mint A in/many 2>&1 || echo $?; } | shown; ibifs ls A | diff - before
        item=A/$(ibifs import --mint A in/many/b0 2> said | head -n 1); shown < said; (cd "$item"; find . -type f ! -name .ibi | sort)
        for file in bagit.txt bag-info.txt manifest-sha256.txt; do cmp in/many/b0/$file "$item/package/$file"; done
        cp -r in/many/b0 other; echo more > other/data/a.txt; (cd other; sha256sum data/a.txt > manifest-sha256.txt)
        { ibifs import --mint A other 2>&1 || echo $?; } | shown
        echo x > in/many/readme; { ibifs import --mint A in/many 2>&1 || echo $?; } | shown; ibifs ls A | diff - before
        ibifs export --bagit "$item" bags > /dev/null; cmp in/many/b0/bag-info.txt bags/*/*/*/*/data/package/bag-info.txt
        "#,
        "taken: in/many/b0: REP\n\
         taken: in/many/b1.zip: REP\n\
         taken: in/many/b2: REP\n\
         not taken: in/many/broken: 'data/a.txt' is not what the package says; get the package again\n\
         4 packages, 3 taken in\n\
         1\n\
         ibifs: item REP was made from this package before; nothing is made\n\
         taken: in/many/b0: REP\n\
         ibifs: item REP was made from this package before; nothing is made\n\
         taken: in/many/b1.zip: REP\n\
         ibifs: item REP was made from this package before; nothing is made\n\
         taken: in/many/b2: REP\n\
         not taken: in/many/broken: 'data/a.txt' is not what the package says; get the package again\n\
         4 packages, 3 taken in\n\
         1\n\
         ibifs: item REP was made from this package before; nothing is made\n\
         ./.ibi.metadata\n\
         ./doc/a.txt\n\
         ./package/bag-info.txt\n\
         ./package/bagit.txt\n\
         ./package/imported.txt\n\
         ./package/manifest-sha256.txt\n\
         ibifs: item REP was made from a package with its identifier and other files; give it another identifier to make a new item\n\
         4\n\
         ibifs: 'in/many' has packages, and 'readme', which is in none; name the packages, or move all to 'doc' in a directory for one item of all\n\
         4",
    );
}

/// Another user who says to have made an item of a package prevents no user from importing it.
#[test]
fn the_records_of_others_do_not_count() {
    let env = sources();
    env.prints(
        r#"
        chmod 755 . in; chmod 1777 A A/.mint; chmod -R a+rX in; chmod 755 A.store
        as() { setpriv --reuid=60001 --regid=60001 --clear-groups env TMPDIR=/tmp "$@"; }
        theirs=$(as ibifs import --mint A in/bag-md5 | head -n 1); ours=$(ibifs import --mint A in/bag-md5 | head -n 1); [ "$theirs" != "$ours" ]
        [ "$(ibifs import --mint A in/bag-md5 2> /dev/null | head -n 1)" = "$ours" ]; [ "$(as ibifs import --mint A in/bag-md5 2> /dev/null | head -n 1)" = "$theirs" ]
        rm -r A/$ours/package; ln -s /etc A/$ours/package; ibifs import --mint A in/bag-md5 2>&1 | wc -l"#,
        "2",
    );
}
