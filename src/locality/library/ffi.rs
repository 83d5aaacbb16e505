//! The C side of include/pointsman_locality.h, which says what each thing is for.
//!
//! The only unsafe code of the crate. It relies on what the header asks of a library: functions that do what they say, structures that are
//! as long as they say, no thread of the library's after destroy. Not on more: leases are numbers that are looked up, texts are arrays whose
//! end is known, and what a library hands over is copied before it is looked at.
#![allow(unsafe_code)]

use super::super::provider::{Category, Lease, Location, Subject};
use super::leases::{Handle, Leases, MOST, Refused};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::error::Error;
use std::ffi::{CString, c_char, c_void};
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::LazyLock;

/// POINTSMAN_LOCALITY_ABI_VERSION
pub const ABI_VERSION: u32 = 1;
/// POINTSMAN_LOCALITY_SHOWS_TABLE
const SHOWS_TABLE: u32 = 1;
const OWN: u32 = 1;
const ENDPOINT: u32 = 2;
const HOST_NAME: usize = 256;
const TEXT: usize = 64;
const PROVIDER_NAME: usize = 32;
const LOG_TEXT: usize = 512;
const ERROR_TEXT: usize = 512;
/// The exported symbol.
const ENTRY: &str = "pointsman_locality_provider";
/// Where the daemon's log has what libraries say.
pub const LOG_TARGET: &str = "pointsman::locality::library";

/// What the daemon's functions return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Code {
    Ok = 0,
    UnknownLease = 1,
    Closed = 2,
    Invalid = 3,
    Internal = 4,
}

#[repr(C)]
struct SubjectText {
    struct_size: u32,
    kind: u32,
    host: [u8; HOST_NAME],
}

#[derive(Clone, Copy)]
#[repr(C)]
struct LocationText {
    struct_size: u32,
    region: [u8; TEXT],
    zone: [u8; TEXT],
    zone_id: [u8; TEXT],
    account: [u8; TEXT],
}

#[repr(C)]
struct Host {
    abi_version: u32,
    struct_size: u32,
    subject: unsafe extern "C" fn(Handle, *mut SubjectText) -> i32,
    answer: unsafe extern "C" fn(Handle, *const LocationText) -> i32,
    fail: extern "C" fn(Handle, u32) -> i32,
    release: extern "C" fn(Handle) -> i32,
    log: unsafe extern "C" fn(u32, *const u8) -> i32,
}

// "C-unwind": what is thrown nevertheless ends the process, and is not undefined behaviour.
type Create = unsafe extern "C-unwind" fn(*const Host, *const c_char, *mut u8, usize) -> *mut c_void;
type Request = unsafe extern "C-unwind" fn(*mut c_void, *const Handle, usize);
type OfInstance = unsafe extern "C-unwind" fn(*mut c_void);
type Entry = unsafe extern "C-unwind" fn() -> *const Descriptor;

#[derive(Clone, Copy)]
#[repr(C)]
struct Descriptor {
    abi_version: u32,
    struct_size: u32,
    flags: u32,
    name: [u8; PROVIDER_NAME],
    create: Option<Create>,
    request: Option<Request>,
    shut_down: Option<OfInstance>,
    destroy: Option<OfInstance>,
}

static HOST: Host = Host {
    abi_version: ABI_VERSION,
    struct_size: size_of::<Host>() as u32,
    subject: host_subject,
    answer: host_answer,
    fail: host_fail,
    release: host_release,
    log: host_log,
};

/// Of the whole process, so that a library that runs on finds it.
static LEASES: LazyLock<Leases> = LazyLock::new(|| Leases::new(MOST));

/// Gives a lease out, unless too many are.
pub fn lend(lease: Lease) -> Option<Handle> {
    LEASES.lend(lease)
}

/// Runs one of the daemon's functions. A panic must not reach the library; the daemon's hook has logged it.
fn guarded(function: impl FnOnce() -> Code) -> i32 {
    catch_unwind(AssertUnwindSafe(function)).unwrap_or(Code::Internal) as i32
}

fn usable<T>(pointer: *const T) -> bool {
    !pointer.is_null() && pointer.is_aligned()
}

unsafe extern "C" fn host_subject(handle: Handle, out: *mut SubjectText) -> i32 {
    guarded(|| {
        // SAFETY: it is not null and aligned, and the caller says that a structure is there, which begins with its size.
        if !usable(out) || unsafe { (*out).struct_size as usize } < size_of::<SubjectText>() {
            return Code::Invalid;
        }
        let Some(subject) = LEASES.subject(handle) else { return Code::UnknownLease };
        let (kind, name) = match &subject {
            Subject::Own => (OWN, ""),
            Subject::Endpoint(host) => (ENDPOINT, &**host),
        };
        let mut host = [0; HOST_NAME];
        // Names of endpoints are at most 253 bytes long.
        let Some(room) = host[..HOST_NAME - 1].get_mut(..name.len()) else { return Code::Internal };
        room.copy_from_slice(name.as_bytes());
        // SAFETY: the structure is at least as long as this one, as its size says.
        unsafe {
            (*out).kind = kind;
            (*out).host = host;
        }
        Code::Ok
    })
}

unsafe extern "C" fn host_answer(handle: Handle, location: *const LocationText) -> i32 {
    guarded(|| {
        // SAFETY: it is not null and aligned, and the caller says that a structure is there, which begins with its size.
        let whole =
            usable(location) && unsafe { (*location).struct_size as usize } >= size_of::<LocationText>();
        // SAFETY: the structure is at least as long as this one, as its size says.
        let location = whole.then(|| unsafe { *location });
        match location.as_ref().and_then(read_location) {
            Some(location) => returned(LEASES.answer(handle, Ok(location))),
            None => refuse(handle),
        }
    })
}

extern "C" fn host_fail(handle: Handle, category: u32) -> i32 {
    guarded(|| match read_category(category) {
        Some(category) => returned(LEASES.answer(handle, Err(category))),
        None => refuse(handle),
    })
}

extern "C" fn host_release(handle: Handle) -> i32 {
    guarded(|| match LEASES.take(handle) {
        Some(lease) => {
            drop(lease);
            Code::Ok
        }
        None => Code::UnknownLease,
    })
}

unsafe extern "C" fn host_log(severity: u32, text: *const u8) -> i32 {
    guarded(|| {
        let level = match severity {
            1 => log::Level::Error,
            2 => log::Level::Warn,
            3 => log::Level::Info,
            _ => return Code::Invalid,
        };
        if text.is_null() {
            return Code::Invalid;
        }
        // SAFETY: the caller says that a text ends with a NUL; nothing behind it is read.
        let byte = |at| unsafe { *text.add(at) };
        let bytes: Vec<u8> = (0..LOG_TEXT).map(byte).take_while(|byte| *byte != 0).collect();
        log::log!(target: LOG_TARGET, level, "locality: {}", String::from_utf8_lossy(&bytes));
        Code::Ok
    })
}

fn returned(result: Result<(), Refused>) -> Code {
    match result {
        Ok(()) => Code::Ok,
        Err(Refused::Unknown) => Code::UnknownLease,
        Err(Refused::Closed) => Code::Closed,
    }
}

/// An answer that makes no sense is one all the same: whoever gave it does not give another.
fn refuse(handle: Handle) -> Code {
    match LEASES.answer(handle, Err(Category::InvalidAnswer)) {
        Err(Refused::Unknown) => Code::UnknownLease,
        Ok(()) | Err(Refused::Closed) => Code::Invalid,
    }
}

/// What stands before the NUL. `None`: no NUL, no UTF-8, or control characters.
fn read_text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let text = str::from_utf8(&bytes[..end]).ok()?;
    (!text.contains(char::is_control)).then_some(text)
}

fn read_location(texts: &LocationText) -> Option<Location> {
    let field = |bytes: &[u8; TEXT]| read_text(bytes).map(str::to_owned);
    let location = Location {
        region: field(&texts.region)?,
        zone: field(&texts.zone)?,
        zone_id: field(&texts.zone_id)?,
        account: field(&texts.account)?,
    };
    (!location.region.is_empty()).then_some(location)
}

fn read_category(number: u32) -> Option<Category> {
    Some(match number {
        1 => Category::NotFound,
        2 => Category::AccessDenied,
        3 => Category::Throttled,
        4 => Category::Timeout,
        5 => Category::InvalidAnswer,
        6 => Category::ProviderError,
        _ => return None,
    })
}

/// Why a library is of no use: what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// The loader says why.
    #[error("{0}; --locality-provider library:PATH needs a shared object")]
    Load(String),
    /// It is no provider.
    #[error("it does not export {ENTRY}; it needs to be built with include/pointsman_locality.h")]
    NoEntry,
    /// It is one for another daemon.
    #[error(
        "its ABI version is {0}, not {ABI_VERSION}; build it with this version's include/pointsman_locality.h"
    )]
    Version(u32),
    /// Something in its description is wrong.
    #[error("{0}; see include/pointsman_locality.h")]
    Description(&'static str),
    /// It says no.
    #[error("it refuses to start: {0}; see --locality-config")]
    Refused(String),
}

#[derive(Clone, Copy)]
struct Functions {
    request: Request,
    shut_down: OfInstance,
    destroy: OfInstance,
}

/// A library that is loaded and ready. Only [`Instance::destroy`] ends and unloads it: one that is merely dropped stays loaded, for it may
/// still run.
pub struct Instance {
    functions: Functions,
    pointer: NonNull<c_void>,
    library: ManuallyDrop<Library>,
    /// Its name.
    pub name: String,
    /// Whether stats_mysql_aws_locality is to be there.
    pub shows_table: bool,
}

// SAFETY: the header says that its functions are called from different threads. One at a time: they take `&mut self`, or the instance.
unsafe impl Send for Instance {}

impl Instance {
    /// Loads a library and makes it ready. The path has a slash, so that the loader looks nowhere else.
    pub fn open(path: &Path, config: &str) -> Result<Self, Problem> {
        debug_assert!(path.is_absolute());
        let config = CString::new(config).map_err(|_| Problem::Description("its configuration has a NUL"))?;
        // SAFETY: the operator named the library, and so answers for what it does when it is loaded and unloaded. RTLD_LOCAL: its symbols
        // replace none of the daemon's.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }
            .map_err(|error| Problem::Load(reason(&error, path)))?;
        let description = describe(&library)?;
        let (name, create, functions) = read_description(&description)?;
        let mut error = [0; ERROR_TEXT];
        // SAFETY: the header's terms. The daemon's functions are static, the texts outlive the call, and the error's size is its own.
        let pointer = unsafe { create(&raw const HOST, config.as_ptr(), error.as_mut_ptr(), ERROR_TEXT) };
        let Some(pointer) = NonNull::new(pointer) else {
            let end = error.iter().position(|byte| *byte == 0).unwrap_or(ERROR_TEXT);
            let text = String::from_utf8_lossy(&error[..end]).trim().to_owned();
            return Err(Problem::Refused(if text.is_empty() { "it does not say why".into() } else { text }));
        };
        let shows_table = description.flags & SHOWS_TABLE != 0;
        Ok(Self { functions, pointer, library: ManuallyDrop::new(library), name, shows_table })
    }
    /// Asks it.
    pub fn request(&mut self, leases: &[Handle]) {
        // SAFETY: the header's terms; the pointer is what create returned, and destroy has not been called, for that takes the instance.
        unsafe { (self.functions.request)(self.pointer.as_ptr(), leases.as_ptr(), leases.len()) }
    }
    /// Has it return its leases.
    pub fn shut_down(&mut self) {
        // SAFETY: as for `request`.
        unsafe { (self.functions.shut_down)(self.pointer.as_ptr()) }
    }
    /// Ends it and unloads it.
    pub fn destroy(self) {
        // SAFETY: as for `request`; nobody can call it again.
        unsafe { (self.functions.destroy)(self.pointer.as_ptr()) }
        // After destroy no thread is in its code, says the header.
        drop(ManuallyDrop::into_inner(self.library));
    }
}

/// What the loader says, without the path, which it begins with.
fn reason(error: &libloading::Error, path: &Path) -> String {
    let text = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    match text.strip_prefix(&format!("{}: ", path.display())) {
        Some(rest) => rest.to_owned(),
        None => text,
    }
}

/// What a library says of itself.
fn describe(library: &Library) -> Result<Descriptor, Problem> {
    // SAFETY: the header says which type the symbol has. `Option`, for the loader may find one that is null.
    let entry = unsafe { library.get::<Option<Entry>>(ENTRY) }.map_err(|_| Problem::NoEntry)?;
    let entry = (*entry).ok_or(Problem::NoEntry)?;
    // SAFETY: the header's terms.
    let descriptor = unsafe { entry() };
    if !usable(descriptor) {
        return Err(Problem::Description("its description is a null or misaligned pointer"));
    }
    // SAFETY: it is not null and aligned, and what the header says is there in every version: the version, and then the size.
    let (version, size) = unsafe { ((*descriptor).abi_version, (*descriptor).struct_size) };
    if version != ABI_VERSION {
        return Err(Problem::Version(version));
    }
    if (size as usize) < size_of::<Descriptor>() {
        return Err(Problem::Description("its description is too short"));
    }
    // SAFETY: the structure is at least as long as this one, as its size says.
    Ok(unsafe { ptr::read(descriptor) })
}

fn read_description(description: &Descriptor) -> Result<(String, Create, Functions), Problem> {
    let name = read_text(&description.name).filter(|name| !name.trim().is_empty());
    let name = name.ok_or(Problem::Description("its name is empty, or no text"))?.to_owned();
    if description.flags & !SHOWS_TABLE != 0 {
        return Err(Problem::Description("it has flags that are not known"));
    }
    let Descriptor {
        create: Some(create),
        request: Some(request),
        shut_down: Some(shut_down),
        destroy: Some(destroy),
        ..
    } = *description
    else {
        return Err(Problem::Description("one of its functions is null"));
    };
    Ok((name, create, Functions { request, shut_down, destroy }))
}

#[cfg(test)]
mod tests;
