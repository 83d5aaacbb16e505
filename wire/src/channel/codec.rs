//! The two algorithms of the compressed protocol. Each packet is compressed by itself, so that the large states they work
//! with are lent for one packet and idle connections hold none.

use super::compression::Algorithm;
use crate::WireError;
use flate2::{Compress, Decompress, FlushCompress, FlushDecompress, Status};
use parking_lot::Mutex;
use std::io;
use zstd::bulk::Compressor;
use zstd::stream::raw::{DParameter, Decoder, Operation};

/// States kept for the next packet, of each kind.
const KEPT: usize = 4;
/// A zstd frame of one packet needs no larger window than the packet: 16 MiB.
const WINDOW_LOG: u32 = 24;
/// A decoder that was given a larger packet than this has grown with it and is not kept, in bytes.
const KEPT_PACKET: usize = 1 << 20;

static DEFLATERS: Pool<Compress> = Pool::new();
static INFLATERS: Pool<Decompress> = Pool::new();
static COMPRESSORS: Pool<Compressor<'static>> = Pool::new();
static DECODERS: Pool<Decoder<'static>> = Pool::new();

struct Pool<T>(Mutex<Vec<T>>);

impl<T> Pool<T> {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }
    fn take(&self) -> Option<T> {
        self.0.lock().pop()
    }
    fn put(&self, state: T) {
        let mut kept = self.0.lock();
        if kept.len() < KEPT {
            kept.push(state);
        }
    }
}

/// Appends `input`, compressed, to `output`. False, and nothing appended, if that would not make it smaller.
pub(super) fn compress(algorithm: Algorithm, input: &[u8], output: &mut Vec<u8>) -> bool {
    let start = output.len();
    output.resize(start + input.len(), 0);
    let room = output.get_mut(start..).unwrap_or_default();
    let written = match algorithm {
        Algorithm::Zlib => deflate(input, room),
        Algorithm::Zstd { level } => zstd(level, input, room),
    };
    output.truncate(start + written.unwrap_or(0));
    written.is_some()
}

/// The number of bytes written; `None` if `output` is too small for them.
fn deflate(input: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut state = DEFLATERS.take().unwrap_or_else(|| Compress::new(flate2::Compression::default(), true));
    let status = state.compress(input, output, FlushCompress::Finish);
    let written = usize::try_from(state.total_out()).ok();
    state.reset();
    DEFLATERS.put(state);
    if matches!(status, Ok(Status::StreamEnd)) { written } else { None }
}

/// As `deflate`. Whatever keeps zstd from its work, the bytes can go as they are.
fn zstd(level: u8, input: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut state = match COMPRESSORS.take() {
        Some(state) => state,
        None => Compressor::new(level.into()).ok()?,
    };
    state.set_compression_level(level.into()).ok()?;
    let written = state.compress_to_buffer(input, output).ok();
    COMPRESSORS.put(state);
    written
}

/// Decompresses one packet in steps.
pub(super) enum Decompression {
    Zlib(Decompress),
    Zstd(Decoder<'static>),
}

/// What one step did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Step {
    /// Bytes of input used and of output written.
    pub(super) read: usize,
    pub(super) written: usize,
    /// Whether the packet's last byte has been written.
    pub(super) ended: bool,
}

impl Decompression {
    pub(super) fn begin(algorithm: Algorithm) -> io::Result<Self> {
        Ok(match algorithm {
            Algorithm::Zlib => Self::Zlib(INFLATERS.take().unwrap_or_else(|| Decompress::new(true))),
            Algorithm::Zstd { .. } => Self::Zstd(match DECODERS.take() {
                Some(decoder) => decoder,
                None => {
                    let mut decoder = Decoder::new()?;
                    decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG))?;
                    decoder
                }
            }),
        })
    }
    pub(super) fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<Step, WireError> {
        const CORRUPT: WireError = WireError::Damaged("compressed data is damaged");
        match self {
            Self::Zlib(state) => {
                let (read, written) = (state.total_in(), state.total_out());
                let status = state.decompress(input, output, FlushDecompress::None).map_err(|_| CORRUPT)?;
                // Neither can exceed what was given.
                let (read, written) = (state.total_in() - read, state.total_out() - written);
                Ok(Step {
                    read: read as usize,
                    written: written as usize,
                    ended: status == Status::StreamEnd,
                })
            }
            Self::Zstd(decoder) => {
                let status = decoder.run_on_buffers(input, output).map_err(|_| CORRUPT)?;
                Ok(Step {
                    read: status.bytes_read,
                    written: status.bytes_written,
                    ended: status.remaining == 0,
                })
            }
        }
    }
    /// Gives the state back, after a packet of `length` bytes.
    pub(super) fn end(self, length: usize) {
        match self {
            Self::Zlib(mut state) => {
                state.reset(true);
                INFLATERS.put(state);
            }
            Self::Zstd(mut decoder) => {
                if length <= KEPT_PACKET && decoder.reinit().is_ok() {
                    DECODERS.put(decoder);
                }
            }
        }
    }
}
