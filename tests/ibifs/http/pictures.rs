//! Small pictures of files: who draws them, what they cost, and that no file harms the service by them.

use super::served::{Fixture, Served};
use crate::support::TestEnv;

/// Files that are drawn, and files that were made to harm. The item `items/NAME` has the file NAME, or one with an
/// ending that was given.
const FILES: &str = r#"
cat > make.py << 'END'
import struct, zlib
def chunk(kind, data):
    return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def png(width, height, lines):
    head = struct.pack('>IIBBBBB', width, height, 8, 2, 0, 0, 0)
    packed = zlib.compressobj(9)
    data = b''.join(packed.compress(line) for line in lines) + packed.flush()
    return b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', head) + chunk(b'IDAT', data) + chunk(b'IEND', b'')
def pdf(width, height, page, more=()):
    objects = ['<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Count 1/Kids[3 0 R]>>',
               f'<</Type/Page/Parent 2 0 R/MediaBox[0 0 {width} {height}]{page}>>', *more]
    body = ''.join(f'{number} 0 obj\n{text}\nendobj\n' for number, text in enumerate(objects, 1))
    return f'%PDF-1.4\n{body}trailer\n<</Root 1 0 R>>\n%%EOF\n'.encode()
def stream(head, data):
    return f'<<{head}/Length {len(data)}>>\nstream\n{data}\nendstream'
red = [b'\0' + b'\xff\0\0' * 1200] * 800
open('map.png', 'wb').write(png(1200, 800, red))
page = '/Contents 4 0 R/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>'
text = stream('', 'BT /F 24 Tf 50 700 Td (Rainfall of the Amazon) Tj ET 0 0 1 rg 50 100 200 200 re f')
open('paper.pdf', 'wb').write(pdf(595, 842, page, [text]))
# 60,000 times 60,000 pixels, of which all but the first lines are missing; and 16,000 times 16,000 that are all there.
open('bomb.png', 'wb').write(png(60000, 60000, [b'\0' * 180001] * 20))
open('large.png', 'wb').write(png(16000, 16000, (b'\0' * 48001 for _ in range(16000))))
# A form that shows itself, a page tree that is its own child, and one page that never ends to paint.
loop = '/Contents 4 0 R/Resources<</XObject<</X 5 0 R>>>>'
form = stream('/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>', '/X Do /X Do')
open('form.pdf', 'wb').write(pdf(100, 100, loop, [stream('', '/X Do'), form]))
open('tree.pdf', 'wb').write(pdf(9, 9, '').replace(b'Kids[3 0 R]', b'Kids[2 0 R]'))
open('endless.pdf', 'wb').write(pdf(500, 500, '/Contents 4 0 R', [stream('', '0 0 m 500 500 l 0 500 l 500 0 l S ' * 900000)]))
open('wide.pdf', 'wb').write(pdf(10**9, 1, ''))
END
python3 make.py
ibifs preview-helper image/png < map.png | tail -c +5 > photo.jpg
head -c 900 photo.jpg > cut.jpg
head -c 100000 /dev/urandom > noise.tiff
printf '%%PDF-1.4\n1 0 obj\n<</Encrypt 1 0 R/Root 1 0 R>>\ntrailer\n<</Encrypt 1 0 R/Root 1 0 R>>' > locked.pdf
mkdir items
for file in *.png *.jpg *.tiff *.pdf; do mint A $file > items/$file; cp $file "A/$(< items/$file)/doc/"; done
mint A name > items/name; cp map.png "A/$(< items/name)/doc/"$'a\n\xff"<b> %3f.png'
mint A fifo > items/fifo; mkfifo "A/$(< items/fifo)/doc/pipe.png"
mint A hidden > items/hidden; cp map.png "A/$(< items/hidden)/doc/x.png"; chmod 600 "A/$(< items/hidden)/doc/x.png"
mint A text > items/text; echo text > "A/$(< items/text)/doc/x.txt"
"#;

const ASK: &str = r#"
A=${U#http://}
page() { curl -sS --max-time 30 "http://$A/$(< items/$1)?page" -H 'Accept: text/html' > body; cat body; }
source() { xmllint --nonet --xpath 'string(//*[local-name()="figure"]//*[local-name()="img"]/@src)' body; }
"#;

fn serve() -> Fixture {
    let env = TestEnv::new().with_a();
    env.sh(FILES);
    let served = Served::start(&env, "A.store");
    Fixture::new(env, served, ASK)
}

#[test]
fn pages_show_small_pictures() {
    let fixture = serve();
    fixture.prints(
        r#"
        for name in map.png photo.jpg paper.pdf name; do
            page $name > /dev/null; xmllint --noout body
            test "$(grep -c '<img' body)" = 1
            grep -o 'width="[0-9]*" height="[0-9]*"' body
            curl -sS -D lines -o picture "http://$A$(source)"
            file -b picture | grep -o -E '^JPEG|[0-9]+x[0-9]+, components 3' | paste -s -d ' '
        done
        tr -d '\r' < lines | grep -i -E '^(HTTP|content-type|x-content|content-sec|cache)'
        grep -o 'href="[^"]*"><img' body | grep -c 'a%0A%FF%22%3Cb%3E%20%253f.png'
        "#,
        "width=\"640\" height=\"427\"\nJPEG 640x427, components 3\n\
         width=\"640\" height=\"427\"\nJPEG 640x427, components 3\n\
         width=\"452\" height=\"640\"\nJPEG 452x640, components 3\n\
         width=\"640\" height=\"427\"\nJPEG 640x427, components 3\n\
         HTTP/1.1 200 OK\ncontent-type: image/jpeg\nx-content-type-options: nosniff\n\
         content-security-policy: default-src 'none'; sandbox\ncache-control: no-cache\n1",
    );
    // The picture is validated as its file is, and another one when the file is.
    fixture.prints(
        r#"
        page map.png > /dev/null; at="http://$A$(source)"; file=${at%\?*}
        tag=$(line etag "$at"); test "$tag" != "$(line etag "$file")"
        status "$at" -H "If-None-Match: $tag"; status -I "$at"; status "$at" -H 'If-Match: "x"'
        cp paper.pdf "A/$(< items/map.png)/doc/map.png"
        status "$at"; page map.png > /dev/null; grep -c '<img' body || true
        cp map.png "A/$(< items/map.png)/doc/map.png"; status "$at"; status "$at" -H "If-None-Match: $tag"
        "#,
        "304\n200\n412\n404\n0\n200\n200",
    );
    // A file that may not be read, is not there or is not an image answers as it does without the query.
    fixture.prints(
        r#"
        for file in hidden/x.png fifo/pipe.png text/no.png; do
            at="http://$A/col/$(< items/${file%/*})/doc/${file#*/}"
            test "$(status "$at?preview")" = "$(status "$at")"; status "$at?preview"
        done
        curl -s "http://$A/col/$(< items/text)/doc/x.txt?preview"
        for name in hidden fifo; do page $name > /dev/null; grep -c '<img' body || true; done
        "#,
        "404\n404\n404\ntext\n0\n0",
    );
}

/// A file that cannot be drawn is not shown, and costs little: the page answers, and the next one at once.
#[test]
fn no_file_harms_the_service() {
    let fixture = serve();
    let process = fixture.served.process();
    fixture.sh(&format!(
        r#"
        helpers() {{ cat /proc/{process}/task/*/children; }}
        watch() {{
            for second in $(seq 1200); do
                sleep .05
                helpers | wc -w >> numbers
                for child in $(helpers); do
                    sed -n 's/^VmPeak:\s*\([0-9]*\) kB/\1/p' /proc/$child/status >> sizes || true
                done 2> /dev/null
            done
        }}
        touch numbers sizes; watch > /dev/null 2>&1 & watcher=$!; trap 'kill $watcher' EXIT
        pids=
        for round in 1 2; do
            for name in bomb.png large.png noise.tiff locked.pdf tree.pdf form.pdf endless.pdf; do
                page() {{ curl -sS --max-time 40 -o page.$1 -w '%{{http_code}}\n' "http://$A/$(< items/$1)?page" -H 'Accept: text/html'; }}
                (test "$(page $name)" = 200; no grep '<img' page.$name) & pids+=" $!"
            done
            # Other requests are answered meanwhile.
            for i in $(seq 20); do test "$(curl -s -o /dev/null -w '%{{http_code}}' --max-time 2 "http://$A/robots.txt")" = 200; done
            for pid in $pids; do wait $pid; done; pids=
        done
        # A JPEG without its end is shown as far as it goes, or not at all.
        curl -sS --fail -o body "http://$A/$(< items/cut.jpg)?page" -H 'Accept: text/html'
        # What cannot be drawn is not tried again.
        begun=$(date +%s%N)
        for name in form.pdf endless.pdf; do
            curl -sS -o body "http://$A/$(< items/$name)?page" -H 'Accept: text/html'; no grep '<img' body
        done
        test $((($(date +%s%N) - begun) / 1000000)) -lt 2000
        test -z "$(helpers)"
        most=$(sort -n numbers | tail -1); test $most -ge 1; test $most -le $(($(nproc) < 4 ? $(nproc) : 4))
        test "$(sort -n sizes | tail -1)" -le 786432
        "#
    ));
}

/// Pictures outlive the service, and what is stored is as doubtful as what was drawn.
#[test]
fn pictures_are_kept_in_the_store() {
    let Fixture { served, env, .. } = serve();
    let page = |served: &Served, name: &str| {
        let script =
            format!("{ASK}\npage {name} | grep -o 'width=\"[0-9]*\" height=\"[0-9]*\"' || true");
        served.sh(&env, &script)
    };
    assert_eq!(page(&served, "map.png"), "width=\"640\" height=\"427\"");
    assert_eq!(page(&served, "paper.pdf"), "width=\"452\" height=\"640\"");
    assert_eq!(page(&served, "noise.tiff"), "");
    drop(served);
    let change = |sql: &str| {
        env.prints(
            &format!("stat -c %a A.store/pictures.sqlite3; python3 -c '\nimport sqlite3\nopen = sqlite3.connect(\"A.store/pictures.sqlite3\")\nprint(open.execute(\"{sql}\").rowcount); open.commit()'"),
            "600\n2",
        );
    };
    // Nothing is drawn again: the sides are the stored ones.
    change(
        "UPDATE picture SET bytes = CAST(x\\\"00010002\\\" || substr(bytes, 5) AS BLOB)"
            .replace("\\\"", "'\"'\"'")
            .as_str(),
    );
    let served = Served::start(&env, "A.store");
    assert_eq!(page(&served, "map.png"), "width=\"1\" height=\"2\"");
    drop(served);
    change("UPDATE picture SET bytes = substr(bytes, 1, 9)");
    let served = Served::start(&env, "A.store");
    assert_eq!(page(&served, "map.png"), "width=\"640\" height=\"427\"");
    drop(served);
    // A link in its place is not followed, and pictures are drawn.
    env.sh("rm A.store/pictures.sqlite3*; touch victim; ln -s ../victim A.store/pictures.sqlite3");
    let served = Served::start(&env, "A.store");
    assert_eq!(page(&served, "paper.pdf"), "width=\"452\" height=\"640\"");
    drop(served);
    env.sh("test ! -s victim; ibifs umount A; rm A.store/pictures.sqlite3; ibifs fsck A.store > /dev/null");
}
