//! OCFL objects of other programs, versions 1.0 and 1.1: the valid ones come in without loss, those with faults that the
//! specification allows with a warning, and each other one is refused with the code of the rule that it breaks. The kinds are
//! those of OCFL/fixtures and of the list of validation codes.

use crate::support::TestEnv;

/// `make(NAME, ...)` writes an object: `change` gets its inventories, the last one also as that of the object, before they
/// are written with their digests, and `after` its path.
const OBJECTS: &str = r#"
import copy, hashlib, json, os, shutil
A, B, C = b"one", b"two", b"three"
STEPS = [{"a.txt": A, "sub/b.txt": B}, {"a.txt": A, "c.txt": C, "same.txt": A}]
def put(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "wb").write(data if isinstance(data, bytes) else data.encode())
def seal(path, algorithm):
    put(path + "." + algorithm, hashlib.new(algorithm, open(path, "rb").read()).hexdigest() + " inventory.json\n")
def make(path, change=lambda inventories: None, after=lambda path: None, spec="1.1", algorithms=["sha512", "sha512"], steps=STEPS, directory="content", width=0, user={"name": "A", "address": "mailto:a@x.example"}):
    version = lambda number: "v%0*d" % (width, number)
    inventories, where = [], {}
    for number, files in enumerate(steps, 1):
        algorithm = algorithms[number - 1]
        digest = lambda data: hashlib.new(algorithm, data).hexdigest()
        for name, data in files.items():
            if data not in where:
                where[data] = "%s/%s/%s" % (version(number), directory, name); put("%s/%s" % (path, where[data]), data)
        manifest = {digest(data): [place] for data, place in where.items()}
        versions = {}
        for n, old in enumerate(steps[:number], 1):
            state = {}
            for name, data in old.items(): state.setdefault(digest(data), []).append(name)
            versions[version(n)] = {"created": "2020-01-0%dT01:02:03Z" % n, "message": "m", "user": user, "state": state}
        inventory = {"id": "urn:example:" + os.path.basename(path), "type": "https://ocfl.io/%s/spec/#inventory" % spec, "digestAlgorithm": algorithm, "head": version(number), "manifest": manifest, "versions": versions}
        if directory != "content": inventory["contentDirectory"] = directory
        inventories.append(copy.deepcopy(inventory))
    change(inventories)
    put("%s/0=ocfl_object_%s" % (path, spec), "ocfl_object_%s\n" % spec)
    places = [(version(number), inventory) for number, inventory in enumerate(inventories, 1)] + [("", inventories[-1])]
    for place, inventory in places:
        file = os.path.join(path, place, "inventory.json")
        if inventory is not None:
            put(file, inventory if isinstance(inventory, (bytes, str)) else json.dumps(inventory))
            seal(file, inventory.get("digestAlgorithm", "sha512") if isinstance(inventory, dict) and isinstance(inventory.get("digestAlgorithm", ""), str) else "sha512")
    after(path)
def each(change):
    def all(inventories):
        for inventory in inventories: change(inventory)
    return all
def last(change): return lambda inventories: change(inventories[-1])
def first(change): return lambda inventories: change(inventories[0])
def sets(key, value): return each(lambda inventory: inventory.update({key: value}))
def drops(key): return each(lambda inventory: inventory.pop(key))
def of_version(change):
    def all(inventory):
        for version in inventory["versions"].values(): change(version)
    return each(all)
def writes(name, data="x"): return lambda path: put(path + "/" + name, data)
def moves(old, new): return lambda path: os.rename(path + "/" + old, path + "/" + new)
def removes(name): return lambda path: shutil.rmtree(path + "/" + name) if os.path.isdir(path + "/" + name) else os.remove(path + "/" + name)
def links(name, to): return lambda path: (os.remove(path + "/" + name), os.symlink(to, path + "/" + name))
def digest_of(data, algorithm="sha512"): return hashlib.new(algorithm, data).hexdigest()
def as_text(change): return lambda inventories: inventories.__setitem__(slice(None), [change(json.dumps(inventory)) for inventory in inventories])
def adds_fixity(algorithm, data, place): return each(lambda inventory: inventory.setdefault("fixity", {}).setdefault(algorithm, {}).setdefault(digest_of(data, algorithm), []).append(place))
"#;

/// The warnings of an object that is taken, or nothing, before its name.
const GOOD: &str = r#"
for spec in ["1.0", "1.1"]:
    good = lambda name, **more: make("good/%s-%s" % (name, spec), spec=spec, **more)
    good("plain")
    good("one", steps=STEPS[:1])
    good("stuff", directory="stuff")
    good("upper", change=as_text(lambda text: text.replace(digest_of(A), digest_of(A).upper())))
    good("zone", change=of_version(lambda version: version.update(created="2020-01-01T01:02:03.456-05:00")))
    good("logs", after=writes("logs/log.txt"))
    good("extension", after=writes("extensions/0001-digest-algorithms/config.json"))
    for algorithm in ["md5", "sha1", "sha256", "sha512", "blake2b"]:
        if algorithm != "blake2b": good("fixity-" + algorithm, change=adds_fixity(algorithm, A, "v1/content/a.txt"))
    good("fixity-blake2b-512", change=each(lambda inventory: inventory.update(fixity={"blake2b-512": {hashlib.blake2b(A).hexdigest(): ["v1/content/a.txt"]}})))
    good("fixity-unknown", change=each(lambda inventory: inventory.update(fixity={"crc32": {"00": ["v1/content/a.txt"]}})))
    good("two-copies", change=each(lambda inventory: inventory["manifest"][digest_of(A)].append("v1/content/copy")), after=writes("v1/content/copy", A))
    good("W001", width=3)
    good("W002", after=writes("v1/extra/x"))
    good("W004", algorithms=["sha256", "sha256"])
    good("W004-then-512", algorithms=["sha256", "sha512"])
    good("W005", change=sets("id", "an object"))
    good("W007-message", change=of_version(lambda version: version.pop("message")))
    good("W007-user", change=of_version(lambda version: version.pop("user")))
    good("W008", user={"name": "A"})
    good("W009", user={"name": "A", "address": "a street"})
    good("W010", change=lambda inventories: inventories.__setitem__(0, None))
    good("W011", change=first(lambda inventory: inventory["versions"]["v1"].update(message="other")))
    good("W013", after=writes("extensions/mine/x"))
make("good/mixed", change=first(lambda inventory: inventory.update(type="https://ocfl.io/1.0/spec/#inventory")))
"#;

const BAD: &str = r#"
for spec in ["1.0", "1.1"]:
    def bad(code, name="", **more): make("bad/%s-%s-%s" % (code, spec, name), spec=spec, **more)
    bad("E001", "file", after=writes("extra")); bad("E001", "directory", after=writes("extra/x")); bad("E001", "version", after=writes("v3"))
    bad("E001", "sidecar", after=writes("inventory.json.md5"))
    bad("E003", "none", after=removes("0=ocfl_object_" + spec)); bad("E003", "two", after=writes("0=ocfl_object_" + ("1.1" if spec == "1.0" else "1.0")))
    bad("E003", "later", after=moves("0=ocfl_object_" + spec, "0=ocfl_object_2.0"))
    bad("E007", after=writes("0=ocfl_object_" + spec, "ocfl_object_" + spec)); bad("E008", change=sets("versions", {}), after=lambda path: [shutil.rmtree(path + "/v%d" % n) for n in [1, 2]])
    bad("E009", change=each(lambda inventory: (inventory["versions"].pop("v1"))), after=removes("v1"))
    bad("E010", after=removes("v1")); bad("E011", width=2, after=moves("v02", "v2"))
    bad("E015", after=writes("v1/x")); bad("E017", change=sets("contentDirectory", "a/b")); bad("E017", "number", change=sets("contentDirectory", 1)); bad("E018", change=sets("contentDirectory", ".."))
    bad("E019", change=last(lambda inventory: inventory.update(contentDirectory="other")))
    bad("E023", after=writes("v2/content/extra")); bad("E023", "earlier", change=first(lambda inventory: (inventory["manifest"].pop(digest_of(B)), inventory["versions"]["v1"]["state"].pop(digest_of(B)))))
    bad("E024", after=lambda path: os.mkdir(path + "/v1/content/empty"))
    bad("E025", change=sets("digestAlgorithm", "md5"))
    bad("E033", "cut", change=as_text(lambda text: text[:-1])); bad("E033", "list", change=as_text(lambda text: "[]"))
    bad("E033", "twice", change=as_text(lambda text: text.replace('"head"', '"head": "v1", "head"', 1)))
    for key in ["id", "type", "digestAlgorithm", "head"]: bad("E036", key, change=drops(key))
    bad("E037", "empty", change=sets("id", "")); bad("E037", "number", change=sets("id", 1)); bad("E037", "other", change=first(lambda inventory: inventory.update(id="urn:example:2")))
    bad("E038", "text", change=sets("type", "inventory")); bad("E038", "other", change=sets("type", "https://ocfl.io/%s/spec/#inventory" % ("1.1" if spec == "1.0" else "1.0")))
    bad("E040", "format", change=sets("head", "2")); bad("E040", "early", change=sets("head", "v1")); bad("E040", "late", change=sets("head", "v3")); bad("E040", "number", change=sets("head", 2))
    bad("E041", "none", change=drops("manifest")); bad("E041", "list", change=sets("manifest", [])); bad("E043", change=drops("versions")); bad("E044", change=sets("versions", []))
    bad("E046", "key", change=each(lambda inventory: inventory["versions"].update({"1": inventory["versions"]["v1"]}))); bad("E046", "directory", after=writes("v3/content/x"))
    bad("E047", change=each(lambda inventory: inventory["versions"].update({"v1": 1}))); bad("E048", "created", change=of_version(lambda version: version.pop("created"))); bad("E048", "state", change=of_version(lambda version: version.pop("state")))
    for date in ["2020-01-01", "2020-01-01T01:02Z", "2020-01-01T01:02:03", "2020-13-01T01:02:03Z", "2020-01-01 01:02:03Z", 1]: bad("E049", str(date), change=of_version(lambda version: version.update(created=date)))
    bad("E050", "list", change=of_version(lambda version: version.update(state=[]))); bad("E050", "digest", change=of_version(lambda version: version["state"].update({"ab": ["x"]})))
    bad("E050", "case", change=each(lambda inventory: inventory["manifest"].update({digest_of(A).upper(): inventory["manifest"].pop(digest_of(A))})))
    bad("E051", change=of_version(lambda version: version["state"].update({digest_of(A): "a.txt"})))
    for path in ["../x", "a/./x", "a//x", "a/../../x"]: bad("E052", path.replace("/", "_"), change=of_version(lambda version: version["state"].update({digest_of(A): [path]})))
    for path in ["/x", "x/"]: bad("E053", path.replace("/", "_"), change=of_version(lambda version: version["state"].update({digest_of(A): [path]})))
    bad("E054", "text", change=of_version(lambda version: version.update(user="A"))); bad("E054", "name", change=of_version(lambda version: version.update(user={"address": "mailto:a@x.example"})))
    bad("E057", "list", change=sets("fixity", {"md5": []})); bad("E057", "paths", change=sets("fixity", {"md5": {"ab": 1}})); bad("E111", change=sets("fixity", []))
    bad("E058", after=removes("inventory.json.sha512")); bad("E058", "version", after=removes("v1/inventory.json.sha512"))
    bad("E060", after=writes("inventory.json.sha512", "ab inventory.json\n")); bad("E060", "version", after=writes("v1/inventory.json.sha512", "ab inventory.json\n"))
    bad("E061", after=writes("inventory.json.sha512", "ab\n")); bad("E061", "name", after=writes("inventory.json.sha512", "ab other.json\n"))
    bad("E063", after=removes("inventory.json")); bad("E064", after=lambda path: (put(path + "/v2/inventory.json", open(path + "/v2/inventory.json").read() + " "), seal(path + "/v2/inventory.json", "sha512")))
    bad("E066", change=first(lambda inventory: inventory["versions"]["v1"]["state"].update({digest_of(A): ["other"]}))); bad("E067", after=writes("extensions/x"))
    bad("E066", "algorithm", algorithms=["sha256", "sha512"], change=first(lambda inventory: inventory["versions"]["v1"]["state"].update({digest_of(A, "sha256"): ["sub/b.txt"], digest_of(B, "sha256"): ["a.txt"]})))
    bad("E090", "content", after=links("v1/content/a.txt", "/etc/passwd")); bad("E090", "root", after=lambda path: os.symlink("v1", path + "/v3"))
    bad("E092", "content", after=writes("v1/content/a.txt", "other")); bad("E092", "missing", after=removes("v1/content/a.txt")); bad("E092", "list", change=each(lambda inventory: inventory["manifest"].update({digest_of(A): 1})))
    bad("E092", "algorithm", algorithms=["sha256", "sha512"], change=first(lambda inventory: (inventory["manifest"].update({"ab": inventory["manifest"].pop(digest_of(A, "sha256"))}), inventory["versions"]["v1"]["state"].update({"ab": inventory["versions"]["v1"]["state"].pop(digest_of(A, "sha256"))}))))
    bad("E092", "outside", change=each(lambda inventory: inventory["manifest"].update({digest_of(A): ["../../secret"]})))
    bad("E093", "digest", change=sets("fixity", {"md5": {"ab": ["v1/content/a.txt"]}})); bad("E093", "missing", change=sets("fixity", {"md5": {"ab": ["v1/content/no"]}})); bad("E093", "later", after=lambda path: None, change=last(lambda inventory: inventory.update(fixity={"sha1": {"ab": ["v2/content/c.txt"]}})))
    bad("E094", change=of_version(lambda version: version.update(message=["m"])))
    bad("E095", "twice", change=of_version(lambda version: version["state"].update({digest_of(A): ["x", "x"]}))); bad("E095", "conflict", change=of_version(lambda version: version["state"].update({digest_of(A): ["x", "x/y"]})))
    bad("E096", change=each(lambda inventory: inventory["manifest"].update({digest_of(A).upper(): ["v1/content/a.txt"]}))); bad("E096", "same", change=as_text(lambda text: text.replace('"manifest": {', '"manifest": {"%s": ["v1/content/a.txt"], ' % digest_of(A))))
    bad("E097", change=sets("fixity", {"md5": {digest_of(A, "md5"): ["v1/content/a.txt"], digest_of(A, "md5").upper(): ["v1/content/a.txt"]}}))
    bad("E099", change=each(lambda inventory: inventory["manifest"][digest_of(A)].append("v1/content/../x"))); bad("E100", change=each(lambda inventory: inventory["manifest"][digest_of(A)].append("/v1/content/x")))
    bad("E101", change=each(lambda inventory: inventory["manifest"][digest_of(A)].append("v1/content/a.txt"))); bad("E101", "conflict", change=each(lambda inventory: inventory["manifest"][digest_of(A)].append("v1/content/a.txt/x")))
    bad("E102", change=sets("more", 1)); bad("E107", change=each(lambda inventory: inventory["manifest"].update({"ab": ["v1/content/extra"]})), after=writes("v1/content/extra"))
make("bad/E103", steps=STEPS + [{"z": A}], algorithms=["sha512"] * 3, change=lambda inventories: inventories[1].update(type="https://ocfl.io/1.0/spec/#inventory"))
"#;

fn objects() -> TestEnv {
    let env = TestEnv::new();
    std::fs::write(env.root().join("objects.py"), [OBJECTS, GOOD, BAD].concat()).expect("written");
    env.sh("mkdir in; cd in; python3 ../objects.py; ibifs init ../A.store --host archive-a.example.org");
    env
}

/// Each comes in with the files of its last version, and has the warnings that it is named for and no others.
#[test]
fn valid_objects_come_in_without_loss() {
    let env = objects();
    env.prints(
        r#"for object in in/good/*; do
            name=$(basename "$object"); ibifs import --verify "$object" > /dev/null 2> said || { echo "$name"; cat said; }
            [ "$(grep -o 'W0[0-9][0-9]' said | sort -u)" = "$(grep -o '^W0[0-9][0-9]' <<< "$name" || true)" ] || { echo "$name"; cat said; }
            item=A.store/col/$(ibifs import --mint A.store "$object" 2> /dev/null | head -n 1); (cd "$item/doc"; md5sum $(find . -type f | sort)) >> files
            grep identifier "$item/.ibi.metadata" | sed "s/$name/NAME/" >> identifiers
        done; ls in/good | wc -l; sort files | uniq -c; sort identifiers | uniq -c"#,
        "53\n     51 35d6d33467aae9a2e3dccb4b6b027878  ./c.txt\n      2 b8a9f715dbb64fd5c56e7783c6820a61  ./sub/b.txt\n     \
         53 f97c5d29941bfb1b2fdab0874906ab82  ./a.txt\n     51 f97c5d29941bfb1b2fdab0874906ab82  ./same.txt\n      \
         2 identifier: an object\n     51 identifier: urn:example:NAME",
    );
}

/// Each is refused by both commands with the code that it is named for, and nothing is minted.
#[test]
fn objects_that_are_not_valid_are_refused() {
    let env = objects();
    env.prints(
        r#"for object in in/bad/*; do
            code=$(basename "$object" | cut -c 1-4); status=0; ibifs import --verify "$object" > out 2> said || status=$?
            [ "$status" = 1 ] && [ ! -s out ] && grep -q "$code, '" said || { echo "$status $object"; cat said; }
            status=0; ibifs import --mint A.store "$object" > out 2> said || status=$?
            [ "$status" = 1 ] && [ ! -s out ] && grep -q "$code, '" said || { echo "$status $object"; cat said; }
        done; ls in/bad | wc -l; ibifs ls A.store | wc -l"#,
        "201\n1",
    );
}
