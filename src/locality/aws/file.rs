//! Profiles and tokens: small files, which are read again and again.

use rustix::fs::OFlags;
use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Largest one that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Why one is not read. Says nothing of what is in it.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// There is none.
    #[error("there is no such file")]
    Absent,
    /// The system says why.
    #[error("{0}")]
    Io(io::ErrorKind),
    /// A pipe or a device, which may never end, or never begin.
    #[error("it is no regular file")]
    Special,
    /// It cannot be what it should be.
    #[error("it is larger than 1 MiB")]
    Large,
}

impl From<io::Error> for Unreadable {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Absent,
            kind => Self::Io(kind),
        }
    }
}

/// Reads one as a text.
pub fn read(path: &Path) -> Result<String, Unreadable> {
    // Opening a pipe would wait for who writes to it.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(Unreadable::Special);
    }
    let mut text = String::new();
    match file.take(LARGEST + 1).read_to_string(&mut text)? as u64 > LARGEST {
        true => Err(Unreadable::Large),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    #[test]
    fn only_regular_files_of_their_size_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let reason = |path: &Path| read(path).unwrap_err().to_string();
        mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for special in [path("pipe"), "/dev/zero".into(), directory.path().into()] {
            assert_eq!(reason(&special), "it is no regular file", "{special:?}");
        }
        std::fs::write(path("text"), "a = b\n").unwrap();
        assert_eq!(read(&path("text")).unwrap(), "a = b\n");
        std::os::unix::fs::symlink(path("text"), path("link")).unwrap();
        assert_eq!(read(&path("link")).unwrap(), "a = b\n");
        std::fs::write(path("text"), vec![b'a'; 1 << 20]).unwrap();
        assert_eq!(read(&path("text")).unwrap().len(), 1 << 20);
        std::fs::write(path("text"), vec![b'a'; (1 << 20) + 1]).unwrap();
        assert_eq!(reason(&path("text")), "it is larger than 1 MiB");
        std::fs::write(path("text"), [b'a', 0xFF]).unwrap();
        assert_eq!(reason(&path("text")), "invalid data");
        assert!(matches!(read(&path("none")), Err(Unreadable::Absent)));
    }
}
