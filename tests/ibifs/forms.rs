//! The forms in which identifiers are found in links and records, see ibi(7): at the command, in the mount,
//! at a served Archive and at a resolver.

use crate::http::served::Served;
use crate::support::TestEnv;

/// Records of the living system: rep, IBIp, rep of the metadata. A dash stands for what is not known.
const RECORDS: &str = "\
iconet.com.br/banon/2009/09.09.22.01 LK47B6W/362SFKH iconet.com.br/banon/2009/09.09.22.01.52
- 3ERPFQRTBW/34RQDB8 dpi.inpe.br/sbsr@80/2009/03.02.18.19.38
- 6qtX3pFwXQZGivnK2Y/TLEBM sid.inpe.br/mtc-m17@80/2008/04.15.13.39.39
- CBnmVX32PXQZeBBx/qg53m iconet.com.br/banon/2001/05.25.16.44.43
- 83LX3pFwXQZeBBx/BbsHa dpi.inpe.br/banon/2004/02.16.09.30.01
sid.inpe.br/mtc-m21d/2022/08.25.11.46 8JMKD3MGP3W34T/47GAF6S -
sid.inpe.br/mtc-m21c/2019/02.06.02.41 8JMKD3MGP3W34R/3SMGTAP -
dpi.inpe.br/lise/2004/03.02.15.20 83LX3pFwXQZ5Jpy/Bkjzd dpi.inpe.br/lise/2004/03.02.15.20.28
dpi.inpe.br/sbsr@80/2006/10.22.01.40 - dpi.inpe.br/sbsr@80/2006/10.22.01.40.20
sid.inpe.br/mtc-m12e/2026/01.02.12.20 - sid.inpe.br/mtc-m12e/2026/01.02.12.20.17";

/// Real records as items, made by mkdir and by sidecar: each is found by each of its names in the mount and
/// by the command, before and after a reindex. Case counts in IBIps in base 53 only.
#[test]
fn records_of_the_living_system_are_items() {
    let env = TestEnv::new().with_a();
    std::fs::write(env.root().join("records"), RECORDS).expect("records");
    env.sh(r#"
        n=0
        while read rep ibip metadata; do
            n=$((n + 1))
            if [ $rep = - ]; then item=$ibip; else item=$rep; fi
            if [ $metadata != - ]; then mkdir -p A/$metadata; echo "$metadata" > A/$metadata/metadata; fi
            mkdir -p A/${item%/*}; mkdir A/$item; echo $n > A/$item/text
            names="${rep:+rep }$rep ibip $ibip"
            names=$(echo "$names" | sed 's/rep - //; s/ ibip -//')
            echo "ibi {$names}" > sidecar; echo "state Copy" >> sidecar
            if [ $metadata != - ]; then echo "ibi.metadata {rep $metadata}" >> sidecar; fi
            cp sidecar A/$item/.ibi
        done < records
        cat > look <<'end'
        n=0
        while read rep ibip metadata; do
            n=$((n + 1))
            for name in $rep $ibip; do
                test $name != - || continue
                echo $n | cmp - A/$name/text
                ibifs show $name --store A.store > shown; grep -q "Copy" shown
                ibifs show http://urlib.net/rep/$name --store A.store | cmp - shown
                if [ $metadata != - ]; then echo $metadata | cmp - A/$name:/metadata; fi
                if [ $ibip = $name ] && [ ${name#*Z} = $name ]; then
                    echo $n | cmp - A/${name,,}/text; ibifs show ${name,,} --store A.store | cmp - shown
                else case $name in *Z*)
                    test ! -e A/${name,,}; test ! -e A/${name^^}
                    if ibifs show ${name%/*}/$(echo ${name#*/} | tr a-zA-Z A-Za-z) --store A.store 2> said; then exit 9; fi
                esac; fi
            done
        done < records
end
        set -e; . ./look
        ibifs umount A; lose_index A.store; ibifs reindex A.store; ibifs fsck A.store
        ibifs mount A.store A; . ./look"#);
    // Each is removed and made again like any other item.
    env.sh(
        "rm -r A/CBnmVX32PXQZeBBx/qg53m; test ! -e A/CBnmVX32PXQZeBBx/qg53m
            ibifs show CBnmVX32PXQZeBBx/qg53m --store A.store | grep -q Deleted
            mkdir A/CBnmVX32PXQZeBBx/qg53m; ls A/CBnmVX32PXQZeBBx/qg53m/
            if mkdir -p A/CBnmVX32PXQZeBBx/qg53l 2> said; then exit 9; fi",
    );
}

/// A name is the IBIp in base 53 of one item, or the alias of one item.
#[test]
fn a_base_53_name_belongs_to_one_item() {
    let env = TestEnv::new().with_a();
    env.sh("mkdir -p A/6RPa7umaZ/UaJFT A/.mint/a
            if setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFT A/.mint/a 2> said; then exit 9; fi
            setfattr -n user.ibi.alias -v 6RPa7umaZ/UaJFt A/.mint/a; test -d A/6RPa7umaZ/UaJFt/
            if mkdir A/6RPa7umaZ/UaJFt 2> said; then exit 9; fi
            ibifs umount A; ibifs fsck A.store");
}

/// A link names an item wherever an item is an argument, and as the TARGET of a link beside an item. What
/// holds no identifier is refused.
#[test]
fn commands_and_links_take_every_form() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1); ibip=$(ibip A/$one)
        ibifs show $one --store A > plain
        for form in ibi:$one IBI:$ibip http://urlib.net/$one "http://urlib.net/$ibip?other" https://a.b:8080/rep/$one \
            "http://a.b/ibi/$ibip?mirror=$two&metadatarepository=$two" a.b/rep/$one http://a.b/rep-/$ibip \
            http://a.b/col/$one/doc/x.pdf#page=3 http://a.b/attachment.cgi/$one/doc/x http://a.b/archive.cgi/$one \
            "http://a.b/col/$two/doc/mirrorget.cgi?choice=full&metadatarepository=$one" \
            http://a.b/col/$two/doc/goto-/$ibip upn:9HFNHE:$ibip upn:9HFNHE-:$one ./upn:9HFNHE:$one \
            http://urlib.net/upn:9HFNHE:$one $one-TDI ${one//\//:} ../../../../../col/$one "$ibip?GetFileList" \
            oai:a.b:$ibip "ibi：$ibip" "http：//urlib.net/rep/$one." "IBI: $ibip" "http://urlib.net/rep/
$ibip" "<http://urlib.net/${ibip/\// \/}>" "${one//-/‑}" "${ibip/\//／}" "($ibip)." "${ibip/\//%2F}"; do
            ibifs show --store A "$form" | diff plain -
        done
        for form in http://urlib.net/rep/example.org/a/2009/02.16.17.46 ibi:example.org/a/2009/02.16.17.46; do
            ibifs init R --service "$form"; ibifs show example.org/a/2009/02.16.17.46 --store R | grep -q Original; rm -r R
        done
        for bad in http://a.b/x http://a.b/rep/example.org/a/2009/02.16.17.46! http://a.b/example.org/a/2009/02.16.17.46/doc/x; do
            status=0; ibifs init R --service $bad 2> said || status=$?; test $status = 2; test ! -e R
        done
        ibifs relate http://urlib.net/rep/$one --next-edition ibi:$two --store A
        ibifs show --store A "http://urlib.net/$ibip!" | grep -q $two
        ibifs show --store A "$one!" | grep -q $two
        # The item need not be known here.
        ibifs relate ibi:$one --metadata http://urlib.net/rep/8JMKD3MGP8W/34PGRBS --store A
        ibifs show --store A $one --json | jq -r .relations.metadata.ibip | grep -x 8JMKD3MGP8W/34PGRBS
        ibifs unrelate ibi:$one --metadata --store A; ibifs unrelate $one --next-edition --store A
        ln -sfn http://urlib.net/upn:9HFNHE:$two "A/$one!"; ibifs show "A/$one!" | grep -q $two; rm "A/$one!"
        ln -sfn "oai:urlib.net:$two" "A/$one!"; ibifs show "A/$one!" | grep -q $two; rm "A/$one!"
        ln -sfn "ibi： $two" "A/$one!"; ibifs show "A/$one!" | grep -q $two; rm "A/$one!"
        ln -sfn ibi:$(ibip A/$two) "A/$one+(pt)"; ibifs show "A/$one+(pt)" | grep -q $two; rm "A/$one+(pt)"
        ln -sfn http://a.b/rep/$two "A/$one:"; ibifs show "A/$one:" | grep -q $two; rm "A/$one:"
        for bad in http://urlib.net/rep/ http://urlib.net/index.html ftp://a.b/$one http://a.b/col/example.org/ upn:abc:$one \
            oai:$one "https://doi.org/$ibip and" "$ibip $ibip" "$ibip; $ibip" http://a.b:80:80/$one "ibi:${one%.*}.
${one##*.}" \
            "http://urlib.net/$one!!" "$one?GetNothing" ibi: http://a.b/col/$one/doc/mirrorget.cgi?metadatarepository=x; do
            status=0; ibifs show --store A "$bad" 2> said || status=$?
            test $status = 2; test $(wc -l < said) = 1
        done
        for bad in http://a.b/x http://urlib.net/$two/doc/x "ibi:$two!"; do
            if ln -sfn "$bad" "A/$one!" 2> said; then exit 9; fi
        done"#);
}

/// A served Archive answers the paths of the living system, and so does a resolver, by the item at an
/// Archive. Items that are not public are as unknown in every form.
#[test]
fn served_archives_and_resolvers_answer_every_form() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1) secret=$(ibifs mint A | head -n 1)
        echo content > "A/$one/doc/a b.txt"; echo other > A/$two/doc/x; echo record > A/$two/doc/mirror.cgi
        echo secret > A/$secret/doc/x; chmod 700 A/$secret
        mkdir -p A/6RPa7umaZ/UaJFT; echo old > A/6RPa7umaZ/UaJFT/x
        echo "one=$one two=$two secret=$secret ibip=$(ibip A/$one)" > vars"#);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#". ./vars
        for form in $one rep/$ibip ibi/$one upn:ABCDEF:/$one rep/$one?languagebutton=en "ibi/$ibip?mirror=$two&metadatarepository=$two" \
            ibi:$ibip oai:a.b:$one upn:ABCDEF:$one col/$two/doc/goto-/$ibip $one-TDI ${one//\//:} \
            "col/$two/doc/mirrorget.cgi?choice=full&metadatarepository=$one"; do
            location=$(line location "$U/$form"); test "${location%%\?*}" = "/col/$one/doc/a%20b.txt"
            test "${location#"${location%%\?*}"}" = "$(case $form in *cgi*) ;; *\?*) echo "?${form#*\?}" ;; esac)"; get -L "$U/$form"
        done | uniq -c | tr -s ' '
        for form in rep-/$ibip ibi-/$one upn:ABCDEF-:$one "$ibip?GetFileList"; do
            get -H 'Accept: text/plain' "$U/$form"
        done | uniq -c | tr -s ' '
        get $U/upn:ABCDEF-:$one/a%20b.txt; get $U/rep/$one/a%20b.txt
        get $U/attachment.cgi/$one/doc/a%20b.txt
        line content-disposition $U/attachment.cgi/$one/doc/a%20b.txt
        line content-disposition $U/attachment.cgi/$ibip
        get -L $U/col/$two/doc/mirror.cgi; get -L $U/rep/6RPa7umaZ/UaJFT/x; status $U/rep/6RPa7umaZ/UaJFt/x
        level=${one%/*}
        for form in rep-/$level/ rep/$level/ ibi-/${level%/*} col/$level/ col/$level/$(echo ${one##*/} | cut -d. -f1,2); do
            get -H 'Accept: text/plain' $U/$form | grep -x -e $one -e $two -e $secret
        done | sort | uniq -c | tr -s ' ' | sed "s:$two:TWO:; s:$one:ONE:"
        get -H 'Accept: application/json' $U/rep-/$level/ | jq -r --arg one $one '.items[] | select(.rep == $one).ibip' | cmp - <(echo $ibip)"#,
        " 13 content\n 4 doc/a b.txt\ncontent\ncontent\ncontent\nattachment; filename=\"a b.txt\"\n\
         attachment; filename=\"a b.txt\"\nrecord\nold\n404\n 5 ONE\n 5 TWO",
    );
    served.prints(
        &env,
        r#". ./vars
        for form in rep/$secret ibi/$secret rep-/$secret attachment.cgi/$secret/doc/x col/$secret/doc/x ibi:$secret \
            upn:ABCDEF:$secret $secret-TDI ${secret//\//:} "$secret??" "col/$two/doc/mirrorget.cgi?metadatarepository=$secret" \
            archive.cgi/$secret col/$one/doc/ibi:$secret/x col/$one/doc/ibi:none rep/foo/bar rep/ ibi-/none.example col/x.y/z/2009 attachment.cgi/ upn:abc:$one; do
            status -L "$U/$form"
        done | uniq -c | tr -s ' '
        for form in rep/$one!! "$one?ibiurl.requireditemstatus=Copy"; do status "$U/$form"; done"#,
        " 20 404\n400\n400",
    );
}

/// The name of a download is written as RFC 6266 and RFC 8187 have it, and wget and curl save under it.
#[test]
fn downloads_have_their_names() {
    let env = TestEnv::new().with_a();
    env.sh(r#"one=$(ibifs mint A | head -n 1); echo one=$one > vars; cd A/$one/doc
        echo 1 > 'semi;colon.txt'; echo 2 > 'São "x" 100%.txt'; echo 3 > $'Relat\xf3rio.pdf'; echo 4 > "it's (a) *.txt""#);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#". ./vars; D=$U/attachment.cgi/$one/doc
        for name in 'semi;colon.txt' 'S%C3%A3o%20%22x%22%20100%25.txt' 'Relat%F3rio.pdf' "it's%20(a)%20*.txt"; do
            line content-disposition "$D/$name"
        done
        mkdir saved; cd saved; wget -q --content-disposition "$D/semi;colon.txt"; curl -sSOJ "$D/it's%20(a)%20*.txt"; ls"#,
        "attachment; filename=\"semi;colon.txt\"\n\
         attachment; filename=\"S_o _x_ 100_.txt\"; filename*=UTF-8''S%C3%A3o%20%22x%22%20100%25.txt\n\
         attachment; filename=\"Relat_rio.pdf\"; filename*=UTF-8''Relat%C3%B3rio.pdf\n\
         attachment; filename=\"it's (a) *.txt\"\nit's (a) *.txt\nsemi;colon.txt",
    );
}

/// Relative links of pages lead to the item, a resolver leads to downloads, and a path is decoded once.
#[test]
fn links_of_pages_and_downloads() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1)
        mkdir A/$one/doc/pages; echo page > A/$one/doc/pages/index.html; echo other > A/$two/doc/other.html
        echo percent > 'A/'$two'/doc/a%25b'; mkdir 'A/'$one'/doc/ibi:notes'; echo mine > 'A/'$one'/doc/ibi:notes/x'
        mkdir -p A/83LX3W/34PGRBS; echo opaque > A/83LX3W/34PGRBS/x
        test "$(ls A/83lx3w/34pgrbs/)" = x; ibifs show 83LX3W/34PGRBS --store A | grep -q Copy
        ibifs id explain 83lx3w/34pgrbs --json | jq -er '.canonical == "83LX3W/34PGRBS" and .address == null and .date == "2009-02-16T17:46:00Z"'
        if ibifs id explain data/34PGRBS 2> said; then exit 9; fi
        ibifs show --store A "<URL:http://urlib.net/rep/$one>." | diff - <(ibifs show --store A $one)
        ibifs umount A; ibifs fsck A.store; ibifs mount A.store A
        echo "one=$one two=$two ibip=$(ibip A/$two)" > vars"#);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#". ./vars
        for page in col/$one/doc/pages $one/pages $one; do
            for link in ibi:$ibip/other.html upn:RFF2E5:$two/other.html ibi%3A$ibip/other.html; do
                test "$(line location $U/$page/$link)" = /$link; get -L $U/$page/$link
            done
        done | uniq -c | tr -s ' '
        line location "$U/col/$one/doc/pages/ibi:$one!?x=y" | sed "s:$one:ONE:"
        get $U/col/$one/doc/ibi:notes/x; get $U/83LX3W/34PGRBS/x; status $U/col/$one/doc/pages/ibi:none/x"#,
        " 9 other\n/ibi:ONE!?x=y\nmine\nopaque\n404",
    );
}

/// The table of name spaces completes names that lack the beginning of their identifier: in commands, in
/// targets of links, at the Archive's service. A whole identifier does without it.
#[test]
fn names_are_completed_by_their_name_space() {
    let env = TestEnv::new().with_a();
    env.sh(r#"
        one=$(ibifs mint A | head -n 1) two=$(ibifs mint A | head -n 1); ibip=$(ibip A/$one)
        prefix=${one%/*/*} suffix=${one#$prefix/}; echo content > A/$one/doc/f.txt; chmod -R a+rX A/$one
        printf '%s\n' one=$one two=$two ibip=$ibip prefix=$prefix suffix=$suffix > vars
        ibifs show $one --store A > plain
        status=0; ibifs show upn:ABCDEF:$suffix --store A 2> said || status=$?
        test $status = 2; grep -q "registered with 'ibifs upn'" said
        test -z "$(ibifs upn A)"
        # No item is under the first prefix.
        test "$(ibifs upn A abcdef example.net/none $prefix ${ibip%/*})" = "ABCDEF example.net/none $prefix ${ibip%/*}"
        test "$(ibifs upn A.store)" = "$(cat A.store/upn.txt)"; test "$(stat -c %a A.store/upn.txt)" = 644
        for form in upn:ABCDEF:$suffix http://urlib.net/upn:abcdef:$suffix UPN:ABCDEF-:$suffix upn:ABCDEF:${ibip#*/} \
            upn:ABCDEF:$suffix/f.txt upn:ABCDEF:$one upn:QQQQQQ:$ibip "<upn:ABCDEF:$suffix>."; do
            ibifs show "$form" --store A | diff plain -; ibifs show "$form" --store A.store | diff plain -
        done
        for place in A A.store; do
            ibifs id explain upn:ABCDEF-:$suffix/f.txt --store $place --json |
                jq -e --arg one $one '.canonical == $one and .name_space == "ABCDEF" and .path == "f.txt" and .kind == "file"'
            ibifs id explain $ibip --store $place | diff - <(ibifs id explain $ibip)
        done
        for bad in "upn:ABCDEF:$suffix" "upn:QQQQQQ:$suffix --store A" "upn:ABCDEF:x_y --store A"; do
            status=0; ibifs id explain $bad 2> said || status=$?; test $status = 1; grep -q "with 'ibifs upn'" said
        done
        ln -sfn upn:ABCDEF:${two#$prefix/} "A/$one!"; ibifs show "A/$one!" | grep -q $two; rm "A/$one!"
        for bad in upn:QQQQQQ:$suffix upn:ABCDEF:2009/01.01.01.01 upn:ABCDEF:x_y; do
            if ibifs show $bad --store A 2> said; then exit 9; fi
            test $(wc -l < said) = 1; if ln -sfn $bad "A/$one:" 2> said; then exit 9; fi
        done
        # One prefix alone makes an identifier, which is not held here.
        ibifs upn A ZZZZZZ $prefix > said; status=0
        ibifs show upn:ZZZZZZ:2009/01.01.01.01 --store A 2> said || status=$?
        test $status = 3; grep -q "no item '$prefix/2009/01.01.01.01'" said
        ibifs upn A --remove zzzzzz; test $(ibifs upn A | wc -l) = 1
        seq 20 | xargs -P 8 -I{} ibifs upn A.store NSP0{} a.b > said 2>&1 || true
        test $(grep -c '^NSP0' A.store/upn.txt) = 11; test ! -e A.store/upn.txt.new
        chmod 711 .; chmod 755 A.store; cp A.store/upn.txt kept
        if setpriv --reuid 1234 --clear-groups ibifs upn A.store ABCDEF x.y 2> said; then exit 9; fi
        grep -q 'only the owner of the store may' said; cmp kept A.store/upn.txt; chmod 700 A.store
        ibifs backup A saved > said; cmp kept saved/upn.txt
        printf 'ABCDEF a.b\nBAD\n' > A.store/upn.txt
        for command in "upn A" "upn A ABCDEF c.d" "show upn:ABCDEF:$suffix --store A"; do
            status=0; ibifs $command 2> said || status=$?
            test $status = 1; grep -q "A.store/upn.txt: line 2: name space 'BAD'" said
        done
        ibifs show upn:ABCDEF:$one --store A | diff plain -; cp kept A.store/upn.txt"#);
    let served = Served::start(&env, "A.store");
    served.prints(
        &env,
        r#". ./vars
        for form in upn:ABCDEF:$suffix upn:ABCDEF:$suffix/f.txt col/$two/doc/upn:ABCDEF:$suffix; do get -L $U/$form; done
        for form in upn:QQQQQQ:$suffix upn:ABCDEF:2009/01.01.01.01; do status $U/$form; done"#,
        "content\ncontent\ncontent\n404\n404",
    );
}
