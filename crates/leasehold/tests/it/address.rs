//! The URL of a store, and what is shown of it.

use leasehold::Address;
use leasehold_testkit::{corpus_of_urls, test};

#[test]
fn whatever_address_is_given_its_password_is_not_shown() {
    corpus_of_urls(include_str!("../../corpus/addresses.txt"), |text| {
        let address = Address::new(text);
        let told = format!("{} {address:?} {:?}", address.public(), address.scheme());
        if let Ok(with) = address.with_password("swordfish%/?#@:", true) {
            assert!(!format!("{with:?}").contains("swordfish"), "{text}");
        }
        told
    });
}

#[test]
fn no_password_is_in_what_is_shown() {
    for (url, public) in [
        ("redis://h:6379/0", "redis://h:6379/0"),
        ("redis://:pw@h:6379/0", "redis://h:6379/0"),
        ("redis://ada:pw@h", "redis://ada@h"),
        (
            "redis-sentinel://:pw@h?sentinelPassword=pw&sentinelServiceName=m",
            "redis-sentinel://h?sentinelServiceName=m",
        ),
        ("redis-sentinel://h?sentinelPassword=pw", "redis-sentinel://h"),
        ("redlock:redis://:pw@a,redis://u:pw@b,redis://c", "redlock:redis://a,redis://u@b,redis://c"),
        ("redis://:p/w@h", "…"),
        ("redis://ada:1/pw@h", "…"),
        ("redis://ada:1#pw@h", "…"),
        ("redis//:pw@h", "…"),
        ("pw@h:6379", "…"),
        ("file:/var/lock/a@b", "file:/var/lock/a@b"),
        ("file:", "file:"),
    ] {
        let address = Address::new(url);
        assert_eq!(address.public(), public);
        assert!(!format!("{address:?}").contains("pw"));
    }
}

#[test]
fn a_password_is_added_to_every_url_that_has_none() {
    let added = Address::new("redis://ada@h:1/0").with_password("p@:/?#% é", false).unwrap();
    assert_eq!(added.expose(), "redis://ada:p%40%3A%2F%3F%23%25%20%C3%A9@h:1/0");
    assert_eq!(added.public(), "redis://ada@h:1/0");
    assert_eq!(Address::new("redis://:old@h").with_password("new", false).unwrap().expose(), "redis://:old@h");
    assert_eq!(Address::new("redis://:old@h").with_password("new", true).unwrap().expose(), "redis://:new@h");
    let quorum = Address::new("redlock:redis://a,redis://:x@b").with_password("new", false).unwrap();
    assert_eq!(quorum.expose(), "redlock:redis://:new@a,redis://:x@b");
}

#[test]
fn only_what_looks_like_a_scheme_is_one() {
    for (url, scheme) in
        [("redis://h", Some("redis")), ("file:", Some("file")), ("pw@h:1", None), ("h", None), (":", None)]
    {
        assert_eq!(Address::new(url).scheme(), scheme);
    }
}
