//! Bags that others have made, of all versions: the valid ones come in without loss, and each other one is refused with a
//! sentence that names file and cause. The kinds are those of LibraryOfCongress/bagit-conformance-suite and of RFC 8493.

use crate::support::TestEnv;

/// `bag(NAME, ...)` makes a bag in a directory; `wrong` has the sentence of each one that is not valid.
const BAGS: &str = r#"
import hashlib, os, unicodedata
wrong = {}
FILES = {b"a.txt": b"text", b"sub/b c.txt": b"more"}
def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data)
def lines(algorithm, files, end, line):
    return end.join(line % (hashlib.new(algorithm, data).hexdigest().encode(), path) for path, data in files.items()) + end
def bag(name, sentence=None, version="0.97", encoding="UTF-8", codec=None, end=b"\n", line=b"%s  %s", algorithms=["sha256"], files=FILES,
        listed=None, info=b"Bagging-Date: 2020-01-01\n", tags={}, drop=[], change={}, declared=None, info_name="bag-info.txt", raw=False):
    top = os.fsencode(("bad/" if sentence else "good/") + name) + b"/"
    os.makedirs(top + b"data")
    code = lambda data: data.decode("utf-8").encode(codec) if codec else data
    for path, data in files.items(): put(top + b"data/" + path, data)
    texts = {b"bagit.txt": declared if declared is not None else ("BagIt-Version: %s\nTag-File-Character-Encoding: %s\n" % (version, encoding)).encode().replace(b"\n", end)}
    if info is not None: texts[info_name.encode()] = info if raw else code(info.replace(b"\n", end))
    texts.update(tags)
    listed = files if listed is None else listed
    payload = {(b"data/" + path): data for path, data in listed.items()}
    for algorithm in algorithms:
        texts[b"manifest-%s.txt" % algorithm.encode()] = code(lines(algorithm, payload, end, line))
    for algorithm in algorithms:
        texts[b"tagmanifest-%s.txt" % algorithm.encode()] = code(lines(algorithm, {k: v for k, v in texts.items() if not k.startswith(b"tagmanifest")}, end, line))
    texts.update(change)
    for path, data in texts.items():
        if path not in drop and data is not None: put(top + path, data)
    for path in drop:
        if os.path.exists(top + path): os.remove(top + path)
    if sentence: wrong[name] = sentence
manifest = lambda *entries, algorithm="sha256": b"".join(hashlib.new(algorithm, data).hexdigest().encode() + b"  " + path + b"\n" for path, data in entries)
"#;

const GOOD: &str = r#"
for version in ["0.93", "0.94", "0.95", "0.96", "0.97", "1.0"]:
    for name, end in [("lf", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r"), ("empty-lines", b"\n\n")]:
        bag("%s-%s" % (version, name), version=version, end=end)
    bag(version + "-all", version=version, algorithms=["md5", "sha1", "sha224", "sha256", "sha384", "sha512"])
    bag(version + "-dot", version=version, line=b"%s ./%s")
    bag(version + "-star", version=version, line=b"%s *%s")
    bag(version + "-tab", version=version, line=b"%s\t%s")
    bag(version + "-sum", version=version, info=b"Payload-Oxum: 8.2\n")
    bag(version + "-latin", version=version, encoding="ISO-8859-1", codec="latin-1", files={"\xe9.txt".encode(): b"x"})
    bag(version + "-utf16", version=version, encoding="UTF-16", codec="utf-16", files={"\xe9.txt".encode(): b"x"})
    bag(version + "-bytes", version=version, files={b"caf\xe9": b"x"})
    bag(version + "-empty", version=version, files={})
    bag(version + "-fetch", version=version, tags={b"fetch.txt": b"http://x.example/a - data/a.txt\nhttp://x.example/b 4 data/sub/b c.txt\n"})
    bag(version + "-no-tags", version=version, change={b"tagmanifest-sha256.txt": None})
    composed = "\xfa\u30ac".encode(); other = unicodedata.normalize("NFD", "\xfa\u30ac").encode()
    bag(version + "-nfd", version=version, files={other: b"x"}, listed={composed: b"x"})
    bag(version + "-nfc", version=version, files={composed: b"x"}, listed={other: b"x"})
    bag(version + "-both", version=version, files={composed: b"x"}, listed={composed: b"x", other: b"x"})
    bag(version + "-two", version=version, files={composed: b"x", other: b"y"})
    bag(version + "-mark", version=version, change={b"manifest-sha256.txt": b"\xef\xbb\xbf" + manifest((b"data/a.txt", b"text"), (b"data/sub/b c.txt", b"more")), b"tagmanifest-sha256.txt": None})
    bag(version + "-twice", version=version, change={b"manifest-sha256.txt": manifest(*[(b"data/a.txt", b"text"), (b"data/sub/b c.txt", b"more")] * 2), b"tagmanifest-sha256.txt": None})
    bag(version + "-upper", version=version, change={b"manifest-sha256.txt": manifest((b"data/a.txt", b"text"), (b"data/sub/b c.txt", b"more")).upper().replace(b"DATA/A.TXT", b"data/a.txt").replace(b"DATA/SUB/B C.TXT", b"data/sub/b c.txt"), b"tagmanifest-sha256.txt": None})
# Only 1.0 has '%' escaped, and not all tools that write it know that.
bag("percent-0.97", files={b"100%25.txt": b"x", b"%7Ea": b"y", b"%b": b"z"})
bag("percent-1.0", version="1.0", files={b"100%.txt": b"x"}, listed={b"100%25.txt": b"x"})
bag("percent-raw", version="1.0", files={b"100%25.txt": b"x"})
bag("percent-early", files={b"100%.txt": b"x"}, listed={b"100%25.txt": b"x"})
bag("line-ends", files={b"a\nb": b"x", b"a\rb": b"y"}, listed={b"a%0Ab": b"x", b"a%0db": b"y"})
bag("old-info", version="0.95", info_name="package-info.txt")
bag("bag-in-bag", files={b"bag/bagit.txt": b"BagIt-Version: 0.97\n", b"bag/data/a": b"x", b"bag/manifest-md5.txt": b""})
# Before 1.0, a file needs to be in one of the manifests only.
bag("one-of-two", algorithms=["sha256"], tags={b"manifest-md5.txt": b""})
bag("info", raw=True, files={b"info.txt": b"x"}, info=b"Source-Organization : INPE\r\nExternal-Description: Tides of a\r\n   bay\r\n\tand another\r\nContact-Name: Jos\xe9\r\n\r\nTitle:\tMar\xe9\r\n")
"#;

const BAD: &str = r#"
for version in ["0.93", "0.96", "0.97", "1.0"]:
    tag = lambda name: "%s-%s" % (version, name)
    bag(tag("no-declaration"), "'bagit.txt' of the package is not valid: a bag without it", version=version, drop=[b"bagit.txt"], change={b"tagmanifest-sha256.txt": None})
    bag(tag("no-encoding"), "'bagit.txt' of the package is not valid: it has not one line 'Tag-File-Character-Encoding:'", declared=("BagIt-Version: %s\n" % version).encode())
    bag(tag("mark"), "'bagit.txt' of the package is not valid: it begins with a byte order mark", version=version, declared=("\ufeffBagIt-Version: %s\nTag-File-Character-Encoding: UTF-8\n" % version).encode())
    bag(tag("encoding"), "its encoding 'x-klingon' is none that ibifs reads", version=version, encoding="x-klingon")
    bag(tag("sum-bytes"), "'bag-info.txt' of the package is not valid: its Payload-Oxum is '9.2', and the payload has 8.2", version=version, info=b"Payload-Oxum: 9.2\n")
    bag(tag("sum-files"), "its Payload-Oxum is '8.3'", version=version, info=b"Payload-Oxum: 8.3\n")
    bag(tag("sum-shape"), "its Payload-Oxum is 'eight'", version=version, info=b"Payload-Oxum: eight\n")
    bag(tag("no-info"), "'bag-info.txt' is in the package's list of files, and is not there", version=version, drop=[b"bag-info.txt"])
    bag(tag("info-line"), "'bag-info.txt' of the package is not valid: line 2 is not a name, ':' and a value", version=version, info=b"A: b\nno tag\n")
    bag(tag("missing"), "'data/a.txt' is in the package's list of files, and is not there", version=version, drop=[b"data/a.txt"])
    bag(tag("stray"), "'data/stray' is not in the package's list of files", version=version, listed=FILES, files={**FILES, b"stray": b"x"})
    bag(tag("differs"), "'data/a.txt' is not what the package says", version=version, change={b"data/a.txt": b"TEXT"})
    bag(tag("tag-differs"), "'bag-info.txt' is not what the package says", version=version, change={b"bag-info.txt": b"A: b\n"})
    bag(tag("two-digests"), "line 2 has another digest of a file", version=version, change={b"manifest-sha256.txt": manifest((b"data/a.txt", b"text"), (b"./data/a.txt", b"other"), (b"data/sub/b c.txt", b"more"))})
    bag(tag("no-manifest"), "no manifest is there of an algorithm", version=version, algorithms=[], tags={b"manifest-whirlpool.txt": b"x"})
    bag(tag("line"), "'manifest-sha256.txt' of the package is not valid: line 3 is not a digest and a path", version=version, change={b"manifest-sha256.txt": manifest((b"data/a.txt", b"text"), (b"data/sub/b c.txt", b"more")) + b"x\n"})
    for name, path in [("up", b"data/../../x"), ("root", b"/tmp/foo"), ("root-data", b"/data/a.txt"), ("dots", b"../../../README.md")]:
        bag(tag(name), "line 1 has a path that does not stay in the bag", version=version, change={b"manifest-sha256.txt": manifest((path, b"x"))})
    for name, path in [("home", b"~/foo"), ("drive", rb"C:\Windows\x"), ("share", rb"\\?\UNC\x"), ("variable", rb"%HomeDrive%\x"), ("tag", b"bagit.txt")]:
        bag(tag(name), "'manifest-sha256.txt' of the package is not valid: it has ", version=version, change={b"manifest-sha256.txt": manifest((path, b"x"))})
    for path in [b"../x", b"/tmp/x", b"~root/x", rb"C:\x", b"bagit.txt"]:
        bag(tag("fetch-" + path.decode().replace("/", "_")), "'fetch.txt' of the package is not valid: line 1 has a path", version=version, tags={b"fetch.txt": b"http://x.example/a - " + path + b"\n"})
    bag(tag("elsewhere"), "the file data/c.txt of the bag is elsewhere", version=version, tags={b"fetch.txt": b"http://x.example/a - data/c.txt\n"}, listed={**FILES, b"c.txt": b"x"})
for version in [".97", "0.92", "0.98", "1.1", "2.0", "1", "x"]:
    bag("version-" + version, "its version '%s' is none of" % version, version=version)
bag("three-lines", "of version 1.0 it has two lines", declared=b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\nX: y\n")
bag("not-in-both", "'manifest-md5.txt' of the package is not valid: it does not list data/sub/b c.txt", version="1.0", algorithms=["sha256"], tags={b"manifest-md5.txt": manifest((b"data/a.txt", b"text"), algorithm="md5")})
bag("manifest-not-listed", "'tagmanifest-sha256.txt' of the package is not valid: it does not list manifest-sha256.txt", version="1.0", change={b"tagmanifest-sha256.txt": manifest((b"bagit.txt", b"BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n"))})
bag("no-data", "'data' of the package is not valid: the bag has no such directory", files={}); os.rmdir("bad/no-data/data")
bag("link", "'data/a.txt' is a link", change={}); os.remove("bad/link/data/a.txt"); os.symlink("/etc/passwd", "bad/link/data/a.txt")
for name, sentence in wrong.items(): open("bad/" + name.replace("/", "_") + ".why", "w").write(sentence)
"#;

fn bags() -> TestEnv {
    let env = TestEnv::new();
    std::fs::write(env.root().join("bags.py"), [BAGS, GOOD, BAD].concat()).expect("written");
    env.sh(
        "mkdir in; cd in; python3 ../bags.py; ibifs init ../A.store --host archive-a.example.org",
    );
    env
}

/// Each comes in with the same files, and its metadata are those of the bag.
#[test]
fn valid_bags_come_in_without_loss() {
    let env = bags();
    env.prints(
        r#"ibifs import --verify in/good/* | grep -c '^valid: '; ls in/good | wc -l
        for bag in in/good/*; do
            item=A.store/col/$(ibifs import --mint A.store "$bag" | head -n 1); diff -r "$bag/data" "$item/doc" || echo "$bag"
        done
        cat A.store/col/*/*/*/*/.ibi.metadata | sort"#,
        "141\n141\ndescription: Tides of a bay and another\npublisher: INPE\ntitle: Maré",
    );
}

/// Each is refused by both commands, and nothing is minted or left.
#[test]
fn bags_that_are_not_valid_are_refused() {
    let env = bags();
    env.prints(
        r#"for bag in in/bad/*/; do
            bag=${bag%/}; status=0; ibifs import --verify "$bag" > out 2> said || status=$?
            [ "$status" = 1 ] && [ ! -s out ] && grep -qF -e "$(< "$bag.why")" said || { echo "$status $bag"; cat said; }
            status=0; ibifs import --mint A.store "$bag" > out 2> said || status=$?
            [ "$status" = 1 ] && [ ! -s out ] && grep -qF -e "$(< "$bag.why")" said || { echo "$status $bag"; cat said; }
        done; ls -d in/bad/*/ | wc -l; ibifs ls A.store | wc -l; ls -A in in/bad | grep -c ibifs-import || true"#,
        "136\n1\n0",
    );
}

/// Packages are checked as directories, zip and tar files, and in a directory; one that is not valid does not end it.
#[test]
fn packages_are_verified() {
    let env = bags();
    env.sh("cp -r in/good/0.97-lf one; cp -r in/bad/0.97-differs two; (cd in/good; python3 -m zipfile -c ../../one.zip 0.97-lf); tar -cf one.tar -C in/good 0.97-lf
        tar -czf two.tgz -C in/bad 0.97-differs; mkdir many plain; cp -r one two many; echo > plain/x");
    env.prints(
        "{ ibifs import --verify one one.zip one.tar two two.tgz many plain || echo $?; } 2>&1
         ibifs import --verify one two --json | jq -r '.outcome, .sentence' || true; find . -name '.ibifs-import*' | wc -l",
        "valid: one\nvalid: one.zip\nvalid: one.tar\n\
         ibifs: two: 'data/a.txt' is not what the package says; get the package again\n\
         ibifs: two.tgz: 'data/a.txt' is not what the package says; get the package again\n\
         valid: many/one\n\
         ibifs: many/two: 'data/a.txt' is not what the package says; get the package again\n\
         ibifs: plain: E003, it has no declaration of an OCFL object, and no 'bagit.txt' of a bag\n\
         1\nvalid\nnull\nnot-valid\n'data/a.txt' is not what the package says; get the package again\n0",
    );
    env.exits("ibifs import --verify one two 2> said", 1);
    env.exits("ibifs import --verify nothing", 1);
    env.exits("ibifs import A.store", 2);
}
