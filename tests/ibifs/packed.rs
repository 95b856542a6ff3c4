//! Zip and tar files of all programs become items with the names and the content that these mean, or are refused.

use crate::support::TestEnv;

/// The item of each file, with what `tree` prints of it.
const TREE: &str = r#"tree() { item=A.store/col/$(ibifs import --mint A.store "$1" | head -n 1); (cd "$item/doc"; find . -type f -printf '%P %s\n' | LC_ALL=C sort | sed -n l | sed 's/\$$//'); }
"#;

/// Sparse files as GNU tar and bsdtar write them, and tar files in all forms of compression.
#[test]
fn tar_files_come_in_whole() {
    let env = TestEnv::new();
    env.prints(
        &format!(
            r#"{TREE}
            ibifs init A.store --host archive-a.example.org > /dev/null; mkdir src src/sub; truncate -s 3M src/holes; echo text > src/sub/a.txt
            truncate -s 20M src/d.img; for at in 5000000 15000000; do printf x | dd of=src/d.img bs=1 seek=$at conv=notrunc status=none; done
            for version in 0.0 0.1 1.0; do tar --format=pax -S --sparse-version=$version -cf pax-$version.tar -C src .; done
            tar --format=gnu -S -cf gnu.tar -C src .; for end in bz2 xz gz; do tar -caf x.tar.$end -C src .; done
            for file in *.tar *.tar.*; do tree "$file" > /dev/null; diff -r src "$item/doc" && echo "$file"; done
            ibifs import --mint A.store x.tar.bz2 | wc -l"#
        ),
        "gnu.tar\npax-0.0.tar\npax-0.1.tar\npax-1.0.tar\nx.tar.bz2\nx.tar.gz\nx.tar.xz\n2",
    );
}

/// Tar files are refused that would come in as garbage, under another name or with other content, or need too much
/// memory.
#[test]
fn tar_files_that_cannot_be_read_are_refused() {
    let env = TestEnv::new();
    env.sh(r#"ibifs init A.store --host archive-a.example.org > /dev/null
        cat > make.py <<'END'
import bz2, gzip, io, lzma, struct, tarfile, zlib
def tarred(path, data=b"x" * 10, name="a", everywhere={}, **headers):
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT, pax_headers=everywhere) as out:
        info = tarfile.TarInfo(name); info.size = len(data); info.pax_headers = {key.replace("__", "."): value for key, value in headers.items()}
        out.addfile(info, io.BytesIO(data))
tarred("line-end.tar", name="\xe9\nb")
tarred("star.tar", SCHILY__realsize="100")
tarred("sun.tar", SUN__holesdata="0 1")
tarred("all.tar", everywhere={"path": "b"})
tarred("keyword.tar", GNU__sparse__new="1")
sparse = lambda path, map, size="100", **more: tarred(path, GNU__sparse__size=size, GNU__sparse__numblocks="1", GNU__sparse__map=map, GNU__sparse__name="b", **more)
sparse("good.tar", "90,10")
sparse("long.tar", "0,20"); sparse("short.tar", "0,5"); sparse("behind.tar", "95,10"); sparse("order.tar", "50,5,40,5"); sparse("odd.tar", "0,10,50")
sparse("number.tar", "0,x"); sparse("huge.tar", "0,10", size=str(1 << 50)); sparse("up.tar", "90,10", GNU__sparse__major="0")
tarred("no-size.tar", GNU__sparse__map="0,10")
tarred("map.tar", data=b"99999999999999999999\n" + b"0" * 491, GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="10", GNU__sparse__name="b")
tarred("many.tar", data=b"9999999\n" + b"0\n" * 2000000, GNU__sparse__major="1", GNU__sparse__minor="0", GNU__sparse__realsize="10", GNU__sparse__name="b")
packed = bytearray(lzma.compress(open("good.tar", "rb").read()))
size = (packed[12] + 1) * 4; at = packed.index(b"\x21\x01", 12) + 2; packed[at] = 40
packed[12 + size - 4:12 + size] = struct.pack("<I", zlib.crc32(packed[12:12 + size - 4])); open("memory.tar.xz", "wb").write(packed)
open("cut.tar.xz", "wb").write(lzma.compress(open("good.tar", "rb").read())[:-30])
wrong = lambda data, at: data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
open("wrong.tar.gz", "wb").write(wrong(gzip.compress(open("good.tar", "rb").read()), -6)); open("wrong.tar.bz2", "wb").write(wrong(bz2.compress(open("good.tar", "rb").read()), 11))
END
        python3 make.py"#);
    for (file, why) in [
        ("line-end.tar", "have a name with a line end"),
        ("star.tar", "its extended header SCHILY.realsize changes"),
        ("sun.tar", "its extended header SUN.holesdata changes"),
        ("all.tar", "a header for all files has a name or a content"),
        ("keyword.tar", "its extended header GNU.sparse.new changes"),
        ("long.tar", "of a sparse file is not valid"),
        ("short.tar", "of a sparse file is not valid"),
        ("behind.tar", "of a sparse file is not valid"),
        ("order.tar", "of a sparse file is not valid"),
        ("odd.tar", "of a sparse file is not valid"),
        ("number.tar", "of a sparse file is not valid"),
        ("no-size.tar", "of a sparse file is not valid"),
        ("map.tar", "of a sparse file is not valid"),
        ("many.tar", "of a sparse file is not valid"),
        ("huge.tar", "more than a thousand times the length"),
        ("memory.tar.xz", "memory"),
        ("cut.tar.xz", "tar"),
        ("wrong.tar.gz", "tar"),
        ("wrong.tar.bz2", "tar"),
    ] {
        env.complains(&format!("ibifs import --mint A.store {file}"), why);
    }
    env.prints(
        &format!("{TREE} ibifs ls A.store | wc -l; tree good.tar"),
        "1\nb 100",
    );
}

/// The names of zip files: of MS-DOS, marked and unmarked UTF-8, the field of Info-ZIP, and the bytes of Unix.
#[test]
fn names_in_zip_files() {
    let env = TestEnv::new();
    env.sh(r#"ibifs init A.store --host archive-a.example.org > /dev/null
        cat > make.py <<'END'
import struct, zipfile, zlib
class Raw(zipfile.ZipInfo):
    def __init__(self, raw, system=0, flags=0, extra=b""):
        super().__init__("x"); self.raw, self.flags, self.create_system, self.extra = raw, flags, system, extra
    def _encodeFilenameFlags(self): return self.raw, self.flag_bits | self.flags
def zipped(path, *infos):
    with zipfile.ZipFile(path, "w") as out:
        for number, info in enumerate(infos):
            info.filename = "x%d" % number; out.writestr(info, "text")
def unicode(raw, name): return struct.pack("<HHBI", 0x7075, 5 + len(name), 1, zlib.crc32(raw)) + name
e = "\xe9".encode()
zipped("dos.zip", Raw(b"caf\x82.txt"), Raw(b"dir\\sub\\a.txt")); zipped("flag.zip", Raw(e + b".txt", flags=0x800), Raw(e + b"2.txt", system=3, flags=0x800))
zipped("field.zip", Raw(b"caf\x82.txt", extra=unicode(b"caf\x82.txt", e))); zipped("plain.zip", Raw(e + b".txt"), Raw(e + b"2.txt", system=3))
zipped("unix.zip", Raw(b"caf\xe9.txt", system=3), Raw(b"a\\b.txt", system=3)); zipped("mixed.zip", Raw(b"a/b\\c.txt"))
zipped("up.zip", Raw(b"..\\..\\x")); zipped("twice.zip", Raw(b"a\\b"), Raw(b"a/b"))
END
        python3 make.py"#);
    env.prints(
        &format!("{TREE} for name in dos flag field plain unix mixed; do tree $name.zip; done"),
        r"caf\303\251.txt 4
dir/sub/a.txt 4
\303\251.txt 4
\303\2512.txt 4
\303\251 4
\303\251.txt 4
\303\2512.txt 4
a\\b.txt 4
caf\351.txt 4
a/b\\c.txt 4",
    );
    env.complains(
        "ibifs import --mint A.store up.zip",
        "its path does not stay",
    );
    env.complains("ibifs import --mint A.store twice.zip", "it is there twice");
}
