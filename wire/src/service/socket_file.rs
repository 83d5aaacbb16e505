//! The file of a unix socket: made, put in the place of a stale one, and removed.

use socket2::{Domain, SockAddr, Type};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A socket's file, removed when this is dropped unless another has taken its place.
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and inode.
    identity: (u64, u64),
}

impl SocketFile {
    /// Binds `socket` to `path` and listens. Connections are possible only when the file has its mode, since it is made under
    /// another name first.
    pub(super) fn bind(socket: &socket2::Socket, path: &Path, mode: u32, backlog: i32) -> io::Result<Self> {
        refuse_unless_free(path)?;
        let mut draft = path.as_os_str().to_owned();
        draft.push(".new");
        let draft = PathBuf::from(draft);
        refuse_unless_free(&draft)?;
        match fs::remove_file(&draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        socket.bind(&SockAddr::unix(&draft)?)?;
        let placed = fs::set_permissions(&draft, Permissions::from_mode(mode))
            .and_then(|()| socket.listen(backlog))
            .and_then(|()| fs::metadata(&draft))
            .and_then(|found| fs::rename(&draft, path).map(|()| (found.dev(), found.ino())));
        match placed {
            Ok(identity) => Ok(Self { path: path.to_owned(), identity }),
            Err(error) => {
                // The first error is the one to tell.
                let _ = fs::remove_file(&draft);
                Err(error)
            }
        }
    }

    /// Removes the file.
    pub(super) fn remove(&self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == self.identity) {
            // It may be gone in this moment, or its directory read-only: a stale file harms nobody.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// An error unless nothing is there, or the socket of a program that has ended.
fn refuse_unless_free(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "a file that is no socket is there"));
    }
    let probe = socket2::Socket::new(Domain::UNIX, Type::STREAM, None)?;
    // One that is busy would let us wait.
    probe.set_nonblocking(true)?;
    match probe.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Ok(()) => Err(in_use()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(in_use()),
        Err(error) => Err(error),
    }
}

fn in_use() -> io::Error {
    io::Error::new(io::ErrorKind::AddrInUse, "another program listens there")
}
