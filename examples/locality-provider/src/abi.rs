//! include/pointsman_locality.h for a provider in Rust. All that is unsafe is here: it relies on what the header says that the daemon does.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

const ABI_VERSION: u32 = 1;
const SHOWS_TABLE: u32 = 1;
const ENDPOINT: u32 = 2;
const HOST_NAME: usize = 256;
const TEXT: usize = 64;
const PROVIDER_NAME: usize = 32;
const LOG_TEXT: usize = 512;
const WARN: u32 = 2;

#[repr(C)]
struct SubjectText {
    struct_size: u32,
    kind: u32,
    host: [u8; HOST_NAME],
}

#[repr(C)]
struct LocationText {
    struct_size: u32,
    region: [u8; TEXT],
    zone: [u8; TEXT],
    zone_id: [u8; TEXT],
    account: [u8; TEXT],
}

/// What the daemon offers.
#[repr(C)]
pub struct RawHost {
    abi_version: u32,
    struct_size: u32,
    subject: unsafe extern "C" fn(u64, *mut SubjectText) -> i32,
    answer: unsafe extern "C" fn(u64, *const LocationText) -> i32,
    fail: unsafe extern "C" fn(u64, u32) -> i32,
    release: unsafe extern "C" fn(u64) -> i32,
    log: unsafe extern "C" fn(u32, *const u8) -> i32,
}

/// What a provider offers: the daemon gets one of [`description`].
#[repr(C)]
pub struct Description {
    abi_version: u32,
    struct_size: u32,
    flags: u32,
    name: [u8; PROVIDER_NAME],
    create: unsafe extern "C" fn(*const RawHost, *const c_char, *mut u8, usize) -> *mut c_void,
    request: unsafe extern "C" fn(*mut c_void, *const u64, usize),
    shut_down: unsafe extern "C" fn(*mut c_void),
    destroy: unsafe extern "C" fn(*mut c_void),
}

/// The daemon's functions.
#[derive(Clone, Copy)]
pub struct Host(&'static RawHost);

impl Host {
    /// Writes a warning to the daemon's log.
    pub fn warn(self, text: &str) {
        let mut bytes: Vec<u8> = text.bytes().filter(|byte| *byte != 0).take(LOG_TEXT).collect();
        bytes.push(0);
        // SAFETY: the text ends with a NUL.
        unsafe { (self.0.log)(WARN, bytes.as_ptr()) };
    }
}

/// What is asked about.
pub enum Subject {
    /// Where the daemon runs.
    Own,
    /// Where this endpoint is.
    Endpoint(String),
}

/// A place. Empty texts stand for what is not known; the Region must be.
#[derive(Debug, Clone)]
pub struct Location {
    /// `eu-north-1`
    pub region: String,
    /// `eu-north-1a`
    pub zone: String,
    /// `eun1-az1`
    pub zone_id: String,
    /// Twelve digits
    pub account: String,
}

/// Why a place is not known.
#[derive(Clone, Copy)]
#[allow(dead_code, reason = "all of them, for providers that need others")]
pub enum Category {
    /// There is no such endpoint.
    NotFound = 1,
    /// Asking is not allowed.
    AccessDenied = 2,
    /// Asking is not allowed so often.
    Throttled = 3,
    /// There was no answer in time.
    Timeout = 4,
    /// The answer made no sense.
    InvalidAnswer = 5,
    /// Something else.
    ProviderError = 6,
}

/// The right to tell once where a subject is. Dropping it returns it, too.
pub struct Lease {
    host: Host,
    number: u64,
}

impl Lease {
    /// What it is about; `None` if the daemon does not say.
    pub fn subject(&self) -> Option<Subject> {
        let size = size_of::<SubjectText>() as u32;
        let mut text = SubjectText { struct_size: size, kind: 0, host: [0; HOST_NAME] };
        // SAFETY: the structure is there, and as long as it says.
        if unsafe { (self.host.0.subject)(self.number, &raw mut text) } != 0 {
            return None;
        }
        if text.kind != ENDPOINT {
            return Some(Subject::Own);
        }
        let host = CStr::from_bytes_until_nul(&text.host).ok()?;
        Some(Subject::Endpoint(host.to_str().ok()?.to_owned()))
    }
    /// Answers.
    pub fn answer(self, answer: Result<&Location, Category>) {
        // What it returns is of no use here: there is no other answer to give.
        match answer.map(texts) {
            // SAFETY: the structure is there, and as long as it says.
            Ok(texts) => unsafe { (self.host.0.answer)(self.number, &raw const texts) },
            // SAFETY: it takes numbers.
            Err(category) => unsafe { (self.host.0.fail)(self.number, category as u32) },
        };
        std::mem::forget(self);
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // SAFETY: it takes a number.
        unsafe { (self.host.0.release)(self.number) };
    }
}

fn texts(location: &Location) -> LocationText {
    LocationText {
        struct_size: size_of::<LocationText>() as u32,
        region: text(&location.region),
        zone: text(&location.zone),
        zone_id: text(&location.zone_id),
        account: text(&location.account),
    }
}

/// One that is too long has no NUL at its end, which the daemon refuses.
const fn text<const SIZE: usize>(text: &str) -> [u8; SIZE] {
    let (mut bytes, text) = ([0; SIZE], text.as_bytes());
    let mut at = 0;
    while at < text.len() && at < SIZE {
        bytes[at] = text[at];
        at += 1;
    }
    bytes
}

/// What a provider does. The daemon calls these one at a time. A panic in one of them is caught.
pub trait Provider: Sized + Send {
    /// For the daemon's log, at most 31 bytes.
    const NAME: &str;
    /// Whether the daemon is to have stats_mysql_aws_locality.
    const SHOWS_TABLE: bool;
    /// Makes it ready, or says why not.
    fn create(host: Host, config: &str) -> Result<Self, String>;
    /// Takes leases, and returns soon.
    fn request(&mut self, leases: Vec<Lease>);
    /// Gives up what is not answered. After that it is dropped, which ends its threads.
    fn shut_down(&mut self);
}

/// An instance, as the daemon has it.
struct Instance<P> {
    host: Host,
    provider: P,
}

/// What the daemon is told of a provider.
pub const fn description<P: Provider>() -> Description {
    assert!(P::NAME.len() < PROVIDER_NAME, "its name is too long");
    Description {
        abi_version: ABI_VERSION,
        struct_size: size_of::<Description>() as u32,
        flags: if P::SHOWS_TABLE { SHOWS_TABLE } else { 0 },
        name: text(P::NAME),
        create: create::<P>,
        request: request::<P>,
        shut_down: shut_down::<P>,
        destroy: destroy::<P>,
    }
}

/// The provider that this shared object has.
static DESCRIPTION: Description = description::<crate::Example>();

/// What the daemon looks for.
// SAFETY: no other symbol has this name.
#[unsafe(no_mangle)]
pub extern "C" fn pointsman_locality_provider() -> *const Description {
    &raw const DESCRIPTION
}

/// The daemon's functions, if they are those that are known here.
unsafe fn take_host(host: *const RawHost) -> Result<Host, String> {
    // SAFETY: in every version it begins with the version and its size.
    let (version, size) = unsafe { ((*host).abi_version, (*host).struct_size) };
    if version != ABI_VERSION || (size as usize) < size_of::<RawHost>() {
        return Err(format!("the daemon's ABI version is {version}"));
    }
    // SAFETY: it is as long as it says, and stays where it is until the process ends.
    Ok(Host(unsafe { &*host }))
}

unsafe extern "C" fn create<P: Provider>(
    host: *const RawHost,
    config: *const c_char,
    error: *mut u8,
    error_size: usize,
) -> *mut c_void {
    // SAFETY: it ends with a NUL and is there until this returns.
    let config = unsafe { CStr::from_ptr(config) };
    let created = catch_unwind(|| {
        // SAFETY: it is what the daemon hands over.
        let host = unsafe { take_host(host) }?;
        let config = config.to_str().map_err(|_| "the configuration is no UTF-8".to_owned())?;
        Ok(Instance { host, provider: P::create(host, config)? })
    });
    match created.unwrap_or_else(|_| Err("it panicked".to_owned())) {
        Ok(instance) => Box::into_raw(Box::new(instance)).cast(),
        Err(problem) => {
            let length = problem.len().min(error_size.saturating_sub(1));
            // SAFETY: `error` has `error_size` bytes, all NUL, of which the last stays so.
            unsafe { ptr::copy_nonoverlapping(problem.as_ptr(), error, length) };
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn request<P: Provider>(instance: *mut c_void, leases: *const u64, count: usize) {
    // SAFETY: it is what `create` returned, and nothing else has it now.
    let instance = unsafe { &mut *instance.cast::<Instance<P>>() };
    // SAFETY: there are that many.
    let leases = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(leases, count) } };
    let lease = |number: &u64| Lease { host: instance.host, number: *number };
    let leases = leases.iter().map(lease).collect();
    let _ = catch_unwind(AssertUnwindSafe(|| instance.provider.request(leases)));
}

unsafe extern "C" fn shut_down<P: Provider>(instance: *mut c_void) {
    // SAFETY: it is what `create` returned, and nothing else has it now.
    let instance = unsafe { &mut *instance.cast::<Instance<P>>() };
    let _ = catch_unwind(AssertUnwindSafe(|| instance.provider.shut_down()));
}

unsafe extern "C" fn destroy<P: Provider>(instance: *mut c_void) {
    // SAFETY: it is what `create` returned, and nobody uses it after this.
    let instance = unsafe { Box::from_raw(instance.cast::<Instance<P>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
}
