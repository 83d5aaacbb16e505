//! The database file and the lock of its directory.

use crate::{StoreError, error};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wire::SqlError;

const LOCK: &str = "pointsman.lock";
const PROBE: &str = "pointsman.probe";
/// What the files beside the database need, in bytes.
const ROOM: usize = 128 << 10;

/// The path of a file that is named as `path`, with `end` behind it.
pub(crate) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(end);
    name.into()
}

/// Whether there is no file, or nothing in it. What cannot be looked at holds something: it is not ours to throw away.
pub(crate) fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or_else(|error| error.kind() == ErrorKind::NotFound, |file| file.len() == 0)
}

/// The database file, as it was when it was opened. Clones follow the store to another one.
#[derive(Clone)]
pub(crate) struct DiskFile {
    pub path: PathBuf,
    /// Device and inode; of none 0.
    identity: Arc<Mutex<(u64, u64)>>,
}

impl DiskFile {
    /// Makes the file if it is missing, readable for its owner alone since it holds passwords. One that is there keeps its mode
    /// until [`Self::protect`].
    pub fn create(path: PathBuf) -> Result<Self, StoreError> {
        // SQLite would wait for ever for what comes out of a pipe.
        let other = fs::metadata(&path).is_ok_and(|found| !found.is_file());
        let file = match other {
            true => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file")),
            false => {
                OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path)
            }
        };
        match file.and_then(|file| file.metadata()) {
            Ok(found) => Ok(Self { path, identity: Arc::new(Mutex::new(identity(&found))) }),
            Err(error) => Err(StoreError(format!(
                "{}: {error}; it must be readable and writable for this user",
                path.display()
            ))),
        }
    }

    /// None: whatever is there is not what the store has.
    pub fn none(path: PathBuf) -> Self {
        Self { path, identity: Arc::default() }
    }

    /// The file that is there, in a directory that cannot be written.
    pub fn find(path: PathBuf) -> Self {
        let found = Self::none(path);
        if let Ok(file) = fs::metadata(&found.path) {
            *found.identity.lock() = identity(&file);
        }
        found
    }

    /// Has it readable for its owner alone, now that it is known to be ours.
    pub fn protect(&self) -> io::Result<()> {
        fs::set_permissions(&self.path, Permissions::from_mode(0o600))
    }

    /// The store uses `other` from now on.
    pub fn become_other(&self, other: &Self) {
        let identity = *other.identity.lock();
        *self.identity.lock() = identity;
    }

    /// An error where another file is in its place, or none.
    pub fn check(&self) -> Result<(), SqlError> {
        let remedy = "nothing was read or saved: PROXYSQL FLUSH CONFIGDB uses what is there";
        self.in_place().map_err(|why| error::failed(format!("{why}; {remedy}")))
    }

    /// An error, with the path, where another file is in its place, or none: SQLite would go on with a removed file, and what
    /// is saved there is gone at the next start.
    pub fn in_place(&self) -> Result<(), String> {
        let what = match fs::metadata(&self.path) {
            Ok(found) if identity(&found) == *self.identity.lock() => return Ok(()),
            Ok(_) => "the file was replaced while the daemon runs".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(format!("{}: {what}", self.path.display()))
    }
}

fn identity(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

/// Whether files can be made and grow in the directory. An error says why not.
pub(super) fn probe(datadir: &Path) -> io::Result<()> {
    let path = datadir.join(PROBE);
    let probed = fs::write(&path, [0; ROOM]);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => probed.and(Err(error)),
        _ => probed,
    }
}

/// Makes sure that no other daemon uses the directory. In one that cannot be written there may be no lock to hold, nor
/// anything that two daemons could spoil.
pub(super) fn lock(datadir: &Path, writable: bool) -> Result<Option<File>, StoreError> {
    let path = datadir.join(LOCK);
    let refuse = |reason: String| StoreError(format!("{}: {reason}", path.display()));
    let file = match writable {
        true => OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path),
        false => match File::open(&path) {
            Err(_) => return Ok(None),
            opened => opened,
        },
    };
    let file = file.map_err(|error| refuse(format!("{error}; the data directory must be writable")))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Err(refuse(
            "locked: another pointsman uses this data directory; stop it or choose another with -D".into(),
        )),
        Err(TryLockError::Error(error)) => Err(refuse(format!("cannot be locked: {error}"))),
    }
}
