//! Which kinds of store there are, and what is said of a scheme that none has.

use std::collections::HashSet;

use leasehold::{Error, ErrorKind, Kind, kind_of, kinds};
use leasehold_testkit::test;

/// The lines of the list of backends, each of which is a feature and its schemes, also of what is not built in.
fn lines() -> Vec<(&'static str, Vec<&'static str>)> {
    let (_, list) = include_str!("../../src/backends.rs").split_once("built_in! {\n").unwrap();
    let lines = list.split_once("\n}").unwrap().0.split(';').map(|line| line.split('"').skip(1).step_by(2));
    lines.filter_map(|mut words| Some((words.next()?, words.collect()))).collect()
}

/// Those of this crate: other tests register others.
fn built_in() -> impl Iterator<Item = Kind> {
    kinds().into_iter().filter(|kind| kind.package.starts_with("leasehold-"))
}

#[test]
fn a_scheme_leads_to_one_kind_of_store() {
    let schemes: Vec<_> = lines().into_iter().flat_map(|(_, schemes)| schemes).collect();
    assert_eq!(schemes.iter().collect::<HashSet<_>>().len(), schemes.len());
}

#[test]
fn each_kind_is_found_by_its_schemes_which_the_list_has_and_called_what_its_errors_call_it() {
    for kind in built_in() {
        assert_eq!((kind.capabilities)().backend(), kind.name);
        for scheme in kind.all_schemes() {
            assert_eq!(kind_of(&format!("{scheme}://h")).unwrap().name, kind.name);
        }
        let own: HashSet<_> = kind.all_schemes().collect();
        let listed = lines().into_iter().any(|(_, schemes)| schemes.into_iter().collect::<HashSet<_>>() == own);
        assert!(listed, "no line of the list has the schemes of {}: {own:?}", kind.name);
    }
}

#[test]
fn a_scheme_that_is_not_built_in_leads_to_its_feature() {
    for (feature, schemes) in lines() {
        for scheme in schemes {
            let unknown = kind_of(&format!("{scheme}://:pw@h")).err().unwrap_or_else(|| {
                // As a build without it says.
                let mut unknown = kind_of("mongodb://:pw@h").unwrap_err();
                (unknown.scheme, unknown.feature) = (Some(scheme.to_owned()), Some(feature));
                unknown
            });
            assert_eq!(unknown.feature, Some(feature));
            let told = Error::from(unknown);
            assert_eq!(told.kind(), ErrorKind::Unsupported);
            assert!(told.to_string().contains(&format!("leasehold = {{ features = [\"{feature}\"] }}")), "{told}");
            assert!(!told.to_string().contains("pw"), "{told}");
        }
    }
}

#[test]
fn an_unknown_scheme_is_named_but_never_what_follows_it() {
    for (url, named) in [("mongodb://:pw@h", Some("mongodb")), ("pw@h:1", None), ("pw", None), (":", None), ("", None)]
    {
        let unknown = kind_of(url).unwrap_err();
        assert_eq!((unknown.scheme.as_deref(), unknown.feature), (named, None));
        let told = Error::from(unknown);
        assert_eq!(told.kind(), ErrorKind::InvalidOptions);
        assert!(!format!("{told} {told:?}").contains("pw"), "{told}");
        assert!(named.is_none_or(|scheme| told.to_string().contains(scheme)), "{told}");
        let known = built_in().all(|kind| kind.schemes.iter().all(|scheme| told.to_string().contains(scheme)));
        assert!(known, "it says which there are: {told}");
    }
}
