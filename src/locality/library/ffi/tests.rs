//! The daemon's functions, called as a library calls them.

use super::super::super::provider::{Answer, Inbox};
use super::super::tests::providers;
use super::*;
use std::mem::offset_of;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

const HOST: &str = "db-1.cabc.eu-north-1.rds.amazonaws.com";

/// A lease that is out.
fn lent(inbox: &Arc<Inbox>, subject: Subject) -> Handle {
    lend(inbox.lease(1, subject).unwrap()).unwrap()
}

/// What the manager gets of it.
fn answer(inbox: &Inbox) -> Answer {
    let mut answers = inbox.wait(Some(Instant::now()));
    assert_eq!(answers.len(), 1, "{answers:?}");
    answers.remove(0).1
}

fn filled<const SIZE: usize>(text: &[u8]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    bytes[..text.len()].copy_from_slice(text);
    bytes
}

fn place() -> LocationText {
    LocationText {
        struct_size: size_of::<LocationText>() as u32,
        region: filled(b"eu-north-1"),
        zone: filled("zone \u{e9}".as_bytes()),
        zone_id: filled(&[b'i'; TEXT - 1]),
        account: filled(b""),
    }
}

fn give(handle: Handle, location: *const LocationText) -> i32 {
    // SAFETY: null, or a structure of this test's.
    unsafe { host_answer(handle, location) }
}

#[test]
fn the_header_says_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let (source, program) = (directory.path().join("sizes.c"), directory.path().join("sizes"));
    let text = r#"
        #include "pointsman_locality.h"
        #include <stdio.h>
        #define SIZE(s) printf("%zu\n", sizeof(struct pointsman_locality_##s))
        #define AT(s, field) printf("%zu\n", offsetof(struct pointsman_locality_##s, field))
        int main(void) {
            SIZE(subject); SIZE(location); SIZE(host); SIZE(provider);
            AT(subject, host); AT(location, region); AT(location, zone); AT(location, zone_id); AT(location, account);
            AT(host, subject); AT(host, answer); AT(host, fail); AT(host, release); AT(host, log);
            AT(provider, flags); AT(provider, name); AT(provider, create); AT(provider, request); AT(provider, shut_down);
            AT(provider, destroy);
            printf("%u %d\n", POINTSMAN_LOCALITY_ABI_VERSION, POINTSMAN_LOCALITY_LOG_TEXT);
            return 0;
        }"#;
    std::fs::write(&source, text).unwrap();
    let mut compiler = providers::cc();
    compiler.arg("-o").arg(&program).arg(&source);
    providers::run(compiler);
    let printed = providers::run(Command::new(&program));
    let here = [
        size_of::<SubjectText>(),
        size_of::<LocationText>(),
        size_of::<Host>(),
        size_of::<Descriptor>(),
        offset_of!(SubjectText, host),
        offset_of!(LocationText, region),
        offset_of!(LocationText, zone),
        offset_of!(LocationText, zone_id),
        offset_of!(LocationText, account),
        offset_of!(Host, subject),
        offset_of!(Host, answer),
        offset_of!(Host, fail),
        offset_of!(Host, release),
        offset_of!(Host, log),
        offset_of!(Descriptor, flags),
        offset_of!(Descriptor, name),
        offset_of!(Descriptor, create),
        offset_of!(Descriptor, request),
        offset_of!(Descriptor, shut_down),
        offset_of!(Descriptor, destroy),
    ];
    let here: String = here.map(|number| format!("{number}\n")).concat();
    assert_eq!(printed, format!("{here}{ABI_VERSION} {LOG_TEXT}\n"));
}

#[test]
fn subjects_are_copied_out() {
    let inbox = Arc::default();
    let size = size_of::<SubjectText>() as u32;
    let ask = |handle, struct_size| {
        let mut text = SubjectText { struct_size, kind: 9, host: [b'x'; HOST_NAME] };
        // SAFETY: the structure is there.
        let code = unsafe { host_subject(handle, &raw mut text) };
        (code, text.kind, text.host.split(|byte| *byte == 0).next().unwrap().to_vec())
    };
    let own = lent(&inbox, Subject::Own);
    assert_eq!(ask(own, size), (0, OWN, Vec::new()));
    assert_eq!(ask(own, size + 100), (0, OWN, Vec::new()), "a later version of the structure");
    let endpoint = lent(&inbox, Subject::Endpoint(HOST.into()));
    assert_eq!(ask(endpoint, size), (0, ENDPOINT, HOST.as_bytes().to_vec()));
    for (handle, size, code) in [(own, size - 1, Code::Invalid), (0, size, Code::UnknownLease)] {
        assert_eq!(ask(handle, size), (code as i32, 9, vec![b'x'; HOST_NAME]));
    }
    // SAFETY: null is allowed.
    assert_eq!(unsafe { host_subject(own, ptr::null_mut()) }, Code::Invalid as i32);
    assert_eq!([host_release(own), host_release(endpoint)], [0, 0]);
}

#[test]
fn a_place_is_copied_in() {
    let inbox = Arc::default();
    assert_eq!(give(lent(&inbox, Subject::Own), &place()), 0);
    let location = answer(&inbox).unwrap();
    assert_eq!((&*location.region, &*location.zone, &*location.account), ("eu-north-1", "zone \u{e9}", ""));
    assert_eq!(location.zone_id.len(), TEXT - 1);
}

#[test]
fn a_place_that_makes_no_sense_is_an_invalid_answer_and_returns_the_lease() {
    type Break = fn(&mut LocationText);
    let broken: [Break; 7] = [
        |place| place.region = filled(b""),
        |place| place.region = [b'r'; TEXT],
        |place| place.zone = [b'z'; TEXT],
        |place| place.zone_id = filled(b"\xFF"),
        |place| place.account = filled(b"1\n2"),
        |place| place.struct_size -= 1,
        |place| place.struct_size = 0,
    ];
    let inbox = Arc::default();
    for (number, breaks) in broken.iter().enumerate() {
        let mut place = place();
        breaks(&mut place);
        let handle = lent(&inbox, Subject::Own);
        assert_eq!(give(handle, &raw const place), Code::Invalid as i32, "{number}");
        assert_eq!(answer(&inbox), Err(Category::InvalidAnswer), "{number}");
        assert_eq!(give(handle, &raw const place), Code::UnknownLease as i32, "{number}");
    }
    let misaligned = ptr::from_ref(&place()).wrapping_byte_add(1);
    for pointer in [ptr::null(), misaligned] {
        assert_eq!(give(lent(&inbox, Subject::Own), pointer), Code::Invalid as i32);
        assert_eq!(answer(&inbox), Err(Category::InvalidAnswer));
    }
}

#[test]
fn categories_have_numbers() {
    let inbox = Arc::default();
    for (number, category, code) in [
        (1, Category::NotFound, Code::Ok),
        (2, Category::AccessDenied, Code::Ok),
        (3, Category::Throttled, Code::Ok),
        (4, Category::Timeout, Code::Ok),
        (5, Category::InvalidAnswer, Code::Ok),
        (6, Category::ProviderError, Code::Ok),
        (0, Category::InvalidAnswer, Code::Invalid),
        (7, Category::InvalidAnswer, Code::Invalid),
        (u32::MAX, Category::InvalidAnswer, Code::Invalid),
    ] {
        assert_eq!(host_fail(lent(&inbox, Subject::Own), number), code as i32, "{number}");
        assert_eq!(answer(&inbox), Err(category), "{number}");
    }
    assert_eq!(host_fail(1, 1), Code::UnknownLease as i32);
}

#[test]
fn an_ending_daemon_takes_leases_and_no_answers() {
    let inbox: Arc<Inbox> = Arc::default();
    let handles = [(); 4].map(|()| lent(&inbox, Subject::Own));
    inbox.close();
    let [answered, failed, refused, released] = handles;
    assert_eq!(give(answered, &place()), Code::Closed as i32);
    assert_eq!(host_fail(failed, 1), Code::Closed as i32);
    assert_eq!(give(refused, ptr::null()), Code::Invalid as i32);
    assert_eq!(host_release(released), Code::Ok as i32);
    assert!(inbox.drain(Instant::now()));
}

#[test]
fn lines_for_the_log_are_looked_at() {
    let log = |severity, text: &[u8]| {
        // SAFETY: it ends with a NUL, or is long enough.
        unsafe { host_log(severity, text.as_ptr()) }
    };
    assert_eq!(log(3, b"text\0"), Code::Ok as i32);
    assert_eq!(log(3, &[b'x'; LOG_TEXT]), Code::Ok as i32, "without a NUL");
    assert_eq!([log(0, b"\0"), log(4, b"\0")], [Code::Invalid as i32; 2]);
    // SAFETY: null is allowed.
    assert_eq!(unsafe { host_log(1, ptr::null()) }, Code::Invalid as i32);
}

#[test]
fn a_panic_does_not_reach_the_library() {
    assert_eq!(guarded(|| panic!("on purpose")), Code::Internal as i32);
}
