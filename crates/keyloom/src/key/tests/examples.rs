//! Single cases that a reader would want to see, and refusals with their words.

use std::ops::Bound;

use serde_json::{Value, json};

use super::{key, template, try_template};
use crate::engine::{Area, Direction, Part, Range};
use crate::key::{CodePattern, Codec, Kind, Path, Pattern, Span, Template, common_key, recipe};

fn enum_of(values: &[&str]) -> Kind {
    Kind::Enum { values: values.iter().copied().map(String::from).collect() }
}

fn point() -> Kind {
    Kind::Point { lat: "lat".into(), lon: "lon".into() }
}

#[test]
fn one_example_of_every_encoding() {
    let code = || Kind::Code(CodePattern("A-***".into()));
    let uuid = "0f8fad5bd9cb469fa16570867728950e";
    for (placeholder, kind, value, expected) in [
        ("{v}:", Kind::Text, json!("a:b%\n"), "a%3Ab%25%0A:"),
        ("{v sorted}", Kind::Text, json!("a:b!"), "a:b%21!"),
        ("{v sorted}", Kind::Text, json!("\0"), "%00!"),
        ("{v sorted desc}", Kind::Text, json!("a:b"), "9EC59D~"),
        ("{v sorted desc}", Kind::Text, json!(""), "~"),
        ("{v raw}", Kind::Text, json!("a:b%\n"), "a:b%\n"),
        ("{v}", Kind::Integer { digits: 4 }, json!(42), "0042"),
        ("{v}", Kind::Integer { digits: 4 }, json!(-1), "-9999"),
        ("{v}", Kind::Integer { digits: 4 }, json!(-42), "-9958"),
        ("{v}", Kind::Integer { digits: 4 }, json!(-10000), "-0000"),
        ("{v desc}", Kind::Integer { digits: 4 }, json!(42), "-9957"),
        ("{v desc}", Kind::Integer { digits: 4 }, json!(-1), "0000"),
        ("{v}", Kind::Integer { digits: 19 }, json!(i64::MAX), "9223372036854775807"),
        ("{v}", Kind::Integer { digits: 19 }, json!(i64::MIN), "-0776627963145224192"),
        ("{v}", Kind::Float, json!(1.5), "bff8000000000000"),
        ("{v}", Kind::Float, json!(-1.5), "4007ffffffffffff"),
        ("{v desc}", Kind::Float, json!(1.5), "4007ffffffffffff"),
        ("{v}", Kind::Boolean, json!(true), "1"),
        ("{v desc}", Kind::Boolean, json!(true), "0"),
        ("{v}", enum_of(&["open", "shut"]), json!("shut"), "shut"),
        ("{v desc}", enum_of(&["a", "b"]), json!("a"), "9E~"),
        ("{v}", Kind::Timestamp, json!(1674950787234u64), "1674950787234"),
        ("{v desc}", Kind::Timestamp, json!(1674950787234u64), "8325049212765"),
        ("{v}", Kind::DateTime, json!("2024-01-31T23:59:59.999Z"), "2024-01-31T23:59:59.999Z"),
        ("{v desc}", Kind::DateTime, json!("2024-01-31T23:59:59.999Z"), "7975-98-68T76:40:40.000Z"),
        ("{v}", Kind::Uuid { version: Some(4) }, json!(uuid), uuid),
        ("{v desc}", Kind::Uuid { version: None }, json!(uuid), "f07052a42634b9605e9a8f7988d76af1"),
        ("{v}", Kind::Id, json!("01HZXabcdefghijklmnopqrstu"), "01HZXabcdefghijklmnopqrstu"),
        ("{v desc}", Kind::Id, json!("0123456789ABCDEFGHIJKLzzzz"), "zyxwvutsrqponmlkjihgfe0000"),
        ("{v}", code(), json!("A-X7K"), "A-X7K"),
        ("{v desc}", code(), json!("A-X7K"), "A-4UG"),
        ("{v geohash 6}", point(), json!("u4pruy"), "u4pruy"),
        ("{v geohash 6 desc}", point(), json!("u4pruy"), "5vb851"),
    ] {
        let shown = format!("{placeholder} {kind:?}");
        assert_eq!(key(&template(placeholder, &[("v", kind)]), &[value]), expected, "{shown}");
    }
}

#[test]
fn a_whole_number_is_one_with_and_without_a_fraction_of_zero() {
    for (kind, whole, float) in [
        (Kind::Integer { digits: 4 }, json!(-42), json!(-42.0)),
        (Kind::Integer { digits: 19 }, json!(i64::MIN), json!(-9_223_372_036_854_775_808.0)),
        (Kind::Timestamp, json!(0), json!(-0.0)),
        (Kind::Timestamp, json!(1_674_950_787_234_u64), json!(1.674950787234e12)),
    ] {
        for placeholder in ["{v}", "{v desc}"] {
            let template = template(placeholder, &[("v", kind.clone())]);
            assert_eq!(template.encode(&[&float]), template.encode(&[&whole]), "{float}");
            assert!(template.encode(&[&whole]).is_ok());
        }
    }
}

#[test]
fn values_that_do_not_fit_are_refused_with_the_reason() {
    let code = Kind::Code(CodePattern("A-***".into()));
    let uuid = Kind::Uuid { version: Some(4) };
    for (placeholder, kind, value, reason) in [
        ("{v}", Kind::Text, json!(1), "a text is a string"),
        ("{v raw}", Kind::Text, Value::Null, "a text is a string"),
        ("{v}", Kind::Integer { digits: 2 }, json!(100), "a whole number from -100 to 99"),
        ("{v}", Kind::Integer { digits: 2 }, json!(-101), "a whole number from -100 to 99"),
        ("{v}", Kind::Integer { digits: 2 }, json!(1.5), "a whole number from -100 to 99"),
        ("{v}", Kind::Integer { digits: 19 }, json!(1e19), "to 9223372036854775807"),
        ("{v}", Kind::Integer { digits: 19 }, json!(u64::MAX), "to 9223372036854775807"),
        ("{v}", Kind::Float, json!((1u64 << 53) + 1), "no 64-bit float is exactly"),
        ("{v}", Kind::Float, json!(u64::MAX), "no 64-bit float is exactly"),
        ("{v}", Kind::Float, json!("1"), "a float is a number"),
        ("{v}", Kind::Boolean, json!(0), "true or false"),
        ("{v}", enum_of(&["a", "b"]), json!("c"), "the allowed values are a, b"),
        ("{v}", enum_of(&["a", "b"]), json!(7), "the allowed values are a, b"),
        ("{v}", Kind::Timestamp, json!(-1), "milliseconds since 1970, from 0 to 9999999999999"),
        ("{v}", Kind::Timestamp, json!("soon"), "a whole number of milliseconds since 1970"),
        ("{v}", Kind::Timestamp, json!("2024-01-31"), "; this one is 1706659200000"),
        ("{v}", Kind::Timestamp, json!(10_000_000_000_000u64), "0 to 9999999999999"),
        ("{v}", Kind::Timestamp, json!(1.5), "0 to 9999999999999"),
        ("{v}", Kind::Timestamp, json!(-1.0), "0 to 9999999999999"),
        ("{v}", Kind::DateTime, json!("2023-02-29T00:00:00.000Z"), "there is no such moment"),
        ("{v}", Kind::DateTime, json!("2024-02-29T00:00:00Z"), "this has 20 characters"),
        ("{v}", Kind::DateTime, json!("2024-02-29 00:00:00.000Z"), "character 11 is ' '"),
        ("{v}", Kind::DateTime, json!("2024-02-29"), "first moment is 2024-02-29T00:00:00.000Z"),
        ("{v}", uuid, json!("0f8fad5bd9cb169fa16570867728950e"), "character 13 is '1'"),
        ("{v}", Kind::Id, json!("0123456789ABCDEFGHIJKLzzz-"), "character 26 is '-'"),
        ("{v}", code.clone(), json!("A-X0K"), "character 4 is '0'"),
        ("{v}", code, json!("B-X7K"), "written as A-***"),
        ("{v geohash 6}", point(), json!({"lat": 91, "lon": 0}), "lat from -90 to 90"),
        ("{v geohash 6}", point(), json!({"lat": 0}), "lon from -180 to 180"),
        ("{v geohash 6}", point(), json!("u4pru"), "this has 5 characters"),
        ("{v geohash 6}", point(), json!("u4prua"), "character 6 is 'a'"),
    ] {
        let refusal = template(placeholder, &[("v", kind)]).encode(&[&value]).unwrap_err();
        assert!(refusal.reason.contains(reason), "{value}: {}", refusal.reason);
        assert_eq!(refusal.path.unwrap().to_string(), "v");
        assert_eq!(refusal.value, value.to_string());
    }
}

#[test]
fn bytes_that_encoding_never_writes_do_not_decode() {
    let long = Kind::Integer { digits: 19 };
    let uuid = Kind::Uuid { version: Some(4) };
    for (placeholder, kind, bytes) in [
        ("{v}:", Kind::Text, "a%3ab:"),
        ("{v}:", Kind::Text, "a%41b:"),
        ("{v}:", Kind::Text, "a%3:"),
        ("{v}:", Kind::Text, "a%:"),
        ("{v}:", Kind::Text, "a\u{7f}:"),
        ("{v}:", Kind::Text, "a::"),
        ("x:{v}", Kind::Text, "x:a:b"),
        ("{v sorted}", Kind::Text, "a b!"),
        ("{v sorted}", Kind::Text, "a%26!"),
        ("{v sorted}", Kind::Text, "a"),
        ("{v sorted desc}", Kind::Text, "9e~"),
        ("{v sorted desc}", Kind::Text, "9~"),
        ("{v sorted desc}", Kind::Text, "00~"),
        ("{v}", Kind::Integer { digits: 2 }, "+5"),
        ("{v}", Kind::Integer { digits: 2 }, "5"),
        ("{v}", long.clone(), "9223372036854775808"),
        ("{v}", long, "-0776627963145224191"),
        ("{v}", Kind::Float, "7fffffffffffffff"),
        ("{v desc}", Kind::Float, "8000000000000000"),
        ("{v}", Kind::Float, "fff0000000000000"),
        ("{v}", Kind::Float, "000fffffffffffff"),
        ("{v}", Kind::Float, "BFF8000000000000"),
        ("{v}", Kind::Boolean, "2"),
        ("{v}", enum_of(&["a", "b"]), "c"),
        ("{v}", enum_of(&["a", "b"]), ""),
        ("{v}", Kind::Timestamp, "123456789012"),
        ("{v}", Kind::DateTime, "2023-02-29T00:00:00.000Z"),
        ("{v desc}", Kind::DateTime, "7976-97-70T99:99:99.999Z"),
        ("{v}", uuid, "0f8fad5bd9cb169fa16570867728950e"),
        ("{v geohash 2}", point(), "ua"),
    ] {
        let template = template(placeholder, &[("v", kind)]);
        assert_eq!(template.decode(bytes.as_bytes()), None, "{bytes} of {placeholder}");
        assert!(!template.automaton.accepts(bytes.as_bytes()), "{bytes} of {placeholder}");
    }
}

#[test]
fn keys_outside_the_portable_limits_are_refused_with_their_longest_text() {
    let any = template("{v raw}", &[]);
    let refusal = any.encode(&[&json!("")]).unwrap_err();
    assert_eq!((refusal.path.unwrap().to_string().as_str(), &*refusal.value), ("v", "\"\""));
    assert!(any.encode(&[&json!("x".repeat(900))]).is_ok());
    let refusal = any.encode(&[&json!("x".repeat(901))]).unwrap_err();
    assert_eq!(refusal.path.unwrap().to_string(), "v");
    assert!(refusal.reason.contains("at most 900 bytes, and this one would have 901"));
    assert_eq!(refusal.value.chars().count(), 81);
    assert_eq!(any.decode(b""), None);
    assert_eq!(any.decode(&[b'x'; 901]), None);
    assert!(any.encode(&[]).is_err());
    assert!(any.prefix(&[&json!("a"), &json!("b")]).is_err());
}

#[test]
fn templates_that_cannot_keep_their_promises_are_refused() {
    let kinds = [
        ("n", Kind::Integer { digits: 5 }),
        ("p", point()),
        ("e", enum_of(&["a", "a!"])),
        ("c", enum_of(&["a:", "a0"])),
        ("d", Kind::Integer { digits: 20 }),
        ("u", Kind::Uuid { version: Some(9) }),
    ];
    for (source, reason) in [
        ("", "the template is empty"),
        ("{a}{b}", "`{a}`: nothing says where it ends"),
        ("{a}x{b}", "`{a}`: what follows it must begin with ASCII punctuation"),
        ("{a}é{b}", "must begin with ASCII punctuation"),
        ("{e}{b}", "`{e}`: nothing says where it ends"),
        ("{a}:{a}", "`a` stands twice"),
        ("{a desc}", "plain text has no order; write `sorted desc`"),
        ("{a raw desc}", "`raw` cannot be `desc`"),
        ("{a sorted raw}", "exclude each other"),
        ("{a raw}:{b}", "nothing can follow it"),
        ("{a raw}:", "nothing can follow it"),
        ("{n sorted}", "`sorted` is for text, and the field is an integer"),
        ("{n raw}", "`raw` is for text, and the field is an integer"),
        ("{n geohash 6}", "`geohash` is for points, and the field is an integer"),
        ("{p}", "a point needs a number of characters"),
        ("{e}:x", "`a` would not be sorted as it is by name against `a!`"),
        ("x:{c}", "`a0` would not be sorted as it is by name against `a:`"),
        ("{d}", "1 to 19 digits, not 20"),
        ("{u}", "versions 1 to 8, not 9"),
    ] {
        let problems = try_template(source, &kinds).unwrap_err();
        assert!(problems.iter().any(|found| found.contains(reason)), "{source}: {problems:?}");
    }
    assert!(try_template("{e}", &kinds).is_ok(), "at the end of a key nothing follows the enum");
    assert!(try_template("{e desc}:x", &kinds).is_ok(), "descending, an enum ends by itself");
    assert!(try_template(&"x".repeat(901), &[]).unwrap_err()[0].contains("more than 900 bytes"));
}

#[test]
fn every_problem_of_a_template_is_given() {
    let pattern = Pattern::parse("{a}{a}:{b raw}:{c}").unwrap();
    let declared = |path: &Path| (path.to_string() != "c").then_some(Kind::Text);
    let problems = Template::new(&pattern, declared).unwrap_err();
    assert_eq!(problems.len(), 4, "{problems:?}");
    assert!(problems.iter().any(|problem| problem == "`{c}`: the field is not declared"));
}

#[test]
fn ranges_as_bytes() {
    let kinds = [("at", Kind::Timestamp), ("n", Kind::Integer { digits: 2 })];
    let range = |template: &Template, equal: &[Value], span: Option<Span>| {
        let equal: Vec<&Value> = equal.iter().collect();
        let range = template.range(&equal, span.as_ref()).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        (text(&range.start), range.end.map(|end| text(&end)).unwrap_or_default())
    };
    let pair = |start: &str, end: &str| (start.to_owned(), end.to_owned());
    let newest = template("q:{who}:{at desc}:{id}", &kinds);
    let ana = || vec![json!("ana")];
    assert_eq!(range(&newest, &[], None), pair("q:", "q;"));
    assert_eq!(range(&newest, &ana(), None), pair("q:ana:", "q:ana;"));
    let since = Span::Between(Bound::Included(json!(5)), Bound::Unbounded);
    assert_eq!(range(&newest, &ana(), Some(since)), pair("q:ana:", "q:ana:9999999999994;"));
    let before = Span::Between(Bound::Unbounded, Bound::Excluded(json!(5)));
    assert_eq!(range(&newest, &ana(), Some(before)), pair("q:ana:9999999999994;", "q:ana;"));
    let starting = Span::Prefix("an".into());
    assert_eq!(range(&newest, &[], Some(starting)), pair("q:an", "q:ao"));

    let last = template("n:{n}", &kinds);
    let above = Span::Between(Bound::Excluded(json!(-5)), Bound::Included(json!(5)));
    assert_eq!(range(&last, &[], Some(above)), pair("n:-95\0", "n:05\0"));
    assert_eq!(range(&last, &[json!(7)], None), pair("n:07", "n:07\0"));
    let nothing = Span::Between(Bound::Included(json!(6)), Bound::Included(json!(5)));
    assert_eq!(range(&last, &[], Some(nothing)), pair("n:06", "n:06"));

    let everything = template("{any raw}", &kinds);
    assert_eq!(everything.range(&[], None).unwrap().end, None);

    let text = template("t:{a}:{b}", &kinds);
    let between = Span::Between(Bound::Included(json!("a")), Bound::Unbounded);
    let refusal = text.range(&[], Some(&between)).unwrap_err();
    assert!(refusal.reason.contains("`sorted`"));
    assert!(last.range(&[], Some(&Span::Prefix("0".into()))).is_err());
    assert!(last.range(&[&json!(7)], Some(&between)).is_err());
}

#[test]
fn a_scan_of_one_collection_seeks_over_the_other() {
    let users = template("user:{userId}", &[]);
    let all = Range::prefix(Area::default_area(), "user:");
    let foreign = b"user:ana:notes:17";
    let up = users.skip(&all, foreign, Direction::Forward);
    assert_eq!((&up.start[..], up.end.as_deref()), (&b"user:ana;"[..], all.end.as_deref()));
    let down = users.skip(&all, foreign, Direction::Backward);
    assert_eq!((&down.start[..], down.end.as_deref()), (&b"user:"[..], Some(&b"user:ana:"[..])));
    // A key that merely stops early is passed by itself.
    let notes = template("user:{userId}:notes:{noteId}", &[]);
    let next = notes.skip(&all, b"user:ana", Direction::Forward);
    assert_eq!(&next.start[..], b"user:ana\0");
}

#[test]
fn templates_that_share_a_key_are_found_with_one() {
    let kinds = [
        ("id", Kind::Id),
        ("uuid", Kind::Uuid { version: Some(4) }),
        ("at", Kind::Timestamp),
        ("day", Kind::DateTime),
        ("f", Kind::Float),
        ("n", Kind::Integer { digits: 13 }),
        ("e", enum_of(&["ana", "bob"])),
    ];
    let common = |a: &str, b: &str| {
        let key = common_key(&template(a, &kinds), &template(b, &kinds));
        key.map(|key| String::from_utf8(key).unwrap())
    };
    let shared = |a: &str, b: &str, key: &str| assert_eq!(common(a, b).as_deref(), Some(key));
    shared("user:{a}", "user:{b}", "user:");
    shared("{a}", "{b raw}", "a");
    shared("user:{a}:notes:{b}", "user:{a}:{b}:{c}", "user::notes:");
    shared("x:{at}", "x:{n}", "x:0000000000000");
    shared("x:{e}:y", "x:{a}:{b}", "x:ana:y");
    shared("shared:config", "shared:{name}", "shared:config");
    shared("k:{raw raw}", "k:é{b}", "k:é");

    let apart = |a: &str, b: &str| assert_eq!(common(a, b), None, "{a} and {b}");
    apart("user:{a}", "user:{a}:notes:{b}");
    apart("user:{a}", "index:{a}");
    apart("x:{id}", "x:{uuid}");
    apart("x:{at}", "x:{at desc}:{id}");
    apart("x:{day}", "x:{day desc}");
    apart("x:{uuid}", "x:{uuid desc}");
    apart("user:{e}:a", "user:{e}:b");
    // A key of both would have 600 letters, escaped to more than 900 bytes by one of them.
    let (long, desc) =
        (format!("{}{{a raw}}", "9E".repeat(440)), "{a sorted desc}~~~~~~~~~~~~~~~~~~~~");
    assert!(common(&long, desc).is_none());
}

#[test]
fn large_templates_and_enums_load() {
    let names: Vec<String> = (0..5_000).map(|number| format!("value_{number:06}")).collect();
    let kinds = [("e", Kind::Enum { values: names })];
    let a = template("k:{e}:{id}", &kinds);
    let b = template("k:{e}:other:{id}", &kinds);
    assert!(common_key(&a, &b).is_none(), "the id escapes what `other:` needs");
    let long = "x".repeat(890);
    let (a, b) = (template(&format!("{long}{{a raw}}"), &[]), template("{b}", &[]));
    assert_eq!(common_key(&a, &b).unwrap(), long.as_bytes());
    let many: String = (0..100).map(|number| format!("{{f{number}}}:")).collect();
    let (a, b) = (template(&many, &[]), template(&many.replace(':', "/"), &[]));
    let key = common_key(&a, &b);
    assert_eq!(key, None, "one ends with a colon, the other with a slash");
}

#[test]
fn recipes_say_only_what_bytes_can() {
    let kinds = [("n", Kind::Integer { digits: 3 }), ("at", Kind::Timestamp)];
    let parts = |index: &str, record: &str| {
        recipe(&template(index, &kinds), &template(record, &kinds), Area::default_area())
            .map(|recipe| (recipe.cuts.len(), recipe.parts))
    };
    let (cuts, found) = parts("i:{who}:{at desc}:{id}", "r:{id}").unwrap();
    assert_eq!((cuts, found.len()), (6, 2));
    assert_eq!(found[1], Part::Field(5));
    let (cuts, found) = parts("i:{id}:{at desc}", "r/{id}").unwrap();
    assert_eq!((cuts, &found[1]), (2, &Part::Recoded { field: 1, separator: Some(b'/') }));
    assert!(parts("i:{n}:{id}", "r:{id}").is_some());
    assert!(parts("i:{n}-{id}", "r:{id}").is_none(), "a sign is not a separator");
    assert!(parts("i:{id}:{n}-{x}", "r:{id}").is_some(), "what stands behind does not matter");
    assert!(parts("i:{at}:{id raw}", "{id raw}").is_some());
    assert!(parts("i:{at}:{id}", "{id raw}").is_none(), "escapes cannot be undone by bytes alone");
    assert!(parts("i:{at}:{id raw}", "r:{id}").is_none());
    assert!(parts("i:{id sorted}:{at}", "r:{id}").is_some());
    assert!(parts("i:{id}:{at desc}", "r:{id}:{at}").is_none());
    assert!(parts("i:{at}", "r:{id}").is_none());
}

#[test]
fn values_of_one_codec_compare_as_their_keys_do() {
    let less = |codec: &Codec, a: Value, b: Value| assert!(codec.compare(&a, &b).is_lt());
    less(&Codec::Integer { digits: 19 }, json!(-5), json!(3));
    less(&Codec::Float, json!(-5), json!(0.5));
    less(&Codec::Boolean, json!(false), json!(true));
    less(&Codec::SortedText, json!("Z"), json!("a"));
    less(&enum_codec(), json!("a"), json!("b"));
    let geohash = Codec::Geohash { chars: 6, lat: "lat".into(), lon: "lon".into() };
    less(&geohash, json!({"lat": 42.6, "lon": -5.6}), json!("u4pruy"));
    assert!(!Codec::Text.is_ordered() && Codec::Raw.is_ordered());
}

fn enum_codec() -> Codec {
    Codec::Enum { values: vec!["b".into(), "a".into()] }
}
