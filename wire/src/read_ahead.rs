//! A read buffer below a layer that asks for a few bytes at a time: one system call fetches what there is.

use std::io;

/// Size while little comes, in bytes.
const SMALL: usize = 1024;
/// Size while much comes: a whole TLS record (16 KiB, its header, and what encryption adds).
const LARGE: usize = 17 * 1024;

/// Bytes received and not used yet.
#[derive(Debug, Default)]
pub(crate) struct ReadAhead {
    /// All of it is initialised; `start..end` is what has come.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadAhead {
    /// What is there.
    pub(crate) fn data(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }
    /// How many bytes are there.
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }
    /// How many bytes the next `fill` of an empty buffer can take.
    pub(crate) fn capacity(&self) -> usize {
        // A buffer that was filled to the brim is worth a larger one.
        if self.end > 0 && self.end == self.bytes.len() { LARGE } else { self.bytes.len().max(SMALL) }
    }
    /// Marks the first `n` bytes as used.
    pub(crate) fn consume(&mut self, n: usize) {
        self.start = self.start.saturating_add(n).min(self.end);
    }
    /// Reads once behind what is there, and returns the number of bytes that came: 0 at the end of the stream.
    pub(crate) fn fill(&mut self, mut read: impl FnMut(&mut [u8]) -> io::Result<usize>) -> io::Result<usize> {
        let capacity = self.capacity();
        self.bytes.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.len());
        if capacity > self.bytes.len() {
            self.bytes.resize(capacity, 0);
        }
        loop {
            match read(self.bytes.get_mut(self.end..).unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    let count = result?;
                    self.end += count;
                    return Ok(count);
                }
            }
        }
    }
    /// Puts bytes behind what is there.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.truncate(self.end);
        self.bytes.extend_from_slice(bytes);
        self.end = self.bytes.len();
    }
    /// Frees memory beyond what an idle connection needs.
    pub(crate) fn shrink(&mut self) {
        if self.is_empty() && self.bytes.len() > SMALL {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: &[u8]) -> impl FnMut(&mut [u8]) -> io::Result<usize> {
        move |free| {
            let count = bytes.len().min(free.len());
            free[..count].copy_from_slice(&bytes[..count]);
            Ok(count)
        }
    }

    #[test]
    fn bytes_are_kept_until_they_are_used() {
        let mut ahead = ReadAhead::default();
        ahead.extend(b"ab");
        assert_eq!(ahead.fill(put(b"cd")).unwrap(), 2);
        ahead.consume(3);
        assert_eq!((ahead.data(), ahead.len()), (&b"d"[..], 1));
        assert_eq!(ahead.fill(put(b"ef")).unwrap(), 2);
        assert_eq!(ahead.data(), b"def");
        ahead.consume(100);
        assert!(ahead.is_empty());
    }

    #[test]
    fn it_grows_with_what_comes_and_shrinks_when_idle() {
        let mut ahead = ReadAhead::default();
        assert_eq!(ahead.fill(put(&[7; 50_000])).unwrap(), SMALL);
        assert_eq!(ahead.fill(put(&[8; 50_000])).unwrap(), LARGE - SMALL);
        ahead.shrink();
        assert_eq!(ahead.len(), LARGE, "nothing is lost");
        ahead.consume(LARGE);
        ahead.shrink();
        assert_eq!(ahead.capacity(), SMALL);
    }

    #[test]
    fn an_interrupted_read_is_tried_again() {
        let mut ahead = ReadAhead::default();
        let mut interrupted = false;
        let count = ahead.fill(|free| {
            if !std::mem::replace(&mut interrupted, true) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            put(b"x")(free)
        });
        assert_eq!((count.unwrap(), ahead.data()), (1, &b"x"[..]));
    }
}
