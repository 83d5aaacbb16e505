use super::*;

#[test]
fn settings_may_be_written_in_many_ways() {
    for text in [
        "a = 1; b = \"x\";",
        "a=1 b=\"x\"",
        "a : 1, b : \"x\",",
        "a\n=\n1\nb = \"x\"",
        "# c\na = 1 # c\n// c\nb = // c\n \"x\" /* a = 2\n */",
        "\u{feff}a = /* c */ +1;\r\nb = \"x\";\r\n",
    ] {
        assert_eq!(understood(text), "a = 1; b = \"x\";", "{text}");
    }
    assert_eq!(understood(""), "");
    assert_eq!(understood("/**/#"), "");
}

#[test]
fn numbers_and_truth() {
    for (text, value) in [
        ("-5", "-5"),
        ("007", "7"),
        ("5L", "5"),
        ("5LL", "5"),
        ("0x1F", "31"),
        ("0XffL", "255"),
        ("4294967296", "4294967296L"),
        ("9223372036854775807", "9223372036854775807L"),
        ("-9223372036854775808", "-9223372036854775808L"),
        ("1.5", "1.5"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("-1.5E-3", "-0.0015"),
        ("1e5", "100000.0"),
        ("TRUE", "true"),
        ("fAlse", "false"),
    ] {
        assert_eq!(understood(&format!("a = {text};")), format!("a = {value};"));
    }
    for text in [
        "99999999999999999999",
        "0x",
        "0x+5",
        "0xFFFFFFFFFFFFFFFFF",
        "--1",
        "1.5L",
        "1-2",
        "1b",
        "0b11",
        "1e999",
        "inf",
        ".",
        "+",
        "",
        "tru",
    ] {
        let said = refused(&format!("\na = {text};"));
        assert!(said.starts_with("p.cnf:2: a: ") && said.contains("expected"), "{text}: {said}");
    }
}

#[test]
fn strings() {
    for (text, value) in [
        (r#""""#, ""),
        (r#""a" "b" /* c */ "c""#, "abc"),
        ("\"a\"\n\"b\"", "ab"),
        (r#""\"\\\n\r\t\f\x41\xc3\xa9""#, "\"\\\n\r\t\x0cAé"),
        // A backslash before anything else is one: regular expressions are full of them.
        (r#""^\d+\s\b\/\x4\xzz""#, r"^\d+\s\b\/\x4\xzz"),
        ("\"two\nlines # no comment // none\"", "two\nlines # no comment // none"),
        ("\"日本 ü\"", "日本 ü"),
    ] {
        assert_eq!(text_of(&parse(&format!("a = {text}")).unwrap()), value, "{text}");
    }
    assert_eq!(
        refused("a = 1;\nb = \"open\n\n"),
        "p.cnf:2: b: the string that begins here has no end: a \" is missing"
    );
    assert!(refused("a = \"\\xff\"").contains("UTF-8"));
}

#[test]
fn groups_lists_and_arrays_stand_in_each_other() {
    assert_eq!(
        understood("a = { b = ( { c = [1, 2] }, (), 5, \"x\", ); d = {} }"),
        "a = { b = ( { c = [ 1, 2 ]; }, (), 5, \"x\" ); d = { }; };"
    );
    // In a list without a comma strings are one string, as everywhere.
    assert_eq!(understood("a = (\"x\" \"y\")"), "a = ( \"xy\" );");
}

#[test]
fn mistakes_are_named_with_file_line_and_setting() {
    for (text, said) in [
        ("a = 1;\nb 2;", "p.cnf:2: b: = is expected"),
        ("a = 1;\na = 2;", "p.cnf:2: a: stands here a second time; the first is in line 1"),
        ("s = {\n a = 1;\n a = 2;\n}", "p.cnf:3: s.a: stands here a second time; the first is in line 2"),
        ("s = ( { a = 1 }\n { a = 2 } )", "p.cnf:2: s: a comma or ) is expected"),
        ("s = [1 2]", "p.cnf:1: s: a comma or ] is expected"),
        ("s = (1,,2)", "p.cnf:1: s: a value is expected; text stands in double quotes"),
        ("s = [(1)]", "p.cnf:1: s: an array [ ] cannot hold a list ( ); a list ( ) can"),
        ("s = {\n a = 1;\n", "p.cnf:3: s: `name = value` or } is expected"),
        ("s = ( 1,", "p.cnf:1: s: a value is expected; text stands in double quotes"),
        ("a = 1;; b = 2", "p.cnf:1: `name = value` or the end of the file is expected"),
        ("a = 1; }", "p.cnf:1: `name = value` or the end of the file is expected"),
        ("= 1", "p.cnf:1: `name = value` or the end of the file is expected"),
        ("a = 1\n/* open", "p.cnf:2: a: the comment that begins here has no end: */ is missing"),
        ("a = $x", "p.cnf:1: a: a character that belongs to nothing; text stands in double quotes"),
        ("a = \"x\" b", "p.cnf:1: a: ; or another setting is expected behind the value"),
        ("é = 1", "p.cnf:1: a character that belongs to nothing; text stands in double quotes"),
    ] {
        assert_eq!(refused(text), said, "{text}");
    }
}

#[test]
fn what_stands_in_the_wrong_place_is_never_repeated() {
    for text in [
        "password = hush;",
        "password = \"a\" hush \"b\"",
        "password = hush\"",
        "password \"hush\"",
        "p = ( { password = hush } )",
        "p = { \"hush\" = 1 }",
        "password = 5hush",
    ] {
        let said = refused(text);
        assert!(!said.contains("hush"), "{text}: {said}");
    }
}

#[test]
fn depth_is_bounded() {
    let nested = |depth: usize| format!("a = {}{}", "(".repeat(depth), ")".repeat(depth));
    parse(&nested(32)).unwrap();
    assert!(refused(&nested(33)).contains("more than 32"));
    assert!(refused(&nested(1_000_000)).contains("more than 32"));
    assert!(refused(&"a={".repeat(100_000)).contains("more than 32"));
}

#[test]
fn included_text_stands_where_it_is_included() {
    let mut asked = Vec::new();
    let mut include = |from: &str, path: &str| {
        asked.push((from.to_owned(), path.to_owned()));
        let text = match path {
            "one" => "b = 2;\n@include \"two\"\n",
            "two" => "c = 3",
            "wrong" => "\n\nd = ;",
            _ => return Err(format!("{path}: gone")),
        };
        Ok(Source { name: format!("dir/{path}"), text: text.into() })
    };
    let mut read = |text: &str| {
        parser::parse(Source { name: "p.cnf".into(), text: text.into() }, &mut include)
            .map(|settings| {
                settings.iter().map(|s| format!("{} {}", s.name, s.place.line)).collect::<Vec<_>>()
            })
            .map_err(|fault| fault.to_string())
    };
    assert_eq!(read("a = 1;\n  @include \"one\"\nd = 4;").unwrap(), ["a 1", "b 1", "c 1", "d 3"]);
    assert_eq!(read("s = {\n@include \"one\"\n}").unwrap(), ["s 1"]);
    assert!(read("@include \"wrong\"").unwrap_err().starts_with("dir/wrong:3: d: a value"));
    assert_eq!(read("\n@include \"none\"").unwrap_err(), "p.cnf:2: @include: none: gone");
    for text in ["a = 1; @include \"one\"", "@include one", "@incl \"one\"", "@include\n\"one\""] {
        assert!(read(text).unwrap_err().contains("nothing before it in its line"), "{text}");
    }
    assert_eq!(asked[1], ("dir/one".to_owned(), "two".to_owned()));
}

#[test]
fn inclusion_is_bounded() {
    let read = |text: &'static str, each: &'static str| {
        let mut include = |_: &str, _: &str| Ok(Source { name: "again".into(), text: each.into() });
        parser::parse(Source { name: "p.cnf".into(), text: text.into() }, &mut include)
    };
    let said = read("@include \"again\"", "@include \"again\"").unwrap_err().to_string();
    assert!(said.starts_with("again:1: ") && said.contains("10 deep"), "{said}");
    let many: &'static str = Box::leak("@include \"x\"\n".repeat(101).into_boxed_str());
    assert!(read(many, "").unwrap_err().to_string().starts_with("p.cnf:101: "));
    let large: &'static str = Box::leak("# \n".repeat(2 << 20).into_boxed_str());
    let said = read("@include \"a\"\n@include \"b\"\n@include \"c\"", large).unwrap_err().to_string();
    assert!(said.contains("16 MiB"), "{said}");
}
