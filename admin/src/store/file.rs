//! The database file and the lock of its directory.

use crate::{StoreError, error};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use wire::SqlError;

const LOCK: &str = "pointsman.lock";

/// The database file, as it was when it was opened.
pub(super) struct DiskFile {
    pub path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl DiskFile {
    /// Makes the file if it is missing, readable for its owner alone since it holds passwords.
    pub fn create(path: PathBuf) -> Result<Self, StoreError> {
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(&path);
        match file.and_then(|file| {
            file.set_permissions(Permissions::from_mode(0o600))?;
            file.metadata()
        }) {
            Ok(found) => Ok(Self { path, identity: (found.dev(), found.ino()) }),
            Err(error) => Err(StoreError(format!(
                "{}: {error}; it must be readable and writable for this user",
                path.display()
            ))),
        }
    }

    pub fn check(&self) -> Result<(), SqlError> {
        let what = match fs::metadata(&self.path) {
            Ok(found) if (found.dev(), found.ino()) == self.identity => return Ok(()),
            Ok(_) => "the file was replaced while the daemon runs".to_owned(),
            Err(error) => error.to_string(),
        };
        let path = self.path.display();
        Err(error::failed(format!(
            "{path}: {what}; nothing was saved or loaded: PROXYSQL FLUSH CONFIGDB uses what is there"
        )))
    }
}

/// Makes sure that no other daemon uses the directory.
pub(super) fn lock(datadir: &Path) -> Result<File, StoreError> {
    let path = datadir.join(LOCK);
    let refuse = |reason: String| StoreError(format!("{}: {reason}", path.display()));
    let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
    let file = file.map_err(|error| refuse(format!("{error}; the data directory must be writable")))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(refuse(
            "locked: another pointsman uses this data directory; stop it or choose another with -D".into(),
        )),
        Err(TryLockError::Error(error)) => Err(refuse(format!("cannot be locked: {error}"))),
    }
}
