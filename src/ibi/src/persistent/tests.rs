use super::*;

/// A name, read, as one line: kind, identifier, and what else there is.
fn read(text: &str) -> String {
    let name = match PersistentName::parse(text) {
        Ok(name) => name,
        Err(error) => return error.to_string(),
    };
    let mut line = format!("{} {}", name.kind, name.identifier);
    let mut add = |label: &str, value: Option<String>| {
        if let Some(value) = value {
            line.push_str(&format!(" {label}={value}"));
        }
    };
    add("at", name.archive.map(|it| it.to_string()));
    add("request", name.request.map(|it| it.to_string()));
    add("key", name.citation_key);
    add("upn", name.name_space);
    let path = crate::pairs::percent_encode(&name.path);
    add("path", (!path.is_empty()).then_some(path));
    add(
        "original",
        name.is_original_required.then(|| "yes".to_owned()),
    );
    let names: Vec<&str> = name
        .navigation
        .iter()
        .map(|(name, _)| name.as_str())
        .collect();
    add("navigates", (!names.is_empty()).then(|| names.join(",")));
    line
}

#[track_caller]
fn reads(text: &str, expected: &str) {
    assert_eq!(read(text), expected, "{text}");
}

/// Real identifiers and links of the living system, each with what it means.
#[test]
#[rustfmt::skip] // one case, one line
fn names_of_the_living_system() {
    reads("http://gjfb0520.sid.inpe.br/col/urlib.net/www/2023/11.16.13.37/doc/hyperlinkExample2.html", "file urlib.net/www/2023/11.16.13.37 at=gjfb0520.sid.inpe.br path=doc/hyperlinkExample2.html");
    reads("http://mtc-m21b.sid.inpe.br/col/sid.inpe.br/mtc-m21b/2017/08.10.22.44/doc/publicacao.pdf#page=105", "file sid.inpe.br/mtc-m21b/2017/08.10.22.44 at=mtc-m21b.sid.inpe.br path=doc/publicacao.pdf navigates=#");
    reads("http://iris.sid.inpe.br:1905/col/sid.inpe.br/banon/2001/", "level sid.inpe.br/banon/2001 at=iris.sid.inpe.br:1905");
    reads("http://sibgrapi.sid.inpe.br/col/sid.inpe.br/sibgrapi/2026/09.04.16.13/doc/thisInformationItemHomePage.html", "file sid.inpe.br/sibgrapi/2026/09.04.16.13 at=sibgrapi.sid.inpe.br path=doc/thisInformationItemHomePage.html");
    reads("http://mtc-m16d.sid.inpe.br/col/sid.inpe.br/mtc-m19/2012/03.15.15.49/doc/publicacao.pdf", "file sid.inpe.br/mtc-m19/2012/03.15.15.49 at=mtc-m16d.sid.inpe.br path=doc/publicacao.pdf");
    reads("http://mtc-m16d.sid.inpe.br/col/sid.inpe.br/mtc-m19/2014/01.15.12.56/doc/publicacao.pdf", "file sid.inpe.br/mtc-m19/2014/01.15.12.56 at=mtc-m16d.sid.inpe.br path=doc/publicacao.pdf");
    reads("../../../../../../col/dpi.inpe.br/banon/1995/08.25.00.00/doc/BFF", "file dpi.inpe.br/banon/1995/08.25.00.00 path=doc/BFF");
    reads("http://mtc-m21c.sid.inpe.br/col/sid.inpe.br/mtc-m21c/2019/02.06.02.41/doc/publicacao.pdf", "file sid.inpe.br/mtc-m21c/2019/02.06.02.41 at=mtc-m21c.sid.inpe.br path=doc/publicacao.pdf");
    reads("../../../../../iconet.com.br/banon/2008/03.25.01.19/doc/tdiinpe", "file iconet.com.br/banon/2008/03.25.01.19 path=doc/tdiinpe");
    reads("http://urlib.net/upn:9HFNHE:CBnmVX32PXQZeBBx/qg53m", "item CBnmVX32PXQZeBBx/qg53m upn=9HFNHE");
    reads("http://urlib.net/upn:K28A8B:6qtX3pFwXQZGivnK2Y/TLEBM", "item 6qtX3pFwXQZGivnK2Y/TLEBM upn=K28A8B");
    reads("./upn:RFF2E5:8JMKD3MGPCW/3EUFCFP", "item 8JMKD3MGPCW/3EUFCFP upn=RFF2E5");
    reads("http://urlib.net/upn:RFF2E5:8JMKD3MGPCW/3EUFCFP", "item 8JMKD3MGPCW/3EUFCFP upn=RFF2E5");
    reads("upn:9HFNHE:CBnmVX32PXQZeBBx/qg53m", "item CBnmVX32PXQZeBBx/qg53m upn=9HFNHE");
    reads("upn:LCETB2:dpi.inpe.br/sbsr@80/2006/11.12.23.09", "item dpi.inpe.br/sbsr@80/2006/11.12.23.09 upn=LCETB2");
    reads("8JMKD3MGP7W/3A7C59S", "item 8JMKD3MGP7W/3A7C59S");
    reads("dpi.inpe.br/banon/1995/08.25.00.00", "item dpi.inpe.br/banon/1995/08.25.00.00");
    reads("6qtX3pFwXQZGivnK2Y/SskcB", "item 6qtX3pFwXQZGivnK2Y/SskcB");
    reads("iconet.com.br/banon/2001/05.25.16.44.43", "item iconet.com.br/banon/2001/05.25.16.44.43");
    reads("sid.inpe.br/mtc-m16d/2018/10.11.17.41.57", "item sid.inpe.br/mtc-m16d/2018/10.11.17.41.57");
    reads("dpi.inpe.br/sbsr@80/2006/10.22.01.40", "item dpi.inpe.br/sbsr@80/2006/10.22.01.40");
    reads("dpi.inpe.br/sbsr@80/2006/11.13.13.56", "item dpi.inpe.br/sbsr@80/2006/11.13.13.56");
    reads("sid.inpe.br/mtc-m19/2014/06.02.15.03", "item sid.inpe.br/mtc-m19/2014/06.02.15.03");
    reads("sid.inpe.br/mtc-m16d/2019/02.28.15.10.42", "item sid.inpe.br/mtc-m16d/2019/02.28.15.10.42");
    reads("urlib.net/www/2021/05.01.16.24.58", "item urlib.net/www/2021/05.01.16.24.58");
    reads("sid.inpe.br/mtc-m21b/2017/01.23.15.20.44", "item sid.inpe.br/mtc-m21b/2017/01.23.15.20.44");
    reads("sid.inpe.br/sibgrapi/2018/09.03.21.36.30", "item sid.inpe.br/sibgrapi/2018/09.03.21.36.30");
    reads("http://bibdigital.sid.inpe.br/col/sid.inpe.br/banon/2002/09.23.16.10/doc/goto-/iconet.com.br/banon/2001/02.10.22.55+(pt-BR)", "item iconet.com.br/banon/2001/02.10.22.55 at=bibdigital.sid.inpe.br request=+(pt-BR)");
    reads("http://www.urlib.net:80/col/dpi.inpe.br/banon/2004/02.16.09.30.00/doc/mirrorget.cgi?metadatarepository=urlib.net/www/2021/05.01.16.24.58&languagebutton=en&choice=fullBibINPE", "record urlib.net/www/2021/05.01.16.24.58 at=www.urlib.net:80 navigates=languagebutton,choice");
    reads("http://sibgrapi.sid.inpe.br/sid.inpe.br/sibgrapi@80/2008/07.17.22.39.48:(BibINPE)?ibiurl.backgroundlanguage=pt-BR", "item sid.inpe.br/sibgrapi@80/2008/07.17.22.39.48 at=sibgrapi.sid.inpe.br request=:(BibINPE) navigates=ibiurl.backgroundlanguage");
    reads("http://mtc-m21b.sid.inpe.br/col/sid.inpe.br/mtc-m21b/2013/09.26.14.25.22/doc/mirrorget.cgi?languagebutton=en&metadatarepository=sid.inpe.br/mtc-m21c/2020/10.23.12.37.19&index=0&serveraddress=mtc-m21c.sid.inpe.br+806&choice=fullBibINPE&lastupdate=2020:10.24.10.46.17+sid.inpe.br/bibdigital@80/2006/04.07.15.50+administrator&continue=no", "record sid.inpe.br/mtc-m21c/2020/10.23.12.37.19 at=mtc-m21b.sid.inpe.br navigates=languagebutton,index,serveraddress,choice,lastupdate,continue");
    reads("http://sibgrapi.sid.inpe.br/col/sid.inpe.br/banon/2001/03.30.15.38.24/doc/mirror.cgi/About?languagebutton=en&languagerep1=sid.inpe.br/banon/2001/05.04.15.05&languagerep2=dpi.inpe.br/banon/1999/05.03.22.11&firstlanguagerep=sid.inpe.br/banon/2001/05.04.15.05&submissionformrep=dpi.inpe.br/banon-pc2@80/2006/08.30.19.42&returnbutton=yes", "file sid.inpe.br/banon/2001/03.30.15.38.24 at=sibgrapi.sid.inpe.br path=doc/mirror.cgi/About navigates=languagebutton,languagerep1,languagerep2,firstlanguagerep,submissionformrep,returnbutton");
    reads("http://mtc-m16c.sid.inpe.br/col/sid.inpe.br/mtc-m18@80/2008/03.17.15.17.24/doc/mirrorget.cgi?metadatarepository=sid.inpe.br/mtc-m16c/2022/12.16.15.14.35&choice=full&languagebutton=en", "record sid.inpe.br/mtc-m16c/2022/12.16.15.14.35 at=mtc-m16c.sid.inpe.br navigates=choice,languagebutton");
    reads("http://sibgrapi.sid.inpe.br/col/sid.inpe.br/banon/2001/03.30.15.38.24/doc/mirrorget.cgi?languagebutton=en&metadatarepository=sid.inpe.br/sibgrapi/2012/12.10.14.08.20&index=0&serveraddress=sibgrapi.sid.inpe.br+802&choice=fullbibtex&lastupdate=2013:01.03.01.24.49+sid.inpe.br/banon/2001/03.30.15.38+administrator+%7BD+1993%7D&continue=yes", "record sid.inpe.br/sibgrapi/2012/12.10.14.08.20 at=sibgrapi.sid.inpe.br navigates=languagebutton,index,serveraddress,choice,lastupdate,continue");
    reads("http://bibdigital.sid.inpe.br:80/col/sid.inpe.br/bibdigital@80/2006/04.07.15.50.13/doc/mirrorget.cgi?languagebutton=pt-BR&metadatarepository=sid.inpe.br/mtc-m18@80/2009/07.22.12.45.47&index=0&serveraddress=mtc-m16c.sid.inpe.br+804&choice=fullbibtex&lastupdate=2020:04.28.17.48.50+sid.inpe.br/mtc-m18@80/2008/03.17.15.17+administrator+{D+2010}&continue=no", "record sid.inpe.br/mtc-m18@80/2009/07.22.12.45.47 at=bibdigital.sid.inpe.br:80 navigates=languagebutton,index,serveraddress,choice,lastupdate,continue");
    reads("http://bibdigital.sid.inpe.br:80/col/sid.inpe.br/bibdigital@80/2006/04.07.15.50.13/doc/mirrorget.cgi?languagebutton=pt-BR&metadatarepository=sid.inpe.br/mtc-m21b/2015/07.15.18.51.25&index=0&serveraddress=mtc-m21b.sid.inpe.br+804&choice=fullbibtex&lastupdate=2016:01.14.15.51.20+sid.inpe.br/mtc-m21b/2013/09.26.14.25.20+marcelo.pazos@sid.inpe.br+{D+2015}&continue=yes", "record sid.inpe.br/mtc-m21b/2015/07.15.18.51.25 at=bibdigital.sid.inpe.br:80 navigates=languagebutton,index,serveraddress,choice,lastupdate,continue");
    reads("http://iris.sid.inpe.br:1905/col/sid.inpe.br/banon/2001/04.03.15.36.19/doc/mirror.cgi", "file sid.inpe.br/banon/2001/04.03.15.36.19 at=iris.sid.inpe.br:1905 path=doc/mirror.cgi");
    reads("http://mtc-m16c.sid.inpe.br/rep/8JMKD3MGP8W/3GUSQQ5", "item 8JMKD3MGP8W/3GUSQQ5 at=mtc-m16c.sid.inpe.br");
    reads("http://urlib.net/rep/8JMKD3MGP3W34R/43F627H", "item 8JMKD3MGP3W34R/43F627H");
    reads("http://mtc-m18.sid.inpe.br/rep/sid.inpe.br/mtc-m18@80/2009/05.06.19.17?languagebutton=pt-BR&searchsite=bibdigital.sid.inpe.br:80", "item sid.inpe.br/mtc-m18@80/2009/05.06.19.17 at=mtc-m18.sid.inpe.br navigates=languagebutton,searchsite");
    reads("http://marte2.sid.inpe.br/rep/sid.inpe.br/marte2/2017/10.23.17.08.52", "item sid.inpe.br/marte2/2017/10.23.17.08.52 at=marte2.sid.inpe.br");
    reads("http://mtc-m19.sid.inpe.br/rep/sid.inpe.br/mtc-m19@80/2010/07.26.20.24?languagebutton=pt-BR&searchsite=bibdigital.sid.inpe.br:80", "item sid.inpe.br/mtc-m19@80/2010/07.26.20.24 at=mtc-m19.sid.inpe.br navigates=languagebutton,searchsite");
    reads("http://sibgrapi.sid.inpe.br/rep/sid.inpe.br/sibgrapi/2013/07.05.14.27?mirror=sid.inpe.br/banon/2001/03.30.15.38.24&metadatarepository=sid.inpe.br/sibgrapi/2013/07.05.14.27.43", "item sid.inpe.br/sibgrapi/2013/07.05.14.27 at=sibgrapi.sid.inpe.br navigates=mirror,metadatarepository");
    reads("http://mtc-m16c.sid.inpe.br/rep/8JMKD3MGPDW34P/42T2PKB", "item 8JMKD3MGPDW34P/42T2PKB at=mtc-m16c.sid.inpe.br");
    reads("http://mtc-m16c.sid.inpe.br/rep/8JMKD3MGPDW34P/42T2QTS", "item 8JMKD3MGPDW34P/42T2QTS at=mtc-m16c.sid.inpe.br");
    reads("http://mtc-m21c.sid.inpe.br/attachment.cgi/sid.inpe.br/mtc-m21c/2019/08.07.15.41/doc/publicacao.pdf", "download sid.inpe.br/mtc-m21c/2019/08.07.15.41 at=mtc-m21c.sid.inpe.br path=doc/publicacao.pdf");
    reads("http://gjfb0520.sid.inpe.br/attachment.cgi/urlib.net/www/2023/12.25.14.57/doc/robustHypertextExample.html", "download urlib.net/www/2023/12.25.14.57 at=gjfb0520.sid.inpe.br path=doc/robustHypertextExample.html");
    reads("http://marte2.sid.inpe.br/attachment.cgi/sid.inpe.br/marte2/2025/08.16.16.54.21/doc/@individualPDF.pdf", "download sid.inpe.br/marte2/2025/08.16.16.54.21 at=marte2.sid.inpe.br path=doc/@individualPDF.pdf");
    reads("http://mtc-m16.sid.inpe.br/rep-/sid.inpe.br/marciana/2004/10.07.14.05", "filelist sid.inpe.br/marciana/2004/10.07.14.05 at=mtc-m16.sid.inpe.br");
    reads("http://mtc-m16d.sid.inpe.br/archive.cgi/sid.inpe.br/mtc-m19@80/2010/01.20.19.25", "package sid.inpe.br/mtc-m19@80/2010/01.20.19.25 at=mtc-m16d.sid.inpe.br");
    reads("http://urlib.net/ibi/8JMKD3MGP3W34P/3KQ6LRH", "item 8JMKD3MGP3W34P/3KQ6LRH");
    reads("http://urlib.net/ibi/8JMKD3MGP3W34T/47GAF6S", "item 8JMKD3MGP3W34T/47GAF6S");
    reads("http://mtc-m16c.sid.inpe.br/ibi/8JMKD3MGPDW34P/4888LHB", "item 8JMKD3MGPDW34P/4888LHB at=mtc-m16c.sid.inpe.br");
    reads("http://urlib.net/ibi/8JMKD3MGP3W34P/3PR3GSS", "item 8JMKD3MGP3W34P/3PR3GSS");
    reads("http://mtc-m16c.sid.inpe.br/ibi/8JMKD3MGPDW34P/4ADE2M8", "item 8JMKD3MGPDW34P/4ADE2M8 at=mtc-m16c.sid.inpe.br");
    reads("http://urlib.net/8JMKD3MGP3W34P/3PAAHQ5", "item 8JMKD3MGP3W34P/3PAAHQ5");
    reads("http://urlib.net/sid.inpe.br/mtc-m19/2012/02.08.16.24", "item sid.inpe.br/mtc-m19/2012/02.08.16.24");
    reads("http://urlib.net/sid.inpe.br/mtc-m18@80/2008/07.18.13.38", "item sid.inpe.br/mtc-m18@80/2008/07.18.13.38");
    reads("http://urlib.net/sid.inpe.br/mtc-m19/2013/02.26.14.44", "item sid.inpe.br/mtc-m19/2013/02.26.14.44");
    reads("ibi:8JMKD3MGP3W34R/3UGHFGH", "item 8JMKD3MGP3W34R/3UGHFGH");
    reads("sid.inpe.br/mtc-m19/2012/05.10.21.43-TDI", "item sid.inpe.br/mtc-m19/2012/05.10.21.43 key=TDI");
    reads("sid.inpe.br/mtc-m19/2011/08.02.16.43-TDI", "item sid.inpe.br/mtc-m19/2011/08.02.16.43 key=TDI");
}

#[test]
#[rustfmt::skip] // one case, one line
fn what_follows_an_identifier() {
    reads("http://urlib.net/8JMKD3MGP8W/34PGRBS??", "item 8JMKD3MGP8W/34PGRBS request=:");
    reads("8JMKD3MGP8W/34PGRBS!??", "item 8JMKD3MGP8W/34PGRBS request=!:");
    reads("8JMKD3MGP8W/34PGRBS!+(pt)/a/b%20c", "file 8JMKD3MGP8W/34PGRBS request=!+(pt) path=a/b%20c");
    reads("http://urlib.net/sid.inpe.br/mtc-m18@80/2009/02.16.17.46?GetFileList", "filelist sid.inpe.br/mtc-m18@80/2009/02.16.17.46 request=?GetFileList");
    reads("http://a.b/8JMKD3MGP8W/34PGRBS?ibiurl.verblist=GetLastEdition+GetMetadata&ibiurl.requireditemstatus=Original", "item 8JMKD3MGP8W/34PGRBS at=a.b request=!: original=yes");
    reads("8JMKD3MGP8W/34PGRBS/Relat%f3rio%20Final.pdf", "file 8JMKD3MGP8W/34PGRBS path=Relat%F3rio%20Final.pdf");
    reads("http://a.b/rep/8JMKD3MGP8W/34PGRBS?languagebutton", "item 8JMKD3MGP8W/34PGRBS at=a.b");
    reads("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46#top", "item sid.inpe.br/a/2009/02.16.17.46 at=a.b navigates=#");
    reads("ibi:sid.inpe.br/a/2009/02.16.17.46:", "item sid.inpe.br/a/2009/02.16.17.46 request=:");
}

#[test]
#[rustfmt::skip] // one case, one line
fn other_spellings() {
    reads("HTTP://WWW.urlib.NET:80/rep/8jmkd3mgp8w/34pgrbs", "item 8jmkd3mgp8w/34pgrbs at=www.urlib.net:80");
    reads("https://urlib.net/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS");
    reads("urlib.net/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS");
    reads("www.urlib.net:80/rep/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS at=www.urlib.net:80");
    reads("/8JMKD3MGP8W//34PGRBS/", "item 8JMKD3MGP8W/34PGRBS");
    reads("dpi.inpe.br:banon:1997:08.28.18.55", "item dpi.inpe.br/banon/1997/08.28.18.55");
    reads("dpi.inpe.br:banon:1997:08.28.18.55:(oai_dc)", "item dpi.inpe.br/banon/1997/08.28.18.55 request=:(oai_dc)");
    reads("UPN:lcetb2-:dpi.inpe.br/sbsr@80/2006/11.12.23.09/doc/x", "file dpi.inpe.br/sbsr@80/2006/11.12.23.09 upn=LCETB2 path=doc/x");
    reads("upn:LCETB2-:dpi.inpe.br/sbsr@80/2006/11.12.23.09", "filelist dpi.inpe.br/sbsr@80/2006/11.12.23.09 upn=LCETB2");
    reads("http://a.b/rep-/sid.inpe.br/marciana/2004/10.07", "level sid.inpe.br/marciana/2004/10.07 at=a.b");
    reads("http://a.b/ibi-/sid.inpe.br", "level sid.inpe.br at=a.b");
    reads("http://a.b/rep/sid.inpe.br/marciana/2004/", "level sid.inpe.br/marciana/2004 at=a.b");
    reads("/rep/sid.inpe.br/", "level sid.inpe.br");
    reads("/rep/8JMKD3MGP8W/34PGRBS/", "item 8JMKD3MGP8W/34PGRBS");
    reads("upn:LCETB2:/dpi.inpe.br/sbsr@80/2006/11.12.23.09", "item dpi.inpe.br/sbsr@80/2006/11.12.23.09 upn=LCETB2");
    reads("http://urlib.net/upn:RFF2E5-:/8JMKD3MGPCW/3EUFCFP/b", "file 8JMKD3MGPCW/3EUFCFP upn=RFF2E5 path=b");
}

/// Links as they stand in running text, in the source of pages and in parameters of other links.
#[test]
#[rustfmt::skip] // one case, one line
fn links_as_they_are_found() {
    let item = "item 8JMKD3MGP8W/34PGRBS";
    for text in [
        " 8JMKD3MGP8W/34PGRBS\n", "\u{feff}8JMKD3MGP8W/34PGRBS\u{a0}", "8JMKD3MGP8W/34PGRBS.", "8JMKD3MGP8W/34PGRBS,",
        "8JMKD3MGP8W/34PGRBS).", "\"8JMKD3MGP8W/34PGRBS\",", "“8JMKD3MGP8W/34PGRBS”", "(ibi:8JMKD3MGP8W/34PGRBS)",
        "<http://urlib.net/8JMKD3MGP8W/34PGRBS>", "<URL:http://urlib.net/rep/8JMKD3MGP8W/34PGRBS>.", "URL: urlib.net/8JMKD3MGP8W/34PGRBS",
        "<URL: http://urlib.net/ibi/8JMKD3MGP8W/34PGRBS >", "https://urlib.net:443/8JMKD3MGP8W/34PGRBS/", "HTTPS://URLIB.NET/8JMKD3MGP8W/34PGRBS;",
        "8JMKD3MGP8W%2F34PGRBS", "ibi%3A8JMKD3MGP8W%2F34PGRBS", "http%3A%2F%2Furlib.net%2F8JMKD3MGP8W%2F34PGRBS", "//urlib.net/8JMKD3MGP8W/34PGRBS",
        "HTTP%3a%2f%2Furlib.net%2frep%2f8JMKD3MGP8W%2f34PGRBS", "ibi:/8JMKD3MGP8W/34PGRBS", "ibi://8JMKD3MGP8W/34PGRBS", "IBI:8JMKD3MGP8W/34PGRBS",
        "./ibi:8JMKD3MGP8W/34PGRBS", "../ibi:8JMKD3MGP8W/34PGRBS", "8JMKD3MGP8W/x/../34PGRBS", "8JMKD3MGP8W/%2e%2e/./8JMKD3MGP8W/34PGRBS",
        "http://urlib.net/8JMKD3MGP8W/34PGRBS?", "http://urlib.net/ibi/ibi:8JMKD3MGP8W/34PGRBS",
    ] {
        reads(text, item);
    }
    reads("ibi:8jmkd3mgp8w/34pgrbs", "item 8jmkd3mgp8w/34pgrbs");
    reads("localhost:8080/rep/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS at=localhost:8080");
    reads("http://[2001:db8::1]:8080/rep/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS at=[2001:db8::1]:8080");
    reads("http://www.urlib.net/8JMKD3MGP8W/34PGRBS", "item 8JMKD3MGP8W/34PGRBS at=www.urlib.net");
    reads("8JMKD3MGP8W/34PGRBS!.", "item 8JMKD3MGP8W/34PGRBS request=!");
    reads("8JMKD3MGP8W/34PGRBS+(pt-BR)),", "item 8JMKD3MGP8W/34PGRBS request=+(pt-BR)");
    reads("8JMKD3MGP8W/34PGRBS%3A%28BibINPE%29", "item 8JMKD3MGP8W/34PGRBS request=:(BibINPE)");
    reads("8JMKD3MGP8W/34PGRBS%2B(pt)", "item 8JMKD3MGP8W/34PGRBS request=+(pt)");
    reads("sid.inpe.br/mtc-m18%4080/2009/02.16.17.46", "item sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
    reads("http://urlib.net/sid.inpe.br%2Fmtc-m18%4080%2F2009%2F02.16.17.46:", "item sid.inpe.br/mtc-m18@80/2009/02.16.17.46 request=:");
    reads("SID.inpe.BR/MTC-m13@80/2009/02.16.17.46.", "item SID.inpe.BR/MTC-m13@80/2009/02.16.17.46");
    reads("dpi.inpe.br%3Abanon%3A1997%3A08.28.18.55", "item dpi.inpe.br/banon/1997/08.28.18.55");
    reads("dpi.inpe.br:banon-pc2@80:2006:08.30.19.42.", "item dpi.inpe.br/banon-pc2@80/2006/08.30.19.42");
    reads("upn%3ALCETB2%3Adpi.inpe.br/sbsr@80/2006/11.12.23.09", "item dpi.inpe.br/sbsr@80/2006/11.12.23.09 upn=LCETB2");
    reads("./upn:RFF2E5-:8JMKD3MGPCW/3EUFCFP/a b.html#x", "file 8JMKD3MGPCW/3EUFCFP upn=RFF2E5 path=a%20b.html navigates=#");
    // A relative link, as a browser asks for it.
    reads("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/ibi:8JMKD3MGP8W/34PGRBS!", "item 8JMKD3MGP8W/34PGRBS at=a.b request=!");
    reads("/col/sid.inpe.br/a/2009/02.16.17.46/doc/x/upn:RFF2E5:8JMKD3MGPCW/3EUFCFP/b.html", "file 8JMKD3MGPCW/3EUFCFP upn=RFF2E5 path=b.html");
    reads("/8JMKD3MGP8W/34PGRBS/ibi:8JMKD3MGPCW/3EUFCFP", "item 8JMKD3MGPCW/3EUFCFP");
    reads("8JMKD3MGP8W/34PGRBS/ibi:notes/x", "file 8JMKD3MGP8W/34PGRBS path=ibi:notes/x");
    // The text after the name of a file belongs to it: the file may be named so.
    reads("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/Relatório final.pdf", "file sid.inpe.br/a/2009/02.16.17.46 at=a.b path=doc/Relat%C3%B3rio%20final.pdf");
    reads("8JMKD3MGP8W/34PGRBS/a%2Fb%2525.txt.", "file 8JMKD3MGP8W/34PGRBS path=a/b%2525.txt.");
    // Parameters in any order, as in the source of a page, encoded.
    reads("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/mirrorget.cgi?choice=full&amp;metadatarepository=sid.inpe.br/b/2009/02.16.17.46&amp;x=y", "record sid.inpe.br/b/2009/02.16.17.46 at=a.b navigates=choice,x");
    reads("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/mirrorget.cgi?metadatarepository=sid.inpe.br%2Fb%2F2009%2F02.16.17.46", "record sid.inpe.br/b/2009/02.16.17.46 at=a.b");
    reads("http://a.b/8JMKD3MGP8W/34PGRBS:(BibINPE)?languagebutton=en&ibiurl.backgroundlanguage=en", "item 8JMKD3MGP8W/34PGRBS at=a.b request=:(BibINPE) navigates=languagebutton,ibiurl.backgroundlanguage");
    reads("http://a.b/rep/sid.inpe.br/a/2009/02.16.17.46!:(BibINPE)?x=y#z", "item sid.inpe.br/a/2009/02.16.17.46 at=a.b request=!:(BibINPE) navigates=x,#");
    reads("http://a.b/archive.cgi/8JMKD3MGP8W/34PGRBS+", "package 8JMKD3MGP8W/34PGRBS at=a.b request=+");
    for modifier in [":", ":+", "!", "!+", "!:", "!+:", "!:+", "!+:+", "+", "+!", "+:", "+!:", "+:+", "+!:+", "+(pt)!:(oai_dc)"] {
        for before in ["http://a.b/col/sid.inpe.br/b/2009/02.16.17.46/doc/goto-/", "http://a.b/rep/", "http://a.b/"] {
            reads(&format!("{before}sid.inpe.br/a/2009/02.16.17.46{modifier}"), &format!("item sid.inpe.br/a/2009/02.16.17.46 at=a.b request={modifier}"));
        }
    }
    for (keyword, kind) in [("archive.cgi", "package"), ("attachment.cgi", "download"), ("rep-", "filelist"), ("col", "item")] {
        reads(&format!("http://a.b/{keyword}/ibi:8JMKD3MGP8W/34PGRBS"), &format!("{kind} 8JMKD3MGP8W/34PGRBS at=a.b"));
    }
    // Case counts in base 53, and a prefix that stands for no address is kept.
    assert!(read("6qtX3pFwXQZGivnK2Y/TLEBl").starts_with("no identifier in"));
    reads("http://a.b/rep/83LX3W/34PGRBS", "item 83LX3W/34PGRBS at=a.b");
    // Signs of modifiers are not punctuation, and what is wrong stays so.
    for text in ["8JMKD3MGP8W/34PGRBS!!", "8JMKD3MGP8W/34PGRBS::", "8JMKD3MGP8W/34PGRBS?GetNothing.", "(", "<URL:>", "...", "ibi:.", "text/data"] {
        assert!(PersistentName::parse(text).is_err(), "{text}");
    }
}

/// Links as printed pages, word processors and extracted text have them. A text with two readings is
/// refused.
#[test]
#[rustfmt::skip] // one case, one line
fn links_as_they_are_printed() {
    for text in [
        "http：//urlib.net/8JMKD3MGP8W/34PGRBS", "ibi：8JMKD3MGP8W/34PGRBS", "8JMKD3MGP8W／34PGRBS", "8JMKD3MGP8W∕34PGRBS.",
        "http://urlib.net/rep/\n8JMKD3MGP8W/34PGRBS", "http://urlib.net/8JMKD3MGP8W/\r\n  34PGRBS", "http://urlib.net/ 8JMKD3MGP8W/\u{a0}34PGRBS",
        "8JMKD3MGP8W /34PGRBS", "8JMKD3MGP8W/\u{200b}34PGRBS", "IBI: 8JMKD3MGP8W/34PGRBS", "ibi:\n8JMKD3MGP8W/34PGRBS.", "<http://urlib.net/rep/\n8JMKD3MGP8W/34PGRBS>.",
        "oai:urlib.net:8JMKD3MGP8W/34PGRBS", "OAI:urlib.net:8JMKD3MGP8W/34PGRBS", "http://urlib.net./8JMKD3MGP8W/34PGRBS",
    ] {
        reads(text, "item 8JMKD3MGP8W/34PGRBS");
    }
    for hyphen in ['‐', '‑', '‒', '–', '−', '－'] {
        reads(&format!("sid.inpe.br/mtc{hyphen}m18@80/2009/02.16.17.46"), "item sid.inpe.br/mtc-m18@80/2009/02.16.17.46");
    }
    reads("sid.inpe.br/mtc-m18＠80/2009/\n02.16.17.46-TDI", "item sid.inpe.br/mtc-m18@80/2009/02.16.17.46 key=TDI");
    reads("sid.inpe.br:mtc-m19:2012:05.10.21.43-TDI", "item sid.inpe.br/mtc-m19/2012/05.10.21.43 key=TDI");
    reads("oai:a.b:sid.inpe.br/mtc-m18@80/2009/02.16.17.46", "item sid.inpe.br/mtc-m18@80/2009/02.16.17.46 at=a.b");
    reads("8JMKD3MGP8W/34PGRBS/a – b：c.pdf", "file 8JMKD3MGP8W/34PGRBS path=a%20%E2%80%93%20b%EF%BC%9Ac.pdf");
    for text in [
        // A file whose name may have been mended, too.
        "http://a.b/col/sid.inpe.br/mtc–m18@80/2009/02.16.17.46/doc/a–b.pdf", "8JMKD3MGP8W/ 34PGRBS/a",
        // The hyphen of a line that ends, the number of seconds, another word.
        "sid.inpe.br/mtc-\nm18@80/2009/02.16.17.46", "sid.inpe.br/mtc\u{ad}m18@80/2009/02.16.17.46", "sid.inpe.br/a/2009/02.16.17.46.\n12",
        "8JMKD3MGP8W/34PGRBS and others", "8JMKD3MGP8W/34PGRBS 8JMKD3MGPCW/3EUFCFP", "8JMKD3MGP8W/34PGRBS, 8JMKD3MGPCW/3EUFCFP",
        "8JMKD3MGP8W/34PGRBS / 8JMKD3MGPCW/3EUFCFP", "8JMKD3MGP8W/34PGRBS :", "8JMKD3MGP8W 34PGRBS", "8JMKD3MGP8W-34PGRBS",
        // Names of other systems, and addresses that are none.
        "10.1000/182", "https://doi.org/10.1000/182", "https://hdl.handle.net/20.500.12345/678", "INPE-7116-TDI/672",
        "http://a.b:80:80/8JMKD3MGP8W/34PGRBS", "http://user:pw@a.b/8JMKD3MGP8W/34PGRBS", "oai:8JMKD3MGP8W/34PGRBS", "oai:a.b:x",
        "https://www.google.com/url?q=http://urlib.net/8JMKD3MGP8W/34PGRBS", "https://web.archive.org/web/2020/http://urlib.net/8JMKD3MGP8W/34PGRBS",
    ] {
        assert!(PersistentName::parse(text).is_err(), "{text}: {}", read(text));
    }
    for text in ["doi:10.1000/182", "hdl:2263/8JMKD3MGP8W", "isbn:978/8JMKD3MGP8W/34PGRBS"] {
        assert!(read(text).starts_with("scheme '"), "{}", read(text));
    }
    assert!(read("sid.inpe.br/mtc-m19@80/2010/1.20.19.25").contains("of rep 'sid.inpe.br/mtc-m19@80/2010/1.20.19.25'"));
}

#[test]
#[rustfmt::skip] // one case, one line
fn what_holds_no_identifier_is_refused() {
    let remedy = "write four components, as in sid.inpe.br/mtc-m18@80/2009/02.16.17.46, or two, as in 8JMKD3MGP8W/34PGRBS";
    reads("", "empty persistent name");
    reads("/", &format!("no identifier in '/'; {remedy}"));
    reads("http://urlib.net/rep/", &format!("no identifier in 'http://urlib.net/rep/'; {remedy}"));
    reads("http://urlib.net/index.html", &format!("no identifier in 'http://urlib.net/index.html'; {remedy}"));
    reads("upn:LCETB2", &format!("no identifier in 'upn:LCETB2'; {remedy}"));
    reads("http://a.b/rep/foo/bar", "no identifier in 'http://a.b/rep/foo/bar': character 'o' in the prefix at byte 2 of IBIp 'foo/bar' does not belong there: only 2 to 9 and letters except I, O, V, Y and Z do");
    reads("http://a.b/sid.inpe.br/a/2009/02.30.17.46", "no identifier in 'http://a.b/sid.inpe.br/a/2009/02.30.17.46': day '30' at byte 23 of rep 'sid.inpe.br/a/2009/02.30.17.46' does not exist in month 02 of the year 2009");
    reads("mailto:x@y", "scheme 'mailto' is not one of persistent names; they begin with http, https, ibi, upn or oai");
    reads("http:a.b", "'a.b' is not a host and a port");
    reads("http://", "'' is not a host and a port");
    reads("http://a:99999/8JMKD3MGP8W/34PGRBS", "'a:99999' is not a host and a port");
    reads("http://a.b/upn:abc:8JMKD3MGP8W/34PGRBS", "name space 'abc' of a upn name is not six letters and digits");
    reads("http://a.b/8JMKD3MGP8W/34PGRBS?ibiurl.requireditemstatus=Copy", "ibiurl.requireditemstatus is 'Copy'; it can be Original");
    for text in [
        "sid.inpe.br/mtc-m19/2012/05.10.21.43-tdi",
        "sid.inpe.br/mtc-m19/2012/05.10.21.43-",
        "http://a.b/rep-/sid.inpe.br/marciana/2004/10.x7",
        "http://a.b/rep-/sid.inpe.br/marciana/2004/10.7",
        "http://a.b/rep-/sid.inpe.br/marciana/2004/10.07.14.05.06.07.08",
        "http://a.b/rep-/sid.inpe.br/marciana/10.07",
    ] {
        assert!(read(text).starts_with("no identifier in"), "{text}: {}", read(text));
    }
    assert!(read("8JMKD3MGP8W/34PGRBS?GetNothing").contains("GetNothing"));
    assert!(read("http://a.b/col/sid.inpe.br/a/2009/02.16.17.46/doc/mirrorget.cgi?metadatarepository=x").starts_with("no identifier in 'x'"));
}

#[test]
fn an_error_has_its_source() {
    let source = |text: &str| {
        let error = PersistentName::parse(text).expect_err(text);
        let source = std::error::Error::source(&error);
        source.map(|source| source.to_string())
    };
    let identifier = Ibi::parse("foo/bar").expect_err("not an IBIp").to_string();
    assert_eq!(source("http://a.b/rep/foo/bar"), Some(identifier));
    let verb = source("8JMKD3MGP8W/34PGRBS?GetNothing").expect("a modifier");
    assert!(verb.contains("GetNothing"), "{verb}");
    assert_eq!(source(""), None);
    assert_eq!(source("mailto:x@y"), None);
}

#[test]
fn names_of_a_filesystem_are_literal() {
    let name = Reader::new().literal().parse("8JMKD3MGP8W/34PGRBS/a%20b#c");
    assert_eq!(name.expect("good").path, b"a%20b#c");
}

#[test]
fn aliases_are_taken_where_they_are_looked_up() {
    let reader = Reader::new().with_aliases();
    let name = reader.parse("http://a.b/LK47B6/x1").expect("an alias");
    assert_eq!(name.identifier.to_string(), "LK47B6/x1");
    assert!(matches!(name.identifier, Identifier::Alias(_)));
    assert!(reader.parse("http://a.b/rep/only").is_err());
}
