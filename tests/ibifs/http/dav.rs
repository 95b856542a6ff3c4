//! The network drive at `/dav/`: asked by hand, by peers that lie, and by the programs that mount it.

use super::served::Served;
use crate::support::TestEnv;

/// A served Archive with two items, one of which has all kinds of files. Their names are noted in `vars`.
fn environment() -> (TestEnv, Served) {
    environment_with("serve A.store")
}

fn environment_with(command: &str) -> (TestEnv, Served) {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1) D=$PWD/A/$one/doc
        mkdir -p A/6RPa7umaZ/UaJFT/doc; echo old > A/6RPa7umaZ/UaJFT/doc/x
        echo 'title: Rainfall' > "A/$one:"
        cd "$D"; mkdir -p 'a b/c' empty
        echo text > 'a b/c/text'; echo 'ação' > 'Relatório & <final>.txt'
        printf latin > $'Relat\xf3rio'; printf control > $'c\x01\n'; : > nothing
        seq 30000 > long; touch -d 2020-02-02T02:02:02.5 long
        ln -s 'a b/c/text' link; ln -s 'a b' directory; ln -s . loop; ln -s /etc/passwd out; mkfifo pipe
        echo secret > secret; chmod 600 secret; mkdir shut; echo x > shut/x; chmod 700 shut
        cd ../../../../../..
        echo "one=$one two=$two ibip=$(ibip A/$one) D=$D" > vars"#);
    let served = Served::within(&env, "", command);
    (env, served)
}

/// The functions of the scripts. `props` prints href, type, length and media type of each resource.
const ASK: &str = r#"
. ./vars
propfind() { curl -sS --path-as-is -X PROPFIND -H "Depth: ${depth:-1}" "$@"; }
hrefs() { propfind "$@" > multistatus; xmllint --noout multistatus
    python3 - multistatus <<'end'
import sys, xml.etree.ElementTree as E
D = "{DAV:}"
for response in E.parse(sys.argv[1]).getroot():
    found = response.find(f"{D}propstat/{D}prop")
    length, kind = found.findtext(f"{D}getcontentlength"), found.findtext(f"{D}getcontenttype")
    is_collection = found.find(f"{D}resourcetype/{D}collection") is not None
    href = response.findtext(f"{D}href")
    assert is_collection == href.endswith("/") == (length is None), href
    print(href, *([] if is_collection else [length, kind]))
end
}
"#;

#[track_caller]
fn prints(env: &TestEnv, served: &Served, script: &str, expected: &str) {
    served.prints(env, &format!("{ASK}\n{script}"), expected);
}

/// The tree is that of the mount, and an IBIp and an other spelling lead there, too. Left out is what is not public,
/// what is neither file nor directory, and what a link would show twice.
#[test]
fn collections_are_listed() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"short() { sed "s:$one:ONE:; s:$two:TWO:; s:$ibip:IBIP:" | LC_ALL=C sort; }
        IFS=/ read -r a b c d <<< "$one"
        hrefs $U/dav/ | short | sed "s:/$a/:/HOST/:"; hrefs $U/dav | diff - <(hrefs $U/dav/)
        hrefs $U/dav/$a/ | tail -n +2 | sed "s:$a/$b:LEVEL:"; hrefs $U/dav/$a/$b | wc -l
        hrefs $U/dav/$a/$b/$c | grep -c "/$d/\|/${two##*/}/"
        test "$(hrefs $U/dav/$a/$b/$c | wc -l)" = $(($(ls A/$a/$b/$c | wc -l) + 1))
        hrefs $U/dav/6RPa7umaZ/; hrefs $U/dav/6RPa7umaZ/UaJFT; hrefs $U/dav/$one/ | short
        hrefs $U/dav/$one/doc | short; hrefs "$U/dav/$ibip/doc/a%20b/" | short; depth=0 hrefs $U/dav/$one/doc/link | short
        hrefs $U/dav/${a^^}/ | sed "s:${a^^}:UPPER:; s:$b/:WORD/:""#,
        "/dav/\n/dav/6RPa7umaZ/\n/dav/HOST/\n/dav/LEVEL/\n2\n2\n\
         /dav/6RPa7umaZ/\n/dav/6RPa7umaZ/UaJFT/\n/dav/6RPa7umaZ/UaJFT/\n/dav/6RPa7umaZ/UaJFT/doc/\n\
         /dav/ONE/\n/dav/ONE/doc/\n\
         /dav/ONE/doc/\n\
         /dav/ONE/doc/Relat%C3%B3rio%20%26%20%3Cfinal%3E.txt 7 text/plain\n\
         /dav/ONE/doc/Relat%F3rio 5 application/octet-stream\n\
         /dav/ONE/doc/a%20b/\n\
         /dav/ONE/doc/c%01%0A 7 application/octet-stream\n\
         /dav/ONE/doc/empty/\n\
         /dav/ONE/doc/link 5 application/octet-stream\n\
         /dav/ONE/doc/long 168894 application/octet-stream\n\
         /dav/ONE/doc/nothing 0 application/octet-stream\n\
         /dav/IBIP/doc/a%20b/\n/dav/IBIP/doc/a%20b/c/\n\
         /dav/ONE/doc/link 5 application/octet-stream\n\
         /dav/UPPER/\n/dav/UPPER/WORD/",
    );
}

/// The properties are those that GET shows, and only the requested ones.
#[test]
fn properties_are_those_of_the_file() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"depth=0; X=$U/dav/$one/doc/long; propfind $X > all
        value() { grep -o "<D:$1>[^<]*" all | sed 's/^[^>]*>//; s/&quot;/"/g'; }
        for name in etag content-length content-type last-modified; do line $name -I $X; done > lines
        for name in getetag getcontentlength getcontenttype getlastmodified; do value $name; done | diff - lines
        value getlastmodified; line etag $U/col/$one/doc/long | diff - <(line etag $X)
        propfind $U/dav/$one/ > all; value creationdate | grep -cx '20..-..-..T..:..:..Z'; value displayname | grep -c "^${one##*/}$"
        code() { propfind -o answer -w '%{http_code} %{content_type}\n' "$@"; }
        code $X; line cache-control -X PROPFIND -H 'Depth: 0' $X
        propfind $X -d '<propfind xmlns="DAV:"><prop><getcontentlength/><a xmlns="urn:b"/><creationdate/></prop></propfind>' | sed "s:$one:ONE:"
        propfind $X -d '<propfind xmlns="DAV:"><propname/></propfind>' | grep -o '<D:get[^>]*>' | tr '\n' ' '"#,
        "Sun, 02 Feb 2020 02:02:02 GMT\n1\n1\n207 application/xml; charset=utf-8\nno-cache\n\
         <?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n\
         <D:response><D:href>/dav/ONE/doc/long</D:href><D:propstat><D:prop>\
         <D:getcontentlength>168894</D:getcontentlength></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>\
         <D:propstat><D:prop><N:a xmlns:N=\"urn:b\"/><D:creationdate/></D:prop>\
         <D:status>HTTP/1.1 404 Not Found</D:status></D:propstat></D:response>\n</D:multistatus>\n\
         <D:getcontentlength/> <D:getcontenttype/> <D:getetag/> <D:getlastmodified/> ",
    );
}

/// Files are read as everywhere else, and collections lead to their pages.
#[test]
fn files_are_read() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"X=$U/dav/$one/doc tag=$(line etag $U/dav/$one/doc/long)
        for i in 1 2; do get $X/long | cmp - $D/long; get $X/Relat%F3rio; echo; get $X/c%01%0A; echo; done
        get -r 2-8 $X/long | cmp - <(tail -c +3 $D/long | head -c 7); get $U/dav/$ibip/doc/link; get $X/directory/c/text
        status -H "If-None-Match: $tag" $X/long; status -r 0-3 -H 'If-Range: "x"' $X/long; status -r 0-3 -H "If-Range: $tag" $X/long
        status -r 999999- $X/long; status $X/long/; status -I $X/long; curl -sI $X/long | tr -d '\r' | sed -n 's/^content-length: //p'
        line content-security-policy -I $X/nothing; printf '<p>' > $D/x.html; line content-security-policy $X/x.html
        place() { line location "$@" | sed "s:$one:ONE:g; s:${one%/*}:YEAR:"; }
        place $U/dav/; place $U/dav; place $U/dav/${one%/*}/; place $U/dav/$one; place $X/; place $U/dav/6RPa7umaZ"#,
        "latin\ncontrol\nlatin\ncontrol\ntext\ntext\n304\n200\n206\n416\n404\n200\n168894\nsandbox allow-scripts\n\
         /dav/\n/dav/ONE/\n/dav/6RPa7umaZ/",
    );
}

/// A collection has a page with links to its members, which programs follow that know no PROPFIND.
#[test]
fn a_collection_is_a_page_of_links() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"links() { get "$1" > page; xmllint --html --noout page; sed -n 's/^<a href="\([^"]*\)">\(.*\)<.a>  \(.*\)  \(.*\)$/\1 \2 \4/p' page; }
        links $U/dav/$one/; links $U/dav/6RPa7umaZ/; links $U/dav/$one/doc/ | LC_ALL=C sort | sed -n 1,5p; ! grep secret page
        grep -c '<a href="long">long</a>  02-Feb-2020 02:02  168894' page; get -L $U/dav/$one/doc | cmp - page
        touch $D/a:b; links $U/dav/$one/doc/ | grep ^a%3A; status -I $U/dav/$one/doc/; status -L $U/dav/$one/shut/; status $U/dav//$one
        line location //127.0.0.1/ --url "$U//dav/${one%%/*}" | grep -c ^/dav/"#,
        "doc/ doc/ -\nUaJFT/ UaJFT/ -\n\
         Relat%C3%B3rio%20%26%20%3Cfinal%3E.txt Relatório &amp; &lt;final&gt;.txt 7\n\
         Relat%F3rio Relat\u{fffd}rio 5\na%20b/ a b/ -\nc%01%0A c\u{fffd}\u{fffd} 7\nempty/ empty/ -\n1\n\
         a%3Ab a:b 0\n200\n404\n302\n1",
    );
}

/// lftp goes through collections.
#[test]
fn lftp_reads_it() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"lftp -c "open $U/dav/; cd $one/doc; cls -1; cd 'a b/c'; cat text; cd $U/dav/$one/doc/; mirror -i '^long$|^a b/' . $PWD/mirrored" > said 2>&1
        grep -x -e long -e 'a b/' -e text said; cmp $D/long mirrored/long; cat 'mirrored/a b/c/text'"#,
        "a b/\nlong\ntext\ntext",
    );
}

/// Modifiers answer to all their spellings, and lead to items and texts.
#[test]
fn modifiers_answer() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"ln -sfn ../../../$two "A/$one!"; echo next > A/$two/doc/next; E="$U/dav/$one=GetLastEdition"
        get $E/doc/next; hrefs $E/doc/ | sed "s:$one:ONE:"; get "$U/dav/$one%21/doc/next"; get "$U/dav/$ibip!/doc/next"
        get "$U/dav/$one=GetMetadata"; depth=0 hrefs "$U/dav/$one=GetMetadata" | sed "s:$one:ONE:"
        get "$U/dav/$ibip=GetMetadata(oai_dc)" | cmp - "A/$ibip:(oai_dc)"; get "$U/dav/$one:(bibtex)" | cmp - "A/$one:(bibtex)"
        depth=0 hrefs "$U/dav/$ibip=GetMetadata(oai_dc)" | cut -d ' ' -f 2 | diff - <(stat -c %s "A/$ibip:(oai_dc)")
        for name in $two=GetMetadata $one=GetTranslation $one=Nonsense $one=GetMetadata/x $one=GetFileList "$one="; do
            status "$U/dav/$name"; status -X PROPFIND -H 'Depth: 0' "$U/dav/$name"
        done | uniq -c"#,
        "next\n/dav/ONE%3DGetLastEdition/doc/\n/dav/ONE%3DGetLastEdition/doc/next 5 application/octet-stream\nnext\nnext\n\
         title: Rainfall\n/dav/ONE%3DGetMetadata 16 text/plain\n     12 404",
    );
}

/// Files that the public may not read are neither listed nor served, by any request.
#[test]
fn what_is_not_public_is_not_there() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"none() { for method in GET HEAD PROPFIND; do
            for depth in 0 1; do status $([ $method = HEAD ] && echo -I || echo -X $method) -H "Depth: $depth" "$@"; done
        done | uniq -c; }
        for name in secret shut shut/x out pipe gone ../.ibi ..%2f.ibi %2e%2e/.ibi a%00b; do none $U/dav/$one/doc/$name; done | uniq -c
        for name in .ibi .ibi.metadata; do none $U/dav/$one/$name; done | uniq -c
        for name in x.example 8JMKD3MGP8W a/b a/b/c a/b/c/d archive.ibi relations.sqlite3 col .mint .find; do none $U/dav/$name; done | uniq -c
        none $U/dav/%ff; status $U/dav/%zz; hrefs $U/dav/$one/ | wc -l
        chmod 700 A/$two; none $U/dav/$two/doc/; none "$U/dav/$two:(oai_dc)"; ln -sfn ../../../$two "A/$one+(pt)"; none "$U/dav/$one=GetTranslation(pt)"
        hrefs $U/dav/${one%/*}/ | grep -c "${two##*/}/" || true
        chmod 700 A/6RPa7umaZ/UaJFT; hrefs $U/dav/ | grep -c 6RPa || true; none $U/dav/6RPa7umaZ/"#,
        "     10       6 404\n      2       6 404\n     10       6 404\n      6 404\n400\n2\n\
         \x20     6 404\n      6 404\n      6 404\n0\n0\n      6 404",
    );
    // A level whose items are all hidden is not listed, until one of them is public.
    prints(
        &env,
        &served,
        r#"a=${one%%/*}; for i in A/$a/*/*/*/; do chmod 700 $i; done
        hrefs $U/dav/ | wc -l; none $U/dav/$a/; none $U/dav/${one%/*}/; chmod 755 A/$one; hrefs $U/dav/$a/ | wc -l; hrefs $U/dav/${one%/*}/ | wc -l"#
            .replace("none $U", "status -X PROPFIND -H 'Depth: 1' $U").as_str(),
        "1\n404\n404\n2\n2",
    );
    // An item that is public below a level that lets no user through is not there either.
    prints(
        &env,
        &served,
        r#"hrefs $U/dav/ | wc -l; chmod 711 A/${one%/*}; hrefs $U/dav/${one%/*}/ | wc -l; chmod 700 A/${one%/*}
        hrefs $U/dav/ | wc -l; status $U/dav/$one/doc/long; status -X PROPFIND -H 'Depth: 0' $U/dav/$one/"#,
        "2\n2\n1\n404\n404",
    );
}

/// Of a level at most some 1,000 hidden items are looked at, and a public item behind them is found.
#[test]
fn many_hidden_items() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"Y=A/x.example/y/2001; mkdir -p $Y; mkdir -m 700 $Y/01.{01..20}.{00..23}.{00..01}
        count() { hrefs $U/dav/ | grep -c x.example || true; status -X PROPFIND -H 'Depth: 0' $U/dav/x.example/y/; }
        count; mkdir -m 700 $Y/02.{01..06}.{00..23}.00; count; hrefs $U/dav/x.example/y/2001/ | wc -l
        mkdir $Y/03.01.00.00; hrefs $U/dav/x.example/y/2001"#,
        "0\n404\n1\n207\n1\n/dav/x.example/y/2001/\n/dav/x.example/y/2001/03.01.00.00/",
    );
}

/// Nothing is written, and every refusal says what is possible.
#[test]
fn nothing_is_written() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"find A.store/col -printf '%p %s %t %m\n' | sort > before
        for method in PUT DELETE MKCOL MOVE COPY LOCK UNLOCK PROPPATCH PATCH POST REPORT SEARCH TRACE ACL BASELINE; do
            for path in "" $one/doc/long $one/doc/new $one/ nothing/x; do
                curl -s -o /dev/null -D - -X $method -H "Destination: $U/dav/$one/doc/other" -H 'Overwrite: T' -d x $U/dav/$path |
                    tr -d '\r' | grep -i '^HTTP\|^allow'
            done
        done | sort | uniq -c
        truncate -s 3M large; curl -s -o /dev/null -w '%{http_code}\n' -T large $U/dav/$one/doc/new
        find A.store/col -printf '%p %s %t %m\n' | sort | diff before -
        curl -s -D - -X OPTIONS $U/dav/$one/doc/ | tr -d '\r' | grep -i '^http\|^dav\|^allow\|^ms-\|^content-length'
        status -X OPTIONS $U/; status -X PROPFIND -H 'Depth: 0' $U/col/$one/; status -X PROPFIND $U/; status -X PUT -d x $U/davs/x
        line allow -X DELETE $U/$one"#,
        "     75 HTTP/1.1 405 Method Not Allowed\n     75 allow: OPTIONS, GET, HEAD, PROPFIND\n405\n\
         HTTP/1.1 200 OK\nallow: OPTIONS, GET, HEAD, PROPFIND\ndav: 1\nms-author-via: DAV\ncontent-length: 0\n\
         405\n405\n405\n405\nGET, HEAD",
    );
}

/// Requests of peers that lie.
#[test]
fn hostile_requests_are_refused() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"code() { propfind -o answer -w '%{http_code}\n' "$@" $U/dav/$one/doc/; }
        for depth in infinity Infinity; do code; xmllint --xpath 'local-name(/*/*)' answer; done
        status -X PROPFIND $U/dav/; for depth in 2 -1 1,noroot x; do code; done | tr '\n' ' '; echo; depth=0
        P='<propfind xmlns="DAV:">'
        code -d "$P<prop>"; code -d x; code -d '<a/>'; code -d "$P<allprop/></propfind><x/>"; printf '\xff\xfe' > bytes; code --data-binary @bytes
        code -d "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\"><!ENTITY b '&a;&a;'>]>$P<prop><c>&b;</c></prop></propfind>"
        { echo "$P<prop>"; for i in $(seq 2000); do echo "<a$i/>"; done; echo '</prop></propfind>'; } > many; code -d @many
        { echo "$P"; head -c 100000 /dev/zero | tr '\0' ' '; } > long; code --data-binary @long
        code -H 'Transfer-Encoding: chunked' --data-binary @long
        { echo "$P<prop>"; for i in $(seq 6000); do printf '<a>'; done; } > deep; code -d @deep
        code -d "$P<allprop/></propfind>" -H 'Content-Type: text/html'; status $U/dav/$one/doc/long
        # A body that does not come.
        exec 3<> /dev/tcp/${U#http://127.0.0.1:} 2> /dev/null || exec 3<> /dev/tcp/127.0.0.1/${U##*:}
        printf 'PROPFIND /dav/ HTTP/1.1\r\nHost: x\r\nDepth: 0\r\nContent-Length: 9\r\n\r\n<' >&3
        timeout 20 head -n 1 <&3 | tr -d '\r'"#,
        "403\npropfind-finite-depth\n403\npropfind-finite-depth\n403\n400 400 400 400 \n\
         400\n400\n400\n400\n400\n400\n400\n413\n413\n400\n207\n200\nHTTP/1.1 408 Request Timeout",
    );
}

/// A directory of many files, and many items, are sent in pieces, in memory that does not grow with them.
#[test]
fn long_lists_are_streamed() {
    let (env, served) = environment();
    let peak = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", served.process()));
        let status = status.expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let words = line.and_then(|line| line.split_whitespace().nth(1));
        words
            .and_then(|word| word.parse::<u64>().ok())
            .expect("a number")
    };
    prints(
        &env,
        &served,
        r#"mkdir $D/few; (cd $D/few; seq 3000 | xargs touch); mkdir $D/many; (cd $D/many; seq -f 'a file with a rather long name %.0f' 60000 | xargs -d '\n' touch)
        hrefs $U/dav/$one/doc/few/ | wc -l; line transfer-encoding -X PROPFIND -H 'Depth: 1' $U/dav/$one/doc/few/
        propfind -H 'Accept-Encoding: gzip' $U/dav/$one/doc/few/ | gunzip | diff - <(propfind $U/dav/$one/doc/few/)"#,
        "3001\nchunked",
    );
    let before = peak();
    prints(
        &env,
        &served,
        r#"hrefs $U/dav/$one/doc/many/ | sort -u | wc -l; stat -c %s multistatus | sed 's/......$/ MB/'"#,
        "60001\n33 MB",
    );
    let after = peak();
    assert!(after < before + 8 * 1024, "{before} kB, then {after} kB");
    // A client that goes away in the middle holds nothing.
    prints(
        &env,
        &served,
        r#"for i in 1 2 3; do propfind --limit-rate 100k --max-time 1 -o part $U/dav/$one/doc/many/ 2> /dev/null || true; done; status $U/dav/$one/doc/long"#,
        "200",
    );
}

/// Behind a proxy the hrefs are the ones that the client sees.
#[test]
fn a_prefix_is_in_every_href() {
    let (env, served) = environment_with("serve A.store --url https://archive.example.org/deep/er");
    prints(
        &env,
        &served,
        r#"for path in /deep/er/dav /dav; do hrefs $U$path/$one/doc/a%20b/ | sed "s:$one:ONE:"; done
        export RCLONE_CONFIG=$PWD/none RCLONE_WEBDAV_URL=$U/deep/er/dav RCLONE_WEBDAV_VENDOR=other
        rclone -q lsf -R ":webdav:$one/doc/a b"
        line location $U/deep/er/dav; status -X PUT -d x $U/deep/er/dav/x; line dav -X OPTIONS $U/deep/er/dav"#,
        "/deep/er/dav/ONE/doc/a%20b/\n/deep/er/dav/ONE/doc/a%20b/c/\n\
         /deep/er/dav/ONE/doc/a%20b/\n/deep/er/dav/ONE/doc/a%20b/c/\nc/\nc/text\n/deep/er/dav/\n405\n1",
    );
}

/// rclone lists and copies an item, with names of any bytes, and checks what it copied.
#[test]
fn rclone_reads_it() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"export RCLONE_CONFIG=$PWD/none RCLONE_WEBDAV_URL=$U/dav RCLONE_WEBDAV_VENDOR=other RCLONE_CACHE_DIR=$PWD/cache
        r() { rclone -q "$@"; }
        r lsf :webdav: | sed "s:${one%%/*}:HOST:"
        r copy :webdav:$one/ out; (cd out/doc; find . -type f -print0 | LC_ALL=C sort -z | tr '\n\0' '|\n' | cat -v)
        for file in 'a b/c/text' $'c\x01\n' $'Relat\xf3rio' long nothing link 'Relatório & <final>.txt'; do cmp "$D/$file" "out/doc/$file"; done
        stat -c %y out/doc/long | cut -c 1-19; TZ=UTC stat -c %y out/doc/long | cut -c 1-19
        # It takes names that are not UTF-8 for others on the other side.
        rm {$D,out/doc}/{$'c\x01\n',$'Relat\xf3rio'}; r check :webdav:$one/ out; echo same; r cat :webdav:$ibip/doc/long --offset 5 --count 7 | cmp - <(tail -c +6 $D/long | head -c 7)
        rclone -q touch :webdav:$one/doc/new 2> /dev/null || echo refused; r copyto ":webdav:$one=GetMetadata" text; cat text"#,
        "6RPa7umaZ/\nHOST/\n./RelatM-CM-3rio & <final>.txt\n./RelatM-srio\n./a b/c/text\n./c^A|\n./link\n./long\n./nothing\n\
         2020-02-02 02:02:02\n2020-02-02 02:02:02\nsame\nrefused\ntitle: Rainfall",
    );
}

/// cadaver, the client of neon, which others use as well.
#[test]
fn cadaver_reads_it() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"export HOME=$PWD TERM=dumb
        printf 'ls\ncd "a b"\nls\ncd ..\nget long mine\nput vars\nquit\n' | cadaver $U/dav/$one/doc/ > said 2>&1
        grep -c '^Coll: *a b ' said; grep -c '^Coll: *c ' said; grep -c '^ *long *168894' said; grep -c '405 Method Not Allowed' said; cmp mine $D/long"#,
        "1\n1\n1\n1",
    );
}

/// davfs2 mounts it. It looks names up in the lists that it asks for; its readdir itself fails on recent kernels
/// (EINVAL, with any server).
#[test]
fn davfs_mounts_it() {
    let (env, served) = environment();
    prints(
        &env,
        &served,
        r#"mkdir M; mkdir -m 1777 cache; printf 'ask_auth 0\nuse_locks 0\ncache_dir %s\n' $PWD/cache > conf
        mount.davfs -o ro,conf=$PWD/conf $U/dav/ M > said 2>&1 < /dev/null || { cat said; exit 1; }
        trap 'umount M > /dev/null' EXIT
        test -d M/6RPa7umaZ/UaJFT; test ! -e M/gone; cmp M/$one/doc/long $D/long; cmp "M/$one/doc/a b/c/text" $D/link
        cmp "M/$one/doc/Relatório & <final>.txt" "$D/Relatório & <final>.txt"; stat -c '%s' M/$one/doc/long
        cat M/6RPa7umaZ/UaJFT/doc/x; test ! -e M/$one/doc/secret; touch M/$one/doc/new 2> /dev/null || echo refused"#,
        "168894\nold\nrefused",
    );
}
